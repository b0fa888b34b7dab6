"""One HTTP request and its answer, as the connection of a served session."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate
from http import HTTPStatus

import h11

from voxmeter.client.clock import Clock
from voxmeter.client.http_link import Link
from voxmeter.endpoints.codec import Binary, Ended, Message, Request, Response
from voxmeter.endpoints.errors import ConnectionLostError

METHODS = ("POST", "PUT", "PATCH")

_STALL_S = 30.0  # a client that takes nothing for so long has gone
_NO_FAREWELL = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
_BESIDE: Mapping[int, Mapping[str, str]] = {
    401: {"WWW-Authenticate": "Bearer"},
    405: {"Allow": ", ".join(METHODS)},
    429: {"Retry-After": "1"},
    503: {"Retry-After": "1"},
}


class Accepted(Link):
    """A client's connection.

    Args:
        clock: Stamps what comes.
        limit: Bytes that may wait unread.
        begin: Called once the connection is there.

    Attributes:
        gone: Called when it is no longer.
    """

    def __init__(self, clock: Clock, limit: int, begin: Callable[[Accepted], None]) -> None:
        super().__init__(clock, limit)
        self.gone: Callable[[], None] = lambda: None
        self._begin = begin

    @property
    def lost(self) -> bool:
        """Whether the connection has ended."""
        return self._closed.is_set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve it."""
        super().connection_made(transport)
        self._begin(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever answers."""
        super().connection_lost(exc)
        self.gone()

    def abort(self, *, reset: bool = False) -> None:
        """Drop the connection, with what was still to be sent.

        Args:
            reset: Whether the client is to see that this is not an end as it should be.
        """
        if reset and not self.lost:
            plug: socket.socket = self._open().get_extra_info("socket")
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_FAREWELL)
        self._open().abort()

    async def put(self, data: bytes) -> None:
        """Send bytes; return when the system has all but a little of them.

        Raises:
            ConnectionLostError: If the client has gone, or takes nothing.
        """
        try:
            async with asyncio.timeout(_STALL_S):
                await self.write(data)
        except TimeoutError:
            self.abort()
            raise ConnectionLostError(None, "the client takes nothing") from None
        if self.lost:
            raise ConnectionLostError(None, "the client has gone")

    async def finish(self) -> None:
        """Close the connection once all has been sent."""
        self._open().close()
        try:
            async with asyncio.timeout(_STALL_S):
                await self._closed.wait()
        except TimeoutError:
            self.abort(reset=True)


class Answer:
    """A session's connection: a request that has come whole, then the answer to it.

    Args:
        link: Where it goes.
        state: What is allowed on it now.
        clock: Stamps what was sent.
        request: What came.
        t_ns: When it was complete.

    Attributes:
        spoiled: Whether something was sent that is no answer, so that none can follow.
    """

    def __init__(
        self, link: Accepted, state: h11.Connection, clock: Clock, request: Request, t_ns: int
    ) -> None:
        self.clock = clock
        self.spoiled = False
        self._link, self._state = link, state
        self._asked: Request | None = request
        self._t_ns = t_ns
        self._over = asyncio.Event()
        link.gone = self._over.set

    @property
    def torn(self) -> bool:
        """Whether there is a body that nothing has ended."""
        return self._state.our_state is h11.SEND_BODY

    async def receive(self) -> tuple[int, Message]:
        """Return the request; then, when all of the reply has been said, the end.

        Raises:
            ConnectionLostError: If the client leaves before.
        """
        if self._asked is not None:
            asked, self._asked = self._asked, None
            return self._t_ns, asked
        await self._over.wait()
        if self._link.lost:
            raise ConnectionLostError(None, "the client has gone")
        return self.clock.now(), Ended()

    async def send_messages(self, messages: Sequence[Message]) -> int:
        """Send parts of the answer; return the moment (ns) at which they were with the system.

        Raises:
            ConnectionLostError: If the client has gone.
            TypeError: If a message is not part of an answer.
        """
        data = b"".join([self._written(message) for message in messages])
        if data:
            await self._link.put(data)
        return self.clock.now()

    async def send_raw(self, data: str | bytes) -> None:
        """Send bytes as they are, where an answer should be.

        Raises:
            ConnectionLostError: If the client has gone.
        """
        self.spoiled = True
        await self._link.put(data.encode() if isinstance(data, str) else data)

    def answered(self) -> None:
        """End the session: it is one request."""
        self._over.set()

    def cut(self) -> None:
        """Drop the connection; in HTTP/1.0 a plain close would be taken for the end of the body."""
        self._link.abort(reset=self._state.their_http_version == b"1.0")

    async def close(self, code: int = 1000, reason: str = "") -> None:  # noqa: ARG002 - no such words
        """End the session; the connection stays for the next one."""
        self._over.set()

    def _written(self, message: Message) -> bytes:
        match message:
            case Response(status, headers):
                return self._state.send(_head(status, headers)) or b""
            case Binary(data):
                return self._state.send(h11.Data(data=data)) or b""
            case Ended(None):
                return self._state.send(h11.EndOfMessage()) or b""
            case Ended(int(code), reason) if self._state.our_state is h11.SEND_RESPONSE:
                return refusal(self._state, code, reason)
            case Ended():
                self.cut()
                return b""
            case _:
                raise TypeError(f"an answer cannot carry {type(message).__name__}")


def refusal(state: h11.Connection, status: int, words: str) -> bytes:
    """Return a whole answer that refuses a request, with words that both sides can read."""
    body = json.dumps({"error": {"message": words}}).encode()
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **_BESIDE.get(status, {}),
    }
    events: list[h11.Event] = [_head(status, headers), h11.Data(data=body), h11.EndOfMessage()]
    return b"".join([state.send(event) or b"" for event in events])


def _head(status: int, headers: Mapping[str, str]) -> h11.Response:
    dated = [*headers.items(), ("Date", formatdate(usegmt=True))]
    return h11.Response(status_code=status, reason=HTTPStatus(status).phrase, headers=dated)
