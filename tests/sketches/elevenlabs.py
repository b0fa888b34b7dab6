"""Sketch of ElevenLabs Agents: rates told by the peer, pings to answer, no end of a reply."""

from __future__ import annotations

import base64
import json
from typing import Any

from voxmeter.endpoints.codec import (
    Address,
    Ended,
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
    Encoding,
    InputTranscript,
    Interrupted,
    Ready,
    ReplyAudio,
    ReplyText,
)


class Sketch:
    """One conversation with an agent that greets."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._output: tuple[Encoding, int] = ("pcm16", 16000)
        self._dropped_up_to = -1

    @property
    def traits(self) -> Traits:
        return Traits(input_rate=16000, frame_ms=100, first_speaker="endpoint", reply_end="quiet")

    def address(self, url: str, api_key: str | None) -> Address:
        return Address(f"{url}?agent_id={self._settings.model}", {"xi-api-key": api_key or ""})

    def open(self) -> Step:
        return _send({"type": "conversation_initiation_client_data"})

    def turn(self, turn: Turn) -> Step:
        return Step()

    def audio(self, data: bytes) -> Step:
        return _send({"user_audio_chunk": base64.b64encode(data).decode()})

    def text(self, text: str) -> Step:
        return _send({"type": "user_message", "text": text})

    def end_turn(self) -> Step:
        return Step()

    def played(self, reply: str) -> Step:
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        return Step()

    def close(self) -> Step:
        return Step()

    def receive(self, message: Message) -> Step:
        match message:
            case Ended(code, reason):
                return Step([Closed(code, reason)])
            case Text(data):
                return self._told(json.loads(data))
            case _:
                raise ProtocolError("elevenlabs", "not a text message", message)

    def _told(self, told: dict[str, Any]) -> Step:
        match told["type"]:
            case "conversation_initiation_metadata":
                event = told["conversation_initiation_metadata_event"]
                self._output = _format(event["agent_output_audio_format"])
                encoding, rate = _format(event["user_input_audio_format"])
                return Step([Ready(rate, event["conversation_id"], encoding)])
            case "ping":
                return _send({"type": "pong", "event_id": told["ping_event"]["event_id"]})
            case "audio":
                return self._audio(told["audio_event"])
            case "agent_response":
                return Step([ReplyText(told["agent_response_event"]["agent_response"])])
            case "user_transcript":
                return Step([InputTranscript(told["user_transcription_event"]["user_transcript"])])
            case "interruption":
                self._dropped_up_to = told["interruption_event"]["event_id"]
                return Step([Interrupted()])
            case _:
                return Step()

    def _audio(self, event: dict[str, Any]) -> Step:
        if event["event_id"] <= self._dropped_up_to:
            return Step()
        encoding, rate = self._output
        return Step([ReplyAudio(base64.b64decode(event["audio_base_64"]), encoding, rate)])


def _format(name: str) -> tuple[Encoding, int]:
    kind, _, rate = name.partition("_")
    return ("pcmu" if kind == "ulaw" else "pcm16"), int(rate)


def _send(told: dict[str, object]) -> Step:
    return Step(messages=[Text(json.dumps(told))])
