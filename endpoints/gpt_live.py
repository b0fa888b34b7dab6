"""GPT-Live, OpenAI's full-duplex models: JSON both ways, sound all the time, no turn ever ends."""

from __future__ import annotations

import base64
import json
from typing import Literal

from voxmeter.endpoints.addresses import checked_key, websocket_url
from voxmeter.endpoints.codec import (
    Address,
    Ended,
    Json,
    Message,
    Settings,
    Step,
    Text,
    Traits,
    Turn,
)
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    InputTranscript,
    Ready,
    ReplyAudio,
    ReplyText,
    Usage,
)
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.gpt_live_options import NAMES, PATH, read
from voxmeter.endpoints.kind import Kind
from voxmeter.endpoints.openai_faults import classify, close_fault, words
from voxmeter.endpoints.waits import named_wait_s

_PROTOCOL = "gpt-live"
_SHOWN = 80
_COUNTS = ("seconds", "active_seconds", "paused_seconds")
_UNHELPED = "No one can do this for you in this session. Answer from what you know yourself."
_ENDS: dict[str, Fault] = {
    "content": Fault("policy", retryable=False, message="the session was closed: content"),
    "expired": Fault("server", retryable=True, message="the session was closed: expired"),
    "connection_lost": Fault("server", retryable=True, message="session closed: connection_lost"),
    "remote_hangup": Fault("server", retryable=True, message="session closed: remote_hangup"),
}
"""Reasons of `session.closed` that are not our own wish."""

KIND = Kind(
    name="gpt-live",
    about="OpenAI GPT-Live: full duplex, PCM or G.711 both ways",
    codec="voxmeter.endpoints.gpt_live:client",
    known_by="types of the openai package 3.57 and public clients; not tried with the service",
    docs="docs/endpoints/gpt-live.md",
    options_at="voxmeter.endpoints.gpt_live_options:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option or a setting is wrong.
    """
    return Client(settings)


class Client:
    """One full-duplex session; see `Codec`."""

    def __init__(self, settings: Settings) -> None:
        self._wanted = read(settings)
        self._ready = self._explained = False
        self._sent = 0
        self._counted: dict[str, float] = {}

    @property
    def traits(self) -> Traits:
        """What the driver must know."""
        wanted = self._wanted
        return Traits(
            input_rate=wanted.rate,
            input_encoding=wanted.encoding,
            frame_ms=wanted.frame_ms,
            full_duplex=True,
            first_speaker=wanted.first_speaker,
            reply_end="quiet",
            lead_in_ms=wanted.lead_in_ms,
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return the URL with the protocol's path where it has none, and the key in a header."""
        headers = {}
        if api_key:
            name, bearer = self._wanted.key_header, self._wanted.key_header == "Authorization"
            headers[name] = f"Bearer {checked_key(api_key)}" if bearer else checked_key(api_key)
        return Address(websocket_url(url, PATH), headers)

    def open(self) -> Step:
        """Start the session; `Ready` comes when the server says that it has started."""
        return self._send("start", session=self._wanted.session)

    def turn(self, turn: Turn) -> Step:
        """There is no history once a session has started."""
        return Step()

    def audio(self, data: bytes) -> Step:
        """Send one frame."""
        if not data:
            return Step()
        return self._send("append", audio=base64.b64encode(data).decode("ascii"))

    def text(self, text: str) -> Step:
        """There are no questions in writing."""
        return Step()

    def end_turn(self) -> Step:
        """No turn is ever closed."""
        return Step()

    def played(self, reply: str) -> Step:
        """Say nothing: this protocol does not ask."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """There is no word for it: only speaking stops a reply."""
        return Step()

    def close(self) -> Step:
        """Close the session; what it used is counted from its start to here."""
        return self._send("close") if self._ready else Step()

    def receive(self, message: Message) -> Step:
        """Return what one message stands for; messages of unknown types stand for nothing.

        Raises:
            ProtocolError: If it is not what the protocol allows, or not now.
        """
        if isinstance(message, Ended):
            fault = None if self._ready or self._explained else close_fault(message)
            closed = Closed(message.code, message.reason)
            return Step([closed] if fault is None else [fault, closed])
        told = parse_object(_PROTOCOL, message)
        match told.text("type"):
            case "session.started":
                return self._started(told.object("session"))
            case "session.output_audio.delta":
                return Step(self._sound(told))
            case "session.output_transcript.delta":
                return Step([ReplyText(told.text("delta"))])
            case "session.input_transcript.delta":
                return Step([InputTranscript(told.text("delta"))])
            case "session.usage.updated":
                return Step(self._usage(told.object("usage")))
            case "session.closed":
                return Step(self._closed(told))
            case "session.delegation.created":
                return self._delegated(told.object("delegation"))
            case "error":
                return Step([self._error(told)])
            case _:
                return Step()

    def _started(self, session: Fields) -> Step:
        """Check that the session sounds as was asked for: a wrong rate only sounds wrong."""
        agreed = session.object("audio").object("format")
        if agreed.has("type"):
            found = (agreed.text("type"), agreed.whole("rate", self._wanted.rate))
            asked = (NAMES[self._wanted.encoding], self._wanted.rate)
            if found != asked:
                raise session.problem(f"the session is {found[0]} at {found[1]}, not as asked for")
        if self._ready:
            return Step()
        self._ready = True
        names = ((name, session.text(name, "")) for name in ("id", "model"))
        ready = Ready(note="; ".join(f"{name} {value[:_SHOWN]}" for name, value in names if value))
        if not self._wanted.greeting:
            return Step([ready])
        greet = self._send("greet", content=self._wanted.greeting, delegation_id=None)
        return Step([ready], greet.messages)

    def _sound(self, told: Fields) -> list[Event]:
        if not self._ready:
            raise told.problem("sound before the session has started")
        data = told.audio("delta")
        return [ReplyAudio(data, self._wanted.encoding, self._wanted.rate)] if data else []

    def _usage(self, usage: Fields) -> list[Event]:
        """Return what was used since the last count: the server counts from the start."""
        added: dict[str, float] = {}
        for name in _COUNTS:
            if usage.has(name):
                now = usage.number(name)
                added[name] = now - self._counted.get(name, 0)
                self._counted[name] = now
        return [Usage(added)] if any(added.values()) else []

    def _closed(self, told: Fields) -> list[Event]:
        fault = _ENDS.get(told.text("reason", ""))
        self._explained = self._explained or fault is not None
        return [*self._usage(told.object("usage")), *([fault] if fault is not None else [])]

    def _delegated(self, delegation: Fields) -> Step:
        """Say that nobody does the work that the model hands to us, so that it goes on."""
        if delegation.text("target", "") != "client":
            return Step()
        words = "the model delegated work to its client; it was told that no one can do it"
        refusal = self._send("think", content=_UNHELPED, delegation_id=delegation.text("id"))
        return Step(
            [Fault("request", retryable=False, message=words, fatal=False)], refusal.messages
        )

    def _error(self, told: Fields) -> Fault:
        """Return what an error says; most leave the session open."""
        error = told.object("error")
        ours = error.text("client_event_id", "") or told.text("client_event_id", "")
        name = ours.rpartition("-")[0]
        sent = name if name in _TYPES else None
        code = error.text("code", "")
        kind, retryable = classify(code, error.text("type", ""))
        fatal = not self._ready or kind in {"auth", "quota", "policy"} or sent in _NEEDED
        self._explained = self._explained or fatal
        said = words(error, sent)
        return Fault(kind, retryable, said, fatal or code == "session_expired", named_wait_s(said))

    def _send(self, name: _Name, **fields: Json) -> Step:
        self._sent += 1
        told = {"type": _TYPES[name], "event_id": f"{name}-{self._sent}", **fields}
        return Step(messages=[Text(json.dumps(told, separators=(",", ":")))])


_Name = Literal["start", "append", "greet", "think", "close"]
_NEEDED = ("start", "append")
"""Our own messages without which no reply comes."""

_TYPES: dict[str, str] = {
    "start": "session.start",
    "append": "session.input_audio.append",
    "greet": "session.commentary.append",
    "think": "session.thinking.append",
    "close": "session.close",
}
"""Our short name of a client event -> its type. The short name begins the event's id."""
