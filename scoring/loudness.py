"""How loud a signal is, 5 ms at a time, on a grid that silence before the sound does not move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FRAME_MS = 5
QUIETEST_DBFS = -60.0
SILENCE_DBFS = -120.0
_QUIETEST = 10 ** (QUIETEST_DBFS / 20)
_LARGEST = 100.0
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Loudness:
    """Levels of consecutive frames.

    Attributes:
        levels: Shape (n,), dBFS of each frame without its mean, at least -120; a full-scale sine
            is -3.
        start: Sample where frame 0 begins; nothing before it reaches -60 dBFS.
        frame: Samples a frame; the last one may reach beyond the end.
    """

    levels: NDArray[np.float32]
    start: int
    frame: int


def checked(samples: object, rate: int) -> NDArray[np.floating]:
    """Return `samples` as an array, shape (n,).

    Raises:
        ValueError: If they are not finite floats of one dimension near [-1, 1], or none at all, or
            if the rate is under 1000 samples a second.
    """
    array = np.asarray(samples)
    if array.ndim != 1:
        raise ValueError(f"samples have shape {array.shape}; one channel, shape (n,), is needed")
    if array.size == 0:
        raise ValueError("samples are empty")
    if array.dtype.kind != "f":
        raise ValueError(f"samples are {array.dtype}; floats in [-1, 1] are needed")
    if rate < 1000:
        raise ValueError(f"rate is {rate}; samples a second are needed, at least 1000")
    return array


def measure(samples: NDArray[np.floating], rate: int) -> Loudness:
    """Return the level of every 5 ms frame.

    The grid begins at the first sample that reaches -60 dBFS, so that digital silence before the
    sound shifts every result by exactly its length. Each frame is measured without its own mean:
    a constant offset, or the step where one begins, is not sound.

    Args:
        samples: Shape (n,), finite, in [-1, 1], as `checked` returns them.
        rate: Samples a second.

    Raises:
        ValueError: If a sample is not finite, or far outside [-1, 1].
    """
    frame = max(1, round(rate * FRAME_MS / 1000))
    first = _first_loud(samples)
    start = samples.size % frame if first is None else first % frame
    count = -(-(samples.size - start) // frame)
    power = np.zeros(count)
    for begin in range(0, count, _BLOCK // frame):
        piece = samples[start + begin * frame : start + (begin + _BLOCK // frame) * frame]
        power[begin : begin + _BLOCK // frame] = _frame_power(piece, frame)
    levels = 10 * np.log10(np.maximum(power, 10 ** (SILENCE_DBFS / 10)))
    return Loudness(levels.astype(np.float32), start, frame)


def smooth(levels: NDArray[np.float32], frames: int) -> NDArray[np.float64]:
    """Return levels (dB) of the mean power over `frames` frames, shape (n - frames + 1,).

    Fewer levels than `frames` give the one level of them all.
    """
    frames = min(frames, levels.size)
    total = np.concatenate(([0.0], np.cumsum(10 ** (levels.astype(np.float64) / 10))))
    mean = (total[frames:] - total[:-frames]) / frames
    result: NDArray[np.float64] = 10 * np.log10(np.maximum(mean, 10 ** (SILENCE_DBFS / 10)))
    return result


def _first_loud(samples: NDArray[np.floating]) -> int | None:
    found: int | None = None
    for begin in range(0, samples.size, _BLOCK):
        size = np.abs(samples[begin : begin + _BLOCK])
        peak = float(size.max())
        if not peak <= _LARGEST:  # true for NaN too
            raise ValueError(_unusable(samples, begin, size))
        if found is None and peak >= _QUIETEST:
            found = begin + int(np.argmax(size >= _QUIETEST))
    return found


def _unusable(samples: NDArray[np.floating], begin: int, size: NDArray[np.floating]) -> str:
    place = begin + int(np.argmax(~(size <= _LARGEST)))
    return f"sample {place} is {samples[place]}; finite floats in [-1, 1] are needed"


def _frame_power(piece: NDArray[np.floating], frame: int) -> NDArray[np.float64]:
    if piece.size % frame:
        # The last frame of a clip is filled up: a few samples are no loud frame of their own.
        fill = frame - piece.size % frame
        piece = np.concatenate((piece, np.zeros(fill, dtype=piece.dtype)))
    frames = piece.reshape(-1, frame)
    mean = frames.mean(axis=1, dtype=np.float64)
    square = np.einsum("ij,ij->i", frames, frames).astype(np.float64) / frame
    power: NDArray[np.float64] = np.maximum(square - mean**2, 0)
    return power
