"""What both sides of Gemini Live write and read: JSON, blobs of audio, durations."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.fields import Fields

PROTOCOL = "gemini-live"
Object = dict[str, Json]

INPUT_RATE, OUTPUT_RATE = 16_000, 24_000
RATES = range(8_000, 192_001)

_URL_SAFE = str.maketrans("-_", "+/")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
_SNAKE = re.compile(r"_([a-z0-9])")
_DEEPEST = 12
"""No object of this protocol lies deeper; what does is somebody's payload."""


def written(**fields: Json) -> str:
    """Return one message."""
    return json.dumps(fields, separators=(",", ":"))


def blob(data: bytes, rate: int) -> Object:
    """Return 16-bit little-endian mono samples as the protocol carries them."""
    encoded = base64.b64encode(data).decode("ascii")
    return {"data": encoded, "mimeType": f"audio/pcm;rate={rate}"}


def read_blob(given: Fields, default_rate: int) -> tuple[bytes, int] | None:
    """Return the samples of a blob and their rate; None if it is no audio.

    Raises:
        ProtocolError: If it is audio other than 16-bit samples, at no rate, or not base64.
    """
    kind, *parameters = given.text("mimeType").split(";")
    kind = kind.strip().lower()
    if not kind.startswith("audio/"):
        return None
    if kind != "audio/pcm":
        raise given.problem(f"{given.place}mimeType {kind[:60]!r} is not audio/pcm")
    named = dict(one.strip().lower().split("=", 1) for one in parameters if "=" in one)
    rate = named.get("rate", str(default_rate)).strip()
    if not re.fullmatch(r"[0-9]{1,6}", rate) or int(rate) not in RATES:
        raise given.problem(f"{given.place}mimeType has no possible rate: {rate[:20]!r}")
    return _bytes(given, "data"), int(rate)


def _bytes(given: Fields, name: str) -> bytes:
    """Return what base64 holds, in either alphabet: programs of this protocol write both."""
    text = given.text(name).translate(_URL_SAFE)
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except (binascii.Error, ValueError) as error:
        words = str(error).lower()
        raise given.problem(f"{given.place}{name} is not base64: {words}") from None


def duration_ms(text: str) -> int | None:
    """Return what a duration such as `1.5s` says, ms; None if it is none."""
    found = _DURATION.fullmatch(text)
    return None if found is None else math.floor(float(found[1]) * 1000 + 0.5)


def duration(ms: float) -> str:
    """Return a time as the protocol writes it."""
    return f"{ms / 1000:.3f}s"


def camel(value: Json, deepest: int = _DEEPEST) -> Json:
    """Return a message with its fields in camel case: programs may write `client_content` too."""
    if deepest and isinstance(value, dict):
        return {
            _SNAKE.sub(lambda found: found[1].upper(), name): camel(one, deepest - 1)
            for name, one in value.items()
        }
    if deepest and isinstance(value, list):
        return [camel(one, deepest - 1) for one in value]
    return value
