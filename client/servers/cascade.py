"""The embedded assistant: Whisper hears, a language model answers, a voice speaks.

Three queues, each with one worker, keep the models to one call at a time in the order of asking;
the event loop only passes on what they yield. A turn without speech in it gets no reply: nothing
is guessed from silence, and the client sees an empty reply.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from voxmeter.client import redaction
from voxmeter.client.audio import Pcm, Samples, resample
from voxmeter.client.models import locate
from voxmeter.client.sentences import SentenceSplitter
from voxmeter.client.servers import query as read
from voxmeter.client.servers.brain import (
    Heard,
    RefusedError,
    Speech,
    Spoken,
    Terms,
    UserTurn,
    Words,
)
from voxmeter.client.servers.llm import ChatLlm, Llm, Prompt
from voxmeter.client.servers.small_llm import SmallLlm
from voxmeter.client.speakers import SPEAKERS, Speaker, speaker
from voxmeter.endpoints.codec import Turn
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.asr import RATE, AsrSettings, Transcriber

_QUERY = ("voice", "endpoint_ms", "tag")
_MOST_THREADS = 4


@dataclass(frozen=True, slots=True)
class CascadeSettings:
    """What the cascade is made of.

    Attributes:
        asr: Whisper model, by name or path.
        voice: Voice of sessions that name none, or one that is not ours ("alloy").
        threads: Threads of each model; 0 leaves one core to the client on the same machine.
    """

    asr: str = "tiny.en"
    voice: str = "hibari"
    threads: int = 0


def cascade(args: argparse.Namespace) -> Cascade:
    """Return the brain that `voxmeter serve cascade` was asked for; nothing is loaded yet.

    Raises:
        UserError: If an option cannot be: a key without a value, a model without a URL.
    """
    llm = _llm(args.llm_url, args.llm_model, args.llm_key_env)
    return Cascade(CascadeSettings(voice=args.voice or "hibari"), llm)


def _llm(url: str | None, model: str | None, key_env: str | None) -> Llm | None:
    if not url:
        if model and model.endswith(".gguf") and not key_env:
            return SmallLlm(model, _threads())
        if model or key_env:
            found = "a model or a key, but no --llm-url"
            raise UserError("voxmeter serve cascade", found, "give --llm-url too, or a .gguf file")
        return None
    if not model:
        raise UserError("--llm-url", "no model named", "give --llm-model")
    key = os.environ.get(key_env, "") if key_env else ""
    if key_env and not key:
        raise UserError(f"--llm-key-env {key_env}", "is not set", f"export {key_env}=...")
    redaction.remember(key)
    return ChatLlm(url, model, key)


class Cascade:
    """The brain of `voxmeter serve cascade`."""

    def __init__(self, settings: CascadeSettings | None = None, llm: Llm | None = None) -> None:
        """Take the parts.

        Args:
            settings: What to load.
            llm: What answers; None is the embedded model.
        """
        self._settings = settings or CascadeSettings()
        self._threads = self._settings.threads or _threads()
        self._llm = llm or SmallLlm(threads=self._threads)
        self._ears = ThreadPoolExecutor(1, "hearing")
        self._thoughts = ThreadPoolExecutor(self._llm.at_once, "thinking")
        self._voices: dict[str, _Voice] = {}

    def load(self) -> None:
        """Load and warm up every model; blocking.

        Raises:
            UserError: If a model is missing or not the pinned one, or there is no such voice.
        """
        voice = self._voice(self._settings.voice)
        voice.load()
        settings = AsrSettings(beam_size=1, device="cpu", cpu_threads=self._threads)
        self._whisper = Transcriber(locate(self._settings.asr, "whisper").path, settings)
        self._llm.load()
        for samples in voice.speak("Which one is it?", RATE, threading.Event()):
            self._whisper.transcribe(samples)

    def admit(self, query: Mapping[str, str]) -> Terms:
        """Accept `voice`, `endpoint_ms` (default 500) and `tag`.

        Raises:
            RefusedError: For another key, or a voice that does not exist.
        """
        read.refuse_unknown(query, _QUERY)
        read.text(query, "tag", 200)
        if not _ours(query.get("voice", self._settings.voice)):
            raise RefusedError(400, f"no such voice; use one of {', '.join(SPEAKERS)}")
        quiet_ms = round(read.number(query, "endpoint_ms", 500, 20, 10_000))
        return Terms(quiet_ms, endpoint_fixed="endpoint_ms" in query)

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        """Yield what was heard, then the reply, each sentence spoken as soon as it is known."""
        stop = threading.Event()
        try:
            turns = list(turn.history)
            if len(turn.samples):
                loop = asyncio.get_running_loop()
                heard = await loop.run_in_executor(self._ears, self._hear, turn, stop)
                if not heard:
                    return
                yield Heard(heard)
                turns.append(Turn("user", heard))
            async for spoken in self._speak(turn, _prompt(turn, turns), stop):
                yield spoken
        finally:
            stop.set()

    def _hear(self, turn: UserTurn, stop: threading.Event) -> str:
        if stop.is_set():
            return ""
        return self._whisper.transcribe(resample(Pcm(turn.samples, turn.rate), RATE).samples).text

    async def _speak(
        self, turn: UserTurn, prompt: Prompt, stop: threading.Event
    ) -> AsyncGenerator[Spoken, None]:
        loop = asyncio.get_running_loop()
        voice = self._voice(self._chosen(turn))
        rate = turn.output_rate
        async with contextlib.aclosing(_pieces(self._thoughts, self._llm, prompt, stop)) as pieces:
            async for words, sentences in _sentences(pieces):
                if words:
                    yield Words(words)
                for text in sentences:
                    for samples in await loop.run_in_executor(
                        voice.thread, voice.speak, text, rate, stop
                    ):
                        yield Speech(samples)

    def _chosen(self, turn: UserTurn) -> str:
        wishes = (turn.voice, turn.query.get("voice", ""), self._settings.voice)
        return next(voice for voice in wishes if _ours(voice))

    def _voice(self, name: str) -> _Voice:
        return self._voices.setdefault(name, _Voice(name))


class _Voice:
    """One voice and the thread it lives in; loaded when it is first needed."""

    def __init__(self, name: str) -> None:
        self.thread = ThreadPoolExecutor(1, f"voice {name}")
        self._name = name
        self._speaker: Speaker | None = None

    def load(self) -> Speaker:
        if self._speaker is None:
            self._speaker = speaker(self._name)
        return self._speaker

    def speak(self, sentence: str, rate: int, stop: threading.Event) -> list[Samples]:
        voice = self.load() if not stop.is_set() else None
        if voice is None:
            return []
        return [resample(Pcm(part, voice.rate), rate).samples for part in voice.speak(sentence)]


def _prompt(turn: UserTurn, turns: list[Turn]) -> Prompt:
    system = [turn.instructions, *(one.text for one in turns if one.role == "system")]
    instructions = "\n".join(text for text in system if text)
    spoken = [one for one in turns if one.role != "system" and one.text]
    return Prompt(instructions, spoken, turn.temperature)


async def _pieces(
    executor: Executor, llm: Llm, prompt: Prompt, stop: threading.Event
) -> AsyncGenerator[str, None]:
    """Yield what the model writes, from its own thread; its error is raised here."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[str | BaseException | None] = asyncio.Queue()

    def tell(piece: str | BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone, and so is whoever waited
            loop.call_soon_threadsafe(arrived.put_nowait, piece)

    def think() -> None:
        try:
            for piece in llm.stream(prompt, stop):
                tell(piece)
        except BaseException as error:  # noqa: BLE001 - foreign code; raised again below
            tell(error)
        tell(None)

    work = executor.submit(think)
    try:
        while (piece := await arrived.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        work.cancel()


async def _sentences(
    pieces: AsyncIterator[str],
) -> AsyncGenerator[tuple[str, Sequence[str]], None]:
    """Yield each piece with the sentences that it completes, and the rest at the end."""
    splitter = SentenceSplitter()
    async for piece in pieces:
        yield piece, splitter.feed(piece)
    yield "", splitter.flush()


def _ours(voice: str) -> bool:
    return voice.partition(":")[0] in SPEAKERS


def _threads() -> int:
    """Return how many threads a model may use: one core is left for the client's clock."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(_MOST_THREADS, (cores or 1) - 1))
