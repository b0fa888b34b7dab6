"""ElevenLabs Agents: JSON both ways, rates told by the agent, no word for the end of a reply."""

from __future__ import annotations

import base64
import json
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from voxmeter.endpoints.addresses import checked_key, http_url, websocket_url
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
from voxmeter.endpoints.elevenlabs_options import ENCODINGS, read
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import (
    Encoding,
    Event,
    Fault,
    InputTranscript,
    Interrupted,
    Ready,
    ReplyAudio,
    ReplyText,
)
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.hosted import close_events, failure
from voxmeter.endpoints.kind import Kind

PATH = "/v1/convai/conversation"
_PROTOCOL = "elevenlabs"
_SIGNED = "/get-signed-url"
_NO_TOOL = "There is no such tool in this session."
_ENDS_SESSION = ("auth", "quota", "policy", "busy")

KIND = Kind(
    name="elevenlabs",
    about="ElevenLabs Agents: an agent of your account, by its id",
    codec="voxmeter.endpoints.elevenlabs:client",
    known_by="elevenlabs package 2.78, documentation and public reports; not tried with the "
    "service",
    docs="docs/endpoints/elevenlabs.md",
    options_at="voxmeter.endpoints.elevenlabs_options:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option or a setting is wrong.
    """
    return Client(settings)


class _Sound(NamedTuple):
    encoding: Encoding
    rate: int


class Client:
    """One conversation with an agent; see `Codec`."""

    def __init__(self, settings: Settings) -> None:
        self._wanted = read(settings)
        self._output: _Sound | None = None
        self._explained = self._answered = False
        self._dropped_up_to: int | None = None

    @property
    def traits(self) -> Traits:
        """What is known before the agent tells its formats, which replace these."""
        return Traits(
            input_rate=self._wanted.input_rate or 16_000,
            frame_ms=self._wanted.frame_ms,
            first_speaker=self._wanted.first_speaker,
            reply_end="quiet",
            takes_text=True,
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return where a signed URL is asked for; without a key, the websocket itself.

        Raises:
            UserError: If no agent is named.
        """
        parts = urlsplit(websocket_url(url, PATH))
        query = parse_qsl(parts.query, keep_blank_values=True)
        named = any(name == "agent_id" and value for name, value in query)
        if self._wanted.agent_id and not named:
            query.append(("agent_id", self._wanted.agent_id))
        elif not named:
            raise UserError("options.agent_id", "is missing", "name the agent to talk with")
        whole = urlunsplit(parts._replace(query=urlencode(query)))
        headers = {"xi-api-key": checked_key(api_key)} if api_key else {}
        if not self._wanted.signed_url or not headers:
            return Address(whole, headers)
        asked = urlsplit(http_url(whole, PATH))
        path = asked.path.rstrip("/")
        path = path if path.endswith(_SIGNED) else path + _SIGNED
        invitation = Invitation(Request(method="GET"), "signed_url")
        return Address(urlunsplit(asked._replace(path=path)), headers, invitation=invitation)

    def open(self) -> Step:
        """Begin the conversation; `Ready` comes with the agent's formats."""
        return _send(**self._wanted.message)

    def turn(self, turn: Turn) -> Step:
        """There is no history."""
        return Step()

    def audio(self, data: bytes) -> Step:
        """Send one frame."""
        return _send(user_audio_chunk=base64.b64encode(data).decode("ascii")) if data else Step()

    def text(self, text: str) -> Step:
        """Say something in writing, as the user."""
        return _send(type="user_message", text=text)

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
        """Say nothing: the close of the connection ends a conversation."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return what one message stands for; messages of unknown types stand for nothing.

        Raises:
            ProtocolError: If it is not what the protocol allows, or not now.
        """
        if isinstance(message, Ended):
            return Step(close_events(message, answered=self._explained or self._answered))
        told = parse_object(_PROTOCOL, message)
        match told.text("type"):
            case "conversation_initiation_metadata":
                return Step(self._began(told.object("conversation_initiation_metadata_event")))
            case "ping":
                return _send(type="pong", event_id=told.object("ping_event").whole("event_id"))
            case "audio":
                return Step(self._sound(told.object("audio_event")))
            case "agent_response":
                said = told.object("agent_response_event").text("agent_response").strip()
                return Step([ReplyText(said)] if said else [])
            case "user_transcript":
                heard = told.object("user_transcription_event").text("user_transcript")
                return Step([InputTranscript(heard)])
            case "interruption":
                self._dropped_up_to = told.object("interruption_event").whole("event_id")
                return Step([Interrupted()])
            case "client_tool_call":
                return self._tool(told.object("client_tool_call"))
            case "error" | "client_error" as kind:
                return Step([self._error(told, fatal=kind == "error")])
            case "guardrail_triggered":
                said = "a guardrail of the agent was triggered"
                return Step([Fault("policy", retryable=False, message=said, fatal=False)])
            case _:
                return Step()

    def _began(self, event: Fields) -> list[Event]:
        """Read the formats that the agent is set to; nobody can choose them from here."""
        if self._output is not None:
            return []
        output = _format(event, "agent_output_audio_format", self._wanted.output_rate)
        input_ = _format(event, "user_input_audio_format", self._wanted.input_rate)
        self._output = output
        note = f"conversation {event.text('conversation_id', '')[:80]}"
        return [Ready(input_.rate, note, input_.encoding)]

    def _sound(self, event: Fields) -> list[Event]:
        if self._output is None:
            raise event.problem("audio before the conversation's metadata")
        dropped = self._dropped_up_to
        if dropped is not None and event.has("event_id") and event.whole("event_id") <= dropped:
            return []  # of a reply that was interrupted
        data = event.audio("audio_base_64")
        self._answered = self._answered or bool(data)
        return [ReplyAudio(data, *self._output)] if data else []

    def _tool(self, call: Fields) -> Step:
        """Say that there is no such tool, so that the agent goes on."""
        name, number = call.text("tool_name")[:80], call.text("tool_call_id")
        said = f"the agent called the tool {name!r}; it was told that there is none"
        answer: dict[str, Json] = {"tool_call_id": number, "result": _NO_TOOL, "is_error": True}
        step = _send(type="client_tool_result", **answer)
        return Step([Fault("request", retryable=False, message=said, fatal=False)], step.messages)

    def _error(self, told: Fields, *, fatal: bool) -> Fault:
        """Return what an error says; its fields stand in an object of their own, or bare."""
        held = next((name for name in ("error_event", "client_error_event") if told.has(name)), "")
        error = told.object(held) if held else told
        code = next((error.text(n) for n in ("error_type", "code") if _is_text(error, n)), "")
        words = next((error.text(n) for n in ("message", "reason") if _is_text(error, n)), "")
        said = f"{code or 'no code'}: {words or 'no message'}"
        found = failure(said, code, ("server", True) if fatal else ("request", False), fatal=fatal)
        ends = fatal or self._output is None or found.kind in _ENDS_SESSION
        self._explained = self._explained or ends
        return Fault(found.kind, found.retryable, said, ends, found.retry_after_s)


def _is_text(fields: Fields, name: str) -> bool:
    value = fields.data.get(name)
    return isinstance(value, str) and bool(value)


def _format(event: Fields, name: str, wanted: int | None) -> _Sound:
    """Return the encoding and rate of a name like `pcm_16000` or `ulaw_8000`."""
    told = event.text(name)
    kind, _, digits = told.partition("_")
    if kind not in ENCODINGS or not digits.isdecimal() or not 8000 <= int(digits[:9]) <= 48_000:
        raise event.problem(f"{name} is {told[:40]!r}; set it to pcm_16000 or ulaw_8000")
    rate = int(digits)
    if ENCODINGS[kind] != "pcm16" and rate != 8000:
        raise event.problem(f"{name} is {told[:40]!r}; G.711 is at 8000")
    if wanted not in {None, rate}:
        raise event.problem(f"{name} is {told[:40]!r}, not at {wanted}: leave the rate out")
    return _Sound(ENCODINGS[kind], rate)


def _send(**fields: Json) -> Step:
    return Step(messages=[Text(json.dumps(fields, separators=(",", ":")))])
