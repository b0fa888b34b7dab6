"""One HTTP server for every brain, and every server codec that takes requests."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import h11

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.servers.answering import House
from voxmeter.client.servers.brain import Brain, RefusedError
from voxmeter.client.servers.conversation import Conversation
from voxmeter.client.servers.door import Admission, Door, HostSettings, listening
from voxmeter.client.servers.http_answer import METHODS, Accepted, Answer, refusal
from voxmeter.client.servers.punctual import Punctual
from voxmeter.client.servers.truth import TruthLog
from voxmeter.client.terminal import warn
from voxmeter.endpoints.codec import Ended, Request
from voxmeter.endpoints.errors import ConnectionLostError, ProtocolError
from voxmeter.endpoints.serving import ServerCodec

_IDLE_S = 75.0  # between requests; also before the first
_HEAD_S = 10.0  # for a head, from its first byte on
_BODY_S = 60.0
_DRAIN_S = 2.0  # for what is left of a request that was refused
_LARGEST_HEAD = 64 * 1024
_WAITING = 2**20  # bytes that may wait unread
_CONNECTIONS = 4  # for each session that is allowed


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

    Every request is a session. Connections are kept for the next request, as HTTP/1.1 has it.

    Args:
        brain: Loaded already; answers in all sessions.
        codec: Makes the server's half of the protocol for one request.
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
        host = _Host(house, codec, door, settings, clock)
        loop = asyncio.get_running_loop()
        with listening(settings):
            server = await loop.create_server(host.accept, settings.host, settings.port)
        try:
            yield settings.url("http", server.sockets[0].getsockname()[1])
        finally:
            server.close()
            await host.end()


class _Host:
    """All connections of one server."""

    def __init__(
        self,
        house: House,
        codec: Callable[[], ServerCodec],
        door: Door,
        settings: HostSettings,
        clock: Clock,
    ) -> None:
        self._house, self._codec, self._door, self._clock = house, codec, door, clock
        self._limit = settings.max_message_mib * 2**20
        self._most = settings.max_sessions * _CONNECTIONS
        self._numbers = itertools.count(1)
        self._talks: set[asyncio.Task[None]] = set()

    def accept(self) -> Accepted:
        """Return what a new connection talks to."""
        return Accepted(self._clock, _WAITING, self._begin)

    async def end(self) -> None:
        """Drop every connection."""
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _begin(self, link: Accepted) -> None:
        if len(self._talks) >= self._most:
            link.abort()
            return
        talk = asyncio.get_running_loop().create_task(self._talk(link), name="http connection")
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, link: Accepted) -> None:
        """Answer the requests of one connection; whatever goes wrong in it ends only itself."""
        guest = _Guest(link)
        try:
            with suppress(ConnectionLostError):
                while await self._exchange(guest):
                    pass
                await link.finish()
        except Exception as error:  # noqa: BLE001 - one connection's fault must not end the others
            warn(f"a connection: {type(error).__name__}: {error}")
        finally:
            await link.close()

    async def _exchange(self, guest: _Guest) -> bool:
        """Answer one request; return whether another may follow."""
        try:
            head = await guest.head()
            if head is None:
                return False
            admission = self._door.admit(head.target, head.headers)
            t_ns, body = await guest.body(head, self._limit)
        except RefusedError as refused:
            await guest.refuse(refused)
            return await guest.renew()
        request = Request(body, head.headers, head.method, head.target)
        answer = Answer(guest.link, guest.state, self._clock, request, t_ns)
        await self._session(answer, admission)
        if answer.torn:
            answer.cut()
        return not answer.spoiled and await guest.renew()

    async def _session(self, answer: Answer, admission: Admission) -> None:
        number = next(self._numbers)
        conversation = Conversation(
            self._house,
            answer,
            self._codec(),
            terms=admission.terms,
            query=admission.query,
            number=number,
        )
        try:
            with self._door.session():
                await conversation.run()
        except* ProtocolError as group:
            text = str(group.exceptions[0])
            warn(f"session {number}: {text}")
            await _tell(answer, 400, text)
        except* Exception as group:  # noqa: BLE001 - one session's fault must not end the others
            text = "; ".join(f"{type(one).__name__}: {one}" for one in group.exceptions)
            warn(f"session {number}: {text}")
            await _tell(answer, 500, "a fault of the server")


async def _tell(answer: Answer, status: int, words: str) -> None:
    with suppress(ConnectionLostError):  # nobody is there to be told
        await answer.send_messages([Ended(status, words)])


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of a request.

    Attributes:
        method: HTTP's verb.
        target: Path and query.
        headers: With names in lower case.
    """

    method: str
    target: str
    headers: Mapping[str, str]


class _Guest:
    """Reads the requests of one connection.

    Attributes:
        link: The connection.
        state: What is allowed on it now.
    """

    def __init__(self, link: Accepted) -> None:
        self.link = link
        self.state = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_HEAD)
        self._t_ns = 0

    async def head(self) -> _Head | None:
        """Return the head of the next request; None if the client has nothing to ask.

        Raises:
            RefusedError: If it is none, or none that is served, or is not complete in time.
            ConnectionLostError: If the connection broke.
        """
        if not self.state.trailing_data[0]:
            try:
                async with asyncio.timeout(_IDLE_S):
                    await self._more()
            except TimeoutError:
                return None
        event = await self._within(_HEAD_S)
        if not isinstance(event, h11.Request):
            return None
        method = event.method.decode("ascii")
        if method not in METHODS:
            raise RefusedError(405, f"{method[:20]} asks nothing: send the question with POST")
        headers = {
            bytes(name).decode("latin-1"): bytes(value).decode("latin-1")
            for name, value in reversed(list(event.headers))
        }
        return _Head(method, event.target.decode("latin-1"), headers)

    async def body(self, head: _Head, limit: int) -> tuple[int, bytes]:
        """Return the body, and the moment (ns) at which the request was complete.

        Args:
            head: What it belongs to.
            limit: Largest body, bytes.

        Raises:
            RefusedError: If it is too large, or is not complete in time.
            ConnectionLostError: If the connection broke.
        """
        found = bytearray()
        told = int(head.headers.get("content-length", "0"))
        if self.state.they_are_waiting_for_100_continue and told <= limit:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await self.link.put(self.state.send(go_on) or b"")
        until = asyncio.get_running_loop().time() + _BODY_S
        while True:
            if max(told, len(found)) > limit:
                raise RefusedError(413, f"a request may have at most {limit // 2**20} MiB")
            event = await self._within(until - asyncio.get_running_loop().time())
            if not isinstance(event, h11.Data):
                return self._t_ns, bytes(found)
            found += event.data

    async def refuse(self, refused: RefusedError) -> None:
        """Answer with a status and one line.

        Raises:
            ConnectionLostError: If the client has gone.
        """
        await self.link.put(refusal(self.state, refused.status, refused.reason))

    async def renew(self) -> bool:
        """Return whether another request may come, and get ready for it."""
        try:
            async with asyncio.timeout(_DRAIN_S):  # closing on unread bytes would lose the answer
                while self.state.their_state is h11.SEND_BODY:
                    await self._event()
        except (TimeoutError, RefusedError):
            return False
        if self.state.our_state is not h11.DONE or self.state.their_state is not h11.DONE:
            return False
        self.state.start_next_cycle()
        return True

    async def _within(self, limit_s: float) -> h11.Event:
        try:
            async with asyncio.timeout(limit_s):
                return await self._event()
        except TimeoutError:
            raise RefusedError(408, "the request did not come whole in time") from None

    async def _event(self) -> h11.Event:
        while True:
            try:
                event = self.state.next_event()
            except h11.RemoteProtocolError as error:
                raise RefusedError(error.error_status_hint, f"not HTTP: {error}") from None
            if isinstance(event, h11.Event):
                return event
            await self._more()

    async def _more(self) -> None:
        self._t_ns, data = await self.link.read()
        self.state.receive_data(data)
