"""WAV files whose header does not fit their data, mended in memory before they are decoded.

Recorders that are cut off, pipes and streams leave lengths of 0, 0xFFFFFFFF or nonsense behind; the
samples are there all the same. The sizes in the header are believed only where the file bears
them out.

Source: "Multimedia Programming Interface and Data Specifications 1.0" (RIFF) and Microsoft's
description of WAVE_FORMAT_EXTENSIBLE.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_PCM, _FLOAT, _ALAW, _MULAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_SAMPLE_BITS = {_PCM: (8, 16, 24, 32), _FLOAT: (32, 64), _ALAW: (8,), _MULAW: (8,)}
_METADATA = (
    b"LIST",
    b"id3 ",
    b"ID3 ",
    b"bext",
    b"iXML",
    b"cue ",
    b"smpl",
    b"PEAK",
    b"_PMX",
    b"JUNK",
)
_UNKNOWN_LENGTHS = (0, 0xFFFFFFFF)


class WavError(Exception):
    """A RIFF file without usable audio; its text is the problem, for a person."""


@dataclass(frozen=True, slots=True)
class Mended:
    """A WAV file that a strict decoder reads.

    Attributes:
        data: The whole file; the very bytes that came in when nothing was wrong.
        warnings: What was wrong, one sentence each.
    """

    data: bytes
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Chunk:
    name: bytes
    start: int
    declared: int


def is_wav(data: bytes) -> bool:
    """Return whether the first bytes are those of a little-endian RIFF WAVE file."""
    return data[:4] == b"RIFF" and data[8:12] == b"WAVE"


def mend(data: bytes) -> Mended:
    """Return the file with a header that fits its data.

    Args:
        data: A whole file for which `is_wav` holds.

    Returns:
        The same bytes where nothing was wrong or the format is not one of plain samples (PCM,
        float, A-law, mu-law); else a new header, the samples in whole frames, and what was wrong.

    Raises:
        WavError: If there is no format, no data chunk, or no sample in it.
    """
    chunks = _chunks(data)
    form = next((chunk for chunk in chunks if chunk.name == b"fmt "), None)
    if form is None:
        raise WavError("a WAV header without a format chunk; the file is damaged")
    head = data[form.start : form.start + form.declared]
    if len(head) < 16:
        raise WavError("the WAV format chunk is cut off")
    frame = _frame_bytes(head)
    warnings: list[str] = []
    body = chunks[-1] if chunks[-1].name == b"data" else _lost(data, form.start + 16, warnings)
    available = _extent(data, body, frame, warnings)
    if frame is None:
        if not available:
            raise WavError("a WAV header and no samples behind it")
        return Mended(data)
    spare = available % frame
    if spare:
        warnings.append(f"data is not whole frames; the last {_count(spare, 'byte')} left out")
        available -= spare
    if not available:
        raise WavError("a WAV header and no samples behind it")
    if not warnings:
        return Mended(data)
    return Mended(
        _file(_strict(head, frame), data[body.start : body.start + available]), tuple(warnings)
    )


def _chunks(data: bytes) -> list[_Chunk]:
    """Return the chunks up to and with `data`; a bad length in front of it ends the walk."""
    found: list[_Chunk] = []
    place = 12
    while place + 8 <= len(data):
        name, declared = struct.unpack_from("<4sI", data, place)
        found.append(_Chunk(name, place + 8, declared))
        if name == b"data":
            break
        place += 8 + declared + declared % 2
    return found


def _lost(data: bytes, start: int, warnings: list[str]) -> _Chunk:
    """Return the data chunk where a wrong length before it makes the walk miss it."""
    place = data.find(b"data", start)
    if place < 0 or place + 8 > len(data):
        raise WavError("a WAV header and no data chunk; the file is empty or cut off")
    warnings.append("the length of a chunk before the audio is wrong")
    return _Chunk(b"data", place + 8, int.from_bytes(data[place + 4 : place + 8], "little"))


def _frame_bytes(head: bytes) -> int | None:
    """Return the bytes of one sample of all channels, None where samples are not plain."""
    tag, channels, _rate, _bytes, _align, bits = struct.unpack_from("<HHIIHH", head)
    if tag == _EXTENSIBLE and len(head) >= 26:
        tag = struct.unpack_from("<H", head, 24)[0]
    if channels == 0 or bits not in _SAMPLE_BITS.get(tag, ()):
        return None
    frame = int(channels) * int(bits) // 8
    return frame if frame <= 0xFFFF else None  # the header itself has no place for more


def _extent(data: bytes, body: _Chunk, frame: int | None, warnings: list[str]) -> int:
    """Return how many bytes of samples there are; note what the header says wrongly of them."""
    rest = len(data) - body.start
    claim = f"the header says {_count(body.declared, 'byte')} of audio, {rest} are there"
    if body.declared in _UNKNOWN_LENGTHS:
        if rest:
            warnings.append(f"the header gives no length ({body.declared:#x}); all data used")
        return rest
    if body.declared > rest:
        warnings.append(f"{claim}; those were used (is the file cut off?)")
        return rest
    behind = data[body.start + body.declared + body.declared % 2 :]
    if frame is None or len(behind) < frame or _is_metadata(behind):
        return body.declared
    warnings.append(f"{claim}; all used")
    return rest


def _is_metadata(behind: bytes) -> bool:
    """Return whether the bytes behind the data are further chunks, a tag or padding."""
    if behind[:4] in _METADATA or (behind[:3] == b"TAG" and len(behind) <= 128):
        return True
    if not behind.strip(b"\0"):
        return True
    place = 0
    while place + 8 <= len(behind):
        name = behind[place : place + 4]
        if not all(32 <= letter < 127 for letter in name):
            return False
        place += 8 + int.from_bytes(behind[place + 4 : place + 8], "little")
        if place >= len(behind):
            return place == len(behind)
        place += place % 2
    return place > 0 and len(behind) - place < 8


def _strict(head: bytes, frame: int) -> bytes:
    """Return the format chunk, no longer than its kind, with what follows from the rest right."""
    tag, _, rate = struct.unpack_from("<HHI", head)
    size = 40 if tag == _EXTENSIBLE else 16
    fixed = struct.pack("<IH", min(rate * frame, 0xFFFFFFFF), frame)
    return head[:8] + fixed + head[14:size]


def _file(head: bytes, samples: bytes) -> bytes:
    parts = [_chunk(b"fmt ", head), _chunk(b"data", samples)]
    return _chunk(b"RIFF", b"WAVE" + b"".join(parts))


def _chunk(name: bytes, payload: bytes) -> bytes:
    return name + struct.pack("<I", len(payload)) + payload + b"\0" * (len(payload) % 2)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
