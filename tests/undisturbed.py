"""A run that is the same every time, in processes that can be disturbed, and what it must leave.

Its endpoints are answers made elsewhere, written and spoken; its transcripts are kept from the
first run on, as a user's are. Each run is a fork of a process that has everything loaded: a death
of it is a death of a run, and hundreds take minutes.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merge_world import files, rows, summary

from voxmeter.client.audio import write_flac
from voxmeter.client.servers.voice import babble

Row = dict[str, Any]
Outcome = dict[str, Any]
ITEMS = 6
_BENCH = """
[run]
name = "same"
out = "runs"
warmup = 1
seed = 3
concurrency = 3
loop_lag_limit_ms = 3600000  # nothing here is timed, and the machine may be busy
send_lateness_limit_ms = 3600000
[[endpoint]]
name = "written"
kind = "import"
[endpoint.options]
path = "written.jsonl"
output_modalities = "text"
[[endpoint]]
name = "spoken"
kind = "import"
[endpoint.options]
path = "spoken.jsonl"
[[suite]]
kind = "jsonl"
name = "mine"
path = "items.jsonl"
[[condition]]
name = "noisy"
chain = [{effect = "gaussian-noise", snr_db = 10}]
"""
_MOMENTS = {"started_at", "t0_ns", "connect_ms", "session_tag", "latency", "audit", "segments"}
_HEAVY = (
    *("client.api", "client.run", "client.publish", "client.progress", "client.report"),
    *("client.report_html", "client.score", "client.summary", "client.shots", "client.transcribe"),
    *("client.import_transport", "client.judging", "client.commands.run"),
)


def write_world(folder: Path) -> Path:
    """Write a bench, its questions and its answers; return the bench's path."""
    folder.mkdir(parents=True, exist_ok=True)
    write_flac(folder / "q.flac", babble(16_000, 0.2), 16_000)
    items, written, spoken = [], [], []
    for number in range(ITEMS):
        name = f"q{number}"
        question = {"id": name, "audio": "q.flac", "kind": "choice", "question": "Which?"}
        options = ["Venus", "Mars", "Jupiter", "Saturn"]
        items.append(question | {"options": options, "reference": "ABCD"[number % 4]})
        write_flac(folder / f"{name}.flac", babble(16_000, 0.2 + number % 2 / 5), 16_000)
        for condition in ("clean", "noisy"):
            said = {"id": name, "condition": condition}
            written.append(said | {"text": f"The answer is {'ABCD'[number % 3]}."})
            spoken.append(said | {"audio": f"{name}.flac"})
    for file, lines in (("items", items), ("written", written), ("spoken", spoken)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{file}.jsonl").write_text(text)
    (folder / "bench.toml").write_text(_BENCH)
    return folder / "bench.toml"


def load() -> None:
    """Import all that a run needs, so that a fork has it."""
    from importlib import import_module

    for name in _HEAVY:
        import_module(f"voxmeter.{name}")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Attributes:
        status: Its exit status; minus the signal that ended it.
        error: What it wrote on standard error.
        seconds: How long it took.
    """

    status: int
    error: str
    seconds: float


class Run:
    """A command under way, in a fork of this process.

    Args:
        words: Of the command line, after `voxmeter`.
        folder: Where it runs.
        first: Called in the fork before anything else: what is to disturb it.
    """

    def __init__(
        self, words: Sequence[str], folder: Path, first: Callable[[], None] = lambda: None
    ) -> None:
        self._error, error = os.pipe()
        self._began = time.monotonic()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            _become(words, folder, error, first)
        os.close(error)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def end(self) -> Ended:
        """Wait until it has ended."""
        with os.fdopen(self._error, "rb") as stream:
            error = stream.read().decode(errors="replace")
        _, status = os.waitpid(self.pid, 0)
        seconds = time.monotonic() - self._began
        return Ended(os.waitstatus_to_exitcode(status), error, seconds)


def _become(words: Sequence[str], folder: Path, error: int, first: Callable[[], None]) -> None:
    """Be that command from here on."""
    status = 70
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(error, 2)
        os.close(error)
        sys.stdout, sys.stderr = (os.fdopen(file, "w", closefd=False) for file in (1, 2))
        from voxmeter.client.cli import main

        first()
        status = main(words)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        raise
    finally:
        os._exit(status)


def only_folder(out: Path) -> Path | None:
    """Return the run folder, once there is one that can be resumed."""
    found = [folder for folder in sorted(out.glob("*")) if (folder / "run.json").exists()]
    return found[-1] if found else None


def outcome(folder: Path) -> Outcome:
    """Return all that two runs of one world have in common, whatever happened to them.

    Warm-up turns are left out: whoever goes on warms the endpoint up again.
    """
    counted = [row for row in rows(folder, "trials") if not row["warmup"]]
    trials = [{k: v for k, v in row.items() if k not in _MOMENTS} for row in counted]
    scores = [row for row in rows(folder, "scores") if not row["key"].endswith("/0")]
    heard = [{"key": row["key"], "text": row["text"]} for row in rows(folder, "transcripts")]
    return {
        "summary": summary(folder),
        "trials": _sorted(trials),
        "transcripts": _sorted(heard),
        "scores": _sorted(scores),
        "items": (folder / "items.jsonl").read_text(),
        "files": sorted(name for name in files(folder) if "~0~" not in name),
        "orphans": orphans(folder),
        "reports": [(folder / f"report.{kind}").exists() for kind in ("md", "html")],
        "partial": (folder / ".partial").exists(),
    }


def problems(folder: Path, expected: Outcome) -> Iterator[str]:
    """Yield what is wrong with a run that was disturbed and then finished."""
    for name, columns in (("trials", ("key", "attempt")), ("transcripts", ("key", "attempt")),
                          ("scores", ("key", "attempt", "metric"))):  # fmt: skip
        data = (folder / f"{name}.jsonl").read_bytes()
        if not data.endswith(b"\n"):
            yield f"{name}.jsonl ends in a torn line"
        seen = Counter(tuple(row[column] for column in columns) for row in rows(folder, name))
        for row, number in seen.items():
            if number > 1:
                yield f"{name}.jsonl has {row} {number} times"
    found = outcome(folder)
    for part, content in expected.items():
        if found[part] != content:
            yield f"{part} differ: {_first_difference(content, found[part])}"


def orphans(folder: Path) -> list[str]:
    """Return the logs and sounds that belong to no row."""
    stems = {
        f"{row['endpoint']}~{row['suite']}~{row['condition']}/"
        f"{row['item']}~{row['trial']}~{row['attempt']}"
        for row in rows(folder, "trials")
    }
    return sorted(
        name for name in files(folder) if name.partition("/")[2].partition(".")[0] not in stems
    )


def _sorted(found: Iterator[Row] | list[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in found)


def _first_difference(expected: object, found: object) -> str:
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in expected.keys() | found.keys():
            if expected.get(name) != found.get(name):
                return f"{name}: {_first_difference(expected.get(name), found.get(name))}"
    if isinstance(expected, list) and isinstance(found, list):
        for one, other in zip(expected, found, strict=False):
            if one != other:
                return _first_difference(one, other)
        return f"{len(expected)} and {len(found)} rows"
    return f"{str(expected)[:300]} and {str(found)[:300]}"
