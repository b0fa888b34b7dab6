"""Whisper, a language model and a voice, joined in this client: the papers' "Whisper + GPT-4".

The codec speaks with a transport that runs the three of them, in lines of our own. To it go
`Binary` with samples, then `{"turn": {"role", "text"}, "rate"}` for an earlier turn (`rate` is null
where there are no samples) or `{"ask": {"text"}, "rate"}` for the question. From it come lines with
an `event`:

    ready    note
    heard    text                        what Whisper read in the question
    text     text                        a piece of the reply
    audio    rate                        of the samples in every `Binary` from now on
    stage    name, began_ms, ms          what one stage took
    usage    counts
    note     text                        what was odd, and no failure
    fault    kind, retryable, text, retry_after_s
    done     reason, detail
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, cast

from voxmeter.endpoints.codec import (
    Address,
    Binary,
    Ended,
    Json,
    Message,
    Settings,
    Step,
    Text,
    Traits,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    FaultKind,
    InputTranscript,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    Stage,
    Usage,
)
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.http_exchange import keyed
from voxmeter.endpoints.kind import Kind
from voxmeter.endpoints.pipeline_options import NAME, OPTIONS, read

__all__ = ["OPTIONS", "RATE", "Client", "client"]

RATE = 16_000
"""Samples a second of the question; Whisper's own, unless `input_rate` says otherwise."""

KIND = Kind(
    name=NAME,
    about="Whisper + any OpenAI-compatible language model + any voice, joined in this client",
    codec="voxmeter.endpoints.pipeline:client",
    transport="voxmeter.client.pipeline_transport:PipelineTransport",
    known_by="a pipeline of our own; chat completions from a genuine llama.cpp server, "
    "speech services from documentation only",
    docs="docs/endpoints/pipeline.md",
    options_at="voxmeter.endpoints.pipeline_options:OPTIONS",
    place="options",
    pool="voxmeter.client.pipeline:Pipeline",
    usage_at="voxmeter.client.usage:pipeline",
)

_KINDS = ("auth", "quota", "policy", "busy", "request", "server")
_REASONS = ("completed", "cancelled", "incomplete")
_Reason = Literal["completed", "cancelled", "incomplete"]


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    return Client(settings)


class Client:
    """One session; every question is handed over whole."""

    def __init__(self, settings: Settings) -> None:
        self._traits = Traits(
            input_rate=settings.input_rate or RATE,
            turn_end="request",
            history=True,
            takes_text=True,
            reply_end="final",
            reply_channel="text" if read(settings).tts is None else "speech",
        )
        self._pcm = bytearray()
        self._text = ""
        self._asked = self._started = False
        self._rate: int | None = None

    @property
    def traits(self) -> Traits:
        """What the driver must know."""
        return self._traits

    def address(self, url: str, api_key: str | None) -> Address:
        """Return the language model's key in a header; the transport knows where it is."""
        return keyed(url, api_key)

    def open(self) -> Step:
        """Wait for `ready`."""
        return Step()

    def turn(self, turn: Turn) -> Step:
        """Add an earlier turn; a user's that was spoken is heard, as the question is."""
        spoken = turn.role == "user" and bool(turn.pcm)
        rate = self._traits.input_rate if spoken else None
        line = _line(turn={"role": turn.role, "text": turn.text}, rate=rate)
        samples: list[Message] = [Binary(turn.pcm)] if spoken else []
        return Step((), [*samples, line])

    def audio(self, data: bytes) -> Step:
        """Keep the question, which leaves with `end_turn`."""
        self._pcm += data
        return Step()

    def text(self, text: str) -> Step:
        """Keep what is asked in writing; it stands before what was heard."""
        self._text = text
        return Step()

    def end_turn(self) -> Step:
        """Hand over the question."""
        line = _line(ask={"text": self._text}, rate=self._traits.input_rate)
        messages: list[Message] = [Binary(bytes(self._pcm)), line]
        self._pcm.clear()
        self._text, self._asked, self._started = "", True, False
        return Step((), messages)

    def played(self, reply: str) -> Step:
        """Say nothing."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """Say nothing: the reply goes on, and the driver stops listening."""
        return Step()

    def close(self) -> Step:
        """Say nothing: the transport ends what goes on."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return the events of one line, or of samples.

        Raises:
            ProtocolError: If it is neither, or not now.
        """
        match message:
            case Ended(code, reason):
                return Step([Closed(code, reason)])
            case Binary(data):
                if self._rate is None or not self._asked:
                    raise ProtocolError(NAME, "samples that were not announced", message)
                return Step(self._content(ReplyAudio(data, "pcm16", self._rate)))
            case _:
                return Step(self._line(parse_object(NAME, message)))

    def _line(self, told: Fields) -> Sequence[Event]:
        event = told.text("event", "")
        if event == "ready":
            return [Ready(note=told.text("note", ""))]
        if event == "fault":
            self._asked = False
            return [_fault(told)]
        if not self._asked:
            raise told.problem(f"{event[:40]!r} before anything was asked")
        match event:
            case "heard":
                return [InputTranscript(told.text("text"))]
            case "text":
                return self._content(ReplyText(told.text("text")))
            case "audio":
                self._rate = told.whole("rate")
                if not 1_000 <= self._rate <= 768_000:
                    raise told.problem(f"{self._rate} is not a rate")
                return []
            case "stage":
                return [Stage(told.text("name"), told.number("began_ms"), told.number("ms"))]
            case "usage":
                counts = told.object("counts")
                return [Usage({name: counts.number(name) for name in counts.data})]
            case "note":
                return [Fault("server", retryable=False, message=told.text("text"), fatal=False)]
            case "done":
                return self._done(told)
            case _:
                raise told.problem(f"event {event[:40]!r}")

    def _content(self, event: Event) -> Sequence[Event]:
        first = [] if self._started else [ReplyStarted()]
        self._started = True
        return [*first, event]

    def _done(self, told: Fields) -> Sequence[Event]:
        self._asked = False
        reason = told.text("reason", "completed")
        if reason not in _REASONS:
            raise told.problem(f"{reason[:40]!r} is not a reason")
        return self._content(ReplyEnded(cast("_Reason", reason), detail=told.text("detail", "")))


def _fault(told: Fields) -> Fault:
    kind = told.text("kind")
    if kind not in _KINDS:
        raise told.problem(f"{kind[:40]!r} is not a kind of fault")
    return Fault(
        cast("FaultKind", kind),
        retryable=told.flag("retryable", default=False),
        message=told.text("text"),
        retry_after_s=told.number("retry_after_s") if told.has("retry_after_s") else None,
    )


def _line(**fields: Json) -> Text:
    return Text(json.dumps(fields))
