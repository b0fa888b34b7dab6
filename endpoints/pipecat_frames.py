"""Pipecat's frames on the wire: `pipecat.Frame` of its frames.proto, both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from voxmeter.endpoints.codec import Binary, Json, Message
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.protobuf_wire import WireFields, field

PROTOCOL = "pipecat"
LABEL = "rtvi-ai"
"""What marks a message as one of RTVI, beside which a bot may send messages of its own."""

_TEXT, _AUDIO, _TRANSCRIPTION, _MESSAGE, _INTERRUPTION = range(1, 6)
_RATES = (4_000, 192_000)
_WAV_HEAD = 44


@dataclass(frozen=True, slots=True)
class TextFrame:
    """Text on its way to be spoken."""

    text: str


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """16-bit little-endian mono samples, and how many make a second."""

    pcm: bytes
    rate: int


@dataclass(frozen=True, slots=True)
class TranscriptionFrame:
    """What a speaker was understood to say."""

    text: str


@dataclass(frozen=True, slots=True)
class MessageFrame:
    """A message of the application's, which is JSON; one of RTVI in most cases."""

    data: str


@dataclass(frozen=True, slots=True)
class InterruptionFrame:
    """Whatever the bot says is to stop."""


Frame = TextFrame | AudioFrame | TranscriptionFrame | MessageFrame | InterruptionFrame


def read(message: Message) -> Frame | None:
    """Return the frame that one message is; None for a kind of the future.

    Raises:
        ProtocolError: If it is no frame, or one of audio that nobody could play.
    """
    if not isinstance(message, Binary):
        raise ProtocolError(PROTOCOL, "not a binary message", message)
    found = WireFields(PROTOCOL, message, message.data).one_of(range(1, 6))
    match found:
        case None:
            return None
        case (1, fields):
            return TextFrame(fields.text(3))
        case (2, fields):
            return _audio(fields)
        case (3, fields):
            return TranscriptionFrame(fields.text(3))
        case (4, fields):
            return MessageFrame(fields.text(1))
        case _:
            return InterruptionFrame()


def _audio(fields: WireFields) -> AudioFrame:
    pcm, rate, channels = fields.data(3), fields.whole(4, 32), fields.whole(5, 32)
    if not _RATES[0] <= rate <= _RATES[1]:
        raise fields.problem(f"sample_rate {rate} is not from {_RATES[0]} to {_RATES[1]}")
    if channels != 1:
        raise fields.problem(f"{channels} channels of audio; set audio_out_channels = 1 there")
    if pcm[:4] == b"RIFF" and pcm[36:40] == b"data":  # the transport's add_wav_header
        pcm = pcm[_WAV_HEAD:]
    return AudioFrame(pcm, rate)


def audio(pcm: bytes, rate: int) -> Binary:
    """Return a frame of 16-bit little-endian mono samples."""
    return Binary(field(_AUDIO, field(3, pcm) + field(4, rate) + field(5, 1)))


def interruption() -> Binary:
    """Return the frame that stops the bot."""
    return Binary(field(_INTERRUPTION, b""))


def rtvi(kind: str, data: Mapping[str, Json] | None = None, name: str = "") -> Binary:
    """Return one message of RTVI.

    Args:
        kind: Its type.
        data: What it says, for types that say something.
        name: Its id, for types that have one.
    """
    told: dict[str, Json] = {"label": LABEL, "type": kind}
    if name:
        told["id"] = name
    if data is not None:
        told["data"] = dict(data)
    return Binary(field(_MESSAGE, field(1, json.dumps(told))))
