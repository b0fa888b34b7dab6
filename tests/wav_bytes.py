"""WAV files built byte by byte, sound and broken ones, for tests of readers."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE


def tone(seconds: float, rate: int = RATE, pitch_hz: float = 440.0) -> NDArray[np.float64]:
    """Return a sine of half scale, shape (n,)."""
    return 0.5 * np.sin(2 * np.pi * pitch_hz * np.arange(round(seconds * rate)) / rate)


def pcm(samples: NDArray[np.float64], bits: int) -> bytes:
    """Return samples as little-endian integers of 8 (unsigned), 16, 24 or 32 bits."""
    whole = np.round(samples * (2 ** (bits - 1) - 1)).astype("<i8")
    if bits == 8:
        return bytes((whole + 128).astype(np.uint8))
    rows = np.frombuffer(whole.tobytes(), dtype=np.uint8).reshape(-1, 8)
    return rows[:, : bits // 8].tobytes()


def form(tag: int, bits: int, *, channels: int = 1, rate: int = RATE) -> bytes:
    """Return the payload of a format chunk; `EXTENSIBLE` wraps integers."""
    align = channels * bits // 8
    head = struct.pack("<HHIIHH", tag, channels, rate, rate * align, align, bits)
    if tag != EXTENSIBLE:
        return head
    guid = struct.pack("<H", PCM) + bytes.fromhex("000000001000800000aa00389b71")
    return head + struct.pack("<HHI", 22, bits, 0) + guid


def wav(
    head: bytes,
    data: bytes,
    *,
    declared: int | None = None,
    riff: int | None = None,
    before: bytes = b"",
    behind: bytes = b"",
) -> bytes:
    """Return a file; `declared` and `riff` are the lengths its header claims."""
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(head)) + head + before
    body += b"data" + struct.pack("<I", len(data) if declared is None else declared) + data
    body += (b"\0" if len(data) % 2 and declared is None else b"") + behind
    return b"RIFF" + struct.pack("<I", len(body) if riff is None else riff) + body


def chunk(name: bytes, payload: bytes) -> bytes:
    """Return one more chunk, padded to an even length."""
    return name + struct.pack("<I", len(payload)) + payload + b"\0" * (len(payload) % 2)
