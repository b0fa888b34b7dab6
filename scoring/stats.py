"""Means, rates and percentiles with intervals; every figure goes with what it stands on.

Three rules hold everywhere: repeated trials of an item are averaged first, whole clusters are
resampled (items that share a source are not independent), and a limit that the data cannot give
is None, never a number that looks like one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

LEAST_SAMPLES: Mapping[float, int] = {0.95: 20, 0.99: 100}
"""A percentile is withheld below this many samples: p99 of 50 would be the slowest one."""

_FEW_CLUSTERS, _MOST_CLUSTERS = 5, 5000


class Interval(NamedTuple):
    """A value with the limits of its interval, all in the value's unit.

    Attributes:
        value: The estimate itself.
        low: Lower limit; None where the data give none.
        high: Upper limit; None where the data give none.
    """

    value: float
    low: float | None
    high: float | None


class ItemMeans(NamedTuple):
    """One value for each item, with the cluster it belongs to.

    Attributes:
        values: Shape (items,), mean of the item's trials.
        clusters: Shape (items,), cluster of each item, 0 to k - 1, none empty.
    """

    values: Floats
    clusters: Indices


def item_means(values: Floats, items: Indices, clusters: Indices) -> ItemMeans:
    """Average repeated trials within each item, so that no item counts more than another.

    Args:
        values: Shape (n,), one number per trial, finite.
        items: Shape (n,), any integer naming the trial's item.
        clusters: Shape (n,), any integer naming the trial's cluster; the same for all trials of
            one item.
    """
    _, first, item = np.unique(items, return_index=True, return_inverse=True)
    means = np.bincount(item, weights=values) / np.bincount(item)
    _, cluster = np.unique(clusters[first], return_inverse=True)
    return ItemMeans(means, cluster.astype(np.int64))


def bootstrap_mean(
    values: Floats,
    clusters: Indices,
    *,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Mean of `values` with a percentile bootstrap interval, resampling whole clusters.

    Items that share a source (one question read by four voices) are not independent; resampling
    items would make the interval too narrow. The order of the rows makes no difference.

    Args:
        values: Shape (n,), one number per item, finite; n at least 1. Unit: the caller's.
        clusters: Shape (n,), cluster of each item, 0 to k - 1, none empty.
        resamples: Number of bootstrap samples.
        level: Coverage aimed at.
        seed: Seed of the draws; the same seed gives the same limits.

    Returns:
        The mean of the items; with one cluster there is nothing to resample and no interval. The
        percentiles are moved outwards as Student's t asks for (T. Hesterberg, "What teachers
        should know about the bootstrap", 2015: plain ones are too narrow for few clusters). Up to
        5 clusters, of which no resampling can tell enough, and above 5,000, where the bootstrap
        adds only noise, the limits are Student's with the cluster-robust standard error.
    """
    mean = float(np.mean(values))
    # Centred, so that no digits are lost to the size of the values.
    sums = np.bincount(clusters, weights=values - mean).astype(np.float64)
    sizes = np.bincount(clusters).astype(np.float64)
    k = len(sums)
    if k < 2:
        return Interval(mean, None, None)
    if not _FEW_CLUSTERS < k <= _MOST_CLUSTERS:
        half = _student(level, k) * _standard_error(sums, sizes)
        return Interval(mean, mean - half, mean + half)
    means = mean + _resampled_means(sums, sizes, resamples, seed)
    tail = NormalDist().cdf(-math.sqrt(k / (k - 1)) * _student(level, k))
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(mean, float(low), float(high))


def _student(level: float, k: int) -> float:
    """Half width of Student's interval in standard errors, with k - 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(k - 1, (1 + level) / 2))


def _standard_error(residuals: Floats, sizes: Floats) -> float:
    """Cluster-robust standard error of a mean, from the sum of residuals of each cluster."""
    k = len(residuals)
    return math.sqrt(float(np.sum(residuals**2)) * k / (k - 1)) / float(sizes.sum())


def _resampled_means(sums: Floats, sizes: Floats, resamples: int, seed: int) -> Floats:
    """Means of `resamples` draws of as many clusters as there are, shape (resamples,).

    Clusters with the same sum and size cannot be told apart, so drawing how often each *kind*
    comes up has the same distribution as drawing clusters; for rates there are only a few kinds.
    """
    kinds, counts = np.unique(np.stack([sums, sizes], axis=1), axis=0, return_counts=True)
    k = len(sums)
    if len(kinds) * 8 <= k:
        weights = np.random.default_rng(seed).multinomial(k, counts / k, size=resamples)
        drawn = np.asarray(weights @ kinds, dtype=np.float64)
    else:
        each = np.repeat(kinds, counts, axis=0)  # sorted: the order of rows makes no difference
        weights = drawn_clusters(k, resamples, seed).astype(np.float32)
        drawn = np.asarray(weights @ each.astype(np.float32), dtype=np.float64)
    return np.asarray(drawn[:, 0] / drawn[:, 1], dtype=np.float64)


@lru_cache(maxsize=8)
def drawn_clusters(k: int, resamples: int, seed: int) -> NDArray[np.uint8]:
    """How often each of k clusters is drawn, shape (resamples, k).

    Kept for the next metric: the figures of one table rest on the same draws.
    """
    random = np.random.default_rng(seed)
    drawn = np.empty((resamples, k), dtype=np.uint8)  # 256 draws of one cluster do not happen
    rows = max(1, 1_000_000 // k)
    for start in range(0, resamples, rows):
        number = min(rows, resamples - start)
        chosen = random.integers(0, k, size=(number, k)) + np.arange(number)[:, None] * k
        counts = np.bincount(chosen.ravel(), minlength=number * k)
        drawn[start : start + number] = counts.reshape(number, k)
    return drawn


def wilson(successes: float, n: int, *, level: float = 0.95) -> Interval:
    """A rate with Wilson's score interval, which stays inside 0 to 1 and never has width 0.

    Args:
        successes: How many of the n; a fraction is allowed.
        n: Number of independent yes-or-no outcomes, at least 1.
        level: Coverage aimed at.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return Interval(rate, max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half)))


def mean_interval(
    values: Floats,
    items: Indices,
    clusters: Indices,
    *,
    rate: bool = False,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """Mean over items of their trial means, with the interval that suits it.

    A rate gets Wilson's interval when every cluster has one item and every item is plainly right
    or wrong; and also when all outcomes are the same, with the number of clusters as n, because a
    bootstrap of equal values would claim certainty. Everything else: `bootstrap_mean`.

    Args:
        values: Shape (n,), one number per trial, finite.
        items: Shape (n,), integers naming items.
        clusters: Shape (n,), integers naming clusters.
        rate: Whether the values are shares of 1.
        resamples: Number of bootstrap samples.
        level: Coverage aimed at.
        seed: Seed of the bootstrap.

    Returns:
        None when there are no values; without limits when there is only one cluster.
    """
    if not len(values):
        return None
    means = item_means(values, items, clusters)
    k = int(means.clusters.max()) + 1
    if rate and k > 1:
        extreme = bool(np.all(means.values == 0.0) or np.all(means.values == 1.0))
        plain = bool(np.all((means.values == 0.0) | (means.values == 1.0)))
        if extreme or (plain and k == len(means.values)):
            return wilson(float(means.values.mean()) * k, k, level=level)
    found = bootstrap_mean(
        means.values, means.clusters, resamples=resamples, level=level, seed=seed
    )
    if rate and found.low is not None and found.high is not None:
        return Interval(found.value, max(0.0, found.low), min(1.0, found.high))
    return found


def on_scale(
    found: Interval,
    values: Floats,
    clusters: Indices,
    bounds: tuple[float, float],
    *,
    level: float = 0.95,
) -> Interval:
    """Return the interval of a mean of values that have a scale: no limit lies beyond it.

    Values that are all equal get Wilson's interval on the scale, with the number of clusters as n:
    a bootstrap of them would claim certainty, and no values between the bounds could be less
    certain than those of a rate.

    Args:
        found: Of the same values.
        values: Shape (n,), on the scale.
        clusters: Shape (n,), integers naming clusters.
        bounds: The scale's ends.
        level: Coverage aimed at.
    """
    least, greatest = bounds
    width = greatest - least
    k = len(np.unique(clusters))
    if k > 1 and not np.ptp(values):
        share = wilson((float(values[0]) - least) / width * k, k, level=level)
        if share.low is not None and share.high is not None:
            return Interval(found.value, least + share.low * width, least + share.high * width)
    if found.low is None or found.high is None:
        return found
    return Interval(found.value, max(least, found.low), min(greatest, found.high))


def percentile(
    samples: Floats,
    fraction: float,
    clusters: Indices | None = None,
    *,
    level: float = 0.95,
) -> Interval | None:
    """One percentile of the trials, with an order-statistic interval.

    The value interpolates linearly between neighbouring order statistics (so the median of an
    even number of samples is the mean of the middle two). The limits are samples: the order
    statistics whose ranks hold the true percentile with at least `level` by the binomial
    distribution, without any assumption on the shape. Where several samples share a cluster, the
    ranks move apart by the square root of the design effect.

    Args:
        samples: Shape (n,), one number per trial, finite.
        fraction: The percentile as a fraction: 0.5, 0.9, 0.95, 0.99.
        clusters: Shape (n,), integers naming the cluster of each sample; None: all their own.
        level: Coverage aimed at.

    Returns:
        None when it is withheld (no sample, or fewer than `LEAST_SAMPLES`); a limit that no order
        statistic reaches is None.
    """
    n = len(samples)
    if n < LEAST_SAMPLES.get(fraction, 1):
        return None
    ordered = np.sort(samples)
    value = float(np.quantile(ordered, fraction))
    low_rank, high_rank = _ranks(n, fraction, level)
    stretch = math.sqrt(_design_effect(samples <= value, clusters))
    if stretch > 1:
        low_rank = math.floor(n * fraction - (n * fraction - low_rank) * stretch)
        high_rank = math.ceil(n * fraction + (high_rank - n * fraction) * stretch)
    low = float(ordered[low_rank - 1]) if low_rank >= 1 else None
    high = float(ordered[high_rank - 1]) if high_rank <= n else None
    return Interval(value, low, high)


def _ranks(n: int, fraction: float, level: float) -> tuple[int, int]:
    """Ranks (from 1) of the limits; 0 and n + 1 stand for 'no order statistic'."""
    from scipy.special import bdtr

    below = bdtr(np.arange(n + 1, dtype=np.float64), n, fraction)  # P(at most k samples below)
    tail = (1 - level) / 2
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1 - tail, side="left")) + 1
    return low, high


def _design_effect(inside: NDArray[np.bool_], clusters: Indices | None) -> float:
    """How many times wider the variance of a share is than with independent samples; at least 1."""
    if clusters is None:
        return 1.0
    n = len(inside)
    share = float(np.mean(inside))
    _, cluster = np.unique(clusters, return_inverse=True)
    k = int(cluster.max()) + 1
    if k in (1, n) or share in (0.0, 1.0):
        return 1.0 if k == n else n / k
    residuals = np.bincount(cluster, weights=inside - share)
    clustered = float(np.sum(residuals**2)) * k / (k - 1)
    return max(1.0, clustered / (n * share * (1 - share)))


def half_up(value: float | str, digits: int) -> str:
    """Round a decimal half up, as published tables do: 0.125 to two digits is 0.13.

    Args:
        value: The number; a float is taken by its shortest decimal form.
        digits: Digits behind the point.
    """
    from decimal import ROUND_HALF_UP, Decimal

    return str(Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))
