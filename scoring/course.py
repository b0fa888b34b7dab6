"""How a measurement went over the course of a run: whether it drifted, and what stands apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from voxmeter.scoring.stats import Floats, Indices

LEAST_TO_DRIFT = 24
"""Samples below which a drift is not looked for: thirds of fewer than 8 tell nothing."""

LEAST_TO_STAND_OUT = 12
"""Samples below which none is called an outlier."""

_FAR = 3.0  # Tukey's "far out": so many interquartile ranges beyond the quartile


class Drift(NamedTuple):
    """The first third of a run against its last.

    Attributes:
        first: Median of the first third.
        last: Median of the last third.
        p: Two-sided probability of a difference as large in ranks, by the Mann-Whitney test.
    """

    first: float
    last: float
    p: float


def drift(values: Floats) -> Drift | None:
    """Compare the first third of a run with its last.

    Args:
        values: Shape (n,), finite, in the order in which they were measured.

    Returns:
        None for fewer than `LEAST_TO_DRIFT`.
    """
    if len(values) < LEAST_TO_DRIFT:
        return None
    from scipy.stats import mannwhitneyu

    third = len(values) // 3
    first, last = values[:third], values[-third:]
    p = 1.0
    if np.ptp(np.concatenate([first, last])) > 0:
        p = float(mannwhitneyu(first, last, method="asymptotic").pvalue)
    return Drift(float(np.median(first)), float(np.median(last)), p)


def outliers(values: Floats, least: float = 0.0) -> Indices:
    """Return the positions of values far above the rest, the largest first.

    Far above is over the third quartile by three times the distance of the quartiles.

    Args:
        values: Shape (n,), finite.
        least: How far above the third quartile they are at least, in the unit of the values.
    """
    if len(values) < LEAST_TO_STAND_OUT:
        return np.empty(0, np.int64)
    low, high = np.quantile(values, [0.25, 0.75])
    found = np.flatnonzero(values > high + max(least, _FAR * (high - low)))
    return found[np.argsort(-values[found], kind="stable")]
