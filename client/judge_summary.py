"""What `summary.json` says of judges: their figures, what they took, and how far they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from voxmeter.client.columns import ABSENT, LEFT_OUT, SCORED, UNSCORED, Columns
from voxmeter.client.judge_columns import BILL, Floats, Tally
from voxmeter.scoring.agreement import (
    Score,
    mean_abs_diff,
    pairs_of,
    preference_agreement,
    ranks,
    system_means,
)
from voxmeter.scoring.definitions import JUDGES
from voxmeter.scoring.stats import Indices, Interval, on_scale

Json = dict[str, Any]
Mean = Callable[[Columns, str, Indices, Floats, int], Json]

_LIMITS = ("value", "low", "high")


def judge_figure(columns: Columns, rows: Indices, metric: str, mean: Mean, seed: int) -> Json:
    """Return one figure of a judge over a selection of trials.

    A failure of the endpoint has no rating; `judge_accuracy` counts it as wrong, and beside the
    mean rating stands what it would be if each failure had got the lowest one. What the judge
    failed at leaves n and is counted.

    Args:
        columns: The run.
        rows: Shape (n,), the trials' positions.
        metric: With the judge's name.
        mean: Makes an entry of `summary.json` from trials and their values.
        seed: Of the intervals.
    """
    name, _, judge = metric.partition(":")
    column = columns.column(metric)
    state = column.state[rows]
    failed = rows[state == UNSCORED]
    beside: Json = {
        "unscored": len(failed),
        "left_out": int(np.count_nonzero(state == LEFT_OUT)),
    }
    kept = rows[state == SCORED]
    if name == "judge_accuracy":
        kept = rows[(state == SCORED) | (state == UNSCORED)]
        values = np.where(column.state[kept] == SCORED, column.value[kept], 0.0)
        return mean(columns, metric, kept, values, seed) | beside
    entry = mean(columns, metric, kept, column.value[kept], seed) | beside
    if name == "position_gap":
        sizes = np.abs(column.value[kept])
        return entry | {
            "mean_abs": _rounded(float(np.mean(sizes))) if len(sizes) else None,
            "moved": _rounded(float(np.mean(sizes > 0))) if len(sizes) else None,
        }
    scale = columns.judged[judge].scale(kept) if judge in columns.judged else None
    if scale is None:  # a mean of stars and points is no figure
        return entry | dict.fromkeys(_LIMITS) | {"scale": None, "failures_lowest": None}
    both = np.concatenate([kept, failed])
    lowest = np.concatenate([column.value[kept], np.full(len(failed), scale[0])])
    worst = mean(columns, metric, both, lowest, seed)
    worst |= _on_scale(worst, lowest, columns.cluster[both], scale)
    entry |= _on_scale(entry, column.value[kept], columns.cluster[kept], scale)
    return entry | {
        "scale": list(scale),
        "failures_lowest": {key: worst[key] for key in (*_LIMITS, "n")},
    }


def _on_scale(entry: Json, values: Floats, clusters: Indices, scale: tuple[float, float]) -> Json:
    """Return the limits of a mean rating, none of them off the scale or falsely certain."""
    found = Interval(*(entry[key] for key in _LIMITS))
    if found.value is None:
        return {}
    kept = on_scale(found, values, clusters.astype(np.int64), scale)
    return {"low": _maybe(kept.low), "high": _maybe(kept.high)}


def _maybe(value: float | None) -> float | None:
    return None if value is None else _rounded(value)


def judges_block(columns: Columns, seed: int) -> Json | None:
    """Return what stands under `judges`: each judge, and each two of them; None without any."""
    if not columns.judged:
        return None
    names = sorted(columns.judged)
    return {
        "judges": [_judge(columns, name, columns.judged[name]) for name in names],
        "agreement": [
            entry
            for one, other in combinations(names, 2)
            for entry in _agreement(columns, one, other, seed)
        ],
    }


def _judge(columns: Columns, name: str, tally: Tally) -> Json:
    states = np.stack([_column(columns, metric, name).state for metric in JUDGES])
    trials = np.any(states != ABSENT, axis=0)
    scored = np.any(states == SCORED, axis=0)
    left_out = np.any(states == LEFT_OUT, axis=0) & ~scored
    took = {key: _total(tally.bill[key]) for key in BILL}
    for key in ("asks", "second_asks", "tries", "cached", "tokens_in", "tokens_out"):
        value = took[key]
        took[key] = None if value is None else int(value)
    return {
        "name": name,
        "models": sorted(tally.models),
        "served": sorted(tally.served),
        "prompts": {rubric: sorted(hashes) for rubric, hashes in sorted(tally.prompts.items())},
        "trials": int(np.count_nonzero(trials)),
        "scored": int(np.count_nonzero(scored)),
        "endpoint_failed": int(np.count_nonzero(trials & ~scored & ~left_out)),
        "judge_failed": int(np.count_nonzero(left_out & tally.put)),
        "reasons": _reasons(columns, name, left_out & tally.put),
        "not_asked": int(np.count_nonzero(left_out & ~tally.put)),
        "not_asked_reasons": _reasons(columns, name, left_out & ~tally.put),
        **took,
        "currency": tally.currencies.copy().pop() if len(tally.currencies) == 1 else None,
    }


def _column(columns: Columns, metric: str, judge: str) -> Any:  # noqa: ANN401 - a Column
    return columns.column(f"{metric}:{judge}")


def _total(values: Floats) -> float | None:
    return None if np.isnan(values).any() else _rounded(float(values.sum()))


def _reasons(columns: Columns, judge: str, left_out: Any) -> dict[str, int]:  # noqa: ANN401 - flags
    counted: Counter[str] = Counter()
    seen = np.zeros(len(left_out), np.bool_)
    for metric in JUDGES:
        column = _column(columns, metric, judge)
        mine = left_out & (column.reason >= 0) & ~seen
        seen |= mine
        codes, numbers = np.unique(column.reason[mine], return_counts=True)
        for code, number in zip(codes.tolist(), numbers.tolist(), strict=True):
            counted[columns.reasons.texts[code]] += number
    return dict(counted.most_common())


def _agreement(columns: Columns, one: str, other: str, seed: int) -> Iterator[Json]:
    """Yield how far two judges agree on each suite that both have judged."""
    cells = {suite: [] for _, suite, _ in columns.cells}  # type: dict[str, list[int]]
    for code, (_, suite, _) in enumerate(columns.cells):
        cells[suite].append(code)
    for suite, codes in cells.items():
        inside = np.isin(columns.cell, codes) & ~columns.warmup
        for metric in ("judge_score", "judge_accuracy"):
            first, second = _column(columns, metric, one), _column(columns, metric, other)
            both = inside & (first.state == SCORED) & (second.state == SCORED)
            rows = np.flatnonzero(both)
            if len(rows):
                values = first.value[rows], second.value[rows]
                same = metric == "judge_accuracy" or _same_scale(columns, one, other, rows)
                yield _pair(columns, rows, values, seed) | {
                    "judges": [one, other],
                    "suite": suite,
                    "metric": metric,
                    "mean_abs_diff": _rounded(mean_abs_diff(*values)) if same else None,
                }
                break


def _same_scale(columns: Columns, one: str, other: str, rows: Indices) -> bool:
    first, second = columns.judged.get(one), columns.judged.get(other)
    if first is None or second is None:
        return False
    scale = first.scale(rows)
    return scale is not None and scale == second.scale(rows)


def _pair(columns: Columns, rows: Indices, values: tuple[Floats, Floats], seed: int) -> Json:
    scores = [
        Score(
            item=f"{columns.item[row]} {columns.cells[columns.cell[row]][2]}",
            cluster=str(columns.cluster[row]),
            system=columns.cells[columns.cell[row]][0],
            one=first,
            other=second,
        )
        for row, first, second in zip(
            rows.tolist(), values[0].tolist(), values[1].tolist(), strict=True
        )
    ]
    found = ranks(*values)
    pairs = pairs_of(scores)
    preferred = preference_agreement(pairs, seed)
    means = np.array(list(system_means(scores).values()))
    systems = ranks(means[:, 0], means[:, 1])
    return {
        "n": len(rows),
        "spearman": _rounded(found.spearman),
        "kendall_tau_b": _rounded(found.kendall_tau_b),
        "preference": {
            **{
                key: None if preferred is None else _rounded(limit)
                for key, limit in zip(_LIMITS, preferred or (None, None, None), strict=True)
            },
            "n": len(pairs),
        },
        "endpoints": {
            "n": len(means),
            "spearman": _rounded(systems.spearman),
            "kendall_tau_b": _rounded(systems.kendall_tau_b),
        },
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 6)
