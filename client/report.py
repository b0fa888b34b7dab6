"""Reports of a run: the terminal's table, `report.md` and `.html`, CSV, JSON; from its files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from voxmeter.client import (
    report_csv,
    report_leaderboard,
    report_markdown,
    report_runs,
    table,
)
from voxmeter.client.jsonlines import disk
from voxmeter.client.publish_note import noted
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.summary import read_run, summary_of
from voxmeter.client.trial_lines import trial_lines
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.report_html import Pairing
    from voxmeter.client.score import Tell

FORMATS = ("html", "md", "json", "csv")

Summary = Mapping[str, Any]


def print_report(folder: RunFolder, summary: Summary, stream: IO[str] | None = None) -> None:
    """Print the table of a run, its warnings and gates, and where the report lies.

    Args:
        folder: The run.
        summary: Of `summarised` or `score_run`.
        stream: Where to; standard output by default.
    """
    out = stream or sys.stdout
    table.show(summary, out)
    written = [folder.path / f"report.{kind}" for kind in ("md", "html")]
    for number, path in enumerate(path for path in written if path.is_file()):
        print(f"{'' if number else chr(10)}report: {path}", file=out)


def write_report(folder: RunFolder, summary: Summary) -> Path:
    """Write `report.md` into a run folder that is open for writing; return its path.

    Raises:
        UserError: If a file of the run is damaged, or the disk is full.
    """
    path = folder.path / "report.md"
    with folder.replacing(path) as partial, partial.open("w", encoding="utf-8") as stream:
        stream.writelines(markdown_report(folder, summary))
    return path


def write_reports(folder: RunFolder, summary: Summary, tell: Tell | None = None) -> None:
    """Write `report.md` and `report.html` into a run folder that is open for writing.

    Args:
        folder: The run.
        summary: Of `summarised` or `score_run`.
        tell: Told how far it is.

    Raises:
        UserError: If a file of the run is damaged, or the disk is full.
    """
    write_report(folder, summary)
    write_page([folder], [summary], folder.path / "report.html", tell=tell)


def write_page(
    folders: Sequence[RunFolder],
    summaries: Sequence[Summary],
    page: Path,
    pairing: Pairing | None = None,
    tell: Tell | None = None,
) -> Path:
    """Write a page on some runs; return its path.

    Args:
        folders: The runs.
        summaries: Theirs, of `summarised`.
        page: Where it goes.
        pairing: How endpoints of several runs pair.
        tell: Told how far it is.

    Raises:
        UserError: If a file of a run is damaged, or the disk is full.
    """
    from voxmeter.client import report_html
    from voxmeter.client.score import Progress

    def done(trials: int, total: int) -> None:
        if tell is not None:
            tell(Progress("page", trials, total))

    return report_html.write_page(folders, summaries, page, pairing=pairing, done=done)


def summarised(folder: RunFolder, published: str | None = None) -> dict[str, Any]:
    """Return the summary of a run as its files stand now, with the gates of its own bench.

    Args:
        folder: The run.
        published: Name of published figures that are to stand beside its own.

    Raises:
        UserError: If a file of the run is damaged, or nothing of that name fits it.
    """
    from voxmeter.client import config

    found = folder.run.get("config")
    gates = config.reread(found, f"{folder.path}/run.json").gates if found else ()
    summary = noted(summary_of(read_run(folder), folder.run, gates), folder)
    if published is not None:
        from voxmeter.client.published import beside

        summary["published"] = beside(summary, folder.run, published)
    return summary


def markdown_report(folder: RunFolder, summary: Summary) -> Iterator[str]:
    """Yield `report.md` in pieces."""
    lines = trial_lines(folder, read_run(folder))
    return (f"{line}\n" for line in report_markdown.report(summary, folder.run, lines))


def csv_report(folders: Sequence[RunFolder]) -> Iterator[str]:
    """Yield one table of all trials of several runs, in pieces."""
    for number, folder in enumerate(folders):
        lines = trial_lines(folder, read_run(folder))
        yield from report_csv.report(str(folder.run.get("run", "")), lines, head=number == 0)


def json_report(folders: Sequence[RunFolder], published: str | None = None) -> Iterator[str]:
    """Yield the summary of a run, or a list of them for several, in pieces."""
    found = [summarised(folder, published) for folder in folders]
    yield json.dumps(found[0] if len(found) == 1 else found, allow_nan=False, indent=1) + "\n"


def text_of(
    kind: str,
    folders: Sequence[RunFolder],
    published: str | None = None,
    mapped: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield one report on all folders together, in pieces.

    Args:
        kind: One of `FORMATS` but `html`, which is more than a text.
        folders: Runs, in the order of the report.
        published: Name of published figures beside theirs; a table of trials has none.
        mapped: Endpoints with another name in later runs, by their name in the first; they share
            a row where runs stand side by side.
    """
    if kind == "md":
        summaries = [summarised(folder, published) for folder in folders]
        if len(folders) > 1:
            board = report_leaderboard.lines(summaries), report_runs.lines(summaries, mapped)
            head = ("# voxmeter: several runs", *board[0], *board[1], "")
            yield from (f"{line}\n" for line in head)
        for folder, summary in zip(folders, summaries, strict=True):
            yield from markdown_report(folder, summary)
    elif kind == "csv":
        yield from csv_report(folders)
    else:
        yield from json_report(folders, published)


def formats(text: str) -> list[str]:
    """Read `md,json`.

    Raises:
        UserError: For a format that is not there, with those that are.
    """
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    cure = f"use {', '.join(FORMATS)}"
    for word in wanted:
        if word not in FORMATS:
            raise UserError("--format", f"{word!r} is not a format", cure)
    if not wanted:
        raise UserError("--format", "names no format", cure)
    return list(dict.fromkeys(wanted))


def write_file(path: Path, pieces: Iterator[str]) -> None:
    """Write a report outside a run folder, whole or not at all.

    A link, a device or a pipe is written into, never replaced.

    Raises:
        UserError: If the place may not be written, or the disk is full.
    """
    if not path.name or path.is_dir():
        raise UserError(str(path) or "''", "is no file", "give the path of a file")
    with disk(path):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            with path.open("w", encoding="utf-8", newline="") as stream:
                stream.writelines(pieces)
            return
        partial = path.with_name(f".{path.name}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.unlink(missing_ok=True)  # a link of that name is not followed
            with partial.open("w", encoding="utf-8", newline="") as stream:
                stream.writelines(pieces)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
