"""How loud a recording is along its time, small enough to be drawn from."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BINS = 600
"""Columns of one waveform; more than a page has room for."""

LIMIT_S = 900
"""Longest recording that is read."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """One recording.

    Attributes:
        ms: Its length.
        channels: One text a channel, each `BINS` bytes in base64: the square root of the largest
            amplitude in each stretch of time, 255 for full scale.
    """

    ms: float
    channels: tuple[str, ...]


def peaks_of(path: Path) -> Peaks | None:
    """Return the peaks of a recording; None where there is none that can be read."""
    import soundfile

    try:
        with soundfile.SoundFile(path) as file:
            rate = int(file.samplerate)
            samples = file.read(LIMIT_S * rate, dtype="float32", always_2d=True)
    except (OSError, soundfile.SoundFileError):
        return None
    if not len(samples):
        return None
    levels = largest(np.abs(np.asarray(samples)))
    return Peaks(
        round(1000 * len(samples) / rate, 3),
        tuple(base64.b64encode(channel.tobytes()).decode() for channel in levels),
    )


def largest(samples: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the largest sample of each of `BINS` equal stretches, as in `Peaks`.

    Args:
        samples: Shape (n, channels), not negative, n at least 1.

    Returns:
        Shape (channels, BINS).
    """
    count = len(samples)
    starts = np.minimum(np.arange(BINS) * count // BINS, count - 1)
    found = np.maximum.reduceat(samples, starts, axis=0)
    scaled = np.rint(255 * np.sqrt(np.clip(np.nan_to_num(found), 0, 1)))
    return np.ascontiguousarray(scaled.T.astype(np.uint8))
