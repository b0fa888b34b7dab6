"""Ultravox Realtime: a call is made over HTTP, then bare samples and JSON messages both ways."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote

from voxmeter.endpoints.addresses import checked_key, http_url
from voxmeter.endpoints.agent_replies import Replies
from voxmeter.endpoints.codec import (
    Address,
    Binary,
    Ended,
    Invitation,
    Message,
    Request,
    Settings,
    Step,
    Text,
    Traits,
    Turn,
)
from voxmeter.endpoints.events import (
    Event,
    Fault,
    InputTranscript,
    Ready,
    SpeechStarted,
    SpeechStopped,
)
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.hosted import close_events
from voxmeter.endpoints.kind import Kind
from voxmeter.endpoints.ultravox_options import read

PATH = "/api/calls"
_PROTOCOL = "ultravox"
_MOST_ORDINALS = 256  # utterances whose words are still growing; the oldest is forgotten

KIND = Kind(
    name="ultravox",
    about="Ultravox Realtime: a call to a model or to an agent of your account",
    codec="voxmeter.endpoints.ultravox:client",
    known_by="documentation, the OpenAPI description and two public clients; not tried with the "
    "service",
    docs="docs/endpoints/ultravox.md",
    options_at="voxmeter.endpoints.ultravox_options:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option or a setting is wrong.
    """
    return Client(settings)


@dataclass(slots=True)
class _Words:
    said: str = ""


class Client:
    """One call; see `Codec`."""

    def __init__(self, settings: Settings) -> None:
        self._wanted = read(settings)
        self._ready = False
        self._replies = Replies()
        self._spoke = False
        self._words: dict[tuple[str, int], _Words] = {}

    @property
    def traits(self) -> Traits:
        """What the driver must know."""
        return Traits(
            input_rate=self._wanted.input_rate,
            first_speaker=self._wanted.first_speaker,
            takes_text=True,
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return where the call is made; the answer says where to join it."""
        agent = self._wanted.agent_id
        path = f"/api/agents/{quote(agent, safe='')}/calls" if agent else PATH
        headers = {"X-API-Key": checked_key(api_key)} if api_key else {}
        body = json.dumps(self._wanted.call).encode()
        request = Request(body, {"Content-Type": "application/json"})
        return Address(http_url(url, path), headers, invitation=Invitation(request, "joinUrl"))

    def open(self) -> Step:
        """Wait for the server's first word: all was said when the call was made."""
        return Step()

    def turn(self, turn: Turn) -> Step:
        """There is no history once a call has been made."""
        return Step()

    def audio(self, data: bytes) -> Step:
        """Send one frame."""
        return Step(messages=[Binary(data)] if data else [])

    def text(self, text: str) -> Step:
        """Say something in writing, as the user."""
        self._replies.asked()
        return _send(type="user_text_message", text=text)

    def end_turn(self) -> Step:
        """The agent finds out itself when a turn is over."""
        return Step()

    def played(self, reply: str) -> Step:
        """Say nothing: this protocol does not ask."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """There is no word for it: only speaking stops a reply."""
        return Step()

    def close(self) -> Step:
        """Hang up."""
        return _send(type="hang_up") if self._ready else Step()

    def receive(self, message: Message) -> Step:
        """Return what one message stands for; messages of unknown types stand for nothing.

        Raises:
            ProtocolError: If it is not what the protocol allows.
        """
        match message:
            case Ended():
                return Step(close_events(message, answered=self._replies.any_came))
            case Binary(data):
                self._spoke = self._spoke or bool(data)
                sound = self._replies.audio(data, "pcm16", self._wanted.output_rate)
                return Step([*self._first(""), *sound])
            case _:
                return self._told(parse_object(_PROTOCOL, message))

    def _told(self, told: Fields) -> Step:
        match told.text("type"):
            case "call_started":
                return Step(self._first(f"call {told.text('callId', '')[:80]}"))
            case "state":
                return Step([*self._first(""), *self._state(told.text("state"))])
            case "transcript":
                return Step([*self._first(""), *self._transcript(told)])
            case "playback_clear_buffer":
                self._spoke = False
                return Step(self._replies.interrupted())
            case "user_started_speaking":
                return Step([SpeechStarted()])
            case "user_stopped_speaking":
                return Step([SpeechStopped()])
            case "client_tool_invocation":
                return self._tool(told)
            case _:
                return Step()

    def _first(self, note: str) -> list[Event]:
        """Return that the call has begun, once."""
        if self._ready:
            return []
        self._ready = True
        return [Ready(note=note)]

    def _state(self, state: str) -> list[Event]:
        """Take the agent's state: it has said all of a reply when it stops speaking."""
        if state == "speaking":
            self._spoke = True
            return self._replies.start()
        if state == "thinking":
            self._replies.asked()
        if not self._spoke:
            return []
        self._spoke = False
        return self._replies.end()

    def _transcript(self, told: Fields) -> list[Event]:
        """Return the words that are new: a message has all of them so far, or what is added."""
        role = told.text("role")
        held = self._words.setdefault((role, told.whole("ordinal", 0)), _Words())
        if len(self._words) > _MOST_ORDINALS:
            del self._words[next(iter(self._words))]
        whole = told.text("text", "") or held.said + told.text("delta", "")
        added = whole.removeprefix(held.said) if whole.startswith(held.said) else ""
        held.said = whole
        if role == "agent":
            return self._replies.text(added)
        if role != "user" or not told.flag("final", default=False):
            return []
        self._replies.asked()
        return [InputTranscript(whole)]

    def _tool(self, told: Fields) -> Step:
        """Say that there is no such tool, so that the agent goes on."""
        name, number = told.text("toolName")[:80], told.text("invocationId")
        said = f"the agent called the tool {name!r}; it was told that there is none"
        step = _send(
            type="client_tool_result",
            invocationId=number,
            errorType="undefined",
            errorMessage="there is no such tool in this session",
        )
        return Step([Fault("request", retryable=False, message=said, fatal=False)], step.messages)


def _send(**fields: str) -> Step:
    return Step(messages=[Text(json.dumps(fields, separators=(",", ":")))])
