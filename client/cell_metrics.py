"""The figures of a selection of trials: answers, latencies and what else each trial can have.

Rules, the same for every suite and endpoint: repeated trials of an item are averaged first and
whole clusters are resampled; trials that failed through our own fault leave n and are counted; the
endpoint's failures and replies without a clear answer count as wrong; latency comes from trials
with a reply whose latency our own lateness did not spoil, and the others are counted as missing or
invalid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from voxmeter.client.columns import ABSENT, LEFT_OUT, SCORED, UNSCORED, Columns, Floats
from voxmeter.client.judge_summary import judge_figure
from voxmeter.scoring.definitions import LATENCY, SPEECH, definition, is_judged
from voxmeter.scoring.stats import Indices, Interval, mean_interval, percentile

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

Json = dict[str, Any]


def metrics_of(columns: Columns, rows: Indices, seed: int = 0, *, every: bool = True) -> Json:
    """Return all figures of a selection of trials.

    Args:
        columns: The run.
        rows: Shape (n,), the trials' positions; no warm-up turns.
        seed: Seed of the intervals.
        every: Whether metrics without a single value are listed too.
    """
    found = _answers(columns, rows, seed)
    for name in dict.fromkeys(["speech_text_disagreement", *SPEECH, *sorted(columns.scores)]):
        if name in LATENCY or name in found:
            continue
        if not is_judged(name):
            found[name] = _scored(columns, rows, name, seed)
        elif np.any(columns.column(name).state[rows] != ABSENT):
            found[name] = judge_figure(columns, rows, name, _mean, seed)
    for name in LATENCY:
        found[name] = latency_of(columns, rows, name, seed)
    return found if every else {name: entry for name, entry in found.items() if entry["n"]}


def _answers(columns: Columns, rows: Indices, seed: int) -> Json:
    return {
        name: _mean(columns, name, chosen, values, seed) | more
        for name, (chosen, values, more) in answer_values(columns, rows).items()
    }


def answer_values(
    columns: Columns, rows: Indices
) -> dict[str, tuple[Indices, Floats, dict[str, int]]]:
    """Headline accuracy and its kin; all but `text_accuracy` and the parsed one share their n."""
    state = columns.column("accuracy").state[rows]
    not_scored = (state == ABSENT) & columns.with_reply[rows]
    unfit = ~columns.closed[rows] | columns.ours[rows] | (state == LEFT_OUT) | not_scored
    kept = rows[~unfit]
    parsed = state[~unfit] == SCORED
    right = _values_or(columns, "accuracy", kept, 0.0)
    beside = {"unscored": int(np.count_nonzero(~parsed)), "left_out": int(np.count_nonzero(unfit))}
    text = columns.column("text_accuracy").state[rows]
    wrote = rows[(text == SCORED) | (text == UNSCORED)]
    blamed = rows[~columns.ours[rows]]
    return {
        "accuracy": (kept, right, beside),
        "accuracy_parsed": (kept[parsed], right[parsed], {}),
        "parse_rate": (kept, parsed.astype(np.float64), {}),
        "accuracy_chance_imputed": (
            kept,
            _values_or(columns, "accuracy", kept, columns.chance[kept]),
            beside,
        ),
        "accuracy_strict": (kept, _values_or(columns, "accuracy_strict", kept, 0.0), {}),
        "text_accuracy": (
            wrote,
            _values_or(columns, "text_accuracy", wrote, 0.0),
            {"unscored": int(np.count_nonzero(text == UNSCORED))},
        ),
        "reply_rate": (blamed, columns.with_reply[blamed].astype(np.float64), {}),
    }


def _values_or(columns: Columns, name: str, rows: Indices, otherwise: Floats | float) -> Floats:
    column = columns.column(name)
    scored = column.state[rows] == SCORED
    return np.asarray(np.where(scored, column.value[rows], otherwise), np.float64)


def _scored(columns: Columns, rows: Indices, name: str, seed: int) -> Json:
    """A metric with one row a trial, over the trials that have a value."""
    column = columns.column(name)
    state = column.state[rows]
    kept = rows[state == SCORED]
    unscored = int(np.count_nonzero((state == UNSCORED) | (state == LEFT_OUT)))
    return _mean(columns, name, kept, column.value[kept], seed) | {"unscored": unscored}


def _mean(columns: Columns, name: str, rows: Indices, values: Floats, seed: int) -> Json:
    meant = definition(name)
    interval = mean_interval(
        values,
        columns.item[rows].astype(np.int64),
        columns.cluster[rows].astype(np.int64),
        rate=meant is not None and meant.kind == "rate",
        seed=seed,
    )
    limits = _limits(interval or _NONE)
    if meant is not None and meant.kind == "mean" and limits["low"] is not None:
        limits["low"] = max(0.0, limits["low"])  # words and counts; the t of few values knows no 0
    return {
        **limits,
        "n": len(rows),
        "items": len(np.unique(columns.item[rows])),
        "unit": meant.unit if meant else "score",
        "better": meant.better if meant else None,
    }


def latency_of(columns: Columns, rows: Indices, name: str, seed: int) -> Json:
    """Mean and percentiles over trials with a reply and an unspoiled latency."""
    column, meant = columns.column(name), LATENCY[name]
    expected = rows[~columns.ours[rows]]
    valid = columns.latency_valid[expected]
    timed = expected[valid & columns.with_reply[expected]]
    kept = timed[column.state[timed] == SCORED]
    values = column.value[kept]
    clusters = columns.cluster[kept].astype(np.int64)
    items = columns.item[kept].astype(np.int64)
    mean = mean_interval(values, items, clusters, seed=seed)
    entry: Json = {"mean": _limits(mean or _NONE)}
    for label, fraction in PERCENTILES.items():
        found = percentile(values, fraction, clusters)
        entry[label] = None if found is None else _limits(found)
    invalid = int(np.count_nonzero(~valid))
    return {
        **entry,
        "n": len(kept),
        "missing": int(len(expected) - invalid - len(kept)),
        "invalid": invalid,
        "unit": meant.unit,
        "better": meant.better,
    }


_NONE = (None, None, None)


def _limits(interval: Interval | tuple[None, None, None]) -> Json:
    return {name: _rounded(one) for name, one in zip(_LIMITS, interval, strict=True)}


_LIMITS = ("value", "low", "high")


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 6)
