"""Two clips in one, with a known difference in loudness and a known offset in time.

AIR-Bench mixes speech with sound and music so and tells judges which is louder and which is ahead,
but not by how much; here both are numbers, and the labels follow from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from voxmeter.client import audio
from voxmeter.client.audio import Pcm
from voxmeter.client.effects.levels import fitted
from voxmeter.endpoints.errors import ClipError
from voxmeter.scoring.loudness import SILENCE_DBFS, measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from voxmeter.client.audio import Samples

GATE_DB = 40.0
"""Frames so far below the loudest one are pauses, and do not count for how loud a clip is."""

Which = Literal["first", "second", "neither"]


@dataclass(frozen=True, eq=False, slots=True)
class Mixed:
    """Two clips in one.

    Attributes:
        pcm: The mix.
        level_db: Loudness of the first clip less that of the second, both as they are in the mix.
        offset_ms: How much later the second begins; negative where the first is later.
        gain_db: What was taken off the whole mix to fit it into full scale; 0 or less.
    """

    pcm: Pcm
    level_db: float
    offset_ms: float
    gain_db: float

    @property
    def louder(self) -> Which:
        """Which of the two is louder."""
        return _which(self.level_db)

    @property
    def ahead(self) -> Which:
        """Which of the two begins first."""
        return _which(self.offset_ms)


def _which(difference: float) -> Which:
    if not difference:
        return "neither"
    return "first" if difference > 0 else "second"


def loudness_db(samples: Samples, rate: int) -> float:
    """Return how loud a clip is: mean power of its 5 ms frames without its pauses, in dBFS.

    A gain changes it by just that gain, as what counts as a pause is relative.

    Raises:
        ClipError: If the clip is silent.
    """
    levels = measure(samples, rate).levels.astype(np.float64)
    loudest = float(levels.max(initial=SILENCE_DBFS))
    if loudest <= SILENCE_DBFS:
        raise ClipError("mix", "a clip is silent, so it has no loudness")
    kept = levels[levels >= loudest - GATE_DB]
    return float(10 * np.log10(np.mean(10 ** (kept / 10))))


def mixed(first: Pcm, second: Pcm, level_db: float, offset_ms: float) -> Mixed:
    """Return two clips in one.

    Args:
        first: Keeps its loudness, but for what does not fit into full scale.
        second: Is made so loud that the difference is as wanted.
        level_db: Loudness of the first less that of the second.
        offset_ms: How much later the second begins; rounded to a sample of the mix.

    Raises:
        ClipError: If a clip is silent.
    """
    rate = max(first.rate, second.rate)
    one, two = audio.resample(first, rate).samples, audio.resample(second, rate).samples
    wanted = loudness_db(one, rate) - level_db
    scale = 10 ** ((wanted - loudness_db(two, rate)) / 20)
    offset = round(offset_ms * rate / 1000)
    starts = (max(-offset, 0), max(offset, 0))
    whole = np.zeros(max(starts[0] + len(one), starts[1] + len(two)))
    _add(whole, one.astype(np.float64), starts[0])
    _add(whole, two.astype(np.float64) * scale, starts[1])
    fits, gain_db = fitted(whole)
    warnings = tuple(dict.fromkeys((*first.warnings, *second.warnings)))
    pcm = Pcm(fits.astype(np.float32), rate, warnings)
    return Mixed(pcm, level_db, offset * 1000 / rate, gain_db)


def _add(whole: NDArray[np.float64], samples: NDArray[np.float64], start: int) -> None:
    whole[start : start + len(samples)] += samples


def longest_offset_ms(first: Pcm, second: Pcm) -> float:
    """Return the offset below which two clips are always heard together for a while."""
    return math.floor(min(first.ms, second.ms))
