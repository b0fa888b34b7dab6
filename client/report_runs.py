"""Several runs side by side in `report.md`: a row a figure, a column a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from voxmeter.client import figures
from voxmeter.client.escape import markdown
from voxmeter.client.markdown_table import table

Summary = Mapping[str, Any]
Cell = Mapping[str, Any]
Names = tuple[str, str, str]

_TIMES = (("first_audible_ms", "p50"), ("first_audible_ms", "p90"), ("first_text_ms", "p50"))


def lines(summaries: Sequence[Summary]) -> Iterator[str]:
    """Yield one table of all runs; figures of other kinds of latency say so.

    Args:
        summaries: Contents of `summary.json`, in the order of the columns.
    """
    runs = [_by_name(one) for one in summaries]
    heads = ["endpoint", "suite", "condition", "figure"]
    heads += [markdown(str(one["run"])) for one in summaries]
    rows = [
        [*map(markdown, names), figure, *shown]
        for names in dict.fromkeys(name for run in runs for name in run)
        for figure, shown in _figures([run.get(names) for run in runs])
    ]
    yield from ("", "## Runs side by side")
    yield from table(heads, rows)


def _by_name(summary: Summary) -> dict[Names, Cell]:
    return {
        (str(cell["endpoint"]), str(cell["suite"]), str(cell["condition"])): cell
        for cell in summary["cells"]
    }


def _figures(cells: Sequence[Cell | None]) -> Iterator[tuple[str, list[str]]]:
    yield "ok / planned", [_done(cell) for cell in cells]
    if any(cell is not None and cell.get("control") is None for cell in cells):
        yield "accuracy", [_accuracy(cell) for cell in cells]
    for name, at in _TIMES:
        if any(cell is not None and cell["metrics"][name]["n"] for cell in cells):
            called = f"{name.removesuffix('_ms').replace('_', ' ')} {at}, ms"
            yield called, [_time(cell, name, at) for cell in cells]
    kinds = [str(cell["latency_kind"] or "-") if cell else "-" for cell in cells]
    if len(set(kinds) - {"-"}) > 1:
        yield "latency kind (not to be compared)", [markdown(kind) for kind in kinds]


def _done(cell: Cell | None) -> str:
    return "-" if cell is None else f"{cell['status'].get('ok', 0)} / {cell['planned']}"


def _accuracy(cell: Cell | None) -> str:
    if cell is None or cell.get("control") is not None:
        return "-"
    return figures.rate(cell["metrics"]["accuracy"])


def _time(cell: Cell | None, name: str, at: str) -> str:
    return "-" if cell is None else figures.time(cell["metrics"][name], at)
