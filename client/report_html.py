"""`report.html`: one page of a run or of several, read offline, with every trial to be heard.

The page holds the tables. What belongs to one trial alone (its waveform, its words) lies in script
files beside it, which a browser loads from a disk as well; up to `SINGLE` trials all is one file.
What endpoints and judges said is data in it: the page's own scripts show it as text, and its policy
lets no other run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import resources
from itertools import islice
from os import cpu_count
from pathlib import Path
from typing import Any

from voxmeter.client.figures import meaning
from voxmeter.client.jsonlines import disk
from voxmeter.client.report_details import Scoring, detail, scorings
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.summary import read_run
from voxmeter.client.trial_lines import TrialLine, trial_lines
from voxmeter.scoring.definitions import LATENCY

Json = dict[str, Any]
Summary = Mapping[str, Any]

SINGLE = 50
"""Most trials whose details are in the page itself."""

A_FILE = 100
"""Trials whose details lie in one file beside the page."""

SNIPPET = 120
"""Characters of a reply in the list of trials; its details have all."""

_SCRIPTS = ("draw.js", "charts.js", "changes.js", "trials.js", "trial.js", "page.js")
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_PART = re.compile(r"\d{3,}\.js")


def write_page(folders: Sequence[RunFolder], summaries: Sequence[Summary], page: Path) -> Path:
    """Write a page on some runs; what is there under its name is replaced.

    Args:
        folders: The runs, in the order of the page.
        summaries: Theirs.
        page: Where it goes; `NAME_data/` beside it takes the details of many trials.

    Returns:
        `page`.

    Raises:
        UserError: If a file of a run is damaged, or the disk is full.
    """
    beside = page.with_name(f"{page.stem}_data")
    stamp = secrets.token_hex(4)
    table = _Trials()
    many = sum(_count(one) for one in summaries) > SINGLE
    held: list[Json] = []
    files = 0
    with disk(page):
        page.parent.mkdir(parents=True, exist_ok=True)
        for details in _details(folders, table, page.parent):
            if not many:
                held += details
                continue
            beside.mkdir(exist_ok=True)
            said = _json(json.dumps(details, ensure_ascii=False, separators=(",", ":")))
            _write(beside / f"{files:03}.js", f'voxmeterDetails("{stamp}",{files},{said});\n')
            files += 1
        data = {
            "runs": [_run(*one) for one in zip(folders, summaries, strict=True)],
            "meanings": _meanings(summaries),
            "latencies": [name for name in LATENCY if name in table.timed],
            "trials": table.columns(),
            "details": held if not many else None,
            "a_file": A_FILE,
            "folder": beside.name,
            "stamp": stamp,
        }
        _write(page, page_of(data, files=many))
        _remove_older(beside, files)
    return page


def _count(summary: Summary) -> int:
    return sum(sum(cell["status"].values()) + cell["cold"]["n"] for cell in summary["cells"])


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.part")
    try:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _remove_older(beside: Path, files: int) -> None:
    """Remove what an earlier page with more trials had beside it."""
    if not beside.is_dir():
        return
    for path in list(beside.iterdir()):
        if _PART.fullmatch(path.name) and int(path.stem) >= files:
            path.unlink()
    if not any(beside.iterdir()):
        beside.rmdir()


def _details(folders: Sequence[RunFolder], table: _Trials, page: Path) -> Iterator[list[Json]]:
    """Yield the details of all trials, `A_FILE` at a time, and fill the table as they pass."""

    def made(one: _One) -> Json:
        return detail(one.folder, one.line, one.scoring, one.options, page)

    every = _every(folders)
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


@dataclass(slots=True)
class _Trials:
    """The list of trials as columns: what is the same in many rows stands there once."""

    cells: dict[tuple[int, str, str, str], int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    timed: dict[str, None] = field(default_factory=dict)
    lines: list[tuple[Any, ...]] = field(default_factory=list)
    latency: list[Mapping[str, float | None]] = field(default_factory=list)

    def add(self, run: int, line: TrialLine) -> None:
        trial = line.trial
        cell = (run, str(trial["endpoint"]), str(trial["suite"]), str(trial["condition"]))
        right = {None: None, True: 1, False: 0}[line.right]
        valid = (trial.get("audit") or {}).get("latency_valid", True)
        judged = ", ".join(f"{name} {gave}" for name, gave in line.judged.items())
        status = "warm-up" if trial.get("warmup") else str(trial["status"])
        self.lines.append(
            (
                str(trial["key"]),
                self.cells.setdefault(cell, len(self.cells)),
                str(trial["item"]),
                trial["trial"],
                trial.get("turn"),
                self._word(status),
                right,
                line.answer[:SNIPPET],
                line.reference[:SNIPPET],
                self._word(line.rule or line.unscored),
                line.reply[:SNIPPET],
                judged[:SNIPPET],
                int(bool(valid)),
            )
        )
        self.timed |= {name: None for name, ms in line.latency.items() if ms is not None}
        self.latency.append(line.latency)

    def _word(self, text: str) -> int:
        return self.words.setdefault(text, len(self.words))

    def columns(self) -> Json:
        """Return one list a column, and what their numbers stand for."""
        columns = list(zip(*self.lines, strict=True)) or [()] * len(_COLUMNS)
        found: Json = dict(zip(_COLUMNS, columns, strict=True))
        for name in LATENCY:
            if name in self.timed:
                found[name] = [_short(one.get(name)) for one in self.latency]
        found["words"] = list(self.words)
        found["cells"] = [list(cell) for cell in self.cells]
        return found


_COLUMNS = (
    *("key", "cell", "item", "trial", "turn", "status", "right", "answer", "reference", "rule"),
    *("reply", "judged", "valid"),
)


def _short(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 1)


def _run(folder: RunFolder, summary: Summary) -> Json:
    run = folder.run
    config = run.get("config") or {}
    found: Json = {
        name: summary.get(name)
        for name in ("cells", "audit", "calibration", "warnings", "gates", "judges", "analyses")
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


def page_of(data: Mapping[str, Any], *, files: bool) -> str:
    """Return the page, which needs nothing from a network.

    Args:
        data: What it shows.
        files: Whether its details lie in script files beside it, which its policy then lets in.
    """
    parts = resources.files("voxmeter.client").joinpath("page")
    script = "\n".join(parts.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}}})();\n'
    style = parts.joinpath("page.css").read_text(encoding="utf-8")
    beside = " 'self' file:" if files else ""
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'{beside}; style-src '{_hash(style)}'; "
        "media-src 'self' file:; base-uri 'none'; form-action 'none'"
    )
    held = {"%POLICY%": policy, "%STYLE%": style, "%DATA%": _json(data), "%SCRIPT%": script}
    made = []
    rest = parts.joinpath("page.html").read_text(encoding="utf-8")
    for mark, text in held.items():  # in the order of the page; no mark is looked for in what came
        before, _, rest = rest.partition(mark)
        made += [before, text]
    return "".join([*made, rest])


def _json(data: object) -> str:
    """Return data as JSON that neither ends a script element nor begins a comment in one."""
    held = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter, escaped in _UNSAFE.items():
        held = held.replace(letter, escaped)
    return held


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
