"""The difference between two sets of samples that were not taken in pairs, with its interval.

For one question asked again and again, before and after a change: no sample of one set belongs to
a sample of the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Literal

import numpy as np

from voxmeter.scoring.stats import Floats, Interval

Statistic = Literal["median", "mean"]

LEAST = 5
"""Fewer samples than this on a side say too little of how far they scatter."""

_AT_ONCE = 1_000_000  # drawn samples held in memory


def difference(
    base: Floats,
    new: Floats,
    statistic: Statistic = "median",
    *,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Median (or mean) of `new` less that of `base`, with a percentile bootstrap interval.

    Each side is resampled by itself. Of means, the percentiles are moved outwards as Student's t
    asks for with the smaller side, as in `stats.bootstrap_mean`; of medians, plain ones hold at
    least their level already. The order of the samples makes no difference. Samples are taken to
    be independent within a side: one session each.

    Args:
        base: Shape (n,), finite, n at least 1. Unit: the caller's.
        new: Shape (m,), likewise.
        statistic: What is compared.
        resamples: Number of bootstrap samples of each side.
        level: Coverage aimed at.
        seed: Seed of the draws; the same seed gives the same limits.

    Returns:
        The difference, in the unit of the samples, positive where `new` is larger; without limits
        where a side has fewer than `LEAST` samples. Samples without scatter on both sides give an
        interval without width: they say nothing of how far the next one may lie.
    """
    of = _STATISTICS[statistic]
    value = float(of(new[None])[0] - of(base[None])[0])
    least = min(len(base), len(new))
    if least < LEAST:
        return Interval(value, None, None)
    random = np.random.default_rng(seed)
    drawn = _resampled(new, of, resamples, random) - _resampled(base, of, resamples, random)
    tail = _tail(least, level) if statistic == "mean" else (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(value, float(low), float(high))


def _median(rows: Floats) -> Floats:
    return np.asarray(np.median(rows, axis=1), dtype=np.float64)


def _mean(rows: Floats) -> Floats:
    return np.asarray(np.mean(rows, axis=1), dtype=np.float64)


_STATISTICS: dict[Statistic, Callable[[Floats], Floats]] = {"median": _median, "mean": _mean}


def _tail(n: int, level: float) -> float:
    """Share of the draws of a mean that is left out at either end."""
    from scipy.special import stdtrit

    student = float(stdtrit(n - 1, (1 + level) / 2))
    return NormalDist().cdf(-math.sqrt(n / (n - 1)) * student)


def _resampled(
    samples: Floats,
    of: Callable[[Floats], Floats],
    resamples: int,
    random: np.random.Generator,
) -> Floats:
    """Return the statistic of `resamples` draws of as many samples as there are."""
    ordered = np.sort(samples)
    n = len(ordered)
    rows = max(1, _AT_ONCE // n)
    parts = [
        of(ordered[random.integers(0, n, size=(min(rows, resamples - start), n))])
        for start in range(0, resamples, rows)
    ]
    return np.concatenate(parts)
