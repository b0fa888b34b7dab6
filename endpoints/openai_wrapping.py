"""How a client of OpenAI Realtime puts audio into its messages: bare, or as a WAV file each."""

from __future__ import annotations

import base64

from voxmeter.endpoints import g711
from voxmeter.endpoints.openai_options import Wanted
from voxmeter.endpoints.wav import wav_file


def wrapped(data: bytes | bytearray, wanted: Wanted) -> str:
    """Return audio that is encoded as the session hears it, as a message carries it."""
    if wanted.wraps:
        data = wav_file(bytes(data), wanted.input.rate)
    return base64.b64encode(data).decode("ascii")


def encoded(pcm: bytes, wanted: Wanted) -> bytes:
    """Return 16-bit samples as the session hears them; Opus is not encoded here."""
    match wanted.input.encoding:
        case "pcmu":
            return g711.encode_ulaw(pcm)
        case "pcma":
            return g711.encode_alaw(pcm)
        case _:
            return pcm
