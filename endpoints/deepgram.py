"""Deepgram Voice Agent: JSON messages, and sound both ways as bare binary messages."""

from __future__ import annotations

import json

from voxmeter.endpoints.addresses import checked_key, websocket_url
from voxmeter.endpoints.agent_replies import Replies
from voxmeter.endpoints.codec import (
    Address,
    Binary,
    Ended,
    Message,
    Settings,
    Step,
    Text,
    Traits,
    Turn,
)
from voxmeter.endpoints.deepgram_options import PATH, read
from voxmeter.endpoints.events import Event, Fault, FaultKind, InputTranscript, Ready, SpeechStarted
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.hosted import close_events, failure
from voxmeter.endpoints.kind import Kind

_PROTOCOL = "deepgram"
_NO_TOOL = "There is no such tool in this session. Answer without it."
_REQUEST: tuple[FaultKind, bool] = ("request", False)
_OURS = frozenset(
    {
        "CLIENT_MESSAGE_TIMEOUT",
        "INVALID_SETTINGS",
        "NON_SETTINGS_MESSAGE_BEFORE_SETTINGS",
        "SETTINGS_ALREADY_APPLIED",
        "UNPARSABLE_CLIENT_MESSAGE",
        "USER_AUDIO_FORMAT",
    }
)
"""Codes of errors that are about what we sent."""

KIND = Kind(
    name="deepgram",
    about="Deepgram Voice Agent: speech, language model and voice behind one websocket",
    codec="voxmeter.endpoints.deepgram:client",
    known_by="types of deepgram-sdk 7.17 and documentation; not tried with the service",
    docs="docs/endpoints/deepgram.md",
    options_at="voxmeter.endpoints.deepgram_options:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option or a setting is wrong.
    """
    return Client(settings)


class Client:
    """One session with an agent; see `Codec`."""

    def __init__(self, settings: Settings) -> None:
        self._wanted = read(settings)
        self._asked = self._ready = self._explained = False
        self._note = ""
        self._replies = Replies()

    @property
    def traits(self) -> Traits:
        """What the driver must know."""
        wanted = self._wanted
        return Traits(
            input_rate=wanted.input.rate,
            input_encoding=wanted.input.encoding,
            first_speaker=wanted.first_speaker,
            takes_text=True,
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return the URL with the protocol's path where it has none, and the key in a header."""
        headers = {}
        if api_key:
            headers["Authorization"] = f"{self._wanted.scheme} {checked_key(api_key)}"
        return Address(websocket_url(url, PATH), headers)

    def open(self) -> Step:
        """Wait for the server's welcome."""
        return Step()

    def turn(self, turn: Turn) -> Step:
        """There is no history once the settings are applied."""
        return Step()

    def audio(self, data: bytes) -> Step:
        """Send one frame."""
        return Step(messages=[Binary(data)] if data else [])

    def text(self, text: str) -> Step:
        """Say something in writing, as the user."""
        self._replies.asked()
        return _send(type="InjectUserMessage", content=text)

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
        """Say nothing: the close of the connection ends a session."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return what one message stands for; messages of unknown types stand for nothing.

        Raises:
            ProtocolError: If it is not what the protocol allows, or not now.
        """
        match message:
            case Ended():
                answered = self._explained or self._replies.any_came
                return Step(close_events(message, answered=answered))
            case Binary(data):
                output = self._wanted.output
                return Step(self._replies.audio(data, output.encoding, output.rate))
            case _:
                return self._told(parse_object(_PROTOCOL, message))

    def _told(self, told: Fields) -> Step:
        match told.text("type"):
            case "Welcome":
                return self._welcome(told)
            case "SettingsApplied" if not self._ready:
                self._ready = True
                return Step([Ready(note=self._note)])
            case "UserStartedSpeaking":
                stopped = self._replies.interrupted()
                self._replies.asked()
                return Step([SpeechStarted(), *stopped])
            case "ConversationText":
                return Step(self._words(told))
            case "AgentStartedSpeaking":
                return Step(self._replies.start())
            case "AgentAudioDone":
                return Step(self._replies.end())
            case "FunctionCallRequest":
                return self._tools(told)
            case "InjectionRefused":
                said = f"the question in writing was refused: {told.text('message', '')}"
                return Step([Fault("busy", retryable=True, message=said)])
            case "Error":
                return Step([self._error(told)])
            case "Warning":
                said = f"warning {_words(told)}"
                return Step([Fault("server", retryable=True, message=said, fatal=False)])
            case _:
                return Step()

    def _welcome(self, told: Fields) -> Step:
        if self._asked:
            return Step()
        self._asked = True
        self._note = f"request {told.text('request_id', '')[:80]}"
        return _send(**self._wanted.message)

    def _words(self, told: Fields) -> list[Event]:
        role, content = told.text("role"), told.text("content")
        if role == "assistant":
            return self._replies.text(content)
        if role != "user":
            return []
        self._replies.asked()
        return [InputTranscript(content)]

    def _tools(self, told: Fields) -> Step:
        """Say that there is no such tool, so that the agent goes on."""
        events: list[Event] = []
        messages: list[Text] = []
        for function in told.objects("functions"):
            name = function.text("name")
            if not function.flag("client_side", default=True):
                continue
            said = f"the agent called the tool {name[:80]!r}; it was told that there is none"
            events.append(Fault("request", retryable=False, message=said, fatal=False))
            answer = {"id": function.text("id"), "name": name, "content": _NO_TOOL}
            messages += [Text(json.dumps({"type": "FunctionCallResponse", **answer}))]
        return Step(events, messages)

    def _error(self, told: Fields) -> Fault:
        """Return what an error says; all of them end the session."""
        self._explained = True
        code = told.text("code", "")
        default: tuple[FaultKind, bool] = _REQUEST if code in _OURS else ("server", True)
        return failure(_words(told), code, default)


def _words(told: Fields) -> str:
    code = told.text("code", "") or "no code"
    return f"{code}: {told.text('description', '') or 'no description'}"


def _send(**fields: object) -> Step:
    return Step(messages=[Text(json.dumps(fields, separators=(",", ":")))])
