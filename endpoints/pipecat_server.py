"""Pipecat, server side: the order in which a genuine agent tells things, for `voxmeter serve`.

Unlike a genuine agent it paces nothing: whoever hosts it decides when audio leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from voxmeter.endpoints import pipecat_frames as frames
from voxmeter.endpoints.codec import Ended, Json, Message, Text, TurnEnd
from voxmeter.endpoints.events import FaultKind
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    HistoryAdded,
    ReplyCancelled,
    ReplyRequested,
    ServerStep,
    UserAudio,
)

RATE = 24_000
FRAME_BYTES = 2 * RATE * 40 // 1000
"""Audio leaves in frames of 40 ms."""


def server() -> Server:
    """Return the server's half of one session."""
    return Server()


class Server:
    """One session of an agent; see `ServerCodec`."""

    output_rate = RATE
    turn_end: TurnEnd = "silence"

    def __init__(self) -> None:
        self.input_rate = 16_000
        self._speaks = False

    def open(self) -> ServerStep:
        """Say nothing: a client is told that the bot is ready when it is so itself."""
        return ServerStep()

    def receive(self, message: Message) -> ServerStep:
        """Return what one frame of the client's stands for.

        Raises:
            ProtocolError: If it is no frame, or a message that is not JSON.
        """
        if isinstance(message, Ended):
            return ServerStep([ClientLeft()])
        match frames.read(message):
            case frames.AudioFrame(pcm, rate):
                self.input_rate = rate
                return ServerStep([UserAudio(pcm, "pcm16", rate)])
            case frames.InterruptionFrame():
                return ServerStep([ReplyCancelled()], _interruption())
            case frames.MessageFrame(data):
                return self._told(parse_object(frames.PROTOCOL, Text(data)))
            case _:
                return ServerStep()

    def _told(self, told: Fields) -> ServerStep:
        if told.data.get("label") != frames.LABEL:
            return ServerStep()
        name = told.text("id", "")
        match told.text("type", ""):
            case "client-ready":
                about: Json = {"library": "voxmeter"}
                ready: dict[str, Json] = {"version": "2.2.0", "about": about}
                return ServerStep(messages=[frames.rtvi("bot-ready", ready, name)])
            case "send-text":
                return ServerStep(_written(told.object("data")))
            case "disconnect-bot":
                return ServerStep([ClientLeft()])
            case kind:
                error: dict[str, Json] = {"error": f"Unsupported type {kind}"}
                return ServerStep(messages=[frames.rtvi("error-response", error, name)])

    def speech_started(self, audio_ms: int) -> Sequence[Message]:
        """Interrupt whatever there is, and say why."""
        interruption, interrupted = _interruption()
        return [interruption, frames.rtvi("user-started-speaking"), interrupted]

    def speech_stopped(self, audio_ms: int) -> Sequence[Message]:
        """Say that the user stopped."""
        return [frames.rtvi("user-stopped-speaking")]

    def input_transcript(self, text: str) -> Sequence[Message]:
        """Say what the user was heard to say."""
        told: dict[str, Json] = {"text": text, "user_id": "", "timestamp": "", "final": True}
        return [frames.rtvi("user-transcription", told)]

    def reply_started(self) -> Sequence[Message]:
        """Say that the model is at work."""
        return [frames.rtvi("bot-llm-started")]

    def reply_audio(self, pcm: bytes) -> Sequence[Message]:
        """Send audio, and say at its first piece that the bot speaks."""
        audio = list(_frames(pcm))
        if self._speaks or not audio:
            return audio
        self._speaks = True
        first, *rest = audio
        return [frames.rtvi("bot-tts-started"), first, frames.rtvi("bot-started-speaking"), *rest]

    def reply_text(self, text: str) -> Sequence[Message]:
        """Send a piece of the model's text."""
        return [frames.rtvi("bot-llm-text", {"text": text})] if text else []

    def reply_ended(
        self, reason: Literal["completed", "cancelled", "incomplete"]
    ) -> Sequence[Message]:
        """Say that the model is done and that the bot is silent, if it spoke."""
        kinds = [] if reason == "cancelled" else ["bot-llm-stopped"]
        if self._speaks and reason != "cancelled":
            kinds.append("bot-tts-stopped")
        if self._speaks:
            kinds.append("bot-stopped-speaking")
        self._speaks = False
        return [frames.rtvi(kind) for kind in kinds]

    def fault(self, kind: FaultKind, code: str, message: str) -> Sequence[Message]:
        """Tell of a failure; one of the account or of a policy ends the session."""
        fatal = kind not in {"server", "request"}
        return [
            *self.reply_ended("cancelled"),
            frames.rtvi("error", {"error": f"{code}: {message}", "fatal": fatal}),
        ]


def _interruption() -> Sequence[Message]:
    return [frames.interruption(), frames.rtvi("bot-interrupted")]


def _written(data: Fields) -> Sequence[ClientEvent]:
    added = HistoryAdded("user", data.text("content", ""))
    at_once = data.object("options").flag("run_immediately", default=True)
    return [added, ReplyRequested()] if at_once else [added]


def _frames(pcm: bytes) -> Iterator[Message]:
    for at in range(0, len(pcm), FRAME_BYTES):
        yield frames.audio(pcm[at : at + FRAME_BYTES], RATE)
