"""ADTS, the frames that AAC is streamed in: each says its own length and rate."""

from __future__ import annotations

from typing import NamedTuple

HEAD = 7
"""Bytes of a head without a checksum."""

_RATES: tuple[int, ...] = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000)
_RATES += (11025, 8000, 7350)
_TAG_HEAD = 10


class Head(NamedTuple):
    """What a frame says of itself.

    Attributes:
        rate: Samples a second.
        length: Bytes of the whole frame, head included.
    """

    rate: int
    length: int


def head_of(data: bytes) -> Head | None:
    """Return what the first `HEAD` bytes of a frame say; None if they are no such head."""
    if len(data) < HEAD or data[0] != 0xFF or data[1] & 0xF6 != 0xF0:
        return None
    rate = data[2] >> 2 & 0xF
    length = (data[3] & 0x03) << 11 | data[4] << 3 | data[5] >> 5
    if rate >= len(_RATES) or length <= HEAD:
        return None
    return Head(_RATES[rate], length)


def without_tags(data: bytes) -> bytes:
    """Return what stands behind the ID3 tags in which segments may tell their time."""
    while data[:3] == b"ID3" and len(data) >= _TAG_HEAD:
        size = 0
        for byte in data[6:_TAG_HEAD]:  # seven bits each
            size = size << 7 | byte & 0x7F
        data = data[_TAG_HEAD + size :]
    return data
