"""From the table `[publish.mqtt]` to how the broker is reached, and whether it takes us."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from voxmeter.client import redaction
from voxmeter.client.dialing import tls_context
from voxmeter.client.mqtt_connection import (
    PORT,
    TLS_PORT,
    MqttSettings,
    broker_error,
    forget,
    mqtt_client,
)
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench

_CHECK_S = 10.0


def mqtt_settings(bench: Bench, environment: Mapping[str, str] | None = None) -> MqttSettings:
    """Return how the broker of a bench that has one is reached.

    Args:
        bench: With a `[publish.mqtt]` table.
        environment: Other than the process's own, in tests.

    Raises:
        UserError: If a variable is missing, the certificate file is none, or the extra is not
            installed.
    """
    table = bench.publish.mqtt
    if table is None:
        raise ValueError(bench.source)
    place = f"{bench.source}: [publish.mqtt]"
    if find_spec("aiomqtt") is None:
        raise MissingExtraError(place, "aiomqtt", "mqtt")

    def value(key: str, name: str | None) -> str | None:
        return None if name is None else redaction.secret(name, f"{place} {key}", environment)

    settings = MqttSettings(
        host=table.host,
        port=table.port or (TLS_PORT if table.tls else PORT),
        tls=table.tls,
        ca_file=table.ca_file or "",
        insecure=table.insecure,
        username=value("username_env", table.username_env),
        password=value("password_env", table.password_env),
        identifier=f"voxmeter-{secrets.token_hex(6)}",
    )
    try:
        tls_context(settings.url, TransportSettings(ca_file=settings.ca_file))
    except UserError as error:
        raise UserError(f"{place} ca_file {error.place}", error.found, error.cure) from None
    return settings


def try_broker(settings: MqttSettings) -> str:
    """Connect once and leave; return one sentence on how that went.

    Raises:
        ConnectError: If the broker does not take us.
    """
    return asyncio.run(_try(settings))


async def _try(settings: MqttSettings) -> str:
    client = mqtt_client(settings, timeout_s=_CHECK_S)
    began = time.perf_counter()
    try:
        async with client:
            took_ms = (time.perf_counter() - began) * 1000
    except Exception as error:  # noqa: BLE001 - the library's, the system's, a broker's
        forget(client)
        raise broker_error(error, settings) from None
    return f"{settings.url} takes us, after {took_ms:.0f} ms"
