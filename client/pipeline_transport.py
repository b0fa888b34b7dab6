"""Runs the stages of a pipeline for one question after another, and tells when each was done.

Nothing here computes: Whisper and the voices of this machine work in processes of their own, and
what is behind HTTP comes through the event loop like every other endpoint. All moments are of the
clock that stamps the session's own rows.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from voxmeter.client.groups import first_of
from voxmeter.client.pipeline_llm import WHOSE as LLM
from voxmeter.client.pipeline_stage import LlmSession, StageError, Told, TtsSession, patient
from voxmeter.client.pipeline_tts import WHOSE as VOICE
from voxmeter.client.sentences import SentenceSplitter, sayable
from voxmeter.client.transport import Arrival
from voxmeter.endpoints.codec import Address, Binary, Message, Text
from voxmeter.endpoints.events import ReplyAudio, ReplyEnded, ReplyText, Usage

if TYPE_CHECKING:
    from voxmeter.client.pipeline import Pipeline

_MS = 1e6


@dataclass(slots=True)
class _Question:
    """One question under way.

    Attributes:
        pcm: 16-bit little-endian mono samples.
        rate: Samples a second of them.
        text: What is asked in writing beside them.
        handed_ns: When it was handed over.
    """

    pcm: bytes
    rate: int
    text: str
    handed_ns: int


@dataclass(slots=True)
class _Spoken:
    """A reply on its way from the language model to the voice.

    Attributes:
        texts: What is to be spoken; None ends it.
        splitter: Holds the sentence that is not whole yet.
        whole: All that was written so far.
    """

    texts: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)
    splitter: SentenceSplitter = field(default_factory=SentenceSplitter)
    whole: str = ""


class PipelineTransport:
    """One session with the pipeline; see `Transport`."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline, self._clock = pipeline, pipeline.clock
        self._limit_s = pipeline.wanted.timeout_s
        self._arrivals: asyncio.Queue[Arrival | Exception] = asyncio.Queue()
        self._turns: list[dict[str, str]] = []
        self._pcm = b""
        self._rate = 0  # of the samples that were told of last
        self._work: asyncio.Task[None] | None = None
        self._llm: LlmSession | None = None
        self._tts: TtsSession | None = None

    async def connect(self, address: Address) -> None:
        """Connect to whatever is behind HTTP, before there is a question.

        Raises:
            ConnectError: If that is not to be had.
        """
        llm, tts = self._pipeline.headers(address.headers)
        voice = self._pipeline.voice
        self._llm = self._pipeline.language_model.session(llm)
        await self._llm.connect()
        if voice is not None:
            self._tts = voice.session(tts)
            await self._tts.connect()
        self._tell(self._clock.now(), event="ready", note=self._pipeline.note)

    async def send(self, message: Message) -> None:
        """Keep samples, hear an earlier turn, or begin to answer a question."""
        match message:
            case Binary(data):
                self._pcm = data
            case Text(text) if self._llm is not None:
                now = self._clock.now()
                told = json.loads(text)
                pcm, self._pcm = self._pcm, b""
                if "turn" in told:
                    await self._remember(told["turn"], pcm, told["rate"])
                else:
                    question = _Question(pcm, told["rate"], told["ask"]["text"], now)
                    await self._stop()
                    answering = self._answer(self._llm, question)
                    self._work = asyncio.create_task(answering, name="pipeline")
            case _:
                raise TypeError(f"a pipeline cannot be sent {type(message).__name__}")

    async def receive(self) -> AsyncIterator[Arrival]:
        """Yield what the stages give, in the order in which it came."""
        while True:
            found = await self._arrivals.get()
            if isinstance(found, Exception):
                raise found
            yield found

    async def rtt_ms(self) -> float | None:
        """Return None: there are several connections, or none."""
        return None

    async def close(self) -> None:
        """Stop answering; leave the services. A model at work ends it unheard."""
        await self._stop()
        for session in (self._llm, self._tts):
            if session is not None:
                await session.close()

    async def _stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work

    async def _remember(self, turn: dict[str, str], pcm: bytes, rate: int | None) -> None:
        """Add an earlier turn; what was spoken is heard now, before the question is asked."""
        words = turn["text"]
        if rate is not None:
            try:
                _, words = await self._pipeline.recogniser.hear(pcm, rate, self._limit_s)
            except StageError as error:
                self._fault(error)
                return
        if words:
            self._turns.append({"role": turn["role"], "text": words})

    async def _answer(self, llm: LlmSession, question: _Question) -> None:
        try:
            await self._stages(llm, question)
        except StageError as error:
            self._fault(error)
        except Exception as error:  # noqa: BLE001 - raised where this session listens
            self._arrivals.put_nowait(error)

    async def _stages(self, llm: LlmSession, question: _Question) -> None:
        t_ns, heard = await self._pipeline.recogniser.hear(
            question.pcm, question.rate, self._limit_s
        )
        self._tell(t_ns, event="heard", text=heard)
        self._stage(question, "asr", question.handed_ns, t_ns)
        words = "\n".join(part for part in (question.text, heard) if part)
        if not words:
            self._tell(
                t_ns, event="note", text="Whisper heard nothing; no language model was asked"
            )
            self._tell(t_ns, event="done")
            return
        self._turns.append({"role": "user", "text": words})
        spoken = _Spoken()
        try:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._write(llm, question, spoken), name="write")
                group.create_task(self._speak(question, spoken), name="speak")
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        ended = writing.result()
        self._tell(self._clock.now(), event="done", reason=ended.reason, detail=ended.detail)

    async def _write(self, llm: LlmSession, question: _Question, spoken: _Spoken) -> ReplyEnded:
        """Let the language model answer; hand on what is to be spoken."""
        began, first = self._clock.now(), True
        ended, last_ns = ReplyEnded(), began
        pieces = patient(llm.answer(self._turns), LLM, self._limit_s)
        async with aclosing(pieces):
            async for last_ns, event in pieces:
                match event:
                    case ReplyText(text):
                        self._tell(last_ns, event="text", text=text)
                        if first:
                            self._stage(question, "llm_first", began, last_ns)
                            first = False
                        self._hand_on(spoken, text)
                    case Usage(counts):
                        self._tell(last_ns, event="usage", counts=dict(counts))
                    case ReplyEnded():
                        ended = event
        self._stage(question, "llm", began, last_ns)
        if not spoken.whole.strip():
            why = f" (it ended with {ended.detail})" if ended.detail else ""
            self._tell(last_ns, event="note", text=f"the language model wrote nothing{why}")
        self._hand_on_rest(spoken)
        self._turns.append({"role": "assistant", "text": spoken.whole})
        return ended

    def _hand_on(self, spoken: _Spoken, text: str) -> None:
        spoken.whole += text
        tts = self._pipeline.wanted.tts
        if tts is not None and not tts.whole:
            for sentence in spoken.splitter.feed(text):
                spoken.texts.put_nowait(sentence)

    def _hand_on_rest(self, spoken: _Spoken) -> None:
        tts = self._pipeline.wanted.tts
        rest = [spoken.whole] if tts is not None and tts.whole else spoken.splitter.flush()
        for text in rest:
            if sayable(text):
                spoken.texts.put_nowait(text)
        spoken.texts.put_nowait(None)

    async def _speak(self, question: _Question, spoken: _Spoken) -> None:
        """Speak one text after another, until there is none."""
        began, last_ns = 0, 0
        while self._tts is not None and (text := await spoken.texts.get()) is not None:
            began = began or self._clock.now()
            pieces = patient(self._tts.speak(text), VOICE, self._limit_s)
            async for t_ns, audio in _audio(pieces):
                if not last_ns:
                    self._stage(question, "tts_first", began, t_ns)
                last_ns = t_ns
                if audio.rate != self._rate:
                    self._rate = audio.rate
                    self._tell(t_ns, event="audio", rate=audio.rate)
                self._arrivals.put_nowait(Arrival(t_ns, Binary(audio.data)))
        if last_ns:
            self._stage(question, "tts", began, last_ns)

    def _stage(self, question: _Question, name: str, began_ns: int, ended_ns: int) -> None:
        began_ms = (began_ns - question.handed_ns) / _MS
        ms = (ended_ns - began_ns) / _MS
        self._tell(ended_ns, event="stage", name=name, began_ms=round(began_ms, 3), ms=round(ms, 3))

    def _fault(self, error: StageError) -> None:
        fault = error.fault
        self._tell(
            self._clock.now(),
            event="fault",
            kind=fault.kind,
            retryable=fault.retryable,
            text=fault.message,
            retry_after_s=fault.retry_after_s,
        )

    def _tell(self, t_ns: int, **line: Any) -> None:  # noqa: ANN401 - fields of a JSON line
        self._arrivals.put_nowait(Arrival(t_ns, Text(json.dumps(line))))


async def _audio(
    pieces: AsyncGenerator[Told, None],
) -> AsyncGenerator[tuple[int, ReplyAudio], None]:
    async with aclosing(pieces):
        async for t_ns, event in pieces:
            if isinstance(event, ReplyAudio):
                yield t_ns, event
