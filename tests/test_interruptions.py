"""What befalls the process of a run from outside: interrupted twice, suspended, its clock set."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from merge_world import rows
from undisturbed import orphans

from voxmeter.client import clock
from voxmeter.client.audio import write_flac
from voxmeter.client.cli import main
from voxmeter.client.servers.voice import babble

ITEMS = 8
STREAMED = ("--quiet", "--shard", "1/1")  # the first stage alone: nothing here is about scoring
MS = 1_000_000
EVERY_S = 0.001  # thirty times as often as a key repeats


TRIALS = (1, 2)


def write_bench(folder: Path, *, trials: int = 1, concurrency: int = 1) -> Path:
    write_flac(folder / "q.flac", babble(16_000, 0.2), 16_000)
    items = [{"id": f"q{n}", "audio": "q.flac", "kind": "open"} for n in range(ITEMS)]
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (folder / "bench.toml").write_text(
        f'[run]\nout = "{folder}/runs"\nwarmup = 0\ntrials = {trials}\n'
        f'concurrency = {concurrency}\n[[endpoint]]\nname = "m"\n'
        'builtin = "metronome?delay_ms=250&jitter_ms=1000&pacing=burst"\n'
        '[[suite]]\nkind = "jsonl"\nname = "mine"\npath = "items.jsonl"\n'
    )
    return folder / "bench.toml"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, far from its end."""
    bench = write_bench(tmp_path, trials=len(TRIALS), concurrency=4)
    process = subprocess.Popen(
        [sys.executable, "-m", "voxmeter", "run", str(bench), *STREAMED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def ended_within(process: subprocess.Popen[str], seconds: float) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


def begun(process: subprocess.Popen[str], parent: Path, trials: int = 2) -> Path:
    """Return the run folder once it has so many trials."""
    while process.poll() is None:
        for path in parent.glob("runs/*/trials.jsonl"):
            if path.read_bytes().count(b"\n") >= trials:
                return path.parent
        os.sched_yield()
    raise AssertionError(process.communicate())


def every_trial_is_there_once(folder: Path) -> None:
    made = rows(folder, "trials")
    finished = Counter(row["key"] for row in made if row["status"] == "ok")
    assert finished == {f"m/mine/q{item}/clean/{n}": 1 for item in range(ITEMS) for n in TRIALS}
    assert not orphans(folder)


# Ctrl-C, again


def test_a_second_interrupt_at_once_is_130_and_the_run_goes_on(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    folder = begun(running, tmp_path)
    for _ in range(2):
        running.send_signal(signal.SIGINT)
    _, error = running.communicate()
    assert running.returncode == 130
    assert "Traceback" not in error
    assert main(["run", "--resume", str(folder), "--quiet"]) == 0
    every_trial_is_there_once(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupts_while_it_ends_change_nothing(
    number: signal.Signals, running: subprocess.Popen[str], tmp_path: Path
) -> None:
    folder = begun(running, tmp_path)
    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    told = running.stderr.readline()
    while not ended_within(running, EVERY_S):
        running.send_signal(number)
    assert running.returncode == 130
    assert told == f"voxmeter: go on with: voxmeter run --resume {folder}\n"
    assert running.stderr.read() == ""
    assert main(["run", "--resume", str(folder), "--quiet"]) == 0
    every_trial_is_there_once(folder)


# Suspended


def test_a_suspended_run_goes_on_and_what_was_in_flight_has_no_valid_latency(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    stops = []
    for trials in (2, 5, 8):  # some trial is being measured at one of them
        folder = begun(running, tmp_path, trials)
        running.send_signal(signal.SIGSTOP)
        began_ns = time.perf_counter_ns()
        time.sleep(0.5)  # the fault itself
        stops.append((began_ns, time.perf_counter_ns()))
        running.send_signal(signal.SIGCONT)
    _, error = running.communicate()
    assert (running.returncode, error) == (0, "")
    made = rows(folder, "trials")
    assert len(made) == len(TRIALS) * ITEMS
    every_trial_is_there_once(folder)
    in_flight = [row for row in made if any(measured(row, *stop) for stop in stops)]
    assert in_flight
    assert not any(row["audit"]["latency_valid"] for row in in_flight)


def measured(row: dict[str, Any], began_ns: int, ended_ns: int) -> bool:
    """Return whether a trial waited for its reply while the process stood still."""
    first_ns = row["t0_ns"] + row["latency"]["first_audible_ms"] * MS
    return bool(row["t0_ns"] < began_ns and ended_ns < first_ns)


# The wall clock is set


class Stepping(datetime):
    """A wall clock that somebody sets a day back or forward, each time it is read."""

    read: list[datetime] = []  # noqa: RUF012 - of this test alone

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]  # noqa: ARG003
        day = timedelta(days=1 if len(cls.read) % 2 else -1)
        cls.read.append(datetime(2026, 1, 10, tzinfo=UTC) + day)
        return cls.read[-1]


def test_a_clock_that_is_set_changes_no_latency_and_no_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "datetime", Stepping)
    before_ns = time.perf_counter_ns()
    assert main(["run", str(write_bench(tmp_path)), *STREAMED]) == 0
    took_ms = (time.perf_counter_ns() - before_ns) / 1e6
    (folder,) = (tmp_path / "runs").iterdir()
    made = rows(folder, "trials")
    assert [row["status"] for row in made] == ["ok"] * ITEMS
    assert [row["t0_ns"] for row in made] == sorted(row["t0_ns"] for row in made)
    for row in made:
        times = [value for name, value in row["latency"].items() if name.endswith("_ms") and value]
        assert row["latency"]["first_packet_ms"] >= 240
        assert max(times) < took_ms
        assert row["waited_s"] < took_ms / 1000
    assert {row["started_at"][:10] for row in made} <= {"2026-01-09", "2026-01-11"}


def test_the_wall_clock_is_read_for_dates_alone() -> None:
    source = Path(clock.__file__).parent.parent
    found = {
        str(path.relative_to(source))
        for folder in ("client", "endpoints", "scoring", "suites")
        for path in (source / folder).rglob("*.py")
        if any(_reads_it(node) for node in ast.walk(ast.parse(path.read_text())))
    }
    assert found == {
        "client/clock.py",
        "client/baseline.py",  # written_at
        "client/reference_writing.py",  # written_at
        "client/model_files.py",  # how old a file is
    }


def _reads_it(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name("time"), attr="time" | "time_ns"):
            return True
        case ast.Attribute(value=ast.Name("datetime" | "date"), attr="now" | "utcnow" | "today"):
            return True
    return False
