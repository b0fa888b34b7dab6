"""One websocket server for every brain and every server codec."""

from __future__ import annotations

import hmac
import ipaddress
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.servers.answering import House
from voxmeter.client.servers.brain import Brain, RefusedError, Terms
from voxmeter.client.servers.conversation import Conversation
from voxmeter.client.servers.punctual import Punctual
from voxmeter.client.servers.stamped import StampedServerConnection
from voxmeter.client.servers.truth import TruthLog
from voxmeter.client.terminal import warn
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.moshi_options import QUERY_KEYS
from voxmeter.endpoints.serving import ServerCodec

CLIENT_KEYS = frozenset({"model", "intent", "call_id", "deployment", "api-version"}) | (
    QUERY_KEYS - {"seed"}
)
"""Query keys that clients of hosted services send by themselves; nothing here depends on them."""

_QUEUE_FRAMES = 64  # more than a second of audio; beyond it the client has to wait
_CLOSE_TIMEOUT_S = 1.0
_PROTOCOL_CLOSE, _FAULT_CLOSE = 1002, 1011


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How a server is reached.

    Attributes:
        host: Address to listen on.
        port: 0 takes a free one.
        path: Path in the URL that is told; every path is served.
        token: What clients must show, as a bearer token or as `token=` in the query; "" for none,
            which only loopback addresses may do.
        query: Defaults of every session's query.
        max_message_mib: Largest message taken, MiB.
        max_sessions: Sessions at a time; more are told to come back later.
        turn_limit_s: Longest turn that is kept, s.
    """

    host: str = "127.0.0.1"
    port: int = 0
    path: str = ""
    token: str = field(default="", repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    max_message_mib: int = 64
    max_sessions: int = 256
    turn_limit_s: float = 300.0


@dataclass(frozen=True, slots=True)
class _Admission:
    query: Mapping[str, str]
    terms: Terms


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
    if not settings.token and not _loopback(settings.host):
        raise UserError(
            f"--host {settings.host}",
            "others can reach it, and there is no token",
            "set --token-env",
        )
    clock = clock or SystemClock()
    with ThreadPoolExecutor(2, "turn audio") as executor:
        house = House(brain, Punctual(clock), executor, truth, settings.turn_limit_s)
        door = _Door(brain, settings)
        sessions = itertools.count(1)

        async def handle(connection: ServerConnection) -> None:
            assert isinstance(connection, StampedServerConnection)  # noqa: S101 - made below
            connection.clock = clock
            await _session(house, connection, codec(), door, next(sessions))

        try:
            server = await serve(
                handle,
                settings.host,
                settings.port,
                process_request=door.admit,
                create_connection=StampedServerConnection,
                compression=None,
                max_size=settings.max_message_mib * 2**20,
                max_queue=_QUEUE_FRAMES,
                ping_timeout=None,
                close_timeout=_CLOSE_TIMEOUT_S,
                server_header=None,
                logger=_quiet_logger(),
            )
        except OSError as error:
            raise UserError(
                f"--host {settings.host} --port {settings.port}",
                f"cannot be listened on ({error.strerror or error})",
                "choose another port, or 0 for a free one",
            ) from error
        async with server:
            port = server.sockets[0].getsockname()[1]
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            yield f"ws://{host}:{port}{settings.path}"


class _Door:
    """Decides on the upgrade who comes in."""

    def __init__(self, brain: Brain, settings: HostSettings) -> None:
        self._brain = brain
        self._settings = settings
        self.inside = 0

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse the upgrade with one line, or let the session in."""
        query = dict(parse_qsl(urlsplit(request.path).query, keep_blank_values=True))
        shown = query.pop("token", "")
        bearer = request.headers.get_all("Authorization")
        if bearer and bearer[0][:7].lower() == "bearer ":
            shown = bearer[0][7:].strip()
        try:
            self._check(shown)
            query = {key: value for key, value in query.items() if key not in CLIENT_KEYS}
            query = {**self._settings.query, **query}
            terms = self._brain.admit(query)
        except RefusedError as refused:
            return connection.respond(refused.status, f"{refused.reason}\n")
        assert isinstance(connection, StampedServerConnection)  # noqa: S101 - made by `serving`
        connection.admission = _Admission(query, terms)
        return None

    def _check(self, shown: str) -> None:
        token = self._settings.token
        if token and not hmac.compare_digest(shown.encode(), token.encode()):
            raise RefusedError(401, "the token is missing or wrong")
        if self.inside >= self._settings.max_sessions:
            raise RefusedError(503, f"all {self._settings.max_sessions} sessions are taken")


async def _session(
    house: House,
    connection: StampedServerConnection,
    codec: ServerCodec,
    door: _Door,
    number: int,
) -> None:
    """Run one session; whatever goes wrong in it ends only itself."""
    admission = connection.admission
    assert isinstance(admission, _Admission)  # noqa: S101 - set by `_Door.admit`
    conversation = Conversation(
        house, connection, codec, terms=admission.terms, query=admission.query, number=number
    )
    door.inside += 1
    try:
        await conversation.run()
    except* ProtocolError as group:
        text = str(group.exceptions[0])
        warn(f"session {number}: {text}")
        await connection.close(_PROTOCOL_CLOSE, text[:100])
    except* Exception as group:  # noqa: BLE001 - one session's fault must not end the others
        text = "; ".join(f"{type(one).__name__}: {one}" for one in group.exceptions)
        warn(f"session {number}: {text}")
        await connection.close(_FAULT_CLOSE, "a fault of the server")
    finally:
        door.inside -= 1


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _quiet_logger() -> logging.Logger:
    """Return a logger for what the library would say of strangers that speak no HTTP."""
    logger = logging.getLogger("voxmeter.servers.websockets")
    logger.setLevel(logging.CRITICAL)
    return logger
