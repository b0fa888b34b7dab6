"""`report.html`: one page of a run or of several, read offline, with every trial to be heard.

The page holds the tables. What belongs to one trial alone (its waveform, its words) lies in script
files beside it, which a browser loads from a disk as well; up to `SINGLE` trials all is one file,
their sound too if it is not large. What endpoints and judges said is data in it: the page's own
scripts show it as text, and its policy lets no other run.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from os import cpu_count
from pathlib import Path
from typing import Any

from voxmeter.client.figures import meaning
from voxmeter.client.jsonlines import disk
from voxmeter.client.report_details import Scoring, detail, scorings, sound_files
from voxmeter.client.report_frame import page_of, script_json
from voxmeter.client.report_rows import TrialTable
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.summary import read_run
from voxmeter.client.trial_lines import TrialLine, trial_lines
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.definitions import LATENCY

Json = dict[str, Any]
Summary = Mapping[str, Any]

SINGLE = 50
"""Most trials whose details are in the page itself."""

SOUND_BYTES = 16_000_000
"""Most sound that a single page holds; with it the page is 22 MB, which most mail takes."""

A_FILE = 100
"""Trials whose details lie in one file beside the page."""

_PART = re.compile(r"\d{3,}\.js")


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which trials of several runs are the same question, and what `compare` found of them.

    Attributes:
        mapped: Endpoints with another name in later runs, by their name in the first.
        found: The document of a comparison of the first run with the last, None without one.
    """

    mapped: Mapping[str, str]
    found: Mapping[str, Any] | None = None


def write_page(
    folders: Sequence[RunFolder],
    summaries: Sequence[Summary],
    page: Path,
    *,
    pairing: Pairing | None = None,
    done: Callable[[int, int], None] | None = None,
) -> Path:
    """Write a page on some runs; what is there under its name is replaced.

    Args:
        folders: The runs, in the order of the page.
        summaries: Theirs.
        page: Where it goes; `NAME_data/` beside it takes the details of many trials.
        pairing: How their endpoints pair; None pairs those of the same name.
        done: Told how many trials are written, and of how many.

    Returns:
        `page`.

    Raises:
        UserError: If a file of a run is damaged, or the disk is full.
    """
    total = sum(_count(one) for one in summaries)
    many = total > SINGLE
    every = _every(folders) if many else list(_every(folders))
    one_file = isinstance(every, list) and _sound_bytes(every) <= SOUND_BYTES
    beside = page.with_name(f"{page.stem}_data")
    stamp = secrets.token_hex(4)
    table = TrialTable()
    held: list[Json] = []
    files = 0
    with disk(page):
        page.parent.mkdir(parents=True, exist_ok=True)
        for details in _details(iter(every), table, None if one_file else page.parent):
            if many:
                _refuse_link(beside)
                beside.mkdir(exist_ok=True)
                said = script_json(script_json(details))
                _write(beside / f"{files:03}.js", f'voxmeterDetails("{stamp}",{files},{said});\n')
                files += 1
            else:
                held += details
            if done is not None:
                done(len(table.lines), total)
        data = {
            "runs": [_run(*one) for one in zip(folders, summaries, strict=True)],
            "pairing": _paired(pairing),
            "meanings": _meanings(summaries),
            "latencies": [name for name in LATENCY if name in table.timed],
            "trials": table.columns(),
            "details": None if many else held,
            "a_file": A_FILE,
            "folder": beside.name,
            "stamp": stamp,
        }
        _write(page, page_of(data, files=many))
        _remove_older(beside, files)
    return page


def _count(summary: Summary) -> int:
    return sum(sum(cell["status"].values()) + cell["cold"]["n"] for cell in summary["cells"])


def _paired(pairing: Pairing | None) -> Json:
    found = pairing.found if pairing else None
    shown: Json = {"mapped": dict(pairing.mapped) if pairing else {}, "found": found}
    if found is not None:
        from voxmeter.client.compare_output import shown_metrics

        shown["metrics"] = [shown_metrics(cell["metrics"]) for cell in found["cells"]]
    return shown


def _refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise UserError(str(folder), "is a link, and files would go elsewhere", "delete it")


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.part")
    try:
        partial.unlink(missing_ok=True)  # a link of that name is not followed
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _remove_older(beside: Path, files: int) -> None:
    """Remove what an earlier page with more trials had beside it."""
    if not beside.is_dir() or beside.is_symlink():
        return
    for path in list(beside.iterdir()):
        if _PART.fullmatch(path.name) and int(path.stem) >= files:
            path.unlink()
    if not any(beside.iterdir()):
        beside.rmdir()


def _details(every: Iterator[_One], table: TrialTable, page: Path | None) -> Iterator[list[Json]]:
    """Yield the details of all trials, `A_FILE` at a time, and fill the table as they pass."""

    def made(one: _One) -> Json:
        return detail(one.folder, one.line, one.scoring, one.options, page)

    with ThreadPoolExecutor(min(8, cpu_count() or 1)) as pool:
        while some := list(islice(every, A_FILE)):
            for one in some:
                table.add(one.run, one.line)
            yield list(pool.map(made, some))


@dataclass(frozen=True, slots=True)
class _One:
    run: int
    folder: RunFolder
    line: TrialLine
    scoring: Scoring | None
    options: Sequence[str]


def _every(folders: Sequence[RunFolder]) -> Iterator[_One]:
    for run, folder in enumerate(folders):
        scored = scorings(folder)
        options = {(row["suite"], row["item"]): row.get("options") or () for row in folder.items()}
        for line in trial_lines(folder, read_run(folder)):
            trial = line.trial
            given = options.get((trial["suite"], trial["item"]), ())
            yield _One(run, folder, line, scored.get(trial["key"]), given)


def _sound_bytes(every: Sequence[_One]) -> int:
    files = (path for one in every for path in sound_files(one.folder, one.line.trial) if path)
    return sum(path.stat().st_size for path in files)


def _run(folder: RunFolder, summary: Summary) -> Json:
    run = folder.run
    config = run.get("config") or {}
    found: Json = {
        name: summary.get(name)
        for name in (
            *("cells", "audit", "calibration", "warnings", "gates", "judges", "analyses"),
            "published",
        )
    }
    return found | {
        "name": str(summary["run"] or folder.path.name),
        "voxmeter": run.get("version") or run.get("voxmeter"),
        "machine": run.get("machine"),
        "pacing": (config.get("run") or {}).get("pacing", "real-time"),
        "limits": {
            name: (config.get("run") or {}).get(name)
            for name in ("send_lateness_limit_ms", "loop_lag_limit_ms")
        },
    }


def _meanings(summaries: Sequence[Summary]) -> Json:
    """Return what each figure of the page means, in the words that stand beside it elsewhere."""
    names = dict.fromkeys(
        name for one in summaries for cell in one["cells"] for name in cell["metrics"]
    )
    return {
        name: {"unit": found.unit, "text": found.text}
        for name, found in ((name, meaning(name)) for name in names)
    }
