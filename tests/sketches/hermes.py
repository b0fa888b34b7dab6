"""Sketch of Hermes over MQTT: topics, a WAV a frame, and a peer that waits for playFinished."""

from __future__ import annotations

import io
import json
import wave
from typing import Any

from voxmeter.endpoints.codec import (
    Address,
    Ended,
    Json,
    Message,
    Published,
    Settings,
    Step,
    Traits,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Closed,
    Fault,
    InputTranscript,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStopped,
)

DIALOGUE = "hermes/dialogueManager"


class Sketch:
    """One dialogue at one site; the site is ours alone."""

    def __init__(self, settings: Settings) -> None:
        self._site = settings.session_tag
        self._session = ""
        self._listening = False

    @property
    def traits(self) -> Traits:
        return Traits(
            input_rate=16000,
            frame_ms=64,
            subscriptions=(
                f"{DIALOGUE}/#",
                "hermes/asr/#",
                "hermes/tts/say",
                f"hermes/audioServer/{self._site}/playBytes/#",
                "hermes/error/#",
            ),
        )

    def address(self, url: str, api_key: str | None) -> Address:
        return Address(url)

    def open(self) -> Step:
        start: dict[str, Json] = {"siteId": self._site, "customData": self._site}
        start["init"] = {"type": "action", "canBeEnqueued": False}
        return _publish(f"{DIALOGUE}/startSession", start)

    def turn(self, turn: Turn) -> Step:
        return Step()

    def audio(self, data: bytes) -> Step:
        if not self._listening:
            return Step()
        frame = io.BytesIO()
        with wave.open(frame, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(data)
        topic = f"hermes/audioServer/{self._site}/audioFrame"
        return Step(messages=[Published(topic, frame.getvalue())])

    def text(self, text: str) -> Step:
        return Step()

    def end_turn(self) -> Step:
        return Step()

    def played(self, reply: str) -> Step:
        topic = f"hermes/audioServer/{self._site}/playFinished"
        return _publish(topic, {"id": reply, "sessionId": self._session})

    def cancel(self, heard_ms: int) -> Step:
        return self.close()

    def close(self) -> Step:
        return _publish(f"{DIALOGUE}/endSession", {"sessionId": self._session})

    def receive(self, message: Message) -> Step:
        match message:
            case Ended(code, reason):
                return Step([Closed(code, reason)])
            case Published(topic, payload) if "/playBytes/" in topic:
                return _reply(topic.rpartition("/")[2], payload)
            case Published(topic, payload):
                return self._told(topic, json.loads(payload))
            case _:
                raise ProtocolError("hermes", "not a message on a topic", message)

    def _told(self, topic: str, told: dict[str, Any]) -> Step:
        if told.get("siteId") != self._site:
            return Step()
        match topic.removeprefix("hermes/"):
            case "dialogueManager/sessionStarted":
                self._session = told["sessionId"]
                return Step()
            case "asr/startListening":
                self._listening = True
                return Step([Ready(16000, self._session)])
            case "asr/stopListening":
                self._listening = False
                return Step([SpeechStopped()])
            case "asr/textCaptured":
                return Step([InputTranscript(told["text"].strip())])
            case "tts/say":
                return Step([ReplyStarted(told["id"]), ReplyText(told["text"], told["id"])])
            case "dialogueManager/sessionEnded":
                return Step([Closed(reason=told["termination"]["reason"])])
            case name if name.startswith("error/"):
                return Step([Fault("server", retryable=True, message=told["error"])])
            case _:
                return Step()


def _reply(reply: str, file: bytes) -> Step:
    header, samples = file[:44], file[44:]  # sizes in the header may be wrong; the bytes are not
    rate = int.from_bytes(header[24:28], "little")
    return Step([ReplyAudio(samples, "pcm16", rate, reply), ReplyEnded(reply=reply)])


def _publish(topic: str, told: Json) -> Step:
    return Step(messages=[Published(topic, json.dumps(told).encode())])
