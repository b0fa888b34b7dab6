"""A tiny protocol for tests of the server host: binary messages are audio, text messages JSON."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from voxmeter.client.audio import to_pcm16
from voxmeter.client.servers.brain import Brain, RefusedError, Speech, Spoken, Terms, UserTurn
from voxmeter.client.servers.host import HostSettings, serving
from voxmeter.client.servers.stamped import Gone
from voxmeter.client.servers.truth import TruthLog
from voxmeter.client.servers.voice import babble
from voxmeter.endpoints.codec import Binary, Message, Text, TurnEnd
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import FaultKind
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    HistoryAdded,
    ReplyCancelled,
    ReplyRequested,
    ReplyTruncated,
    ServerStep,
    SessionSet,
    TurnCommitted,
    UserAudio,
    UserCleared,
)

RATE = 16_000
FRAME = RATE // 50


class PlainServer:
    """The server's half; see `ServerCodec`."""

    input_rate = RATE
    output_rate = RATE
    turn_end: TurnEnd = "silence"

    def open(self) -> ServerStep:
        return ServerStep((), _said("hello"))

    def receive(self, message: Message) -> ServerStep:
        if isinstance(message, Binary):
            return ServerStep([UserAudio(message.data, "pcm16", RATE)])
        try:
            asked = json.loads(message.data if isinstance(message, Text) else "")
            event = self._event(asked)
        except (ValueError, TypeError, KeyError) as error:
            raise ProtocolError("plain", "not a request", message) from error
        return ServerStep([event])

    def _event(self, asked: dict[str, Any]) -> ClientEvent:
        do = asked.pop("do")
        if do == "set":
            self.turn_end = asked.get("turn_end", self.turn_end)
            return SessionSet(**asked)
        if do == "ask":
            audio = UserAudio(base64.b64decode(asked["pcm"]), "pcm16", RATE)
            return HistoryAdded("user", audio=audio)
        if do == "say":
            return HistoryAdded("user", asked["text"])
        events: dict[str, ClientEvent] = {
            "commit": TurnCommitted(),
            "request": ReplyRequested(),
            "cancel": ReplyCancelled(),
            "clear": UserCleared(),
            "truncate": ReplyTruncated(500),
            "leave": ClientLeft(),
        }
        return events[do]

    def speech_started(self, audio_ms: int) -> Sequence[Message]:
        return _said("speech_started", at=audio_ms)

    def speech_stopped(self, audio_ms: int) -> Sequence[Message]:
        return _said("speech_stopped", at=audio_ms)

    def input_transcript(self, text: str) -> Sequence[Message]:
        return _said("heard", text=text)

    def reply_started(self) -> Sequence[Message]:
        return _said("reply_started")

    def reply_audio(self, pcm: bytes) -> Sequence[Message]:
        return [Binary(pcm)]

    def reply_text(self, text: str) -> Sequence[Message]:
        return _said("text", text=text)

    def reply_ended(
        self, reason: Literal["completed", "cancelled", "incomplete"]
    ) -> Sequence[Message]:
        return _said("reply_ended", reason=reason)

    def fault(self, kind: FaultKind, code: str, message: str) -> Sequence[Message]:
        return _said("fault", kind=kind, code=code, message=message)


def _said(what: str, **more: object) -> list[Message]:
    return [Text(json.dumps({"is": what, **more}))]


class _Connection(ClientConnection):
    """The library's, but for a transport that fails when it is aborted a second time."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.transport = Gone()


@dataclass
class PlainClient:
    """A client that hides nothing: what it got, in order."""

    connection: ClientConnection
    got: list[dict[str, Any]] = field(default_factory=list)
    audio: bytearray = field(default_factory=bytearray)

    async def do(self, what: str, **more: object) -> None:
        await self.connection.send(json.dumps({"do": what, **more}))

    async def say(self, samples: NDArray[np.float32], frame: int = FRAME) -> None:
        """Send samples in frames, without waiting between them."""
        pcm = to_pcm16(samples)
        for start in range(0, len(pcm), 2 * frame):
            await self.connection.send(pcm[start : start + 2 * frame])

    async def until(self, what: str) -> dict[str, Any]:
        """Receive up to a message of this name; `audio` is one piece of the reply."""
        while True:
            data = await self.connection.recv()
            if isinstance(data, bytes):
                self.audio += data
                if what == "audio":
                    return {}
                continue
            self.got.append(json.loads(data))
            if self.got[-1]["is"] == what:
                return self.got[-1]

    async def until_closed(self) -> ConnectionClosed:
        try:
            await self.until("never")
        except ConnectionClosed as closed:
            return closed
        raise AssertionError

    def names(self) -> list[str]:
        return [message["is"] for message in self.got]


def question(lead_ms: int = 100, tail_ms: int = 400, seconds: float = 0.4) -> NDArray[np.float32]:
    """A clip whose last voiced sample is known: silence, sound, silence."""
    return np.concatenate([silence(lead_ms), babble(RATE, seconds), silence(tail_ms)])


def silence(ms: int) -> NDArray[np.float32]:
    return np.zeros(ms * RATE // 1000, np.float32)


@asynccontextmanager
async def served(
    brain: Brain,
    truth: Path | None = None,
    *,
    query: Mapping[str, str] | None = None,
    settings: HostSettings | None = None,
) -> AsyncIterator[str]:
    """Serve a brain on a free port."""
    log = TruthLog(truth) if truth else None
    settings = settings or HostSettings(query=query or {})
    async with serving(brain, PlainServer, settings, truth=log) as url:
        yield url
    if log is not None:
        log.close()


@asynccontextmanager
async def client(
    url: str, query: str = "", headers: Mapping[str, str] | None = None
) -> AsyncIterator[PlainClient]:
    async with connect(
        url + query,
        compression=None,
        max_size=None,
        additional_headers=headers,
        close_timeout=1,
        create_connection=_Connection,
    ) as connection:
        one = PlainClient(connection)
        await one.until("hello")
        yield one


def rows(truth: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in truth.read_text().splitlines()]


class Scripted:
    """Answers with what it is given, and keeps the turns it was asked."""

    def __init__(self, *pieces: Spoken, terms: Terms | None = None) -> None:
        self.pieces = pieces
        self.terms = terms or Terms(endpoint_ms=100)
        self.turns: list[UserTurn] = []
        self.asked: asyncio.Queue[UserTurn] = asyncio.Queue()
        self.ended: list[str] = []
        self.held = asyncio.Event()
        self.held.set()

    def load(self) -> None: ...

    def admit(self, query: Mapping[str, str]) -> Terms:
        if "no" in query:
            raise RefusedError(400, "not this one")
        return self.terms

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        self.turns.append(turn)
        self.asked.put_nowait(turn)
        try:
            for piece in self.pieces:
                yield piece
            await self.held.wait()
            self.ended.append("completed")
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise


def speech(seconds: float = 0.1) -> Speech:
    return Speech(babble(RATE, seconds))
