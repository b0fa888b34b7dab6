"""Pipecat agents over a websocket: frames in protobuf, and RTVI, which tells what happens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, cast
from urllib.parse import urlsplit, urlunsplit

from voxmeter.endpoints import pipecat_frames as frames
from voxmeter.endpoints.addresses import checked_key
from voxmeter.endpoints.codec import (
    Address,
    Ended,
    Invitation,
    Json,
    Message,
    Request,
    Settings,
    Step,
    Text,
    Traits,
    Turn,
)
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    InputTranscript,
    Interrupted,
    Note,
    Ready,
    ReplyAudio,
    ReplyText,
    SpeechStarted,
    SpeechStopped,
    Usage,
)
from voxmeter.endpoints.fields import Fields, clean, parse_object
from voxmeter.endpoints.kind import Kind
from voxmeter.endpoints.option_table import OptionTable
from voxmeter.endpoints.pipecat_replies import Replies

DEFAULT_INPUT_RATE = 16_000
RTVI_VERSION = "2.0.0"
"""The version that we claim; from 2.2.0 on servers may tell the model's text twice."""
NOTE_CHARACTERS = 2_000
_WEBSOCKET = {"http": "ws", "https": "wss"}
_HTTP = {"ws": "http", "wss": "https"}
_RATES = (8_000, 48_000)

OPTIONS = {
    "first_speaker": "'user' (default), or 'endpoint': hear a greeting out before the question",
    "rtvi": "true (default); false for a bot whose pipeline has no RTVI: nobody says then when a "
    "reply is over, so quiet ends it",
    "start": "a table that is posted to the URL first; the answer says where the websocket is",
    "start_field": "which field of that answer has it ('wsUrl')",
}
"""Every option there is, with what it does."""

KIND = Kind(
    name="pipecat",
    about="Pipecat agents over a websocket: protobuf frames and RTVI",
    codec="voxmeter.endpoints.pipecat:client",
    server="voxmeter.endpoints.pipecat_server:server",
    path="/ws",
    known_by="the genuine server (pipecat-ai 1.14.0), tested at every change; recorded sessions",
    docs="docs/endpoints/pipecat.md",
    options_at="voxmeter.endpoints.pipecat:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option is wrong, or a setting is one that only the bot itself can have.
    """
    return Client(settings)


class Client:
    """One session with a bot; see `Codec`."""

    def __init__(self, settings: Settings) -> None:
        _refuse_what_cannot_be(settings)
        options = OptionTable(frames.PROTOCOL, settings.options, OPTIONS)
        self._rate = settings.input_rate or DEFAULT_INPUT_RATE
        self._rtvi = options.flag("rtvi", default=True)
        self._first = options.choice("first_speaker", ("user", "endpoint"), "user")
        self._start = dict(options.table("start")) if options.has("start") else None
        self._start_field = options.text("start_field", "wsUrl")
        if options.has("start_field") and self._start is None:
            cure = "add options.start, or leave start_field out"
            raise UserError("options.start_field", "is set without options.start", cure)
        self._ready = False
        self._spoke = False
        self._transcripts_from = ""
        self._replies = Replies()

    @property
    def traits(self) -> Traits:
        """What the driver must know; all of it known before the bot speaks."""
        return Traits(
            input_rate=self._rate,
            first_speaker=cast('Literal["user", "endpoint"]', self._first),
            takes_text=self._rtvi,
            reply_end="told" if self._rtvi else "quiet",
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return the URL, or how to ask for one; the key goes where pipecat's runner wants it."""
        parts = urlsplit(url)
        schemes = _WEBSOCKET if self._start is None else _HTTP
        whole = urlunsplit(parts._replace(scheme=schemes.get(parts.scheme, parts.scheme)))
        headers = {"Authorization": f"Bearer {checked_key(api_key)}"} if api_key else {}
        if self._start is None:
            return Address(whole, headers)
        body = json.dumps(self._start).encode()
        request = Request(body, {"Content-Type": "application/json"})
        return Address(whole, headers, invitation=Invitation(request, self._start_field))

    def open(self) -> Step:
        """Say who we are; the bot is ready when it says so."""
        if not self._rtvi:
            return Step([Ready(note="no RTVI: whether the bot is ready is not told")])
        about: dict[str, Json] = {"version": RTVI_VERSION, "about": {"library": "voxmeter"}}
        return Step(messages=[frames.rtvi("client-ready", about, "1")])

    def turn(self, turn: Turn) -> Step:
        """There is no history: the bot keeps its own."""
        return Step()

    def audio(self, data: bytes) -> Step:
        """Send one frame."""
        return Step(messages=[frames.audio(data, self._rate)] if data else [])

    def text(self, text: str) -> Step:
        """Add a text to the conversation; the model reads it with what is spoken next."""
        if not self._rtvi:
            return Step()
        options: Json = {"run_immediately": False, "audio_response": True}
        told: dict[str, Json] = {"content": text, "options": options}
        return Step(messages=[frames.rtvi("send-text", told, "text")])

    def end_turn(self) -> Step:
        """Say nothing: the bot finds the end of a turn by itself."""
        return Step()

    def played(self, reply: str) -> Step:
        """Say nothing: the bot sends no faster than it plays."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """Stop whatever the bot says."""
        return Step(messages=[frames.interruption()])

    def close(self) -> Step:
        """Say nothing: a bot that is asked to leave may be one that others talk to later."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return what one frame stands for.

        Raises:
            ProtocolError: If it is no frame, or a message that is not JSON.
        """
        if isinstance(message, Ended):
            return Step([Closed(message.code, message.reason)])
        match frames.read(message):
            case frames.AudioFrame() as frame if self._rtvi:
                return Step(self._replies.audio(frame))
            case frames.AudioFrame(pcm, rate):
                self._spoke = True
                return Step([ReplyAudio(pcm, "pcm16", rate)] if pcm else [])
            case frames.InterruptionFrame():
                return Step(self._interrupted())
            case frames.MessageFrame(data):
                return Step(self._told(parse_object(frames.PROTOCOL, Text(data))))
            case frames.TranscriptionFrame(text):
                return Step([InputTranscript(text)])
            case frames.TextFrame(text) if text and not self._rtvi:
                return Step([ReplyText(text)])
            case _:
                return Step()

    def _interrupted(self) -> Sequence[Event]:
        """Return what an interruption cuts; it comes whenever a user speaks, replies or not."""
        if self._rtvi:
            return self._replies.interrupted() or [Note("interruption")]
        spoke, self._spoke = self._spoke, False
        return [Interrupted()] if spoke else []

    def _told(self, told: Fields) -> Sequence[Event]:
        kind = told.text("type", "")
        if told.data.get("label") != frames.LABEL or not self._rtvi:
            return [_note(kind or "message", told.data)]
        events = self._event(kind, told.object("data")) or self._replies.receive(kind, told)
        return events or [_note(kind, told.data.get("data", ""))]

    def _event(self, kind: str, data: Fields) -> Sequence[Event]:
        match kind:
            case "bot-ready" if not self._ready:
                ready = _ready(data)
                self._ready = True
                return [ready]
            case "user-started-speaking":
                return [SpeechStarted()]
            case "user-stopped-speaking":
                # It comes once the words are known and the turn is judged to be over, with no
                # position in the audio: no mark of ours may be read from it.
                return [SpeechStopped()]
            case "user-transcription" | "user-input":
                return self._transcript(kind, data)
            case "metrics":
                return _figures(data)
            case "error":
                words = data.text("error", "") or "an error without words"
                fatal = data.flag("fatal", default=False)
                return [Fault("server", retryable=True, message=words, fatal=fatal)]
            case "error-response":
                words = data.text("error", "") or "a refusal without words"
                return [Fault("request", retryable=False, message=words, fatal=False)]
            case _:
                return []

    def _transcript(self, kind: str, data: Fields) -> Sequence[Event]:
        """Give final transcripts from the first source that has any; most bots tell them twice."""
        spoken = data.text("input_type", "transcription") == "transcription"
        text, final = data.text("text", ""), data.flag("final", default=True)
        if not final or not spoken or (self._transcripts_from and self._transcripts_from != kind):
            return []
        self._transcripts_from = kind
        return [InputTranscript(text)]


def _refuse_what_cannot_be(settings: Settings) -> None:
    """Refuse what would be recorded as part of the session and reach nobody."""
    for name in ("instructions", "voice", "temperature", "output_rate"):
        if getattr(settings, name) not in (None, ""):
            raise UserError(
                name, "has no place in this protocol", "leave it out: the bot's own program sets it"
            )
    if settings.input_rate is not None and not _RATES[0] <= settings.input_rate <= _RATES[1]:
        found = f"{settings.input_rate}"
        raise UserError("input_rate", found, f"use {_RATES[0]} to {_RATES[1]}")
    if settings.turn_end not in (None, "silence"):
        found = f"{settings.turn_end!r}, and a bot finds the end of a turn by itself"
        raise UserError("turn_end", found, "leave it out")


def _ready(data: Fields) -> Ready:
    able = data.object("capabilities")
    for name, words in (("audio_in", "takes no audio"), ("audio_out", "sends no audio")):
        if not able.flag(name, default=True):
            raise data.problem(f"the bot {words}: set {name}_enabled = True in its transport")
    about = data.object("about")
    library = [about.text(name, "") for name in ("library", "library_version")]
    parts = [" ".join(filter(None, library)), f"RTVI {data.text('version', 'unknown')}"]
    return Ready(note=", ".join(filter(None, parts)))


def _figures(data: Fields) -> Sequence[Event]:
    """Return what was counted, to be summed, and everything as it was told, for the log."""
    counts: dict[str, float] = {}
    for usage in data.objects("tokens"):
        _add(counts, usage)
    for usage in data.objects("stt_usage"):
        _add(counts, usage.object("value"))
    for usage in data.objects("characters"):
        counts["characters"] = counts.get("characters", 0) + usage.number("value", 0)
    noted = _note("metrics", data.data)
    return [Usage(counts), noted] if counts else [noted]


def _add(counts: dict[str, float], told: Fields) -> None:
    for name, value in told.data.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            shown = clean(name)
            counts[shown] = counts.get(shown, 0) + told.number(name)


def _note(name: str, data: object) -> Note:
    return Note(name, json.dumps(data)[:NOTE_CHARACTERS] if data else "")
