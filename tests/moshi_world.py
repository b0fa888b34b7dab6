"""A scripted Moshi server on loopback and the clock it shares with the client.

Time stands still until somebody sleeps, and then moves from one due message to the next: a session
of many seconds takes a fraction of one, and every moment in it is known beforehand. What is genuine
is the websocket, both codecs' messages, and Opus both ways.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
from attempt_logs import Samples, joined, silence, voice
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.encodings import decoder, encoder
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.client.transport import Arrival, TransportSettings
from voxmeter.client.websocket import WebSocketTransport
from voxmeter.endpoints.codec import Json, Message, Settings
from voxmeter.endpoints.moshi import client

RATE = 24_000
FRAME = 1920
MS = 1_000_000
STEP_MS = 30
"""How long the server takes for one step."""
LAG_MS = 2 * 80 + STEP_MS
"""A place in the output is heard so long after the same place of the input has left."""
OPUS_MS = 6.5
"""What Opus delays sound by, one way."""
ONSET_MS, T0_MS = 340, 1240
"""Where the question begins and ends in the input, without a greeting."""
PATIENCE = Patience(
    connect_timeout_s=5,
    first_reply_timeout_s=4,
    reply_limit_s=6,
    greeting_timeout_s=3,
)


def question(rate: int) -> Utterance:
    """0.1 s of silence, 0.9 s of voice, 0.2 s of silence; 240 ms of lead-in come before it."""
    assert rate == RATE
    pcm = to_pcm16(joined(silence(100), voice(900), silence(200)))
    return Utterance(pcm, rate, 2400, 24_000)


@dataclass(frozen=True)
class Script:
    """What a server does.

    Attributes:
        sound: (place in the output in ms, what is heard there), in order.
        words: (place, piece of text).
        pace: How much slower than real time output is computed.
        hiccups: (place, ms): before that place the server computes nothing for so long.
        drop_ms: Where the connection is cut, in the output.
        greets: The messages before the first sound.
        taken: Whether another session holds the server's lock.
        floor: Level of a steady hiss under everything.
    """

    sound: Sequence[tuple[float, Samples]] = ()
    words: Sequence[tuple[float, str]] = ()
    pace: float = 1.0
    hiccups: Mapping[float, float] = field(default_factory=dict)
    drop_ms: float | None = None
    greets: Sequence[bytes] = (b"\0",)
    taken: bool = False
    floor: float = 0.0

    def stream(self, seconds: float = 40) -> Samples:
        """Return the output as it is meant, before Opus."""
        count = int(seconds * RATE)
        hiss = np.random.default_rng(7).standard_normal(count) * self.floor
        made = hiss.astype(np.float32)
        for at_ms, sound in self.sound:
            first = round(at_ms * RATE / 1000)
            made[first : first + sound.size] += sound[: count - first]
        return made


class World:
    """The server, and the clock; see `converse_with`."""

    def __init__(self, script: Script) -> None:
        self.t_ns = 10**12
        self.heard: list[Samples] = []
        self._script = script
        self._stream = script.stream()
        self._wire, self._ear = encoder("opus", RATE), decoder("opus", RATE)
        self._fed = self._made = self._free_ns = 0
        self._owed: list[tuple[int, int, bytes | None]] = []
        self._count = 0
        self._connection: ServerConnection | None = None
        self._sent = self._taken = self._told = self._received = 0
        self._news = asyncio.Condition()

    # The clock

    def now(self) -> int:
        return self.t_ns

    async def sleep_until(self, t_ns: int) -> None:
        await self._settled()
        while self._owed and self._owed[0][0] <= t_ns:
            due_ns, _, data = heapq.heappop(self._owed)
            self.t_ns = max(self.t_ns, due_ns)
            await self._tell(data)
            await self._settled()
        self.t_ns = max(self.t_ns, t_ns)
        await asyncio.sleep(0)

    async def _settled(self) -> None:
        """Wait until each side has taken in all that the other one sent."""
        async with self._news:
            await self._news.wait_for(
                lambda: self._taken >= self._sent and self._received >= self._told
            )

    async def count(self, what: str) -> None:
        """Note that a message was sent or received by the client, or taken by the server."""
        async with self._news:
            setattr(self, what, getattr(self, what) + 1)
            self._news.notify_all()

    # The server

    async def serve(self, connection: ServerConnection) -> None:
        """Hold one session."""
        if self._script.taken:
            connection.transport.pause_reading()
            await connection.wait_closed()
            return
        self._connection = connection
        for data in self._script.greets:
            await self._tell(data)
        try:
            async for message in connection:
                assert isinstance(message, bytes)
                if message[:1] == b"\1":
                    self._feed(message[1:])
                await self.count("_taken")
        except ConnectionClosed:
            pass

    async def _tell(self, data: bytes | None) -> None:
        assert self._connection is not None
        await self.count("_told")
        if data is None:
            self._connection.transport.abort()
        else:
            await self._connection.send(data)

    def _feed(self, pages: bytes) -> None:
        heard = self._ear.decode(pages).astype(np.float32) / np.float32(32768)
        self.heard.append(heard)
        self._fed += heard.size
        while self._fed >= (self._made + 2) * FRAME:  # the first step yields nothing
            self._step(self._made * 80)
            self._made += 1

    def _step(self, at_ms: int) -> None:
        """Make the frame of output at one place of it, and the words that belong to it."""
        script = self._script
        due_ns = self.t_ns + STEP_MS * MS
        if script.pace > 1 and self._made:
            due_ns = max(due_ns, self._free_ns + round(script.pace * 80 * MS))
        due_ns = max(due_ns, self._free_ns)
        due_ns += sum(round(ms * MS) for place, ms in script.hiccups.items() if here(place, at_ms))
        self._free_ns = due_ns
        if script.drop_ms is not None and here(script.drop_ms, at_ms):
            self._owe(due_ns, None)
            return
        frame = self._stream[self._made * FRAME : (self._made + 1) * FRAME]
        self._owe(due_ns, b"\1" + self._wire.encode(to_pcm16(frame)))
        for place, piece in script.words:
            if here(place, at_ms):
                self._owe(due_ns, b"\2" + piece.encode())

    def _owe(self, due_ns: int, data: bytes | None) -> None:
        self._count += 1
        heapq.heappush(self._owed, (due_ns, self._count, data))


def here(place_ms: float, frame_ms: int) -> bool:
    """Return whether a place of the output lies in the frame that begins there."""
    return frame_ms <= place_ms < frame_ms + 80


class Counting(WebSocketTransport):
    """The client's own transport; tells the world what has passed through it."""

    def __init__(self, world: World) -> None:
        super().__init__(TransportSettings(), world)
        self._world = world

    async def send(self, message: Message) -> None:
        await super().send(message)
        await self._world.count("_sent")

    async def receive(self) -> AsyncIterator[Arrival]:
        async for arrival in super().receive():
            yield arrival
            await self._world.count("_received")


@asynccontextmanager
async def listening(handle: Callable[[ServerConnection], object]) -> AsyncIterator[str]:
    """Serve a world on a free port of loopback."""
    server = await serve(handle, "127.0.0.1", 0, compression=None, close_timeout=0.1)  # type: ignore[arg-type]
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"ws://127.0.0.1:{port}"
    finally:
        server.close(close_connections=True)
        await server.wait_closed()


async def converse_with(
    script: Script, patience: Patience = PATIENCE, *, fast: bool = False, **options: Json
) -> tuple[Capture, World]:
    """Ask the question; return what the session left behind, and the world it was in."""
    world = World(script)
    codec = client(Settings(options=options))
    async with asyncio.timeout(30), listening(world.serve) as url:
        capture = await converse(
            codec,
            Counting(world),
            codec.address(url, None),
            Ask(question, patience=patience, pacing="fast" if fast else "real-time"),
            clock=world,
        )
    return capture, world
