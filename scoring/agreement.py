"""How far two judges, or a judge and people, say the same: ranks, distances, preferences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from voxmeter.scoring.stats import Floats, Interval, mean_interval


class Ranks(NamedTuple):
    """How alike two raters order the same things; None where one of them tells nothing apart.

    Attributes:
        spearman: Correlation of the ranks, ties at their mean rank.
        kendall_tau_b: Pairs in the same order less pairs in the other, corrected for ties.
    """

    spearman: float | None
    kendall_tau_b: float | None


def ranks(first: Floats, second: Floats) -> Ranks:
    """Return how alike two raters order the same things.

    Args:
        first: Shape (n,), scores of one rater, finite.
        second: Shape (n,), of the other.
    """
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Ranks(None, None)
    from scipy.stats import kendalltau, rankdata

    one, two = rankdata(first), rankdata(second)
    spearman = float(np.corrcoef(one, two)[0, 1])
    tau = float(kendalltau(first, second, variant="b").statistic)
    return Ranks(spearman, tau)


def mean_abs_diff(first: Floats, second: Floats) -> float | None:
    """Return the mean distance of two raters' scores, in their unit; None without any."""
    return float(np.mean(np.abs(first - second))) if len(first) else None


Preference = int
"""1: the first of two replies is better, -1: the second, 0: neither."""


def preference(first: float, second: float) -> Preference:
    """Return which of two scores is the greater; equal ones are a tie."""
    return int(np.sign(first - second))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replies to one question, and what two raters prefer.

    Attributes:
        item: What was asked; pairs of one item are averaged first.
        cluster: What the item moves together with.
        one: What the one rater prefers.
        other: What the other prefers.
    """

    item: str
    cluster: str
    one: Preference
    other: Preference


def preference_agreement(pairs: Sequence[Pair], seed: int = 0) -> Interval | None:
    """Return the share of pairs on which two raters prefer the same, ties being a preference.

    This is the rate by which the benchmarks' papers compare judges with people. Clusters are
    resampled; without pairs there is None.
    """
    if not pairs:
        return None
    same = np.array([pair.one == pair.other for pair in pairs], np.float64)
    return mean_interval(
        same,
        _codes(pair.item for pair in pairs),
        _codes(pair.cluster for pair in pairs),
        rate=True,
        seed=seed,
    )


def _codes(names: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    known: dict[str, int] = {}
    codes = [known.setdefault(name, len(known)) for name in names]
    return np.array(codes, np.int64)


class Score(NamedTuple):
    """What two raters give one system's reply to one question.

    Attributes:
        item: What was asked, under which condition.
        cluster: What the item moves together with.
        system: Whose reply it is.
        one: Score of the one rater.
        other: Score of the other.
    """

    item: str
    cluster: str
    system: str
    one: float
    other: float


def pairs_of(scores: Iterable[Score]) -> list[Pair]:
    """Return every pair of systems on every item, with what both raters prefer there.

    Repeated trials of a system on an item are averaged first.
    """
    by_item: dict[tuple[str, str], dict[str, list[Score]]] = defaultdict(dict)
    for score in scores:
        by_item[score.item, score.cluster].setdefault(score.system, []).append(score)
    found = []
    for (item, cluster), systems in by_item.items():
        means = {name: _means(rows) for name, rows in sorted(systems.items())}
        for left, right in combinations(means.values(), 2):
            preferred = (preference(left[0], right[0]), preference(left[1], right[1]))
            found.append(Pair(item, cluster, *preferred))
    return found


def _means(rows: Sequence[Score]) -> tuple[float, float]:
    one = sum(row.one for row in rows) / len(rows)
    other = sum(row.other for row in rows) / len(rows)
    return one, other


def system_means(scores: Iterable[Score]) -> Mapping[str, tuple[float, float]]:
    """Return each system's mean score by either rater."""
    by_system: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        by_system[score.system].append(score)
    return {name: _means(rows) for name, rows in sorted(by_system.items())}
