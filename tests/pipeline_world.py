"""What stands around a pipeline in its tests: an API on loopback, and a recogniser to script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from http_peer import Asked, Peer, serving

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.clock import SystemClock
from voxmeter.client.pipeline import Pipeline
from voxmeter.client.pipeline_stage import StageError
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.client.transport import Launch
from voxmeter.endpoints.codec import Settings
from voxmeter.endpoints.events import Event

PATIENCE = Patience(connect_timeout_s=20, first_reply_timeout_s=60, reply_limit_s=60)
KEY = "sk-pipeline-0123456789"
SAMPLES = b"\1\2" * 2_400


@dataclass
class Api:
    """OpenAI's two routes, as a test wants them.

    Attributes:
        words: Pieces that the model writes.
        hold_after: After so many pieces it waits until speech has been asked for.
        refuse: A status line, headers and a body in place of an answer, for each route.
        finish: Why the model stops.
        raw: The whole stream, in place of the words.
        cut: Whether the connection breaks behind the words.
        silent: Whether the model never answers.
        speech: The body of an answer of the voice, in pieces.
        speech_type: Its type.
        chats: Every request to the model.
        speeches: Every request to the voice.
    """

    words: Sequence[str] = ("Rome.",)
    hold_after: int | None = None
    refuse: Mapping[str, tuple[str, str, bytes]] = field(default_factory=dict)
    finish: str = "stop"
    raw: bytes = b""
    cut: bool = False
    silent: bool = False
    speech: Sequence[bytes] = (SAMPLES,)
    speech_type: str = "audio/pcm"
    chats: list[Asked] = field(default_factory=list)
    speeches: list[Asked] = field(default_factory=list)
    spoken: asyncio.Event = field(default_factory=asyncio.Event)

    async def play(self, peer: Peer) -> None:
        """Serve one connection."""
        while True:
            asked = await peer.request()
            route = asked.target.rpartition("/")[2]
            (self.chats if route == "completions" else self.speeches).append(asked)
            if route in self.refuse:
                status, headers, body = self.refuse[route]
                await peer.whole(body, status, more=headers)
            elif route == "completions":
                await self._chat(peer)
            else:
                self.spoken.set()
                await chunked(peer, self.speech_type, *self.speech)

    async def _chat(self, peer: Peer) -> None:
        if self.silent:
            await peer.gone()
        if self.raw:
            await chunked(peer, "text/event-stream", self.raw)
            return
        await peer.say(head("text/event-stream"))
        for number, word in enumerate(self.words):
            if number == self.hold_after:
                await self.spoken.wait()
            await peer.say(chunk(told({"choices": [{"delta": {"content": word}}]})))
        if self.cut:
            peer.reset()
            return
        await peer.say(chunk(told({"choices": [{"delta": {}, "finish_reason": self.finish}]})))
        usage = {"prompt_tokens": 20, "completion_tokens": len(self.words)}
        await peer.say(chunk(told({"choices": [], "usage": usage})))
        await peer.say(chunk(b"data: [DONE]\n\n"), chunk(b""))

    def asked(self, number: int = 0) -> dict[str, Any]:
        """Return what the model was asked."""
        found: dict[str, Any] = json.loads(self.chats[number].body)
        return found

    def said(self) -> list[dict[str, Any]]:
        """Return what the voice was asked."""
        return [json.loads(one.body) for one in self.speeches]


def head(kind: str) -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def told(fields: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()


async def chunked(peer: Peer, kind: str, *pieces: bytes) -> None:
    await peer.say(head(kind), *(chunk(piece) for piece in pieces), chunk(b""))


@dataclass
class Recogniser:
    """A recogniser that hears what the test says."""

    words: str = "What is the capital of Italy?"
    error: StageError | None = None
    name: str = "recogniser"
    heard: list[tuple[int, int]] = field(default_factory=list)

    def load(self) -> Future[Any]:
        return finished(None)

    async def hear(self, pcm: bytes, rate: int, limit_s: float) -> tuple[int, str]:
        self.heard.append((len(pcm) // 2, rate))
        if self.error is not None:
            raise self.error
        return SystemClock().now(), self.words

    def close(self) -> None:
        pass


def finished(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def question(rate: int) -> Utterance:
    tone = 0.3 * np.sin(2 * np.pi * 200 * np.arange(rate // 10) / rate)
    return Utterance((tone * 32767).astype("<i2").tobytes(), rate, 0, rate // 10)


@dataclass
class World:
    """A pipeline, ready to be asked.

    Attributes:
        pipeline: What its sessions share.
        target: It, as an endpoint.
        events: Everything that the last session told, in order.
    """

    pipeline: Pipeline
    target: Target
    events: list[Event] = field(default_factory=list)

    async def ask(self, **more: Any) -> Capture:
        """Ask a tenth of a second of sound."""
        self.events.clear()
        return await attempt(self.target, question, listen=self.events.append, **more)


@contextmanager
def pipeline(
    folder: Path, options: dict[str, Any], recogniser: Recogniser | None = None, **settings: Any
) -> Iterator[World]:
    """Make a pipeline; without a scripted recogniser, Whisper hears."""
    wanted = Settings(options=options, **settings)
    made = Pipeline(Launch("bench.toml", folder, options=options, settings=wanted))
    if recogniser is not None:
        made.recogniser = recogniser  # type: ignore[assignment]
    with made as carrier:
        target = Target("p", "pipeline", "", wanted, patience=PATIENCE, carrier=carrier)
        yield World(made, target)


@asynccontextmanager
async def world(
    folder: Path,
    api: Api,
    recogniser: Recogniser | None = None,
    key: str | None = None,
    **options: Any,
) -> AsyncIterator[World]:
    """Serve an API, with a pipeline in front of it whose recogniser is scripted."""
    async with serving(api.play) as url:
        options = {"llm_base_url": url, "llm_model": "m", "tts": "none"} | options
        with pipeline(folder, options, recogniser or Recogniser()) as made:
            made.target = replace(made.target, api_key=key)
            yield made


def stages(capture: Capture) -> dict[str, dict[str, Any]]:
    """The rows of a log that tell of stages, by their names."""
    found = [row for row in capture.rows if row["kind"] == "stage"]
    assert len({row["name"] for row in found}) == len(found)
    return {row["name"]: row for row in found}


class Failing:
    """Stands for the process of a voice or a model; whatever it is asked, it fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def submit(self, *asked: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(self._error)
        return future

    say = submit

    def close(self) -> None:
        pass
