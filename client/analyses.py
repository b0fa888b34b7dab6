"""The tables of a benchmark's own analysis, drawn from a finished run: `analyses` in a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from voxmeter.client.columns import SCORED, UNSCORED
from voxmeter.scoring.definitions import LATENCY
from voxmeter.scoring.judging import VERDICT
from voxmeter.scoring.stats import Indices, Interval
from voxmeter.suites import catalog
from voxmeter.suites.analysis import Answers, Cell, Measured, Table

if TYPE_CHECKING:
    from voxmeter.client.columns import Columns, Floats, Row

Counted = Callable[["Columns", Indices], tuple[Indices, "Floats"]]
"""Returns the trials of some that count for accuracy, and what each earned."""

_DIGITS = 6


def analyses_of(columns: Columns, run: Row, counted: Counted, seed: int) -> list[dict[str, Any]]:
    """Return what the benchmarks of a run tell of each endpoint beside their figures.

    Args:
        columns: The run.
        run: Content of `run.json`: its suites and their options.
        counted: Says which trials count.
        seed: Seed of the intervals.

    Returns:
        One entry an endpoint and suite: `suite`, `kind`, `endpoint` and `tables`, each with
        `name`, `title`, `heads`, `rows`, `note` and `unit`. A figure with an interval is an object
        with `value`, `low` and `high`.
    """
    found: list[dict[str, Any]] = []
    for table in (run.get("config") or {}).get("suite") or []:
        analysis = catalog.analysis(str(table.get("kind")))
        if analysis is None:
            continue
        suite = str(table.get("name") or table.get("kind"))
        options = table.get("options") or {}
        for endpoint, answers in _by_endpoint(columns, suite, counted).items():
            tables = [_table(one) for one in analysis(answers, options, seed)]
            if tables:
                found.append(
                    {
                        "suite": suite,
                        "kind": table.get("kind"),
                        "endpoint": endpoint,
                        "tables": tables,
                    }
                )
    return found


def _by_endpoint(
    columns: Columns, suite: str, counted: Counted
) -> Mapping[str, dict[str, Answers]]:
    found: dict[str, dict[str, Answers]] = {}
    for code, (endpoint, name, condition) in enumerate(columns.cells):
        if name == suite:
            rows = np.flatnonzero((columns.cell == code) & ~columns.warmup)
            answers = _answers(columns, *counted(columns, rows), _measured(columns, rows))
            found.setdefault(endpoint, {})[condition] = answers
    return found


def _answers(
    columns: Columns, rows: Indices, right: Floats, measured: Mapping[str, Measured]
) -> Answers:
    """Return the mean of each item's counted trials."""
    found = _means(columns, rows, right)
    _, first = np.unique(columns.item[rows], return_index=True)
    chance = columns.chance[rows][first]
    return Answers(found.items, found.clusters, found.groups, found.values, chance, measured)


def _measured(columns: Columns, rows: Indices) -> dict[str, Measured]:
    """Return what a cell's trials have under each metric but accuracy and time."""
    found: dict[str, Measured] = {}
    for name, column in columns.scores.items():
        if name == "accuracy" or name in LATENCY:
            continue
        state = column.state[rows]
        kept = rows[state == SCORED]
        values = column.value[kept]
        if name.startswith(f"{VERDICT}:"):
            failed = rows[state == UNSCORED]
            kept = np.concatenate([kept, failed])
            values = np.concatenate([values, np.zeros(len(failed))])
        if len(kept):
            found[name] = _means(columns, kept, values)
    return found


def _means(columns: Columns, rows: Indices, values: Floats) -> Measured:
    items, first, item = np.unique(columns.item[rows], return_index=True, return_inverse=True)
    size = len(items)
    counts = np.bincount(item, minlength=size)
    return Measured(
        items.astype(np.int64),
        columns.cluster[rows][first].astype(np.int64),
        [columns.items[code].path for code in items.tolist()],
        np.bincount(item, weights=values, minlength=size) / np.maximum(counts, 1),
    )


def _table(table: Table) -> dict[str, Any]:
    found = asdict(table)
    found["heads"] = list(table.heads)
    found["rows"] = [[_figure(cell) for cell in row] for row in table.rows]
    return found


def _figure(cell: Cell) -> object:
    match cell:
        case Interval(value, low, high):
            return {"value": _number(value), "low": _number(low), "high": _number(high)}
        case float():
            return _number(cell)
        case _:
            return cell


def _number(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else round(value, _DIGITS)
