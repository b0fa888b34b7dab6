"""`report.csv`: one row a trial, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from voxmeter.client.escape import csv_cell
from voxmeter.client.trial_lines import IDENTITY, TrialLine
from voxmeter.scoring.definitions import LATENCY

_TEXTS = (
    "question",
    "reference",
    "reply",
    "reply_text",
    "answer",
    "rule",
    "right",
    "unscored",
    "judged",
)
HEADS = (
    "run",
    *IDENTITY,
    "status",
    "fault",
    "started_at",
    "clip_sha256",
    "latency_kind",
    "latency_valid",
    *LATENCY,
    *_TEXTS,
)


def report(run: str, lines: Iterable[TrialLine], *, head: bool = True) -> Iterator[str]:
    """Yield the lines of the table, each with its line end.

    Numbers stand as they are; what did not happen is an empty cell; every text that others wrote
    is cleaned, and a cell that a spreadsheet would take for a formula begins with an apostrophe.

    Args:
        run: Name of the run.
        lines: Its trials.
        head: Whether the first line names the columns.
    """
    if head:
        yield _line(list(HEADS))
    for line in lines:
        yield _line(_cells(run, line))


def _cells(run: str, line: TrialLine) -> list[object]:
    trial = line.trial
    clip, audit = trial.get("clip") or {}, trial.get("audit") or {}
    texts = (
        line.question,
        line.reference,
        line.reply,
        trial.get("reply_text"),
        line.answer,
        line.rule,
        None if line.right is None else int(line.right),
        line.unscored,
        ", ".join(f"{judge} {verdict}" for judge, verdict in line.judged.items()),
    )
    return [
        _cell(value)
        for value in (
            run,
            *(trial.get(name) for name in IDENTITY),
            trial["status"],
            trial.get("fault"),
            trial.get("started_at"),
            clip.get("sha256"),
            trial.get("latency_kind"),
            audit.get("latency_valid"),
            *(line.latency[name] for name in LATENCY),
            *texts,
        )
    ]


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, int | float):
        return "" if value is None else value
    return csv_cell(value if isinstance(value, str) else str(value))


def _line(cells: list[object]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow(cells)
    return written.getvalue()
