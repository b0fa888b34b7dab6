"""The course of a run in `summary.json`: drift, cold against warm turns, outliers by their key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from voxmeter.client.columns import SCORED, Columns
from voxmeter.scoring.course import drift, outliers
from voxmeter.scoring.stats import Indices

Json = dict[str, Any]

METRIC = "first_audible_ms"

_MOST_NAMED = 5
_LEAST_MS = 50.0  # nothing nearer to the rest is worth a listener's time
_DRIFT_P, _DRIFT_SHARE, _DRIFT_MS = 0.01, 0.1, 20.0
_COLD_TIMES, _COLD_MS = 1.5, 100.0


def course(columns: Columns, rows: Indices, cold: Indices) -> Json:
    """Return `drift`, `cold_against_warm` and `outliers` of a cell's `first_audible_ms`.

    Args:
        columns: The run; its trials stand in the order in which they ended.
        rows: Positions of the cell's trials without warm-up turns.
        cold: Positions of its warm-up turns.
    """
    kept, first = _timed(columns, rows), _timed(columns, cold)
    values = columns.column(METRIC).value[kept]
    found = drift(values)
    apart = outliers(values, _LEAST_MS)
    named = apart[:_MOST_NAMED].tolist()
    keys = _keys(columns, kept[apart[:_MOST_NAMED]])
    warm = float(np.median(values)) if len(values) else None
    cold_ms = float(np.median(columns.column(METRIC).value[first])) if len(first) else None
    return {
        "drift": None
        if found is None
        else {"first": round(found.first, 3), "last": round(found.last, 3), "p": found.p},
        "cold_against_warm": None
        if warm is None or cold_ms is None
        else {"cold": round(cold_ms, 3), "warm": round(warm, 3), "n": len(first)},
        "outliers": {
            "n": len(apart),
            "largest": [
                {"key": key, METRIC: round(float(values[index]), 3)}
                for key, index in zip(keys, named, strict=True)
            ],
        },
    }


def advice(cell: Mapping[str, Any], place: str) -> Iterator[tuple[str, str, str]]:
    """Yield code, text and cure of what the course of a cell calls for.

    Args:
        cell: Of `summary.json`.
        place: The cell in words.
    """
    found = cell["course"]["drift"]
    if found and found["p"] < _DRIFT_P:
        moved = found["last"] - found["first"]
        if abs(moved) > max(_DRIFT_MS, _DRIFT_SHARE * abs(found["first"])):
            yield (
                "drift",
                f"{place}: {METRIC} moved by {moved:+.0f} ms from the first third of the run "
                f"({found['first']:.0f} ms) to the last ({found['last']:.0f} ms)",
                "run it again at another hour; where items stand in an order, they may be the "
                "reason",
            )
    found = cell["course"]["cold_against_warm"]
    if found and found["cold"] > max(_COLD_TIMES * found["warm"], found["warm"] + _COLD_MS):
        yield (
            "slow-first-turn",
            f"{place}: the first turn took {found['cold']:.0f} ms to be heard, later ones "
            f"{found['warm']:.0f} ms; it is in no other figure",
            "what a user meets first is the slow one: warm the server before it is offered",
        )
    found = cell["course"]["outliers"]
    if found["n"]:
        named = ", ".join(f"{one['key']} ({one[METRIC]:.0f} ms)" for one in found["largest"][:3])
        more = f" and {found['n'] - 3} more" if found["n"] > 3 else ""
        yield (
            "outliers",
            f"{place}: far slower than the rest: {named}{more}; they count as they are",
            "listen to one (audio/): it is the endpoint's unless its log shows a stall here",
        )


def _timed(columns: Columns, rows: Indices) -> Indices:
    kept = rows[columns.latency_valid[rows] & columns.with_reply[rows]]
    timed: Indices = kept[columns.column(METRIC).state[kept] == SCORED]
    return timed


def _keys(columns: Columns, rows: Indices) -> list[str]:
    wanted = dict.fromkeys(rows.tolist(), "")
    for key, index in columns.keys.items():
        if index in wanted:
            wanted[index] = key
    return list(wanted.values())
