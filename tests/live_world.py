"""A world for a live talk in which time passes only when a test says so: devices, clock, peer."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fakes import Play, ToyCodec, ToyTransport

from voxmeter.client import config
from voxmeter.client.audio import from_pcm16, to_pcm16
from voxmeter.client.live.aloud import Asked
from voxmeter.client.live.resampling import Resampler
from voxmeter.client.live.sound import Block, Played, Problem, SoundEvent, SoundFacts, Trouble
from voxmeter.client.live.talk import Setup, Talk
from voxmeter.client.live.updates import Mark, TurnOver, Update
from voxmeter.client.redaction import Redactor
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target
from voxmeter.client.transport import Transport
from voxmeter.endpoints.codec import Asked as AskedItem
from voxmeter.endpoints.codec import Codec, Traits

DEVICE_RATE = 48_000
BLOCK = 960
BLOCK_NS = 20_000_000
TOY_RATE = 8_000
INPUT_NS = 7_000_000  # from the converter to the callback, beside the length of a block
OUTPUT_NS = 11_000_000

Samples = np.ndarray[Any, np.dtype[np.float32]]


class SteppedClock:
    """Stands still until `advance`; then wakes, in order, whoever waits."""

    def __init__(self) -> None:
        self.t_ns = 10_000_000_000
        self._number = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    def now(self) -> int:
        return self.t_ns

    async def sleep_until(self, t_ns: int) -> None:
        if t_ns <= self.t_ns:
            await asyncio.sleep(0)
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (t_ns, next(self._number), waiting))
        await waiting

    async def advance(self, ns: int) -> None:
        end = self.t_ns + ns
        while self._waiting and self._waiting[0][0] <= end:
            due, _, waiting = heapq.heappop(self._waiting)
            self.t_ns = max(self.t_ns, due)
            if not waiting.done():
                waiting.set_result(None)
            await settle()
        self.t_ns = end
        await settle()


async def settle() -> None:
    """Let every task do what it can do now."""
    for _ in range(12):
        await asyncio.sleep(0)


class FakeSound:
    """A microphone that hears what a test says, and a loudspeaker that plays what it is given."""

    def __init__(self, clock: SteppedClock, rate: int = DEVICE_RATE) -> None:
        self.clock = clock
        self.rate = rate
        self.played = np.zeros(0, dtype=np.float32)
        self.heard: list[tuple[int, int]] = []  # first sample of a stretch, and when it was heard
        self.plugged = True
        self.cleared = 0
        self.room = False  # whether the microphone hears the loudspeaker
        self._queue: list[float] = []
        self._given = self._over = 0
        self._events: asyncio.Queue[SoundEvent | None] = asyncio.Queue()

    @property
    def facts(self) -> SoundFacts:
        return SoundFacts(self.rate, "fake microphone", "fake speaker", "test", "device", 7.0, 11.0)

    async def events(self) -> AsyncIterator[SoundEvent]:
        while (event := await self._events.get()) is not None:
            yield event

    def play(self, pcm: bytes) -> None:
        self._queue += from_pcm16(pcm).tolist()
        self._given += len(pcm) // 2

    def clear(self) -> int:
        gone = len(self._queue)
        self._queue.clear()
        self._over = self._given
        self.cleared += gone
        return gone

    async def close(self) -> None:
        self.end()

    # The test's side

    @property
    def lag_ns(self) -> int:
        """How much silence comes before a reply at the toy's rate, for the filter."""
        return round(Resampler(TOY_RATE, self.rate).lag * 1e9 / self.rate)

    def end(self) -> None:
        self._events.put_nowait(None)

    def tell(self, problem: Problem) -> None:
        self.plugged = problem != "lost"
        self._events.put_nowait(Trouble(problem, f"the device says {problem}", self.clock.now()))

    async def hear(self, samples: Samples) -> int:
        """Speak into the microphone; return when the first sample was at its converter."""
        began = self.clock.now() - INPUT_NS
        size = self.rate // 50
        for first in range(0, samples.size, size):
            piece = np.zeros(size, dtype=np.float32)
            piece[: samples.size - first] = samples[first : first + size][:size]
            await self.clock.advance(BLOCK_NS)
            now = self.clock.now()
            if self.plugged:
                if self.room:
                    piece = piece + self._sounding()
                taken_ns = now - BLOCK_NS - INPUT_NS
                self._events.put_nowait(Block(to_pcm16(piece), taken_ns, now))
                self._speak(now)
            await settle()
        return began

    async def wait(self, ms: int) -> None:
        """Be silent for so long."""
        await self.hear(np.zeros(self.rate * ms // 1000, dtype=np.float32))

    def _sounding(self) -> Samples:
        heard = np.zeros(self.rate // 50, dtype=np.float32)
        last = self._queue[: heard.size]
        heard[: len(last)] = last
        return heard

    def _speak(self, now: int) -> None:
        count = min(self.rate // 50, len(self._queue))
        if not count:
            return
        piece, self._queue = self._queue[:count], self._queue[count:]
        self.heard.append((self.played.size, now + OUTPUT_NS))
        self.played = np.concatenate((self.played, np.array(piece, dtype=np.float32)))
        self._events.put_nowait(Played(self._over, count, now + OUTPUT_NS))
        self._over += count


@dataclass(frozen=True)
class ToyTarget(Target):
    """An endpoint that speaks the toy protocol; `play` is its side of every connection."""

    play: Play | None = None
    clock: SteppedClock = field(default_factory=SteppedClock)
    toy: Traits = field(default_factory=lambda: Traits(TOY_RATE))
    wires: list[ToyTransport] = field(default_factory=list)

    def codec(self, tag: str = "", asked: AskedItem | None = None, lane: int = 0) -> Codec:
        return ToyCodec(self.toy)

    def transport(self) -> Transport:
        wire = ToyTransport(self.play or _ready)
        wire.now = self.clock.now
        self.wires.append(wire)
        return wire

    def traits(self) -> Traits:
        return self.toy

    def address(self, codec: Codec, tag: str) -> Any:
        return codec.address("toy:", None)


async def _ready(wire: ToyTransport) -> None:
    wire.say("ready")


@dataclass
class World:
    """A talk under way."""

    clock: SteppedClock
    sound: FakeSound
    target: ToyTarget
    talk: Talk
    shown: list[Update]

    @property
    def wire(self) -> ToyTransport:
        return self.target.wires[-1]

    def marks(self, turn: int) -> dict[str, float]:
        return {
            one.name: one.ms for one in self.shown if isinstance(one, Mark) and one.turn == turn
        }

    def over(self) -> list[TurnOver]:
        return [one for one in self.shown if isinstance(one, TurnOver)]

    def rows(self) -> list[dict[str, Any]]:
        import json

        assert self.talk.folder is not None
        text = (self.talk.folder / "trials.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


BENCH = """
[run]
name = "live"
[[endpoint]]
name = "toy"
url = "ws://127.0.0.1:9"
[[suite]]
kind = "demo"
"""


@asynccontextmanager
async def talking(
    folder: Path,
    *,
    play: Play | None = None,
    traits: Traits | None = None,
    bench: str = BENCH,
    questions: Callable[[], list[Asked]] = list,
    rate: int = DEVICE_RATE,
    jitter_buffer_ms: int = 0,
    reply_limit_s: float = 120.0,
) -> AsyncIterator[World]:
    """Hold a talk for as long as the block lasts; it has been saved when the block is left."""
    clock = SteppedClock()
    sound = FakeSound(clock, rate)
    patience = Patience(first_reply_timeout_s=3.0, reply_limit_s=reply_limit_s)
    target = ToyTarget("toy", "openai-realtime", "toy:", patience=patience, play=play, clock=clock)
    if traits is not None:
        object.__setattr__(target, "toy", traits)
    loaded = config.parse(config.tables(bench, "test"), "test", folder)
    shown: list[Update] = []
    setup = Setup(loaded, target, folder / "runs", Redactor(), questions(), jitter_buffer_ms)
    talk = Talk(setup, sound, shown.append, clock=clock)
    world = World(clock, sound, target, talk, shown)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(talk.run())
        await settle()
        yield world
        talk.stop()
        await running


def tone(ms: float, rate: int, *, hz: float = 440.0, level: float = 0.3) -> Samples:
    """Return sound with hard edges, whose first and last sample stand out."""
    samples = level * np.cos(2 * np.pi * hz * np.arange(round(ms * rate / 1000)) / rate)
    return samples.astype(np.float32)


def silence(ms: float, rate: int) -> Samples:
    return np.zeros(round(ms * rate / 1000), dtype=np.float32)


def words(samples: Samples) -> str:
    """Return audio as the toy protocol writes it."""
    return "sound " + to_pcm16(samples).hex()
