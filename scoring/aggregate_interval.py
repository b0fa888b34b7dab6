"""Intervals of aggregated figures: clusters are resampled through the whole aggregation.

The groups of a benchmark are fixed, so each keeps its own number of clusters: they are drawn
within *strata*. Groups whose items all count alike make one stratum together, and groups that
share a cluster do too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np

from voxmeter.scoring.aggregate import Node, Path, leaf_of, shares
from voxmeter.scoring.stats import Floats, Indices, Interval, item_means, mean_interval, on_scale

RESAMPLES = 2000
_FEW_CLUSTERS, _MOST_CLUSTERS = 5, 5000


@dataclass(frozen=True, slots=True)
class _Pool:
    """Leaves whose items all count alike."""

    node: Node
    leaves: tuple[int, ...]


class Aggregated:
    """One metric of one selection of trials, ready to be drawn together at any level.

    Args:
        whole: The suite as nested groups.
        paths: Group of each trial.
        values: Shape (n,), one number per trial, finite.
        items: Shape (n,), integers naming items.
        clusters: Shape (n,), integers naming clusters.
        bounds: The least and the greatest value that there can be, where that is known: 0 and 1
            for shares, the ends of a judge's scale. Limits stay between them, and outcomes that
            are all the same are no certainty.
        seed: Seed of the draws.
    """

    def __init__(
        self,
        whole: Node,
        paths: Sequence[Path],
        values: Floats,
        items: Indices,
        clusters: Indices,
        *,
        bounds: tuple[float, float] | None = None,
        seed: int = 0,
    ) -> None:
        self.whole = whole
        self._bounds = bounds
        self._draws: dict[int, Floats] = {}
        self._names = whole.leaves()
        self._seed = seed
        numbers = {leaf: number for number, leaf in enumerate(self._names)}
        found = item_means(values, items, clusters)
        self._values, self._clusters = found
        first = np.unique(items, return_index=True)[1]
        self._leaf = np.array([leaf_of(paths[index], numbers) for index in first], np.int64)
        size = len(self._names)
        sums = np.bincount(self._leaf, weights=self._values, minlength=size)
        sizes = np.bincount(self._leaf, minlength=size)
        self.counts: Mapping[Path, int] = dict(zip(self._names, sizes.tolist(), strict=True))
        self.means: Mapping[Path, Fraction] = {
            name: Fraction(repr(total)) / count  # a half stays a half: 107 / 40 is 2.675
            for name, total, count in zip(self._names, sums.tolist(), sizes.tolist(), strict=True)
            if count
        }

    def interval(self, node: Node, *, level: float = 0.95) -> Interval | None:
        """Return a group's figure with its interval; None without any item in it.

        Where all of its items count alike that is `mean_interval`, and where all outcomes are the
        same and have bounds, Wilson's interval between these. Else each stratum of n
        clusters draws n - 1 of its own, counted n / (n - 1) times (Rao and Wu, "Resampling
        inference with complex survey data", 1988), so that few clusters do not look certain, and
        the percentiles are moved outwards as Student's t asks for, with Satterthwaite's degrees
        of freedom. Where a stratum has 5 clusters or fewer, of which no resampling can tell
        enough, and above 5,000 clusters together, the limits are Student's with the standard error
        of the stratified mean. A stratum of one cluster says nothing of its spread, so
        there are no limits.

        Args:
            node: Of the tree that this was made with.
            level: Coverage aimed at.
        """
        part = shares(node, self.counts)
        if not any(self.counts.get(leaf, 0) for leaf in part):
            return None
        pools = [number for number, pool in enumerate(self._pools) if self._inside(pool, part)]
        if len(pools) <= 1:
            return self._of_items(node, level)
        value = float(sum((share * self.means[leaf] for leaf, share in part.items()), Fraction(0)))
        weights = np.zeros(len(self._pools))
        for number in pools:
            own = self._pools[number].node.leaves()
            weights[number] = float(sum(part.get(leaf, Fraction(0)) for leaf in own))
        kept = self._items_of(node)
        if self._bounds and len(kept) > 1 and not np.ptp(self._values[kept]):
            return self._of_items(node, level)
        half = self._half_widths(weights, level)
        if half is None:
            return Interval(value, None, None)
        return self._within(Interval(value, value - half[0], value + half[1]))

    def _items_of(self, node: Node) -> Indices:
        wanted = [self._names.index(leaf) for leaf in node.leaves()]
        return np.flatnonzero(np.isin(self._leaf, wanted)).astype(np.int64)

    def _of_items(self, node: Node, level: float) -> Interval | None:
        """Return the figure of items that all count alike."""
        kept = self._items_of(node)
        values, clusters = self._values[kept], self._clusters[kept]
        rate = self._bounds == (0.0, 1.0)
        mean = mean_interval(values, kept, clusters, rate=rate, level=level, seed=self._seed)
        if mean is None or self._bounds is None:
            return mean
        return on_scale(mean, values, clusters, self._bounds, level=level)

    def _within(self, found: Interval) -> Interval:
        if self._bounds is None or found.low is None or found.high is None:
            return found
        least, greatest = self._bounds
        return Interval(found.value, max(least, found.low), min(greatest, found.high))

    def _inside(self, pool: _Pool, part: Mapping[Path, Fraction]) -> bool:
        return any(self.counts[leaf] and leaf in part for leaf in pool.node.leaves())

    def _half_widths(self, weights: Floats, level: float) -> tuple[float, float] | None:
        """Return how far the limits lie below and above the figure."""
        used = np.flatnonzero(weights)
        numbers = [
            number for number, one in enumerate(self._strata) if np.isin(one.pools, used).any()
        ]
        strata = [self._strata[number] for number in numbers]
        sizes = [len(one.clusters) for one in strata]
        if min(sizes) < 2:
            return None
        variances = self._variances(strata, weights)
        student = _student(level, _freedom(variances, sizes))
        if min(sizes) <= _FEW_CLUSTERS or sum(sizes) > _MOST_CLUSTERS:
            half = student * math.sqrt(sum(variances))
            return half, half
        drawn = np.zeros(RESAMPLES)
        for number in numbers:
            pools = self._strata[number].pools
            inside = np.isin(pools, used)
            drawn += self._drawn(number)[:, inside] @ weights[pools[inside]]
        drawn = drawn[np.isfinite(drawn)]
        if not len(drawn):
            return None
        tail = NormalDist().cdf(-student)
        low, high = np.quantile(drawn, [tail, 1 - tail])
        return float(-low), float(high)

    @cached_property
    def _pools(self) -> list[_Pool]:
        numbers = {leaf: number for number, leaf in enumerate(self._names)}
        return [
            _Pool(node, tuple(numbers[leaf] for leaf in node.leaves()))
            for node in _pool_nodes(self.whole)
        ]

    @cached_property
    def _residuals(self) -> tuple[Floats, Floats]:
        """Sum of residuals and number of items of each cluster in each pool, (k, pools) each."""
        pool_of = np.zeros(len(self._names), np.int64)
        for number, one in enumerate(self._pools):
            pool_of[list(one.leaves)] = number
        pool = pool_of[self._leaf]
        wide, k = len(self._pools), int(self._clusters.max()) + 1
        totals = np.bincount(pool, weights=self._values, minlength=wide)
        means = totals / np.maximum(np.bincount(pool, minlength=wide), 1)
        cell = self._clusters * wide + pool
        sums = np.bincount(cell, weights=self._values - means[pool], minlength=k * wide)
        sizes = np.bincount(cell, minlength=k * wide).astype(np.float64)
        return sums.reshape(k, wide).astype(np.float64), sizes.reshape(k, wide)

    @cached_property
    def _strata(self) -> list[_Stratum]:
        touched = self._residuals[1] > 0
        groups: list[set[int]] = []
        for row in np.unique(touched, axis=0):
            together = set(np.flatnonzero(row).tolist())
            apart = [one for one in groups if not one & together]
            joined = together.union(*(one for one in groups if one & together))
            groups = [*apart, joined]
        return [
            _Stratum(np.array(pools), np.flatnonzero(touched[:, pools].any(axis=1)))
            for pools in sorted(map(sorted, groups))
        ]

    def _drawn(self, number: int) -> Floats:
        """Resampled means of a stratum's pools less their own, shape (resamples, its pools).

        Made once, when a figure first asks for it. A draw that left a pool without any item is
        not a number.
        """
        if number not in self._draws:
            stratum = self._strata[number]
            n = len(stratum.clusters)
            random = np.random.default_rng([self._seed, number])
            times = random.multinomial(n - 1, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)
            at = np.ix_(stratum.clusters, stratum.pools)
            sums, sizes = self._residuals
            with np.errstate(invalid="ignore"):
                self._draws[number] = (times @ sums[at]) / (times @ sizes[at])
        return self._draws[number]

    def _variances(self, strata: Sequence[_Stratum], weights: Floats) -> list[float]:
        """Return what each stratum adds to the variance of a figure with these weights."""
        sums, sizes = self._residuals
        influence = (sums / np.maximum(sizes.sum(axis=0), 1)) @ weights
        found = []
        for stratum in strata:
            own = influence[stratum.clusters]
            n = len(own)
            found.append(n / (n - 1) * float(np.sum((own - own.mean()) ** 2)))
        return found


@dataclass(frozen=True, slots=True)
class _Stratum:
    """Clusters that are drawn from one another, and the pools that they lie in."""

    pools: Indices
    clusters: Indices


def _pool_nodes(node: Node) -> list[Node]:
    """Return the largest groups inside which every item counts alike."""
    if all(inner.rule == "micro" for inner in node.nodes()):
        return [node]
    return [pool for part in node.parts for pool in _pool_nodes(part)]


def _freedom(variances: Sequence[float], sizes: Sequence[int]) -> float:
    """Return Satterthwaite's degrees of freedom: one small stratum may decide the whole width."""
    total = sum(variances)
    parts = [one**2 / (size - 1) for one, size in zip(variances, sizes, strict=True)]
    return total**2 / sum(parts) if total > 0 else min(sizes) - 1.0


def _student(level: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))
