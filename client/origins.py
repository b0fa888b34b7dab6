"""Recordings of people against synthetic speech: the same words of both, compared pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from voxmeter.client.aggregates import Values, judged_values
from voxmeter.client.columns import Columns, Floats
from voxmeter.scoring.definitions import definition, is_judged
from voxmeter.scoring.stats import Indices, Interval, bootstrap_mean, item_means, mean_interval

Json = dict[str, Any]

ORIGINS = ("real", "synthetic")


def origins(columns: Columns, rows: Indices, accuracy: Values, seed: int) -> list[Json]:
    """Return how a cell's figures differ between the two, for each metric that has both.

    `paired` is the mean difference (people less synthesisers) over clusters that have items of
    both: what the same words score in one and in the other. The two means beside it are over all
    items of either, whose questions may not be the same.

    Args:
        columns: The run.
        rows: The cell's trials, no warm-up turns.
        accuracy: Trials and values of accuracy.
        seed: Of the intervals.
    """
    if not {columns.items[code].origin for code in np.unique(columns.item[rows]).tolist()} >= set(
        ORIGINS
    ):
        return []
    found: dict[str, Values] = {"accuracy": accuracy}
    for name in sorted(columns.scores):
        if is_judged(name) and not name.startswith("position_gap"):
            found |= judged_values(columns, rows, name)
    return [
        one for name, values in found.items() for one in _of_metric(columns, name, values, seed)
    ]


def _of_metric(columns: Columns, name: str, values: Values, seed: int) -> Iterator[Json]:
    rows, numbers = values
    whose = np.array([columns.items[code].origin for code in columns.item[rows].tolist()])
    meant = definition(name)
    rate = meant is not None and meant.kind == "rate"
    apart: Json = {}
    by_cluster: dict[str, Mapping[int, float]] = {}
    for origin in ORIGINS:
        chosen = np.flatnonzero(whose == origin)
        if not len(chosen):
            return
        items = columns.item[rows[chosen]].astype(np.int64)
        clusters = columns.cluster[rows[chosen]].astype(np.int64)
        found = mean_interval(numbers[chosen], items, clusters, rate=rate, seed=seed)
        apart[origin] = {**_limits(found), "items": len(np.unique(items)), "n": len(chosen)}
        by_cluster[origin] = _means(numbers[chosen], items, clusters)
    real, synthetic = (by_cluster[origin] for origin in ORIGINS)
    both = sorted(real.keys() & synthetic.keys())
    differences = np.array([real[one] - synthetic[one] for one in both], np.float64)
    paired = bootstrap_mean(differences, np.arange(len(both)), seed=seed) if both else None
    yield {"metric": name, **apart, "paired": {**_limits(paired), "pairs": len(both)}}


def _means(values: Floats, items: Indices, clusters: Indices) -> Mapping[int, float]:
    """Return the mean of each cluster's items."""
    known = np.unique(clusters)
    found = item_means(values, items, clusters)
    sums = np.bincount(found.clusters, weights=found.values)
    means = sums / np.bincount(found.clusters)
    return dict(zip(known.tolist(), means.tolist(), strict=True))


def _limits(found: Interval | None) -> Json:
    names = ("value", "low", "high")
    if found is None:
        return dict.fromkeys(names)
    return {
        name: None if one is None else round(one, 6) for name, one in zip(names, found, strict=True)
    }
