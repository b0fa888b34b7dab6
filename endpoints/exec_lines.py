"""Programs, functions and files as endpoints: a question is one line of JSON, a reply is several.

The lines are ours (`docs/endpoints/exec.md`). To the peer: `{"id", "audio", "sample_rate", "text",
"instructions", "history"}`. From it: `ready` once, then for each question any number of `text` and
`audio`, then `done` or `error`.

A codec opens no files. A `Binary` that it sends is one WAV file, and a whole number where a path
belongs stands for the so-manieth of them since the last line; the transport puts the path there.
An `audio` line with a path is followed by a `Binary` with the file's samples.
"""

from __future__ import annotations

import json
import math
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
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    FaultKind,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    Usage,
)
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.http_exchange import only_requests
from voxmeter.endpoints.kind import Kind
from voxmeter.endpoints.wav import wav_file

RATE = 16_000
"""Samples a second of the question, unless the endpoint or its table says otherwise."""

MODALITIES = (
    "'audio' (default; text may come with it) or 'text': replies without audio, scored as text"
)
LINES_OPTIONS = {"output_modalities": MODALITIES}
"""Every option of what speaks these lines, with what it does."""

OPTIONS = {
    "once": "true: the program answers one question and ends; it is started for each",
    **LINES_OPTIONS,
}
"""Every option of kind `exec`, with what it does."""

_EVENTS = "ready, text, audio, done and error"
_KINDS = ("auth", "quota", "policy", "busy", "request", "server")
_LOWEST, _HIGHEST = 1_000, 768_000
_SHOWN = 100

Protocol = Literal["exec", "python", "import"]

KIND = Kind(
    name="exec",
    about="a program of yours, in any language: lines of JSON on its standard streams",
    codec="voxmeter.endpoints.exec_lines:client",
    transport="voxmeter.client.subprocess_transport:SubprocessTransport",
    known_by="a protocol of our own; tried on programs of its tests, Python 3.8 to 3.13",
    docs="docs/endpoints/exec.md",
    options_at="voxmeter.endpoints.exec_lines:OPTIONS",
    place="command",
    pool="voxmeter.client.subprocess_transport:Programs",
    usage_at="voxmeter.client.usage:program",
)

IMPORT_KIND = Kind(
    name="import",
    about="answers made elsewhere: a folder of audio files, or a file of JSON lines",
    codec="voxmeter.endpoints.exec_lines:imported",
    transport="voxmeter.client.import_transport:ImportTransport",
    known_by="a format of our own",
    docs="docs/endpoints/import.md",
    options_at="voxmeter.client.import_transport:OPTIONS",
    place="options",
    pool="voxmeter.client.import_transport:Imported",
    timed=False,
    usage_at="voxmeter.client.usage:answers",
)


def client(settings: Settings) -> Lines:
    """Return the codec of one session with a program."""
    return Lines(settings, "exec")


def in_process(settings: Settings) -> Lines:
    """Return the codec of one session with a Python function."""
    return Lines(settings, "python")


def imported(settings: Settings) -> Lines:
    """Return the codec of one question that was answered elsewhere."""
    return Lines(settings, "import")


def ends(message: Message, request: str) -> bool:
    """Return whether a line is the last one of the reply to a request.

    Args:
        message: As it was received.
        request: The request's id.
    """
    if not isinstance(message, Text) or not ('"done"' in message.data or '"error"' in message.data):
        return False
    try:
        told = parse_object("exec", message).data
    except ProtocolError:
        return False
    return told.get("event") in ("done", "error") and told.get("id") in (None, request)


class Lines:
    """One session.

    Args:
        settings: What it is to be.
        protocol: The endpoint's kind, for errors.

    Raises:
        UserError: If the settings ask for something that no line can carry.
    """

    def __init__(self, settings: Settings, protocol: Protocol) -> None:
        self._settings, self._protocol = settings, protocol
        self._traits = Traits(
            input_rate=settings.input_rate or RATE,
            turn_end="request",
            history=protocol != "import",
            takes_text=True,  # answers made elsewhere were given to the whole question
            reply_end="final",
            reply_channel=_channel(settings),
        )
        only_requests(protocol, settings)
        self._rate = self._traits.input_rate
        self._pcm = bytearray()
        self._text: str | None = None
        self._history: list[Json] = []
        self._files = 0
        self._number = 0
        self._asked: str | None = None
        self._started = False
        self._reply_rate: int | None = None
        self._file_rate: int | None = None

    @property
    def traits(self) -> Traits:
        """What the driver must know."""
        return self._traits

    def address(self, url: str, api_key: str | None) -> Address:
        """Return nothing of use: the transport knows the program."""
        return Address(url)

    def open(self) -> Step:
        """Wait for `ready`."""
        return Step()

    def turn(self, turn: Turn) -> Step:
        """Keep an earlier turn for the next request."""
        audio: Json = None
        messages: list[Message] = []
        if turn.pcm:
            audio, self._files = self._files, self._files + 1
            messages.append(Binary(wav_file(turn.pcm, self._traits.input_rate)))
        self._history.append({"role": turn.role, "text": turn.text or None, "audio": audio})
        return Step((), messages)

    def audio(self, data: bytes) -> Step:
        """Keep the question, which leaves with `end_turn`."""
        self._pcm += data
        return Step()

    def text(self, text: str) -> Step:
        """Keep what goes with the audio."""
        self._text = text
        return Step()

    def end_turn(self) -> Step:
        """Send the question."""
        self._number += 1
        self._asked = f"{self._settings.session_tag or 'question'}-{self._number}"
        self._started = False
        if self._protocol == "import":
            return Step((), [Text(json.dumps({"id": self._asked, "asked": self._question()}))])
        request: dict[str, Json] = {
            "id": self._asked,
            "audio": self._files,
            "sample_rate": self._rate,
            "text": self._text,
            "instructions": self._settings.instructions,
            "history": self._history,
            **self._wishes(),
        }
        question = Binary(wav_file(bytes(self._pcm), self._rate))
        self._pcm.clear()
        self._text, self._history, self._files = None, [], 0
        return Step((), [question, Text(json.dumps(request))])

    def played(self, reply: str) -> Step:
        """Say nothing."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """Say nothing: a program that answers does not listen."""
        return Step()

    def close(self) -> Step:
        """Say nothing: the program may be asked again."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return what one line, or the samples of a file, stand for."""
        match message:
            case Ended(code, reason):
                return Step([Closed(code, reason)])
            case Binary(data) if self._file_rate is not None:
                rate, self._file_rate = self._file_rate, None
                return Step(self._content(ReplyAudio(data, "pcm16", rate)))
            case _:
                return Step(self._line(self._parsed(message)))

    def _parsed(self, message: Message) -> Fields:
        try:
            return parse_object(self._protocol, message)
        except ProtocolError as error:
            data = message.data if isinstance(message, Text) else ""
            shown = data[:_SHOWN].encode("unicode_escape").decode("ascii")
            words = f"{error.problem}: '{shown}'; standard output is for replies alone"
            raise ProtocolError(self._protocol, words, message) from None

    def _line(self, told: Fields) -> Sequence[Event]:
        event = told.text("event", "")
        if event == "ready":
            return [self._ready(told)]
        if event not in ("text", "audio", "done", "error"):
            found = f"event {event[:40]!r}" if event else "a line without an event"
            raise told.problem(f"{found}; known: {_EVENTS}")
        if self._asked is None:
            if event == "error":  # it could not even start
                return [_fault(told)]
            raise told.problem(f"{event} before anything was asked")
        if told.has("id") and told.text("id") != self._asked:
            raise told.problem(f"answers {told.text('id')[:40]!r}, but {self._asked!r} was asked")
        match event:
            case "text":
                return self._content(ReplyText(told.text("text")))
            case "audio":
                return self._audio(told)
            case "error":
                self._asked = None
                return [_fault(told)]
            case _:
                return self._done(told)

    def _ready(self, told: Fields) -> Ready:
        if self._asked is not None:
            raise told.problem("ready in the middle of a reply")
        rate = told.whole("sample_rate", 0)
        if rate:
            self._rate = _checked(told, rate)
            if self._settings.input_rate not in (None, rate):
                wanted = self._settings.input_rate
                raise told.problem(f"takes audio at {rate}, but input_rate is {wanted}")
        return Ready(rate or None, told.text("name", "")[:200])

    def _content(self, event: Event) -> Sequence[Event]:
        first = [] if self._started else [ReplyStarted()]
        self._started = True
        return [*first, event]

    def _audio(self, told: Fields) -> Sequence[Event]:
        rate = _checked(told, told.whole("sample_rate", self._reply_rate))
        self._reply_rate = rate
        if told.has("pcm_b64") == told.has("path"):
            raise told.problem("audio needs one of pcm_b64 and path")
        if told.has("path"):
            told.text("path")
            self._file_rate = rate
            return []
        return self._content(ReplyAudio(told.audio("pcm_b64"), "pcm16", rate))

    def _done(self, told: Fields) -> Sequence[Event]:
        self._asked = None
        counts = {
            name: float(count)
            for name, count in told.object("usage").data.items()
            if isinstance(count, int | float) and not isinstance(count, bool) and _finite(count)
        }
        return [*([Usage(counts)] if counts else []), *self._content(ReplyEnded())]

    def _wishes(self) -> dict[str, Json]:
        """Return the settings that a program may look at, those alone that were set."""
        settings = self._settings
        named: dict[str, Json] = {
            "model": settings.model or None,
            "voice": settings.voice or None,
            "temperature": settings.temperature,
            "output_rate": settings.output_rate,
        }
        return {name: value for name, value in named.items() if value is not None}

    def _question(self) -> Json:
        asked = self._settings.asked
        if asked is None:
            return None
        return {
            "suite": asked.suite,
            "item": asked.item,
            "condition": asked.condition,
            "trial": asked.trial,
        }


def _channel(settings: Settings) -> Literal["speech", "text"]:
    given = settings.options.get("output_modalities", "audio")
    if given not in ("audio", "text"):
        place = "options.output_modalities"
        raise UserError(place, f"is {json.dumps(given)[:40]}", 'write "audio" or "text"')
    return "text" if given == "text" else "speech"


def _checked(told: Fields, rate: int) -> int:
    if not _LOWEST <= rate <= _HIGHEST:
        raise told.problem(f"sample_rate {rate} is not from {_LOWEST} to {_HIGHEST}")
    return rate


def _finite(count: float) -> bool:
    try:
        return math.isfinite(count)
    except OverflowError:
        return False


def _fault(told: Fields) -> Fault:
    kind = told.text("kind", "server")
    words = told.text("text", "") or told.text("message", "") or "no reason given"
    known = cast("FaultKind", kind if kind in _KINDS else "server")
    return Fault(known, retryable=known == "busy", message=words[:500])


PYTHON_KIND = Kind(
    name="python",
    about="a Python function of yours, called in this process",
    codec="voxmeter.endpoints.exec_lines:in_process",
    transport="voxmeter.client.python_transport:PythonTransport",
    known_by="a protocol of our own; the function is called as VoxEval calls its models (read "
    "in source)",
    docs="docs/endpoints/python.md",
    options_at="voxmeter.client.python_transport:OPTIONS",
    place="options",
    pool="voxmeter.client.python_transport:Functions",
    usage_at="voxmeter.client.usage:function",
)
