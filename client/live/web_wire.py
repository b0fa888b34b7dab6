"""What the page of a live session says, read with nothing taken for granted.

Binary messages carry sound. Both directions begin with 24 bytes, little-endian:

- from the page: `uint32` number of the frame, `uint32` samples, `float64` time of its first sample
  on the clock of the page's sound (s), `float64` when the page's script had it (ms), then samples;
- to the page: `uint32` 0, `uint32` samples, `float64` position of the first sample, `float64` 0.

Everything else is a JSON object with a `type`. Nothing in here raises: what cannot be read is
`Malformed`, and says why.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

RATE = 48_000
"""Samples a second of both directions."""

MAX_FRAME_SAMPLES = RATE // 10
MAX_TEXT = 16_384
"""Longest JSON message taken from a page, characters."""

_HEADER = struct.Struct("<IIdd")
MAX_BYTES = max(_HEADER.size + 2 * MAX_FRAME_SAMPLES, 4 * MAX_TEXT)
"""Longest message taken from a page, bytes."""

_MAX_STRETCHES = 64
_MAX_NAME = 200
_MAX_TIME = 1e12  # far beyond any clock of a page, and exact in a double
_MAX_POSITION = 2**53

Asked = Literal["mute", "unmute", "interrupt", "next-condition", "save", "stop", "take-over"]
_ASKED: frozenset[str] = frozenset(get_args(Asked))


@dataclass(frozen=True, slots=True)
class MicrophoneFrame:
    """Samples of the microphone.

    Attributes:
        number: Counted by the page; what is missing between two was lost in the page.
        context_s: When its first sample was handled, on the clock of the page's sound.
        page_ms: When the page's script had it, on the page's own clock.
        pcm: 16-bit little-endian.
    """

    number: int
    context_s: float
    page_ms: float
    pcm: bytes


@dataclass(frozen=True, slots=True)
class Pong:
    """Answer to a ping, with the page's clock when it was sent."""

    number: int
    page_ms: float


@dataclass(frozen=True, slots=True)
class Devices:
    """The page has a microphone and a speaker.

    Attributes:
        microphone: The browser's name for it.
        speaker: Likewise.
        input_latency_ms: What the browser says of the track; None where it says nothing.
        output_latency_ms: What it says of its sound output.
        processing: Names of what the browser does to the microphone, such as `echo cancellation`.
    """

    microphone: str
    speaker: str
    input_latency_ms: float | None
    output_latency_ms: float | None
    processing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpeakerChanged:
    """The page plays on another speaker; the microphone is as it was.

    Attributes:
        speaker: The browser's name for it.
        output_latency_ms: What it says of its sound output by now.
    """

    speaker: str
    output_latency_ms: float | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Samples that the page put out without a gap, the first at `context_s`."""

    position: int
    samples: int
    context_s: float


@dataclass(frozen=True, slots=True)
class PlayedReport:
    """What the page put out.

    Attributes:
        stretches: In order.
        context_s: A sample's time on the clock of the page's sound, and
        page_ms: when it is heard, on the page's own clock.
        output_latency_ms: What the browser says of its sound output by now.
    """

    stretches: tuple[Stretch, ...]
    context_s: float
    page_ms: float
    output_latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Underrun:
    """A reply went on after the page had had nothing of it to play for so many samples."""

    samples: int


@dataclass(frozen=True, slots=True)
class Asking:
    """A button of the page was pressed."""

    name: Asked


@dataclass(frozen=True, slots=True)
class DeviceGone:
    """The page lost its microphone or its sound, in the browser's own words."""

    why: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message that a page of ours does not send."""

    why: str


FromPage = (
    MicrophoneFrame
    | Pong
    | Devices
    | SpeakerChanged
    | PlayedReport
    | Underrun
    | Asking
    | DeviceGone
    | Malformed
)


def read(message: str | bytes) -> FromPage:
    """Return what one message stands for."""
    if isinstance(message, bytes):
        return _frame(message)
    if len(message) > MAX_TEXT:
        return Malformed(f"{len(message)} characters of text")
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        return Malformed("text that is not JSON")
    if not isinstance(found, dict):
        return Malformed("JSON that is not an object")
    try:
        return _told(found)
    except _Unreadable as reason:
        return Malformed(str(reason))


def sound(position: int, pcm: bytes) -> bytes:
    """Return the message that hands samples to the page."""
    return _HEADER.pack(0, len(pcm) // 2, float(position), 0.0) + pcm


class _Unreadable(Exception):  # noqa: N818 - never leaves this module
    """A field is missing or has a value that no page of ours gives."""


def _frame(message: bytes) -> MicrophoneFrame | Malformed:
    if len(message) < _HEADER.size:
        return Malformed(f"a frame of {len(message)} bytes")
    number, samples, context_s, page_ms = _HEADER.unpack_from(message)
    pcm = message[_HEADER.size :]
    if not 0 < samples <= MAX_FRAME_SAMPLES or len(pcm) != 2 * samples:
        return Malformed(f"a frame that says {samples} samples and has {len(pcm)} bytes of them")
    if not (_is_time(context_s) and _is_time(page_ms)):
        return Malformed("a frame without a time")
    return MicrophoneFrame(number, context_s, page_ms, pcm)


def _told(found: Mapping[str, Any]) -> FromPage:
    match found.get("type"):
        case "pong":
            return Pong(_whole(found, "number"), _time(found, "page_ms"))
        case "devices":
            return Devices(
                _name(found, "microphone"),
                _name(found, "speaker"),
                _latency(found, "input_latency_ms"),
                _latency(found, "output_latency_ms"),
                _processing(found),
            )
        case "speaker":
            return SpeakerChanged(_name(found, "speaker"), _latency(found, "output_latency_ms"))
        case "played":
            stretches = _stretches(found)
            context_s, page_ms = _time(found, "context_s"), _time(found, "page_ms")
            return PlayedReport(stretches, context_s, page_ms, _latency(found, "output_latency_ms"))
        case "underrun":
            return Underrun(_whole(found, "samples"))
        case "ask":
            name = found.get("name")
            if not isinstance(name, str) or name not in _ASKED:
                raise _Unreadable("a button that the page does not have")
            return Asking(cast(Asked, name))
        case "device-gone":
            return DeviceGone(_name(found, "why"))
        case _:
            return Malformed("a message of no known type")


def _stretches(found: Mapping[str, Any]) -> tuple[Stretch, ...]:
    rows = found.get("stretches")
    if not isinstance(rows, list) or not 0 < len(rows) <= _MAX_STRETCHES:
        raise _Unreadable("a report of what was played without stretches")
    stretches = []
    for row in rows:
        if not isinstance(row, list) or len(row) != 3:
            raise _Unreadable("a stretch that is not three numbers")
        fields = dict(zip(("position", "samples", "context_s"), row, strict=True))
        stretches.append(
            Stretch(
                _whole(fields, "position"), _whole(fields, "samples"), _time(fields, "context_s")
            )
        )
    return tuple(stretches)


def _processing(found: Mapping[str, Any]) -> tuple[str, ...]:
    names = found.get("processing")
    if not isinstance(names, list) or len(names) > 8:
        raise _Unreadable("devices without what is done to the sound")
    return tuple(_name({"processing": name}, "processing") for name in names)


def _name(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise _Unreadable(f"no words under {key}")
    return value[:_MAX_NAME]


def _whole(found: Mapping[str, Any], key: str) -> int:
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_POSITION:
        raise _Unreadable(f"no count under {key}")
    return value


def _time(found: Mapping[str, Any], key: str) -> float:
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_time(value):
        raise _Unreadable(f"no time under {key}")
    return float(value)


def _latency(found: Mapping[str, Any], key: str) -> float | None:
    return None if found.get(key) is None else _time(found, key)


def _is_time(value: float) -> bool:
    return 0 <= value <= _MAX_TIME  # a NaN is not; math.isfinite fails on a huge whole number
