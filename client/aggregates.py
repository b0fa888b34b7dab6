"""A benchmark's own tables: its groups drawn together by the rules that its suite declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from voxmeter.client.columns import SCORED, UNSCORED, Columns, Floats
from voxmeter.scoring.aggregate import (
    Node,
    Path,
    Rounding,
    Scheme,
    all_alike,
    figure,
    rule_name,
    scheme_of,
    tree,
)
from voxmeter.scoring.aggregate_interval import Aggregated
from voxmeter.scoring.definitions import definition, is_judged
from voxmeter.scoring.stats import Indices

Json = dict[str, Any]
Values = tuple[Indices, Floats]
"""The trials that a metric is drawn from, and the value of each."""

ANSWERS = ("accuracy", "accuracy_parsed", "parse_rate")
BESIDE = "(no group)"
"""Name of the items that lie in a group beside its inner groups."""
LOWEST = "failures_lowest"
"""Stands behind a judge's rating as it is when each failure of the endpoint gets the lowest one."""


def declared(run: Mapping[str, Any], suite: str) -> Scheme | None:
    """Return the rules that a suite of a run declared, None where it declared none."""
    row = (run.get("aggregation") or {}).get(suite)
    return scheme_of(row) if isinstance(row, Mapping) else None


def tables(
    columns: Columns, rows: Indices, scheme: Scheme, answers: Mapping[str, Values], seed: int
) -> Json:
    """Return the figures of every group of a cell, and of the cell as a whole, by its rules.

    Args:
        columns: The run.
        rows: The cell's trials, no warm-up turns.
        scheme: The suite's rules.
        answers: Trials and values of accuracy and its kin.
        seed: Seed of the intervals.

    Returns:
        `scheme`, and `figures`: one for each metric and group that has any value.
    """
    whole = tree(_paths(columns, rows), scheme.levels)
    found = {name: answers[name] for name in ANSWERS}
    for name in sorted(columns.scores):
        if is_judged(name):
            found |= judged_values(columns, rows, name)
    figures = [
        row
        for name, values in found.items()
        for row in _of_metric(columns, whole, scheme.rounding, name, values, seed)
    ]
    return {"scheme": scheme.row(), "figures": figures}


def judged_values(columns: Columns, rows: Indices, metric: str) -> dict[str, Values]:
    """Return what a judge's figure is drawn from, by the rules of `judge_figure`."""
    name, _, judge = metric.partition(":")
    column = columns.column(metric)
    state = column.state[rows]
    kept, failed = rows[state == SCORED], rows[state == UNSCORED]
    both = np.concatenate([kept, failed])

    def with_failures(value: float) -> Values:
        return both, np.concatenate([column.value[kept], np.full(len(failed), value)])

    if name == "judge_accuracy":
        return {metric: with_failures(0.0)}
    found: dict[str, Values] = {metric: (kept, column.value[kept])}
    if name == "position_gap":
        return found
    scale = columns.judged[judge].scale(kept) if judge in columns.judged else None
    if scale is None:  # a mean of stars and points is no figure
        return {}
    return found | ({f"{metric}:{LOWEST}": with_failures(scale[0])} if len(failed) else {})


def _paths(columns: Columns, rows: Indices) -> list[Path]:
    return [columns.items[code].path for code in np.unique(columns.item[rows]).tolist()]


def _of_metric(
    columns: Columns,
    whole: Node,
    rounding: Rounding,
    name: str,
    found: Values,
    seed: int,
) -> Iterator[Json]:
    rows, values = found
    if not len(rows):
        return
    rate = _is_rate(name)
    drawn = Aggregated(
        whole,
        [columns.items[code].path for code in columns.item[rows].tolist()],
        values,
        columns.item[rows].astype(np.int64),
        columns.cluster[rows].astype(np.int64),
        bounds=(0.0, 1.0) if rate else _scale(columns, name, rows),
        seed=seed,
    )
    for node in whole.nodes():
        row = _row(node, drawn, rounding, 100 if rate else 1)
        if row is not None:
            yield {"metric": name, **row}


def _scale(columns: Columns, name: str, rows: Indices) -> tuple[float, float] | None:
    """Return the ends of the scale on which a judge rated; None for all that is no rating."""
    metric, _, judge = name.removesuffix(f":{LOWEST}").partition(":")
    if metric != "judge_score" or judge not in columns.judged:
        return None
    scored = columns.column(f"{metric}:{judge}").state[rows] == SCORED
    return columns.judged[judge].scale(rows[scored])


def _is_rate(name: str) -> bool:
    meant = definition(name)
    return meant is not None and meant.kind == "rate"


def _row(node: Node, drawn: Aggregated, rounding: Rounding, scale: int) -> Json | None:
    """Return a group's line.

    `printed` and its kin are texts, those of rates in per cent; all else is in the metric's unit.
    """
    interval = drawn.interval(node)
    if interval is None:
        return None
    means = {leaf: mean * scale for leaf, mean in drawn.means.items()}
    leaves = node.leaves()
    at_every_level = replace(rounding, at_every_level=True)

    def shown(found: Fraction | None) -> str | None:
        return None if found is None else rounding.text(found)

    exact = shown(figure(node, means, drawn.counts))
    rounded = shown(figure(node, means, drawn.counts, at_every_level))
    return {
        "path": [name or BESIDE for name in node.path],
        "rule": rule_name(node.rule) if node.parts else "items",
        "value": _number(figure(node, drawn.means, drawn.counts)),
        "low": _number(interval.low),
        "high": _number(interval.high),
        "items": sum(drawn.counts[leaf] for leaf in leaves),
        "groups": sum(drawn.counts[leaf] > 0 for leaf in leaves),
        "of": len(leaves),
        "printed": rounded if rounding.at_every_level else exact,
        "from_raw": exact,
        "from_rounded": rounded,
        "micro": shown(figure(all_alike(node), means, drawn.counts)),
        "macro": shown(_plain_mean(node, means, drawn.counts)),
    }


def _plain_mean(
    node: Node, means: Mapping[Path, Fraction], counts: Mapping[Path, int]
) -> Fraction | None:
    """The mean of a group's parts, each counting alike whatever the rule of the group is."""
    inner = [figure(part, means, counts) for part in node.parts]
    found = [one for one in inner if one is not None]
    return sum(found, Fraction(0)) / len(found) if found else None


def _number(value: float | Fraction | None) -> float | None:
    return None if value is None else round(float(value), 6)
