"""Recordings of people beside synthetic speech, in `report.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voxmeter.client import figures
from voxmeter.client.escape import markdown


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
    yield ""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for cell, row in rows:
        name = row["metric"]
        shown = [
            *(markdown(str(cell[key])) for key in ("endpoint", "suite", "condition")),
            markdown(name),
            *(f"{figures.any_figure(name, row[key])} (n {row[key]['n']})"
              for key in ("real", "synthetic")),
            _difference(row["paired"]),
            str(row["paired"]["pairs"]),
        ]  # fmt: skip
        yield f"| {' | '.join(shown)} |"


def _difference(paired: Mapping[str, Any]) -> str:
    if paired["value"] is None:
        return "no words of both"
    if paired["low"] is None:
        return f"{paired['value']:+.3g}"
    return f"{paired['value']:+.3g} [{paired['low']:+.3g} to {paired['high']:+.3g}]"
