"""A scripted voice agent on loopback and the clock it shares with the client.

Time stands still while anything is on its way: it moves from frame to frame once each side has
taken in all that the other one said. A session of seconds takes a fraction of one, and every moment
in it is known beforehand. What is genuine is the websocket and the whole client.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from captures import attempt_in
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.finish import finish
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.client.transport import Arrival, TransportSettings
from voxmeter.client.websocket import WebSocketTransport
from voxmeter.endpoints.codec import Address, Codec, Message

FRAME_MS = 20
ONSET_MS, T0_MS, CLIP_MS = 100, 700, 900
"""Where the question begins and ends in its clip, and how long that is."""
PATIENCE = Patience(
    connect_timeout_s=5,
    first_reply_timeout_s=3,
    reply_limit_s=6,
    greeting_timeout_s=4,
    drain_ms=40,
    quiet_ms=200,
)
MS = 1_000_000


def voice(ms: float, rate: int) -> bytes:
    """Samples that are audible from the first to the last."""
    count = round(rate * ms / 1000)
    return to_pcm16(np.asarray(0.2 * np.cos(np.arange(count) * 1600 / rate), dtype=np.float32))


def silence(ms: float, rate: int) -> bytes:
    """As many samples of silence."""
    return bytes(2 * round(rate * ms / 1000))


def question(rate: int) -> Utterance:
    """0.1 s of silence, 0.6 s of voice, 0.2 s of silence."""
    pcm = silence(ONSET_MS, rate) + voice(T0_MS - ONSET_MS, rate) + silence(CLIP_MS - T0_MS, rate)
    return Utterance(pcm, rate, rate * ONSET_MS // 1000, rate * T0_MS // 1000)


class World:
    """The agent's side of one connection, and the clock.

    Args:
        hear: Called with every message of the client's, JSON or bytes, before the next is read.
        greet: Called when the connection is open.
    """

    def __init__(
        self,
        hear: Callable[[World, Any], Awaitable[None]],
        greet: Callable[[World], Awaitable[None]] | None = None,
    ) -> None:
        self.t_ns = 10**12
        self.frames = 0
        self.request_headers: Mapping[str, str] = {}
        self.path = ""
        self._hear, self._greet = hear, greet
        self._connection: ServerConnection | None = None
        self._sent = self._taken = self._told = self._received = 0
        self._news = asyncio.Condition()

    # The clock

    def now(self) -> int:
        return self.t_ns

    async def sleep_until(self, t_ns: int) -> None:
        async with self._news:
            await self._news.wait_for(
                lambda: self._taken >= self._sent and self._received >= self._told
            )
        self.t_ns = max(self.t_ns, t_ns)
        await asyncio.sleep(0)

    async def count(self, what: str) -> None:
        """Note that a message was sent or received by the client, or taken by the agent."""
        async with self._news:
            setattr(self, what, getattr(self, what) + 1)
            self._news.notify_all()

    # The agent

    async def serve(self, connection: ServerConnection) -> None:
        """Hold one session."""
        self._connection = connection
        assert connection.request is not None
        self.request_headers = dict(connection.request.headers.raw_items())
        self.path = connection.request.path
        try:
            if self._greet is not None:
                await self._greet(self)
            async for message in connection:
                await self._hear(self, json.loads(message) if isinstance(message, str) else message)
                await self.count("_taken")
        except ConnectionClosed:
            pass

    async def say(self, *messages: Any) -> None:
        """Send JSON messages, or bytes as they are."""
        assert self._connection is not None
        for message in messages:
            await self.count("_told")
            bare = isinstance(message, bytes)
            await self._connection.send(message if bare else json.dumps(message))

    async def leave(self, code: int = 1000, reason: str = "") -> None:
        """End the session."""
        assert self._connection is not None
        await self.count("_told")
        await self._connection.close(code, reason)


class _Counting(WebSocketTransport):
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
async def listening(world: World) -> AsyncIterator[str]:
    """Serve a world on a free port of loopback; the URL has no path."""
    server = await serve(world.serve, "127.0.0.1", 0, compression=None, close_timeout=0.1)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close(close_connections=True)
        await server.wait_closed()


async def held(
    world: World, codec: Codec, address: Address, patience: Patience = PATIENCE, text: str = ""
) -> Capture:
    """Ask the question in one session with a world that listens."""
    async with asyncio.timeout(30):
        return await converse(
            codec,
            _Counting(world),
            address,
            Ask(question, text=text, patience=patience),
            clock=world,
        )


def row_of(capture: Capture, folder: Path) -> dict[str, Any]:
    """Return the attempt's line in `trials.jsonl`."""
    return finish(capture, attempt_in(folder))


def lead_in_ms(capture: Capture) -> float:
    """Return the silence that came before the question."""
    header = capture.rows[0]
    return float(header["lead_in_samples"] * 1000 / header["input_rate"])
