"""The tables of a benchmark's own analysis, drawn from a finished run: `analyses` in a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from voxmeter.scoring.stats import Indices, Interval
from voxmeter.suites import catalog
from voxmeter.suites.analysis import Answers, Cell, Table

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
            found.setdefault(endpoint, {})[condition] = _answers(columns, *counted(columns, rows))
    return found


def _answers(columns: Columns, rows: Indices, right: Floats) -> Answers:
    """Return the mean of each item's counted trials."""
    items, first, item = np.unique(columns.item[rows], return_index=True, return_inverse=True)
    size = len(items)
    counts = np.bincount(item, minlength=size)
    return Answers(
        items.astype(np.int64),
        columns.cluster[rows][first].astype(np.int64),
        [columns.items[code].path for code in items.tolist()],
        np.bincount(item, weights=right, minlength=size) / np.maximum(counts, 1),
        columns.chance[rows][first],
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
