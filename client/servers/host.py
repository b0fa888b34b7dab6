"""One websocket server for every brain and every server codec."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.servers.answering import House
from voxmeter.client.servers.brain import Brain, RefusedError
from voxmeter.client.servers.conversation import Conversation
from voxmeter.client.servers.door import Admission, Door, HostSettings, listening
from voxmeter.client.servers.punctual import Punctual
from voxmeter.client.servers.stamped import StampedServerConnection
from voxmeter.client.servers.truth import TruthLog
from voxmeter.client.terminal import warn
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.serving import ServerCodec

__all__ = ["HostSettings", "serving"]

_QUEUE_FRAMES = 64  # more than a second of audio; beyond it the client has to wait
_CLOSE_TIMEOUT_S = 1.0
_PROTOCOL_CLOSE, _FAULT_CLOSE = 1002, 1011


@asynccontextmanager
async def serving(
    brain: Brain,
    codec: Callable[[], ServerCodec],
    settings: HostSettings,
    *,
    truth: TruthLog | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[str]:
    """Serve sessions inside a `with` block, which gets the URL to connect to.

    Args:
        brain: Loaded already; answers in all sessions.
        codec: Makes the server's half of the protocol for one session.
        settings: How the server is reached.
        truth: Where every turn is logged.
        clock: The machine's, unless a test moves it.

    Raises:
        UserError: If the address cannot be listened on, or is not loopback and there is no token.
    """
    door = Door(brain, settings)
    clock = clock or SystemClock()
    with ThreadPoolExecutor(2, "turn audio") as executor:
        house = House(brain, Punctual(clock), executor, truth, settings.turn_limit_s)
        sessions = itertools.count(1)

        async def handle(connection: ServerConnection) -> None:
            assert isinstance(connection, StampedServerConnection)  # noqa: S101 - made below
            connection.clock = clock
            await _session(house, connection, codec(), door, next(sessions))

        def admit(connection: ServerConnection, request: Request) -> Response | None:
            assert isinstance(connection, StampedServerConnection)  # noqa: S101 - made below
            headers = {name.lower(): value for name, value in request.headers.raw_items()}
            try:
                connection.admission = door.admit(request.path, headers)
            except RefusedError as refused:
                return connection.respond(refused.status, f"{refused.reason}\n")
            return None

        with listening(settings):
            server = await serve(
                handle,
                settings.host,
                settings.port,
                process_request=admit,
                create_connection=StampedServerConnection,
                compression=None,
                max_size=settings.max_message_mib * 2**20,
                max_queue=_QUEUE_FRAMES,
                ping_timeout=None,
                close_timeout=_CLOSE_TIMEOUT_S,
                server_header=None,
                logger=_quiet_logger(),
            )
        async with server:
            yield settings.url("ws", server.sockets[0].getsockname()[1])


async def _session(
    house: House,
    connection: StampedServerConnection,
    codec: ServerCodec,
    door: Door,
    number: int,
) -> None:
    """Run one session; whatever goes wrong in it ends only itself."""
    admission = connection.admission
    assert isinstance(admission, Admission)  # noqa: S101 - set on the upgrade
    conversation = Conversation(
        house, connection, codec, terms=admission.terms, query=admission.query, number=number
    )
    try:
        with door.session():
            await conversation.run()
    except* ProtocolError as group:
        text = str(group.exceptions[0])
        warn(f"session {number}: {text}")
        await connection.close(_PROTOCOL_CLOSE, text[:100])
    except* Exception as group:  # noqa: BLE001 - one session's fault must not end the others
        text = "; ".join(f"{type(one).__name__}: {one}" for one in group.exceptions)
        warn(f"session {number}: {text}")
        await connection.close(_FAULT_CLOSE, "a fault of the server")


def _quiet_logger() -> logging.Logger:
    """Return a logger for what the library would say of strangers that speak no HTTP."""
    logger = logging.getLogger("voxmeter.servers.websockets")
    logger.setLevel(logging.CRITICAL)
    return logger
