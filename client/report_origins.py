"""Recordings of people beside synthetic speech, in `report.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voxmeter.client import figures
from voxmeter.client.escape import markdown
from voxmeter.client.markdown_table import table


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the section; nothing where no suite has both.

    Args:
        summary: Content of `summary.json`.
    """
    rows = [
        (cell, row)
        for cell in summary["cells"]
        if cell.get("control") is None
        for row in cell.get("origins") or ()
    ]
    if not rows:
        return
    yield ""
    yield "## People and synthesisers"
    yield ""
    yield "Paired: the same words spoken by a person and by a synthesiser, the one less the other. "
    yield "The means beside it are over all recordings of either, and of other words."
    heads = ["endpoint", "suite", "condition", "metric", "people", "synthesisers"]
    heads += ["paired difference", "pairs"]
    yield from table(heads, (_cells(cell, row) for cell, row in rows))


def _cells(cell: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    name = row["metric"]
    sides = [row[key] for key in ("real", "synthetic")]
    return [
        *(markdown(str(cell[key])) for key in ("endpoint", "suite", "condition")),
        markdown(name),
        *(f"{figures.any_figure(name, side)} (n {side['n']})" for side in sides),
        _difference(row["paired"]),
        str(row["paired"]["pairs"]),
    ]


def _difference(paired: Mapping[str, Any]) -> str:
    if paired["value"] is None:
        return "no words of both"
    if paired["low"] is None:
        return f"{paired['value']:+.3g}"
    return f"{paired['value']:+.3g} [{paired['low']:+.3g} to {paired['high']:+.3g}]"
