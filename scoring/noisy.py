"""Audible stretches against a loud background, where a network has to say what is speech."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxmeter.scoring.floor import Floor
from voxmeter.scoring.loudness import FRAME_MS, Loudness, smooth
from voxmeter.scoring.silero import RATE, WINDOW, probabilities

_SPEECH = 0.5
_SURE = 0.65  # speech ends here: under it the network goes on for 100 ms in pink noise
_RESUME_WINDOWS = 5  # 160 ms: the nearest to the 150 ms of the level rule
# The network hears an onset some 30 ms late and an end some 40 ms late. The levels beside its
# marks are a better guide where they rise above the background at all.
_RISE_DB = 3.0
_SMOOTH_FRAMES = 4
_BACK_MS = 100
_AHEAD_MS = 32
_END_LATE_MS = 40
_EDGE_MS = 70  # two windows: speech marked so near an edge was cut there, more likely than not


def noisy_speech(
    audio: NDArray[np.floating], rate: int, loudness: Loudness, floor: Floor
) -> NDArray[np.int64]:
    """Return the stretches of speech, samples, shape (k, 2); k is 0 where there is none.

    Args:
        audio: Shape (n,), finite, in [-1, 1].
        rate: Samples a second.
        loudness: Its levels.
        floor: Its background.
    """
    likely = probabilities(audio, rate)
    speech = np.flatnonzero(likely >= _SPEECH)
    if speech.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    breaks = np.flatnonzero(np.diff(speech) - 1 > _RESUME_WINDOWS)
    first = speech[np.concatenate(([0], breaks + 1))] * WINDOW * rate / RATE
    sure = np.maximum.accumulate(np.where(likely >= _SURE, np.arange(likely.size), -1))
    last = speech[np.concatenate((breaks, [speech.size - 1]))]
    last = np.where(sure[last] * WINDOW * rate / RATE >= first, sure[last], last)
    end = (last + 1) * WINDOW * rate / RATE
    rise = smooth(loudness.levels, _SMOOTH_FRAMES) >= floor.floor_db + _RISE_DB
    spans = [
        (_onset(rise, loudness, a), _end(rise, loudness, b, _END_LATE_MS * rate / 1000))
        for a, b in zip(first.tolist(), end.tolist(), strict=True)
    ]
    edge = _EDGE_MS * rate / 1000
    if first[0] <= edge:
        spans[0] = (0, spans[0][1])
    if end[-1] >= audio.size - edge:
        spans[-1] = (spans[-1][0], audio.size)
    return _parted(np.clip(spans, 0, audio.size).astype(np.int64))


def _onset(rise: NDArray[np.bool_], loudness: Loudness, sample: float) -> float:
    """Return where the level rises near the network's onset, or that onset."""
    frame = int((sample - loudness.start) / loudness.frame)
    begin = max(0, frame - _BACK_MS // FRAME_MS)
    above = np.flatnonzero(rise[begin : max(0, frame + _AHEAD_MS // FRAME_MS)])
    if above.size == 0:
        return sample
    # A 20 ms mean rises before its middle is reached.
    return float(loudness.start + (begin + above[0] + _SMOOTH_FRAMES // 2 + 1) * loudness.frame)


def _end(rise: NDArray[np.bool_], loudness: Loudness, sample: float, late: float) -> float:
    """Return where the level falls near the network's end, or that end less its usual delay."""
    frame = int((sample - loudness.start) / loudness.frame)
    begin = max(0, frame - _BACK_MS // FRAME_MS)
    above = np.flatnonzero(rise[begin : max(0, frame)])
    if above.size == 0:
        return sample - late
    return float(loudness.start + (begin + above[-1] + _SMOOTH_FRAMES // 2) * loudness.frame)


def _parted(spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the spans in order, none empty, none reaching into the next."""
    spans[:-1, 1] = np.minimum(spans[:-1, 1], spans[1:, 0])
    return spans[spans[:, 1] > spans[:, 0]]
