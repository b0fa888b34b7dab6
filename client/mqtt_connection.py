"""Connections to an MQTT broker: their settings, the library's client, and its errors in words."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from voxmeter.client.dialing import connect_error, tls_context
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.errors import ConnectError, MissingExtraError

if TYPE_CHECKING:
    import aiomqtt

PORT, TLS_PORT = 1883, 8883
KEEPALIVE_S = 15
"""How often the broker hears of us at least; the library also waits that long for TLS."""
_WRONG_PASSWORD = {4, 134}  # MQTT 3.1.1, and the same as the library tells it
_NOT_ALLOWED = {5, 135}
_BUSY = {3, 136, 137}


@dataclass(frozen=True, slots=True)
class MqttSettings:
    """How a broker is reached.

    Attributes:
        host: Its name or address.
        port: 1883 by convention, 8883 with TLS.
        tls: Whether to speak TLS.
        ca_file: PEM file of an extra certificate authority, "" for none.
        insecure: Accept any certificate.
        username: None to show none; the broker then sees no password either.
        password: What goes with it.
        identifier: Our name as a client, unlike any other on the broker; None lets the library
            make one.
    """

    host: str
    port: int = PORT
    tls: bool = False
    ca_file: str = ""
    insecure: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    identifier: str | None = None

    @property
    def url(self) -> str:
        """Where it is, with neither name nor password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{host}:{self.port}"


def mqtt_client(
    settings: MqttSettings,
    *,
    will: aiomqtt.Will | None = None,
    timeout_s: float = 10.0,
    queue_type: Callable[..., Any] | None = None,
    most_queued: int = 0,
) -> aiomqtt.Client:
    """Return an unconnected client; it must be made inside a running event loop.

    Args:
        settings: Where to connect and as whom.
        will: What the broker says for us when we are gone without a word.
        timeout_s: How long any one answer of the broker is waited for.
        queue_type: Makes what holds arrived messages, given `maxsize`.
        most_queued: How many arrived messages wait at most, 0 for any number.

    Raises:
        MissingExtraError: If aiomqtt is not installed.
        UserError: If `ca_file` is no file of certificates.
    """
    try:
        import aiomqtt
    except ImportError:
        raise MissingExtraError("MQTT", "aiomqtt", "mqtt") from None
    wire = TransportSettings(insecure=settings.insecure, ca_file=settings.ca_file)
    return aiomqtt.Client(
        settings.host,
        settings.port,
        username=settings.username,
        password=settings.password,
        identifier=settings.identifier,
        tls_context=tls_context(settings.url, wire),
        keepalive=KEEPALIVE_S,
        timeout=timeout_s,
        will=will,
        queue_type=queue_type,  # type: ignore[arg-type]
        max_queued_incoming_messages=most_queued,
        logger=_silent_logger(),
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],  # else 40 ms now and then
    )


def broker_error(error: Exception, settings: MqttSettings) -> ConnectError:
    """Return what it means that a broker could not be connected to; its text is one sentence.

    Args:
        error: What entering the client raised: the library's, or the system's.
        settings: What was to be reached.
    """
    code = _code(error)
    if code is not None:
        return _refused(code, settings)
    cause = error if isinstance(error, OSError | UnicodeError) else error.__context__
    if isinstance(cause, ssl.SSLError | socket.gaierror | UnicodeError):
        return connect_error(cause, settings.url)
    if isinstance(cause, OSError) and not isinstance(cause, TimeoutError):
        return ConnectError("refused", f"no broker at {settings.url}: {cause.strerror or cause}")
    said = f"{settings.url} does not answer as an MQTT broker"
    return ConnectError("timeout", said + ("" if settings.tls else "; does it want mqtts://?"))


def forget(client: aiomqtt.Client) -> None:
    """Free the socket of a client that was refused or given up: the library leaves it open."""
    paho = client._client  # noqa: SLF001 - there is no other way to it
    paho._sock_close()  # noqa: SLF001 - its callbacks take the socket out of the event loop


def lost_words(error: Exception, settings: MqttSettings) -> str:
    """Return what it means that a connection ended, in a few words."""
    cause = error if isinstance(error, OSError) else error.__cause__
    said = "" if cause is None else f" ({cause})"
    return f"the broker at {settings.url} is gone{said}"


def _code(error: Exception) -> int | None:
    """Return the broker's own code, of a connection that it refused."""
    from aiomqtt.exceptions import MqttConnectError

    if not isinstance(error, MqttConnectError):
        return None
    code = getattr(error.rc, "value", error.rc)
    return code if isinstance(code, int) else None


def _refused(code: int, settings: MqttSettings) -> ConnectError:
    place = f"the broker at {settings.url}"
    if code in _BUSY:
        return ConnectError("rejected", f"{place} says that it is not available", code)
    if code in _WRONG_PASSWORD | _NOT_ALLOWED:
        shown = "no user name" if settings.username is None else f"user {settings.username!r}"
        words = f"{place} refuses {shown}: " + (
            "it wants a name and a password"
            if settings.username is None
            else "name or password is wrong, or it may not connect"
        )
        return ConnectError("rejected", words, code)
    return ConnectError("rejected", f"{place} refused the connection with code {code}", code)


def _silent_logger() -> logging.Logger:
    """Return a logger that says nothing: every error is told where it is handled."""
    logger = logging.getLogger("voxmeter.mqtt")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger
