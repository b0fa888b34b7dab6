"""Endpoints ranked beside each other, of one run or of several: a table for a README or a chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from voxmeter.client import figures, report_judges
from voxmeter.client.escape import markdown
from voxmeter.client.markdown_table import table

Summary = Mapping[str, Any]
Cell = Mapping[str, Any]

_TIMES = (("first_audible_ms", "p50"), ("first_audible_ms", "p90"), ("first_text_ms", "p50"))


def lines(summaries: Sequence[Summary]) -> Iterator[str]:
    """Yield one table for each suite and condition that two endpoints or more were asked.

    The best accuracy stands first; equal ones share a rank; what has none stands last. A control
    is not ranked.

    Args:
        summaries: Contents of `summary.json`.
    """
    boards: dict[tuple[str, str], list[tuple[str, Cell]]] = {}
    for summary in summaries:
        for cell in summary["cells"]:
            if cell.get("control") is None:
                board = boards.setdefault((cell["suite"], cell["condition"]), [])
                board.append((str(summary["run"]), cell))
    several = len(summaries) > 1
    for (suite, condition), board in boards.items():
        if len(board) > 1:
            yield from ("", f"## Leaderboard: {markdown(suite)}, {markdown(condition)}")
            yield from _table(sorted(board, key=_order), several=several)
            yield ""
            yield "Ranked by accuracy alone; the same accuracy is the same rank. Where intervals "
            yield "overlap, the order may be chance: `voxmeter compare` tells."


def _order(entry: tuple[str, Cell]) -> tuple[bool, float]:
    value = _accuracy(entry[1])
    return value is None, -(value or 0.0)


def _accuracy(cell: Cell) -> float | None:
    value = (cell["metrics"].get("accuracy") or {}).get("value")
    return None if value is None else float(value)


def _table(board: Sequence[tuple[str, Cell]], *, several: bool) -> Iterator[str]:
    times = [
        one
        for one in _TIMES
        if any((cell["metrics"].get(one[0]) or {"n": 0})["n"] for _, cell in board)
    ]
    judged = any(report_judges.summary_of(cell["metrics"]) for _, cell in board)
    heads = ["rank", *(["run"] if several else []), "endpoint", "accuracy"]
    heads += ["judged"] if judged else []
    heads += [f"{name.removesuffix('_ms').replace('_', ' ')} {at}, ms" for name, at in times]
    heads += ["latency kind", "ok / planned"]
    yield from table(heads, _rows(board, times, several=several, judged=judged))


def _rows(
    board: Sequence[tuple[str, Cell]],
    times: Sequence[tuple[str, str]],
    *,
    several: bool,
    judged: bool,
) -> Iterator[list[str]]:
    rank, before = 0, None
    for place, (run, cell) in enumerate(board, start=1):
        value = _accuracy(cell)
        rank = rank if place > 1 and value == before else place
        before = value
        metrics = cell["metrics"]
        row = ["-" if value is None else str(rank), *([markdown(run)] if several else [])]
        row += [markdown(cell["endpoint"]), figures.rate(metrics["accuracy"])]
        row += [markdown(report_judges.summary_of(metrics)) or "-"] if judged else []
        row += [figures.time(metrics[name], at) for name, at in times]
        row += [markdown(str(cell["latency_kind"] or "-"))]
        yield [*row, f"{cell['status'].get('ok', 0)} / {cell['planned']}"]
