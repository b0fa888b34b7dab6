"""The background of a signal: how loud it is where nobody speaks, as far as the signal shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxmeter.scoring.loudness import QUIETEST_DBFS, SILENCE_DBFS, smooth

_LEVEL_FRAMES = 20  # 100 ms: speech is as loud as its loudest stretch of this length
_SPEECH_BELOW_DB = 20.0  # what is this much quieter than that, ahead of it, may be lead-in
_FLOOR_FRAMES = 6  # 30 ms: short enough for a pause between words
_LEAD_FRAMES = 4  # 20 ms: fewer frames before the speech are no lead-in
_RAMP_FRAMES = 20  # 100 ms before loud speech may be its own soft onset
HUSH_DBFS = -50.0  # a lead-in as quiet as this is background, whatever the rest looks like
_STEADY_DB = 5.0  # background is steady; the quiet parts of running speech are not,
_PAUSE_FRAMES = 30  # and none of them lasts 150 ms


@dataclass(frozen=True, slots=True)
class Floor:
    """Levels of a signal, dBFS.

    Attributes:
        floor_db: The background, -120 where none shows.
        speech_db: The loudest 100 ms.
    """

    floor_db: float
    speech_db: float

    @property
    def snr_db(self) -> float:
        """How far the loudest stretch stands above the background."""
        return self.speech_db - self.floor_db


def find_floor(levels: NDArray[np.float32]) -> Floor:
    """Return the background of a signal from its frame levels, shape (n,), 5 ms each.

    The lead-in is what counts: all that comes before the first loud stretch. A clip that begins in
    mid speech has none; then a steady level under a sixth of the clip is its background, and where
    there is no such level either, the background is taken to be silent: speech is never its own
    floor.
    """
    if levels.size == 0:
        return Floor(SILENCE_DBFS, SILENCE_DBFS)
    stretch = smooth(levels, _LEVEL_FRAMES)
    speech_db = float(stretch.max())
    if speech_db < QUIETEST_DBFS:
        return Floor(SILENCE_DBFS, speech_db)
    smoothed = smooth(levels, _FLOOR_FRAMES)
    lowest, low = (float(level) for level in np.quantile(smoothed, (0.02, 0.16)))
    lead = _lead_in(levels, speech_db)
    if lead is not None and lead.is_background(low):
        return Floor(lead.level_db, speech_db)
    steady = low - lowest <= _STEADY_DB and _longest(smoothed <= low + _STEADY_DB) >= _PAUSE_FRAMES
    if steady or low <= QUIETEST_DBFS:
        return Floor(low, speech_db)
    return Floor(SILENCE_DBFS, speech_db)


def _longest(true: NDArray[np.bool_]) -> int:
    """Return the length of the longest run."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], true, [False]))))
    return int((edges[1::2] - edges[::2]).max(initial=0))


class _Lead(NamedTuple):
    """Steady sound before the first loud stretch: its level and its length."""

    level_db: float
    frames: int

    def is_background(self, low_db: float) -> bool:
        """Whether this is background, given the level of the quietest sixth of the clip.

        Sound that is louder than the quiet further on may be a consonant; those are short.
        """
        if self.level_db <= low_db + _STEADY_DB:
            return True
        return self.level_db <= HUSH_DBFS and self.frames >= _PAUSE_FRAMES


def _lead_in(levels: NDArray[np.float32], speech_db: float) -> _Lead | None:
    """Return what comes before the first loud stretch, None if that begins at once or softly."""
    loud = levels >= speech_db - _SPEECH_BELOW_DB
    # Half of a 100 ms stretch: a click alone is not loud speech.
    count = np.convolve(loud, np.ones(_LEVEL_FRAMES), mode="full")[_LEVEL_FRAMES - 1 :]
    stretches = np.flatnonzero(loud & (count >= _LEVEL_FRAMES // 2))
    before = int(stretches[0]) if stretches.size else levels.size
    before = max(before - _RAMP_FRAMES, before // 2)
    if before < _LEAD_FRAMES:
        return None
    low, middle, high = np.quantile(levels[:before], (0.2, 0.5, 0.8))
    return _Lead(float(middle), before) if high - low <= _STEADY_DB else None
