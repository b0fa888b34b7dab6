"""Replies as a client of OpenAI Realtime hears them: which one is under way, what still counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from voxmeter.endpoints.events import (
    Event,
    Fault,
    InputTranscript,
    Interrupted,
    RateLimit,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
    SpeechStopped,
    Usage,
)
from voxmeter.endpoints.fields import Fields, clean
from voxmeter.endpoints.openai_dialect import Format
from voxmeter.endpoints.openai_faults import failed_fault

REMEMBERED = 64
"""How many responses that are over are remembered, so that late pieces of them are dropped."""


@dataclass(slots=True)
class Item:
    """The assistant's item that audio came for last; what was sent of it, ms."""

    id: str
    content_index: int
    sent_ms: float = 0.0


class Replies:
    """What a client knows of the replies of one session.

    Attributes:
        active: The reply under way, by its id; empty where the server has no ids.
        item: What of the newest reply was sent as audio; None before any was.
        any_came: Whether anything of any reply came in this session.
    """

    def __init__(self, output: Format, *, interrupts: bool, has_responses: bool = True) -> None:
        self._output = output
        self._interrupts = interrupts and has_responses
        self._over: dict[str, bool] = {}  # id -> whether late pieces of it are heard
        self._dropped: dict[str, bool] = {}
        self._texts: set[tuple[str, str, int]] = set()
        self._wholes: set[tuple[str, str, int]] = set()
        self.active: str | None = None
        self.item: Item | None = None
        self.any_came = False
        self._readers: dict[str, Callable[[Fields], Sequence[Event]]] = {
            "response.created": self._created,
            "response.output_audio.delta": self._audio,
            "response.output_audio_transcript.delta": self._text,
            "response.output_text.delta": self._text,
            "response.output_audio_transcript.done": lambda told: self._whole(told, "transcript"),
            "response.output_text.done": lambda told: self._whole(told, "text"),
            "transcription.delta": self._text,
            "transcription.done": self._written_down,
            "response.done": self._done,
            "unmute.interrupted_by_vad": self._interrupted,
            "input_audio_buffer.speech_started": self._speech_started,
            "input_audio_buffer.speech_stopped": _speech_stopped,
            "conversation.item.input_audio_transcription.completed": _transcript,
            "conversation.item.input_audio_transcription.failed": _transcript_failed,
            "rate_limits.updated": _rate_limits,
        }
        if not has_responses:
            self._readers["response.output_audio.done"] = self._audio_done

    def receive(self, name: str, told: Fields) -> Sequence[Event]:
        """Return the events of one server event by its GA name; none for a name without one."""
        reader = self._readers.get(name)
        return [] if reader is None else reader(told)

    def drop_active(self) -> None:
        """Let nothing more be heard of the reply under way; its end is still told."""
        if self.active is not None:
            _remember(self._dropped, self.active, heard=False)

    def _created(self, told: Fields) -> Sequence[Event]:
        reply = told.object("response").text("id", "")
        if reply in self._over:  # some servers keep no order among events of different types
            return []
        if reply != self.active or not reply:
            self.item = None
        self.active = reply
        return [ReplyStarted(reply)]

    def _of(self, told: Fields) -> str | None:
        """Return the reply that a piece is of; None when nothing more of it is to be heard."""
        reply = told.text("response_id", "") or self.active or ""
        if reply in self._dropped:
            return None
        if reply in self._over:  # a tail of what was completed belongs to it
            return reply if self._over[reply] else None
        if self.active is None:  # some servers never say that a reply begins
            self.active = reply
        return reply

    def _audio(self, told: Fields) -> Sequence[Event]:
        data = told.audio("delta" if told.has("delta") else "audio")
        rate = told.whole("sample_rate_hz", self._output.rate)
        if not 8000 <= rate <= 192000:
            raise told.problem(f"sample_rate_hz {rate} is not from 8000 to 192000")
        item_id, index = told.text("item_id", ""), told.whole("content_index", 0)
        reply = self._of(told)
        if reply is None or not data:
            return []
        self.any_came = True
        if self.item is None or (self.item.id, self.item.content_index) != (item_id, index):
            self.item = Item(item_id, index)
        self.item.sent_ms += len(data) / Format(self._output.encoding, rate).bytes_per_ms
        return [ReplyAudio(data, self._output.encoding, rate, reply)]

    def _text(self, told: Fields) -> Sequence[Event]:
        text = told.text("delta")
        content = _content(told)
        reply = self._of(told)
        if reply is None or not text or content in self._wholes:
            return []
        self._texts.add(content)
        self.any_came = True
        return [ReplyText(text, reply)]

    def _whole(self, told: Fields, name: str) -> Sequence[Event]:
        """Give the whole text at its end, where no pieces of it came before."""
        text = told.text(name, "")
        content = _content(told)
        reply = self._of(told)
        if reply is None or not text or content in self._texts | self._wholes:
            return []
        self._wholes.add(content)
        self.any_came = True
        return [ReplyText(text, reply)]

    def _written_down(self, told: Fields) -> Sequence[Event]:
        return [*self._whole(told, "text"), *_usage(told.object("usage"))]

    def _audio_done(self, told: Fields) -> Sequence[Event]:
        """End a reply that is no response; one that was interrupted has ended before."""
        if self.active is None and not told.has("has_audio"):
            return []
        reply = self.active or ""
        said = "" if told.flag("has_audio", default=True) else "without audio"
        cut = reply in self._dropped
        self._close(reply, heard=True)
        return [ReplyEnded("cancelled" if cut else "completed", reply, said)]

    def _interrupted(self, told: Fields) -> Sequence[Event]:
        """End a reply that the server stopped; it tells no other end of it."""
        if self.active is None:
            return []
        self._close(self.active, heard=False)
        return [Interrupted()]

    def _done(self, told: Fields) -> Sequence[Event]:
        response = told.object("response")
        status = response.text("status", "completed")
        details = response.object("status_details")
        reply = response.text("id", "") or self.active or ""
        events: list[Event] = [*_usage(response.object("usage"))]
        match status:
            case _ if reply in self._over:
                return []  # told twice
            case "failed":
                events.append(failed_fault(details))
            case "completed" if reply in self._dropped:
                events.append(ReplyEnded("cancelled", reply, "completed all the same"))
            case "completed" | "cancelled" | "incomplete" as reason:
                events.append(ReplyEnded(reason, reply, details.text("reason", "")))
            case _:
                raise told.problem(f"response.done with status {status!r}")
        heard = status in {"completed", "incomplete"} and reply not in self._dropped
        self._close(reply, heard=heard)
        return events

    def _close(self, reply: str, *, heard: bool) -> None:
        self._dropped.pop(reply, None)
        gone = {""}  # servers without ids call every reply by the same empty one
        if reply:
            gone |= _remember(self._over, reply, heard=heard)
        self._texts = {one for one in self._texts if one[0] not in gone}
        self._wholes = {one for one in self._wholes if one[0] not in gone}
        if self.active == reply:
            self.active = None

    def _speech_started(self, told: Fields) -> Sequence[Event]:
        started = SpeechStarted(_milliseconds(told, "audio_start_ms"))
        if self.active is not None and self._interrupts:
            return [started, Interrupted()]
        return [started]


def _content(told: Fields) -> tuple[str, str, int]:
    return (
        told.text("response_id", ""),
        told.text("item_id", ""),
        told.whole("content_index", 0),
    )


def _milliseconds(told: Fields, name: str) -> int | None:
    return told.whole(name) if told.has(name) else None


def _speech_stopped(told: Fields) -> Sequence[Event]:
    return [SpeechStopped(_milliseconds(told, "audio_end_ms"))]


def _transcript(told: Fields) -> Sequence[Event]:
    return [InputTranscript(told.text("transcript", ""))]


def _transcript_failed(told: Fields) -> Sequence[Event]:
    error = told.object("error").text("message", "no message")
    message = f"the question was not transcribed: {error}"
    return [Fault("server", retryable=True, message=message, fatal=False)]


def _rate_limits(told: Fields) -> Sequence[Event]:
    return [
        RateLimit(
            limit.text("name", ""),
            limit.number("remaining") if limit.has("remaining") else None,
            limit.number("reset_seconds") if limit.has("reset_seconds") else None,
        )
        for limit in told.objects("rate_limits")
    ]


def _usage(usage: Fields) -> list[Usage]:
    """Return the counts of a reply by dotted name; two levels hold all that are told."""
    counts: dict[str, float] = {}
    for name, value in usage.data.items():
        if isinstance(value, dict):
            inner = usage.object(name)
            counts.update(
                {
                    clean(f"{name}.{key}"): inner.number(key)
                    for key in value
                    if _is_number(value[key])
                }
            )
        elif _is_number(value):
            counts[clean(name)] = usage.number(name)
    return [Usage(counts)] if counts else []


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _remember(names: dict[str, bool], name: str, *, heard: bool) -> set[str]:
    """Remember a reply; return which one is forgotten for it, if any."""
    names[name] = heard
    if len(names) <= REMEMBERED:
        return set()
    oldest = next(iter(names))
    del names[oldest]
    return {oldest}
