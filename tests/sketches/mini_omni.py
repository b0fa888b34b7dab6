"""Sketch of Mini-Omni: one POST with the whole question, the reply streamed as a bare body."""

from __future__ import annotations

import base64
import io
import json
import wave

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
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Event, Fault, Ready, ReplyAudio, ReplyEnded, ReplyStarted


class Sketch:
    """Requests one after another; each `Text` sent is one request body."""

    def __init__(self, settings: Settings) -> None:
        self._question = bytearray()
        self._replying = False

    @property
    def traits(self) -> Traits:
        return Traits(input_rate=16000, turn_end="request")

    def address(self, url: str, api_key: str | None) -> Address:
        return Address(f"{url}/chat", {"Content-Type": "application/json"})

    def open(self) -> Step:
        return Step([Ready()])

    def turn(self, turn: Turn) -> Step:
        return Step()

    def audio(self, data: bytes) -> Step:
        self._question += data
        return Step()

    def text(self, text: str) -> Step:
        return Step()

    def end_turn(self) -> Step:
        whole = io.BytesIO()
        with wave.open(whole, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(self.traits.input_rate)
            file.writeframes(bytes(self._question))
        self._question.clear()
        body = {"audio": base64.b64encode(whole.getvalue()).decode(), "stream_stride": 4}
        return Step(messages=[Text(json.dumps(body))])

    def played(self, reply: str) -> Step:
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        return Step()

    def close(self) -> Step:
        return Step()

    def receive(self, message: Message) -> Step:
        match message:
            case Binary(data):
                events: list[Event] = [] if self._replying else [ReplyStarted()]
                self._replying = True
                return Step([*events, ReplyAudio(data, "pcm16", 24000)])
            case Ended(None, _):
                self._replying = False
                return Step([ReplyEnded()])
            case Ended(code, reason):
                return Step([Fault("server", retryable=True, message=f"HTTP {code} {reason}")])
            case _:
                raise ProtocolError("mini-omni", "not a piece of a body", message)
