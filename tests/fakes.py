"""A toy protocol, its peer and a clock that tests move: stand-ins for what lies outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from voxmeter.client.transport import Arrival
from voxmeter.endpoints.codec import Address, Ended, Message, Step, Text, Traits, Turn
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    FaultKind,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
)


class FrozenClock:
    """A clock that stands still until somebody sleeps, and then jumps to the end of the sleep."""

    def __init__(self) -> None:
        self.t_ns = 1_000_000_000

    def now(self) -> int:
        return self.t_ns

    async def sleep_until(self, t_ns: int) -> None:
        self.t_ns = max(self.t_ns, t_ns)
        await asyncio.sleep(0)


@dataclass
class ToyCodec:
    """Text messages of one word and an argument; `traits` are the test's to choose."""

    traits: Traits = field(default_factory=lambda: Traits(8_000))

    def address(self, url: str, api_key: str | None) -> Address:
        return Address(url)

    def open(self) -> Step:
        return Step((), [Text("hello")])

    def turn(self, turn: Turn) -> Step:
        return Step((), [Text(f"history {turn.role} {turn.text}")])

    def audio(self, data: bytes) -> Step:
        return Step((), [Text(f"audio {len(data)}")])

    def text(self, text: str) -> Step:
        return Step((), [Text(f"text {text}")])

    def end_turn(self) -> Step:
        return Step((), [Text("commit")])

    def played(self, reply: str) -> Step:
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        return Step((), [Text(f"cancel {heard_ms}")])

    def close(self) -> Step:
        return Step((), [Text("bye")])

    def receive(self, message: Message) -> Step:
        if isinstance(message, Ended):
            return Step([Closed(message.code, message.reason)])
        assert isinstance(message, Text)
        word, _, rest = message.data.partition(" ")
        made = self._events(word, rest)
        if made is None:
            raise ProtocolError("toy", f"no such word: {word}", message)
        answer = [Text("pong")] if word == "ping" else []
        return Step(made, answer)

    def _events(self, word: str, rest: str) -> Sequence[Event] | None:
        match word:
            case "ping" | "note":
                return []
            case "ready":
                return [Ready(int(rest) if rest else None)]
            case "speech":
                return [SpeechStarted()]
            case "started":
                return [ReplyStarted(rest)]
            case "sound":
                return [ReplyAudio(bytes.fromhex(rest), "pcm16", 8_000)]
            case "text":
                return [ReplyText(rest)]
            case "end":
                return [ReplyEnded("completed")]
            case "incomplete":
                return [ReplyEnded("incomplete", detail=rest)]
            case "cancelled":
                return [ReplyEnded("cancelled")]
            case "fault":
                kinds: dict[str, FaultKind] = {"quota": "quota", "server": "server"}
                return [Fault(kinds[rest], retryable=True, message="says the toy")]
            case "complaint":
                return [Fault("request", retryable=False, message=rest, fatal=False)]
            case _:
                return None


Play = Callable[["ToyTransport"], Awaitable[None]]


class ToyTransport:
    """A connection whose peer is a coroutine of the test's."""

    def __init__(self, play: Play, refuse: ConnectError | None = None) -> None:
        self.sent: list[str] = []
        self.closed = False
        self._play, self._refuse = play, refuse
        self._arrivals: asyncio.Queue[Arrival] = asyncio.Queue()
        self._news = asyncio.Condition()
        self._peer: asyncio.Task[None] | None = None
        self._broken = False
        self.now: Callable[[], int] = lambda: 0

    async def connect(self, address: Address) -> None:
        if self._refuse is not None:
            raise self._refuse
        self._peer = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        await self._play(self)

    async def send(self, message: Message) -> None:
        if self._broken:
            raise ConnectionLostError(1006, "gone")
        assert isinstance(message, Text)
        async with self._news:
            self.sent.append(message.data)
            self._news.notify_all()

    async def receive(self) -> AsyncIterator[Arrival]:
        while True:
            arrival = await self._arrivals.get()
            yield arrival
            if isinstance(arrival.message, Ended):
                return

    async def rtt_ms(self) -> float | None:
        return 1.5

    async def close(self) -> None:
        self.closed = True
        if self._peer is not None:
            self._peer.cancel()

    # The peer's side

    def say(self, *words: str) -> None:
        for one in words:
            self._arrivals.put_nowait(Arrival(self.now(), Text(one)))

    def hang_up(self, code: int, reason: str = "") -> None:
        self._broken = True
        self._arrivals.put_nowait(Arrival(self.now(), Ended(code, reason)))

    async def until(self, count: int, word: str) -> None:
        """Wait until a word has been sent so many times."""
        async with self._news:
            await self._news.wait_for(
                lambda: sum(one.split(" ")[0] == word for one in self.sent) >= count
            )
