"""Answers to chat completions, whole or streamed, wherever a server puts the audio.

OpenAI has audio in `delta.audio.data`, samples without a head; DashScope likewise, whatever format
was asked for; vLLM-Omni marks a chunk with `modality: "audio"` and puts it into `delta.content`, in
older versions a whole WAV file for each chunk, each with a `finish_reason`. Whole answers have it
in `message.audio.data`, perhaps in a choice of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from voxmeter.endpoints.codec import Json, Message, Response, Text
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Event,
    Fault,
    FaultKind,
    ReplyAudio,
    ReplyEnded,
    ReplyText,
    Usage,
)
from voxmeter.endpoints.fields import Fields, clean, parse_object
from voxmeter.endpoints.http_lines import DONE, ServerSentEvents
from voxmeter.endpoints.json_path import from_base64
from voxmeter.endpoints.openai_chat_request import NAME
from voxmeter.endpoints.openai_faults import classify
from voxmeter.endpoints.wav import SniffedAudio

OUTPUT_RATE = 24_000
_CUT_OFF = ("length", "content_filter", "max_tokens")
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS = ("audio_tokens", "text_tokens", "cached_tokens", "reasoning_tokens")
_LONGEST = 400


class ChatReader:
    """Reads one answer.

    Args:
        head: Its head, whose type says whether it is a stream.
        rate: Samples a second, before what anyone else says; None for none.
    """

    def __init__(self, head: Response, rate: int | None) -> None:
        kind = head.headers.get("content-type", "").lower()
        self._streams: bool | None = None
        if kind:
            self._streams = kind.startswith("text/event-stream")
        self._events = ServerSentEvents()
        self._whole = bytearray()
        self._audio = SniffedAudio(NAME, rate, OUTPUT_RATE)
        self._base64 = ""  # of a group of four characters that is not whole yet
        self._words_from = ""
        self._finish = ""
        self._usage: dict[str, float] = {}
        self.text = ""

    def feed(self, data: bytes) -> Iterable[Event]:
        """Return what a piece of the body stands for."""
        if self._streams is None and data.strip():
            self._streams = not (self._whole + data).lstrip().startswith(b"{")
            data, self._whole = bytes(self._whole) + data, bytearray()
        if not self._streams:
            self._whole += data
            return []
        return self._told(self._events.feed(data))

    def end(self) -> Iterable[Event]:
        """Return the rest, and how the reply ended."""
        if self._streams:
            yield from self._told(self._events.end())
            if not self._finish:
                self._finish = f"no {DONE}"
        elif self._whole.strip():
            yield from self._object(Text(self._whole.decode("utf-8", errors="replace")))
        yield from self._ended()

    def _told(self, texts: Iterable[str]) -> Iterator[Event]:
        for text in texts:
            if text.strip() == DONE:
                yield from self._ended()
            elif text.strip():
                yield from self._object(Text(text))

    def _ended(self) -> Iterator[Event]:
        if self._base64:
            raise ProtocolError(
                NAME, "the audio ends in the middle of its base64", Text(self._base64)
            )
        if self._usage:
            yield Usage(self._usage)
        whole = self._finish not in _CUT_OFF and self._finish != f"no {DONE}"
        yield ReplyEnded("completed" if whole else "incomplete", detail=self._finish)

    def _object(self, message: Message) -> Iterator[Event]:
        told = parse_object(NAME, message)
        if told.has("error") or told.data.get("object") == "error":
            yield _fault(told)
            return
        modality = told.text("modality", "")
        for choice in told.objects("choices"):
            place = "delta" if choice.has("delta") else "message"
            yield from self._part(choice.object(place), modality)
            if self._finish not in _CUT_OFF:  # words cut off, then a sound that "stops"
                self._finish = choice.text("finish_reason", "") or self._finish
        if told.has("usage"):
            self._usage = _counts(told.object("usage"))  # servers repeat it: the last one counts

    def _part(self, part: Fields, modality: str) -> Iterator[Event]:
        content = part.data.get("content")
        if modality == "audio" and isinstance(content, str):
            yield from self._sound(part, "content", content)
        else:
            yield from self._words("content", _words_of(part, content))
            yield from self._words("content", part.text("refusal", ""))
        if part.has("audio"):
            audio = part.object("audio")
            yield from self._words("transcript", audio.text("transcript", ""))
            yield from self._sound(audio, "data", audio.text("data", ""))

    def _words(self, source: str, words: str) -> Iterator[Event]:
        """Yield words; of two places that both tell what is said, the first one counts."""
        self._words_from = self._words_from or (source if words else "")
        if words and source == self._words_from:
            self.text += words
            yield ReplyText(words)

    def _sound(self, part: Fields, name: str, data: str) -> Iterator[Event]:
        """Yield samples; base64 may be cut anywhere, as servers mean it to be joined first."""
        place = f"{part.place}{name}"
        if self._streams:
            data = self._base64 + data
            whole = len(data) - len(data) % 4
            data, self._base64 = data[:whole], data[whole:]
        if data:
            pcm, rate = self._audio.chunk(from_base64(part, place, data))
            if pcm:
                yield ReplyAudio(pcm, "pcm16", rate)


def _words_of(part: Fields, content: Json) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return clean(content)
    return "".join(one.text("text", "") for one in part.objects("content"))


def _counts(usage: Fields) -> dict[str, float]:
    made = {name: usage.number(name) for name in _COUNTS if usage.has(name)}
    for side in ("prompt", "completion"):
        details = usage.object(f"{side}_tokens_details")
        made |= {f"{side}_{name}": details.number(name) for name in _DETAILS if details.has(name)}
    return made


def _fault(told: Fields) -> Fault:
    """Return what an answer says that is an error, in any of the shapes that servers have."""
    inner = told.data.get("error")
    if isinstance(inner, str):
        return Fault("server", retryable=True, message=clean(inner)[:_LONGEST])
    error = told.data if inner is None else inner
    if not isinstance(error, dict):
        raise told.problem("error is neither an object nor a string")
    code, kind, words = (_shown(error.get(name)) for name in ("code", "type", "message"))
    found: tuple[FaultKind, bool] = ("server", True)
    if code.startswith("4") and code.isdecimal():
        found = ("request", False)
    whose, again = classify(code, kind, found)
    name = code or kind or "no code"
    return Fault(whose, again, f"{name}: {words or 'no message'}"[:_LONGEST])


def _shown(value: Json) -> str:
    return "" if value is None else clean(value) if isinstance(value, str) else str(value)
