"""Thousands of trials, some of them broken on purpose; every one of them has to be accounted for.

The metronome answers in a process of its own, a proxy in another breaks the connections, and the
run is a third: it is watched from outside, and what it wrote is held against what the other two
say of every session. The faults are in `tests/fault_proxy.py`.

    python tests/soak.py --trials 2000 --concurrency 50 --share 0.1 --seed 1
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from merge_world import rows
from undisturbed import only_folder, orphans

import voxmeter
from voxmeter.client.audio import write_flac
from voxmeter.client.builtin import serving
from voxmeter.client.servers.voice import babble

Row = dict[str, Any]
QUERY = "delay_ms=60&endpoint_ms=50&pacing=burst&chunk_ms=100&tag="
STATUS: Mapping[str, frozenset[str]] = {
    "": frozenset({"ok"}),
    "drop": frozenset({"disconnected"}),
    "silent": frozenset({"no_reply"}),
    "garbage": frozenset({"protocol_error"}),
    "never": frozenset({"timeout"}),
    "server-refuses": frozenset({"refused"}),
    "slow": frozenset({"ok"}),
    "refuse": frozenset({"disconnected"}),
    "no-http": frozenset({"disconnected"}),
    "reset": frozenset({"disconnected"}),
    "truncate": frozenset({"disconnected"}),
    "half-open": frozenset({"timeout"}),
    "half-open-late": frozenset({"truncated"}),
    "late": frozenset({"ok"}),
    "narrow": frozenset({"ok"}),
    "reorder": frozenset({"ok"}),
}
"""Fault -> what a trial that met it must be."""

_TAGLESS = {"refuse"}
_MOST_FDS = 10
_OWN_FDS = 15
"""Of a run that has no session: 12 were seen."""

_MOST_BYTES_A_TRIAL = 6_000
_EVERY_S = 0.5
_FEWEST_SAMPLES = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """The streaming process at one moment: trials written so far, open files, memory in bytes."""

    trials: int
    files: int
    memory: int


@dataclass(frozen=True, slots=True)
class Soaked:
    """What a soak left.

    Attributes:
        folder: The run; None where there is none.
        truth: The server's lines, by tag.
        passed: The proxy's lines.
        samples: Of the streaming process.
        seconds: How long it streamed.
        status: Exit status.
        error: What it wrote on standard error.
    """

    folder: Path | None
    truth: Mapping[str, Row]
    passed: list[Row]
    samples: list[Sample]
    seconds: float
    status: int
    error: str


def soak(folder: Path, trials: int, concurrency: int, share: float, seed: int) -> Soaked:
    """Run one; blocks until it has ended."""
    truth, log = folder / "truth.jsonl", folder / "passed.jsonl"
    with (
        serving("metronome", options=("--truth", str(truth))) as url,
        _breaking(url, log, share, seed) as broken,
    ):
        bench = _write_bench(folder, broken, trials, concurrency)
        began = time.monotonic()
        samples, status, error = _watched(bench, folder)
        seconds = time.monotonic() - began
    by_tag = {line["tag"]: line for line in _told(truth)}
    run = only_folder(folder / "runs")
    return Soaked(run, by_tag, _told(log), samples, seconds, status, error)


def _told(path: Path) -> list[Row]:
    """Return the lines of a log; one that nobody began has none."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def _write_bench(folder: Path, url: str, trials: int, concurrency: int) -> Path:
    write_flac(folder / "q.flac", babble(16_000, 0.1), 16_000)
    items = max(1, trials // 20)
    lines = [{"id": f"q{number}", "audio": "q.flac", "kind": "open"} for number in range(items)]
    (folder / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    bench = folder / "bench.toml"
    bench.write_text(
        f'[run]\nout = "{folder}/runs"\nwarmup = 0\ntrials = {trials // items}\n'
        f"concurrency = {concurrency}\ngive_up_after = 0\nretries = 1\n"
        f'[[endpoint]]\nname = "m"\nurl = "{url}?{QUERY}"\n'
        "connect_timeout_s = 60\nfirst_reply_timeout_s = 12\nreply_limit_s = 18\n"
        '[[suite]]\nkind = "jsonl"\nname = "mine"\npath = "items.jsonl"\n'
    )
    return bench


@contextmanager
def _breaking(url: str, log: Path, share: float, seed: int) -> Iterator[str]:
    """Start the proxy; yields where it listens."""
    command = [sys.executable, str(Path(__file__).parent / "fault_proxy.py"), "--upstream", url]
    options = ["--share", str(share), "--seed", str(seed), "--log", str(log)]
    process = subprocess.Popen(
        [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[1].partition("?")[0]
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def _watched(bench: Path, folder: Path) -> tuple[list[Sample], int, str]:
    source = str(Path(voxmeter.__file__).parent.parent)
    with (folder / "error").open("w+") as error:
        process = subprocess.Popen(
            [sys.executable, "-m", "voxmeter", "run", str(bench), "--quiet", "--shard", "1/1"],
            stdout=subprocess.DEVNULL,
            stderr=error,
            env={**os.environ, "PYTHONPATH": source},
        )
        samples: list[Sample] = []
        while True:
            try:
                status = process.wait(_EVERY_S)
            except subprocess.TimeoutExpired:
                samples += _sample(process.pid, folder)
            else:
                error.seek(0)
                return samples, status, error.read()


def _sample(pid: int, folder: Path) -> Iterator[Sample]:
    try:
        files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        memory = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (FileNotFoundError, IndexError):
        return
    for trials in folder.glob("runs/*/trials.jsonl"):
        yield Sample(trials.read_bytes().count(b"\n"), files, memory)


def problems(soaked: Soaked, trials: int) -> Iterator[str]:
    """Yield what does not add up, in words."""
    if soaked.status:
        yield f"the run ended with {soaked.status}: {soaked.error[-500:]}"
    if soaked.folder is None:
        yield "the run left no folder"
        return
    made = rows(soaked.folder, "trials")
    keys = Counter(row["key"] for row in made)
    if len(keys) != trials:
        yield f"{len(keys)} trials have a line; {trials} were planned"
    for name, number in Counter((row["key"], row["attempt"]) for row in made).items():
        if number > 1:
            yield f"{name} has {number} lines"
    yield from (f"{name} belongs to nothing" for name in orphans(soaked.folder))
    yield from _statuses(soaked, made)


def _statuses(soaked: Soaked, made: list[Row]) -> Iterator[str]:
    """Yield every attempt whose status is not that of the fault it met."""
    by_tag = {line["tag"]: line for line in soaked.passed if line["tag"]}
    if len(soaked.passed) != len(made):
        yield f"{len(soaked.passed)} connections and {len(made)} lines"
    tagless = Counter(line["fault"] for line in soaked.passed if not line["tag"])
    unknown = Counter(row["status"] for row in made if row["session_tag"] not in by_tag)
    if tagless.keys() - _TAGLESS or unknown != Counter({"disconnected": tagless["refuse"]}):
        yield f"connections without a tag: {dict(tagless)}; trials: {dict(unknown)}"
    for row in made:
        passed = by_tag.get(row["session_tag"])
        if passed is None:
            continue
        if passed["fault"] and not passed["met"]:
            yield f"{row['key']}: {passed['fault']} was never met"
        if row["status"] not in STATUS[passed["fault"]]:
            met = passed["fault"] or "nothing"
            yield f"{row['key']}: {row['status']} after {met}: {row['fault']}"
        yield from _reply(row, soaked.truth.get(row["session_tag"]))


def _reply(row: Row, line: Row | None) -> Iterator[str]:
    """Yield what a reply lacks of what the server says that it sent."""
    if row["status"] != "ok":
        return
    if line is None or line["outcome"] != "completed":
        yield f"{row['key']}: ok, and the server says {line and line['outcome']}"
        return
    sent_ms = 1000 * line["reply_samples"] / line["reply_rate"]
    if abs(row["latency"]["reply_ms"] - sent_ms) > 1:
        yield f"{row['key']}: {row['latency']['reply_ms']} of {sent_ms} ms"


@dataclass(frozen=True, slots=True)
class Growth:
    """How the streaming process grew with the trials, from half of them on.

    A run of few trials ends before anything can be said of its slopes; what it had open at most
    tells a leak there as well.

    Attributes:
        files: Open files, first to last, by the slope; None of too short a run.
        bytes_a_trial: Memory; None of too short a run.
        quarters: Memory after each quarter of the trials, bytes.
        most_files: Ever open.
        most_memory: Ever used, bytes.
    """

    files: float | None
    bytes_a_trial: float | None
    quarters: list[int]
    most_files: int
    most_memory: int


def growth(samples: list[Sample]) -> Growth:
    """Fit a line through what was seen; the first half and the last sessions do not count."""
    last = samples[-1].trials if samples else 0
    steady = [one for one in samples if last / 2 <= one.trials <= last - 60]
    trials = np.array([one.trials for one in steady], dtype=float)
    files, memory = (
        _slope(trials, np.array([getattr(one, name) for one in steady], dtype=float))
        for name in ("files", "memory")
    )
    return Growth(
        None if files is None else files * (steady[-1].trials - steady[0].trials),
        memory,
        [
            next((one.memory for one in samples if one.trials >= last * quarter / 4), 0)
            for quarter in (1, 2, 3, 4)
        ],
        max((one.files for one in samples), default=0),
        max((one.memory for one in samples), default=0),
    )


def _slope(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float | None:
    return float(np.polyfit(x, y, 1)[0]) if len(x) >= _FEWEST_SAMPLES else None


def leaks(grown: Growth, concurrency: int) -> Iterator[str]:
    """Yield what grew though nothing needed it, in words."""
    if not grown.most_files:
        yield "the run was never seen"
    most = _OWN_FDS + concurrency + _MOST_FDS
    if grown.most_files > most:
        yield f"{grown.most_files} files were open at a time; {concurrency} sessions need no {most}"
    if grown.files is not None and grown.files > _MOST_FDS:
        yield f"open files grew by {grown.files:.1f}"
    if grown.bytes_a_trial is not None and grown.bytes_a_trial > _MOST_BYTES_A_TRIAL:
        yield f"memory grew by {grown.bytes_a_trial:.0f} bytes a trial"


def _said(growth: float | None, form: str, unit: str) -> str:
    return "no growth that so short a run can tell" if growth is None else f"{growth:+{form}}{unit}"


def main() -> int:
    """Soak, and say what was found; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--share", type=float, default=0.1, help="of connections with a fault")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soaked = soak(Path(folder), args.trials, args.concurrency, args.share, args.seed)
        wrong = list(problems(soaked, args.trials))
        made = [] if soaked.folder is None else rows(soaked.folder, "trials")
    grown = growth(soaked.samples)
    wrong += leaks(grown, args.concurrency)
    met = Counter(line["fault"] for line in soaked.passed if line["met"])
    print(f"{args.trials} trials, {args.concurrency} at a time, in {soaked.seconds:.0f} s")
    print(f"faults: {met.total()} of {len(soaked.passed)} connections: {dict(sorted(met.items()))}")
    print(f"statuses of {len(made)} attempts: {dict(Counter(row['status'] for row in made))}")
    print(f"open files: {_said(grown.files, '.1f', ' over the run')}, at most {grown.most_files}")
    quarters = ", ".join(f"{memory / 2**20:.1f}" for memory in grown.quarters)
    print(f"memory after each quarter: {quarters} MiB, at most {grown.most_memory / 2**20:.1f}")
    print(f"in the second half {_said(grown.bytes_a_trial, '.0f', ' bytes a trial')}")
    for line in wrong:
        print(f"WRONG {line}")
    print(f"{len(wrong)} problems")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
