"""Two runs compared over the items that both have: differences, their intervals, what is worse.

An item is compared with itself, so that how hard or how long it is falls out. Differences are new
less base. What the data cannot give is None; a difference that never varies is trusted only where
as many equal signs would not come by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from voxmeter.scoring.definitions import Better
from voxmeter.scoring.stats import (
    Floats,
    Indices,
    bootstrap_mean,
    drawn_clusters,
    item_means,
    percentile,
)

ALPHA = 0.05
"""A difference is told from none when its probability without one, after Holm, is at most this."""

LEAST_CLUSTERS = 6
"""With fewer, not even the same sign in every cluster is unlikely enough: 2 * 0.5**5 > 0.05."""

LEAST_TRIALS = {0.9: 10, 0.95: 20, 0.99: 100}
"""A gate at one of these percentiles needs as many trials on both sides."""

_MOST_DRAWN = 2000  # pairs; for more the median's interval is by order statistics
_BLOCK = 2_000_000

Outcome = Literal["regression", "improvement", "no difference"]


class Difference(NamedTuple):
    """How much the new run has more than the base, in the metric's unit.

    Attributes:
        value: New less base.
        low: Lower limit of the 95 % interval; None where the data give none.
        high: Upper limit.
        p: How likely a difference at least as large is where there is none; None without limits.
    """

    value: float
    low: float | None
    high: float | None
    p: float | None


class Samples(NamedTuple):
    """One metric of one side, one entry a trial.

    Attributes:
        values: Shape (n,), finite.
        items: Shape (n,), the item of each trial, by numbers that both sides share.
        clusters: Shape (n,), the cluster of each trial, by numbers that both sides share.
    """

    values: Floats
    items: Indices
    clusters: Indices


@dataclass(frozen=True, slots=True)
class Pairs:
    """The items that have a value on both sides; trials of an item are averaged first.

    Attributes:
        base: Shape (n,), mean of each item's trials in the base run.
        new: Shape (n,), likewise in the new run.
        clusters: Shape (n,), cluster of each item, 0 to k - 1, none empty.
        base_only: Items left out because the new run has no value of them.
        new_only: Items left out because the base run has none.
    """

    base: Floats
    new: Floats
    clusters: Indices
    base_only: int
    new_only: int

    @property
    def differences(self) -> Floats:
        """New less base, shape (n,)."""
        return self.new - self.base

    @property
    def cluster_count(self) -> int:
        """How many clusters the pairs come from."""
        return int(self.clusters.max()) + 1 if len(self.clusters) else 0


class Discordant(NamedTuple):
    """McNemar's exact test: whether as many items were lost as won.

    Attributes:
        lost: Items right in the base run and wrong in the new one.
        won: The other way round.
        p: Two-sided probability of a split as uneven, if both ways were as likely.
    """

    lost: int
    won: int
    p: float


@dataclass(frozen=True, slots=True)
class Floors:
    """How large a difference has to be before anyone should mind; both must be passed.

    Attributes:
        relative: As a share of the base value.
        absolute: In the metric's unit.
    """

    relative: float = 0.0
    absolute: float = 0.0


def paired(base: Samples, new: Samples) -> Pairs:
    """Pair the items of two runs."""
    base_items, new_items = np.unique(base.items), np.unique(new.items)
    common = np.intersect1d(base_items, new_items, assume_unique=True)
    sides = [_only(side, common) for side in (base, new)]
    means = [item_means(side.values, side.items, side.clusters) for side in sides]
    # item_means sorts by item, so that both sides stand in the order of `common`.
    return Pairs(
        base=means[0].values,
        new=means[1].values,
        clusters=means[0].clusters,
        base_only=len(base_items) - len(common),
        new_only=len(new_items) - len(common),
    )


def mean_difference(pairs: Pairs, *, seed: int = 0) -> Difference | None:
    """Return the mean of the paired differences with its cluster-bootstrap interval.

    `p` is Student's, with the cluster-robust standard error.

    Returns:
        None without pairs.
    """
    differences = pairs.differences
    if not len(differences):
        return None
    if _is_constant(differences):
        return _constant(float(differences[0]), pairs.cluster_count)
    found = bootstrap_mean(differences, pairs.clusters, seed=seed)
    k = pairs.cluster_count
    if k < 2:
        return Difference(found.value, None, None, None)
    sums = np.bincount(pairs.clusters, weights=differences - found.value)
    error = math.sqrt(float(np.sum(sums**2)) * k / (k - 1)) / len(differences)
    noise = 1e-6 * float(np.max(np.abs(differences)))  # the draws are in single precision
    low, high = (0.0 if one is None or abs(one) <= noise else one for one in found[1:])
    return Difference(found.value, low, high, _student_p(found.value, error, k))


def median_difference(pairs: Pairs, *, resamples: int = 2000, seed: int = 0) -> Difference | None:
    """Return the median of the paired differences with its cluster-bootstrap interval.

    Above 2,000 pairs the limits are order statistics, their ranks moved apart for clusters.

    Returns:
        None without pairs.
    """
    differences = pairs.differences
    if not len(differences):
        return None
    value = float(np.median(differences))
    k = pairs.cluster_count
    if _is_constant(differences):
        return _constant(value, k)
    if k < 2:
        return Difference(value, None, None, None)
    if len(differences) > _MOST_DRAWN:
        limits = percentile(differences, 0.5, pairs.clusters)
        if limits is None or limits.low is None or limits.high is None:
            return Difference(value, None, None, None)
        error = (limits.high - limits.low) / (2 * 1.959964)
        return Difference(value, limits.low, limits.high, _student_p(value, error, k))
    drawn = _weighted(differences, pairs.clusters, k, 0.5, resamples, seed)
    return _from_draws(value, drawn, k)


def percentile_difference(
    base: Samples, new: Samples, fraction: float, *, resamples: int = 2000, seed: int = 0
) -> Difference | None:
    """Return the new run's percentile less the base's, over the trials of the paired items.

    The interval is a bootstrap that draws the same clusters on both sides.

    Args:
        base: Trials of the base run.
        new: Trials of the new run.
        fraction: The percentile as a fraction.
        resamples: Number of bootstrap samples.
        seed: Seed of the draws.

    Returns:
        None where a side has fewer trials than `LEAST_TRIALS`.
    """
    common = np.intersect1d(base.items, new.items)
    sides = [_only(side, common) for side in (base, new)]
    least = LEAST_TRIALS.get(fraction, 1)
    if min(len(side.values) for side in sides) < least:
        return None
    value = float(np.quantile(sides[1].values, fraction) - np.quantile(sides[0].values, fraction))
    _, cluster = np.unique(np.concatenate([side.clusters for side in sides]), return_inverse=True)
    k = int(cluster.max()) + 1
    if k < 2:
        return Difference(value, None, None, None)
    parts = np.split(cluster.astype(np.int64), [len(sides[0].values)])
    drawn = [
        _weighted(side.values, part, k, fraction, resamples, seed)
        for side, part in zip(sides, parts, strict=True)
    ]
    return _from_draws(value, drawn[1] - drawn[0], k)


def mcnemar(pairs: Pairs) -> Discordant | None:
    """Compare right and wrong by McNemar's exact test.

    Returns:
        None where an item's trials are neither all right nor all wrong on a side, or items share
        clusters: the test is for independent yes-or-no pairs.
    """
    from scipy.special import bdtr

    both = np.concatenate([pairs.base, pairs.new])
    if not len(both) or not np.all((both == 0) | (both == 1)):
        return None
    if pairs.cluster_count != len(pairs.base):
        return None
    lost = int(np.count_nonzero(pairs.base > pairs.new))
    won = int(np.count_nonzero(pairs.base < pairs.new))
    split = lost + won
    p = 1.0 if not split else min(1.0, 2 * float(bdtr(min(lost, won), split, 0.5)))
    return Discordant(lost, won, p)


def holm(probabilities: Sequence[float]) -> list[float]:
    """Return the probabilities adjusted for their number by Holm's step-down method."""
    order = sorted(range(len(probabilities)), key=lambda index: probabilities[index])
    adjusted = [1.0] * len(probabilities)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * probabilities[index]))
        adjusted[index] = largest
    return adjusted


def outcome(
    found: Difference, adjusted_p: float, reference: float, better: Better, floors: Floors
) -> Outcome:
    """Say whether a difference is a regression.

    Args:
        found: The difference.
        adjusted_p: Its probability after Holm.
        reference: The base value that the relative floor is a share of.
        better: Which way is better.
        floors: What the difference must be larger than.
    """
    if found.low is None or found.high is None or found.low <= 0 <= found.high:
        return "no difference"
    size = abs(found.value) * (1 - 1e-9)  # what is equal but for its last digits is not beyond
    if adjusted_p > ALPHA or size <= floors.absolute or size <= floors.relative * abs(reference):
        return "no difference"
    return "regression" if (found.value > 0) == (better == "lower") else "improvement"


def _only(side: Samples, items: Indices) -> Samples:
    kept = np.isin(side.items, items)
    return Samples(side.values[kept], side.items[kept], side.clusters[kept])


def _is_constant(differences: Floats) -> bool:
    spread = float(np.ptp(differences))
    return spread <= 1e-9 * max(1.0, float(np.max(np.abs(differences))))


def _constant(value: float, k: int) -> Difference:
    """A difference that is the same everywhere: a bootstrap sees no error, a sign test does."""
    if value == 0:
        return Difference(0.0, 0.0, 0.0, 1.0) if k > 1 else Difference(0.0, None, None, None)
    if k < LEAST_CLUSTERS:
        return Difference(value, None, None, None)
    return Difference(value, value, value, 2 * 0.5**k)


def _student_p(value: float, error: float, k: int) -> float:
    from scipy.special import stdtr

    if error == 0:
        return 1.0 if value == 0 else 2 * 0.5**k
    return float(2 * stdtr(k - 1, -abs(value) / error))


def _from_draws(value: float, drawn: Floats, k: int) -> Difference:
    """Percentile limits, moved outwards for few clusters as those of `bootstrap_mean` are."""
    from scipy.special import ndtr, stdtrit

    tail = float(ndtr(-math.sqrt(k / (k - 1)) * stdtrit(k - 1, 0.975)))
    low, high = np.quantile(drawn, [tail, 1 - tail])
    p = _student_p(value, float(np.std(drawn)), k)
    return Difference(value, float(low), float(high), p)


def _weighted(
    values: Floats, clusters: Indices, k: int, fraction: float, resamples: int, seed: int
) -> Floats:
    """Percentiles of `resamples` draws of whole clusters, shape (resamples,).

    Each is the mean of the two order statistics nearest to the fraction where it falls between
    them, as the usual median of an even number.
    """
    order = np.argsort(values, kind="stable")
    ordered, cluster = values[order], clusters[order]
    weights = drawn_clusters(k, resamples, seed)
    found = np.empty(resamples)
    rows = max(1, _BLOCK // len(values))
    for start in range(0, resamples, rows):
        below = np.cumsum(weights[start : start + rows, cluster], axis=1, dtype=np.int32)
        target = below[:, -1:] * fraction
        last = len(values) - 1
        lower = np.minimum(np.count_nonzero(below < target, axis=1), last)
        upper = np.minimum(np.count_nonzero(below <= target, axis=1), last)
        found[start : start + rows] = (ordered[lower] + ordered[upper]) / 2
    return found
