"""Moshi, server side: the PyTorch server's ways, for `voxmeter serve` and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from voxmeter.endpoints.codec import Binary, Ended, Message, TurnEnd
from voxmeter.endpoints.events import Encoding, FaultKind
from voxmeter.endpoints.moshi import AUDIO, ERROR, HANDSHAKE, TEXT
from voxmeter.endpoints.moshi_options import RATE
from voxmeter.endpoints.serving import ClientLeft, ServerStep, UserAudio


def server() -> Server:
    """Return the server's half of one session."""
    return Server()


class Server:
    """One full-duplex session; see `FullDuplexCodec`."""

    input_rate = RATE
    output_rate = RATE
    output_encoding: Encoding = "opus"
    turn_end: TurnEnd = "silence"
    frame_ms = 80
    held_back = 1

    def open(self) -> ServerStep:
        """Say that audio is heard from now on."""
        return ServerStep(messages=[Binary(bytes([HANDSHAKE]))])

    def receive(self, message: Message) -> ServerStep:
        """Return the audio of one message; everything else is ignored, as the servers do."""
        match message:
            case Ended():
                return ServerStep([ClientLeft()])
            case Binary(data) if data[:1] == bytes([AUDIO]) and len(data) > 1:
                return ServerStep([UserAudio(data[1:], "opus", RATE)])
            case _:
                return ServerStep()

    def speech_started(self, audio_ms: int) -> Sequence[Message]:
        """There is no word for it."""
        return ()

    def speech_stopped(self, audio_ms: int) -> Sequence[Message]:
        """There is no word for it."""
        return ()

    def input_transcript(self, text: str) -> Sequence[Message]:
        """The user's words are never told."""
        return ()

    def reply_started(self) -> Sequence[Message]:
        """There is no word for it."""
        return ()

    def reply_audio(self, pcm: bytes) -> Sequence[Message]:
        """Send whole Ogg pages."""
        return [Binary(bytes([AUDIO]) + pcm)] if pcm else []

    def reply_text(self, text: str) -> Sequence[Message]:
        """Send one piece of text."""
        return [Binary(bytes([TEXT]) + text.encode("utf-8", "replace"))] if text else []

    def reply_ended(
        self, reason: Literal["completed", "cancelled", "incomplete"]
    ) -> Sequence[Message]:
        """There is no word for it."""
        return ()

    def fault(self, kind: FaultKind, code: str, message: str) -> Sequence[Message]:
        """Send an error, which the protocol has and no genuine server uses."""
        return [Binary(bytes([ERROR]) + f"{code}: {message}".encode("utf-8", "replace"))]
