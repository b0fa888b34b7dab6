"""Sketch of OpenAI Realtime: JSON both ways, a handshake, a commit, replies with ids."""

from __future__ import annotations

import base64
import json

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
from voxmeter.endpoints.events import Closed, Event, Ready, ReplyAudio, ReplyEnded, ReplyStarted


class Sketch:
    """One session with explicit commits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def traits(self) -> Traits:
        return Traits(input_rate=24000, turn_end="commit", history=True, min_turn_ms=100)

    def address(self, url: str, api_key: str | None) -> Address:
        return Address(
            f"{url}?model={self._settings.model}", {"Authorization": f"Bearer {api_key}"}
        )

    def open(self) -> Step:
        session = {"type": "realtime", "instructions": self._settings.instructions}
        return _send({"type": "session.update", "session": session})

    def turn(self, turn: Turn) -> Step:
        content = [{"type": "input_text", "text": turn.text}]
        item = {"type": "message", "role": turn.role, "content": content}
        return _send({"type": "conversation.item.create", "item": item})

    def audio(self, data: bytes) -> Step:
        encoded = base64.b64encode(data).decode()
        return _send({"type": "input_audio_buffer.append", "audio": encoded})

    def text(self, text: str) -> Step:
        return self.turn(Turn("user", text))

    def end_turn(self) -> Step:
        return _send({"type": "input_audio_buffer.commit"}, {"type": "response.create"})

    def played(self, reply: str) -> Step:
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        return _send({"type": "response.cancel"})

    def close(self) -> Step:
        return Step()

    def receive(self, message: Message) -> Step:
        match message:
            case Ended(code, reason):
                return Step([Closed(code, reason)])
            case Text(data):
                return Step(_events(json.loads(data)))
            case _:
                raise ProtocolError("openai-realtime", "not a text message", message)


def _events(told: dict[str, str]) -> list[Event]:
    match told["type"]:
        case "session.updated":
            return [Ready()]
        case "response.created":
            return [ReplyStarted()]
        case "response.output_audio.delta":
            return [ReplyAudio(base64.b64decode(told["delta"]), "pcm16", 24000)]
        case "response.done":
            return [ReplyEnded()]
        case _:
            return []


def _send(*told: dict[str, object]) -> Step:
    return Step(messages=[Text(json.dumps(one)) for one in told])
