"""One HTTP/1.1 connection and the request on it that is being answered; the framing is h11's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import h11

from voxmeter.client import http_proxy
from voxmeter.client.http_link import Link
from voxmeter.client.http_words import refusal
from voxmeter.client.transport import Arrival
from voxmeter.endpoints.codec import Binary, Ended, Fetched, Response
from voxmeter.endpoints.errors import ConnectionLostError, ProtocolError

_LARGEST_HEAD = 128 * 1024
_REFUSAL_BYTES = 4 * 1024  # of a refused request's body; nobody reads more
_REFUSAL_S = 2.0
_ANSWER = b"HTTP/"


@dataclass(slots=True)
class Exchange:
    """One connection, and the request on it that is being answered.

    Attributes:
        link: The connection.
        proxy: The proxy that is told whom a plain request is for; None without one.
    """

    link: Link
    proxy: http_proxy.Proxy | None = None
    _state: h11.Connection = field(
        default_factory=lambda: h11.Connection(h11.CLIENT, max_incomplete_event_size=_LARGEST_HEAD)
    )
    _last: bytes = b""
    _t_ns: int = 0

    def renew(self) -> bool:
        """Return whether another request may be sent here, and get ready for it."""
        if not self.link.usable:
            return False
        if self._state.our_state is h11.IDLE:
            return True
        if self._state.our_state is h11.DONE and self._state.their_state is h11.DONE:
            self._state.start_next_cycle()
            return True
        return False

    async def ask(self, head: h11.Request, body: bytes) -> None:
        """Send a whole request."""
        parts: list[h11.Event] = [head, h11.Data(data=body), h11.EndOfMessage()]
        sent = [self._state.send(part) or b"" for part in parts]
        await self.link.write(b"".join(sent))

    async def answer(self, secrets: tuple[str, ...], limit: int) -> AsyncIterator[Arrival]:
        """Yield what comes until the answer is over.

        Args:
            secrets: What is taken out of the words of a refusal.
            limit: Largest body, bytes.
        """
        taken, pieces = 0, bytearray()
        while True:
            event = self._parsed()
            if pieces and not isinstance(event, h11.Data):  # all of one read is one piece
                yield Arrival(self._t_ns, Binary(bytes(pieces)))
                pieces.clear()
            match event:
                case None:
                    await self._more()
                case h11.Response(status_code=status) if not 200 <= status < 300:
                    yield await self._refused(event, secrets)
                    return
                case h11.Response(status_code=status):
                    yield Arrival(self._t_ns, Response(status, self._headers(event)))
                case h11.Data(data=data):
                    taken += len(data)
                    if taken > limit:
                        found = "a body was larger than max_message_mib"
                        raise ProtocolError("http", found, Binary(bytes(data)))
                    pieces += data
                case h11.EndOfMessage():
                    yield Arrival(self._t_ns, Ended())
                    return
                case _:
                    continue  # 1xx: the real answer follows

    async def whole(self, aside: str, secrets: tuple[str, ...], limit: int) -> Arrival:
        """Return the answer as one message, with the moment at which it was complete.

        Args:
            aside: What the request was called.
            secrets: What is taken out of the words of a refusal.
            limit: Largest body, bytes.
        """
        status, headers, body, t_ns = 200, {}, bytearray(), 0
        async for t_ns, message in self.answer(secrets, limit):
            match message:
                case Response():
                    status, headers = message.status, dict(message.headers)
                case Binary(data):
                    body += data
                case Ended(code, reason) if code is not None:
                    return Arrival(t_ns, Fetched(aside, code, reason=reason))
                case _:
                    continue  # the end as it should be
        return Arrival(t_ns, Fetched(aside, status, headers, bytes(body)))

    async def _refused(self, head: h11.Response, secrets: tuple[str, ...]) -> Arrival:
        body = bytearray()
        t_ns = self._t_ns
        try:
            async with asyncio.timeout(_REFUSAL_S):
                while len(body) < _REFUSAL_BYTES:
                    event = await self._next()
                    if not isinstance(event, h11.Data):
                        break
                    body += event.data
        except (TimeoutError, ConnectionLostError, ProtocolError):
            pass  # its words are a courtesy
        if self._state.their_state is not h11.DONE:
            self._state.send_failed()
        headers = self._headers(head, strict=False)
        words = refusal(bytes(head.reason).decode("latin-1"), headers, bytes(body), secrets)
        return Arrival(t_ns, Ended(head.status_code, words))

    async def _next(self) -> h11.Event:
        while (event := self._parsed()) is None:
            await self._more()
        return event

    async def _more(self) -> None:
        self._check_start()
        self._t_ns, self._last = await self.link.read()
        self._state.receive_data(self._last)

    def _parsed(self) -> h11.Event | None:
        """Return what comes next, None if more bytes are needed to tell."""
        amid = self._state.their_state is h11.SEND_BODY
        try:
            event = self._state.next_event()
        except h11.RemoteProtocolError as error:
            if not self._last:
                where = "in the middle of a body" if amid else "without an answer"
                raise ConnectionLostError(None, f"closed {where}") from error
            found = f"does not answer as HTTP ({error})"
            raise ProtocolError("http", found, Binary(self._last)) from error
        if event is h11.NEED_DATA:
            return None
        if isinstance(event, h11.ConnectionClosed) or not isinstance(event, h11.Event):
            raise ConnectionLostError(None, "closed without an answer")
        return event

    def _check_start(self) -> None:
        """Refuse what cannot become an answer, rather than wait for the rest of its head."""
        if self._state.their_state is h11.SEND_RESPONSE:
            held = bytes(self._state.trailing_data[0])
            if not (held.startswith(_ANSWER) or _ANSWER.startswith(held)):
                raise ProtocolError("http", "does not answer as HTTP", Binary(held))

    def _headers(self, head: h11.Response, *, strict: bool = True) -> dict[str, str]:
        found = {
            bytes(name).decode("latin-1"): bytes(value).decode("latin-1")
            for name, value in head.headers
        }
        packed = found.get("content-encoding", "identity")
        if strict and packed.lower() not in {"identity", ""}:
            problem = f"the body is compressed as {packed}, which was not asked for"
            raise ProtocolError("http", problem, Response(head.status_code, found))
        return found
