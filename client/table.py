"""The table at the end of a run: accuracy and latency of every cell, warnings, gates."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from voxmeter.client import figures, report_judges
from voxmeter.client.terminal import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Summary = Mapping[str, Any]

_WIDEST = 1000  # for a file; a terminal has its own width
_NAMES = ("endpoint", "suite")
_ANSWERS = ("ok of\nplanned", "accuracy\n[95 % interval]", "clear\nanswer")
_TIMES = (
    ("first audible\np50", "first_audible_ms", "p50"),
    ("\np90", "first_audible_ms", "p90"),
    ("first packet\np50", "first_packet_ms", "p50"),
    ("reply\np50", "reply_ms", "p50"),
)


def show(summary: Summary, stream: IO[str] | None = None) -> None:
    """Print a run's figures, what they mean, warnings with cures, and the gates.

    A terminal that is too narrow for the table gets two: answers, and then times.

    Args:
        summary: Content of `summary.json`.
        stream: Where to; standard output by default.
    """
    from rich.console import Console

    console = Console(file=stream or sys.stdout, highlight=False, markup=False, emoji=False)
    for table in _tables(summary, console):
        console.print(table)
    for line in [*_definitions(summary), *_warnings(summary), *_gates(summary)]:
        console.print(line, soft_wrap=True)


def cell_name(cell: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> str:
    """Return suite and, where the run has several, condition."""
    if len({one["condition"] for one in cells}) > 1:
        return f"{cell['suite']} ({cell['condition']})"
    return str(cell["suite"])


def _tables(summary: Summary, console: Console) -> Iterator[Table]:
    """Return one table, or two where one is wider than the terminal."""
    from rich.measure import Measurement

    times = tuple(name for name, _, _ in _TIMES)
    rows = [tuple(_row(cell, summary["cells"])) for cell in summary["cells"]]
    rows, answered = _with_judges(summary, rows)
    whole = _table((*answered, *times), rows)
    options = console.options.update(max_width=_WIDEST)
    width = Measurement.get(console, options, whole).maximum
    if not console.is_terminal:
        console.width = max(console.width, width)
    if width <= console.width:
        yield whole
        return
    names, answers = len(_NAMES), len(_NAMES) + len(answered)
    yield _table(answered, [row[:answers] for row in rows])
    yield _table(times, [(*row[:names], *row[answers:]) for row in rows])


def _with_judges(
    summary: Summary, rows: Sequence[tuple[str, ...]]
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the rows and the names of their answers, with a column for judges if there are any."""
    judged = [report_judges.summary_of(cell["metrics"]) for cell in summary["cells"]]
    if not any(judged):
        return list(rows), _ANSWERS
    place = len(_NAMES) + len(_ANSWERS)
    wider = [
        (*row[:place], found or "-", *row[place:]) for row, found in zip(rows, judged, strict=True)
    ]
    return wider, (*_ANSWERS, "judged\n[95 % interval]")


def _table(figure_names: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=None, pad_edge=False)
    for name in _NAMES:
        table.add_column(name, overflow="fold", min_width=len(name))
    for name in figure_names:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(printable(text, 80) for text in row))
    return table


def _row(cell: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    metrics, control = cell["metrics"], cell.get("control")
    yield cell["endpoint"]
    yield cell_name(cell, cells)
    yield f"{cell['status'].get('ok', 0)}/{cell['planned']}"
    if control is not None:  # it answers every question with the same words
        yield "control"
        yield "-"
    else:
        yield figures.rate(metrics["accuracy"])
        yield figures.rate(metrics["parse_rate"]).partition(" [")[0]
    for _, name, at in _TIMES:
        told = (control or {}).get("expected", {}).get(name) if at == "p50" else None
        found = figures.brief(metrics[name], at)
        yield found if told is None else f"{found} (told {told:.0f})"


def _definitions(summary: Summary) -> Iterator[str]:
    cells = summary["cells"]
    if any(cell["reply_channel"] == "text" for cell in cells):
        yield "accuracy of text-only endpoints comes from their text"
    kinds = sorted({str(cell["latency_kind"]) for cell in cells if cell["latency_kind"]})
    yield (
        "accuracy: right answers in the transcript of what was spoken, of all questions with one "
        "right answer; failures and unclear replies count as wrong"
    )
    yield (
        f"times in ms ({', '.join(kinds) or 'none'}), from the end of the user's speech; "
        "first audible: what a listener hears; first packet: arrival"
    )


def _warnings(summary: Summary) -> Iterator[str]:
    if summary["warnings"]:
        yield ""
    for warning in summary["warnings"]:
        yield printable(f"warning: {warning['text']}; {warning['cure']}")


def _gates(summary: Summary) -> Iterator[str]:
    gates = summary.get("gates") or []
    if gates:
        yield ""
    for gate in gates:
        where = f" ({gate['cell']})" if gate["cell"] else ""
        why = f": {gate['reason']}" if gate["reason"] else ""
        yield printable(f"gate {gate['verdict']}: {gate['gate']}{where}{why}")
