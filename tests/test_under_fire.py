"""The scripts that look for what a fault destroys, each with a few points; `make` has them whole.

Each is a process of its own: they fork, and fill disks.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from soak import Sample, Soaked, growth, leaks, problems

import voxmeter

HERE = Path(__file__).parent
SCRIPTS = {
    "kill_points": ["--points", "6", "--seed", "7"],
    "full_disk": ["--points", "6", "--seed", "7"],
    "soak": ["--trials", "100", "--concurrency", "20", "--share", "0.3", "--seed", "7"],
}


def said(name: str, *options: str) -> tuple[int, list[str]]:
    """Run a script; return its exit status and what it said."""
    source = str(Path(voxmeter.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *options],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_a_run_killed_at_random_points_equals_an_undisturbed_one_after_resuming() -> None:
    status, lines = said("kill_points", *SCRIPTS["kill_points"])
    assert status == 0, lines
    found = re.match(
        r"6 runs killed (\d+) times \((\d+) at a moment, (\d+) at a file, (\d+)", lines[-2]
    )
    assert found is not None, lines
    assert int(found[1]) >= 3, lines  # else nothing was tried
    assert int(found[3]) + int(found[4]) >= 1, lines  # of these, a slow machine takes none away
    assert lines[-1] == "0 differences to an undisturbed run after resuming"


def test_a_run_whose_disk_fills_up_ends_in_one_line_and_equals_an_undisturbed_one_later() -> None:
    status, lines = said("full_disk", *SCRIPTS["full_disk"])
    assert status == 0, lines
    places = ast.literal_eval(lines[-2].partition("no room: ")[2])
    assert sum(places.values()) == 6
    assert places.get("no room was missing", 0) <= 3, lines  # else nothing was tried
    assert lines[-1] == "0 runs that did not end in one line, or differed after resuming"


def test_every_trial_of_a_soak_is_accounted_for() -> None:
    status, lines = said("soak", *SCRIPTS["soak"])
    assert status == 0, lines
    assert lines[-1] == "0 problems"


def test_a_run_interrupted_while_replies_are_read_leaves_no_process_and_loses_nothing() -> None:
    status, lines = said("ahead_interrupted")
    assert status == 0, lines
    assert lines == [
        "2 runs interrupted while their 12 replies were read ahead",
        "0 differences to an undisturbed run after resuming",
    ]


@pytest.mark.parametrize("a_trial", [0.3, 1.0])
def test_a_short_soak_finds_files_that_are_never_closed(a_trial: float) -> None:
    leaking = [Sample(n, 32 + int(a_trial * n), 70 << 20) for n in range(0, 101, 4)]
    closing = [Sample(n, 32, 70 << 20) for n in range(0, 101, 4)]
    assert list(leaks(growth(closing), 20)) == []
    (found,) = leaks(growth(leaking), 20)
    assert found.endswith("files were open at a time; 20 sessions need no 45")


def test_a_long_soak_finds_files_and_memory_that_grow_slowly() -> None:
    samples = [Sample(n, 32 + n // 90, (70 << 20) + 9000 * n) for n in range(0, 2001, 20)]
    files, memory = leaks(growth(samples), 50)
    assert files.startswith("open files grew by 1")
    assert memory == "memory grew by 9000 bytes a trial"


def test_a_soak_that_never_began_is_told() -> None:
    nothing = Soaked(None, {}, [], [], 0.1, 2, "voxmeter: no room")
    assert list(problems(nothing, 100)) == [
        "the run ended with 2: voxmeter: no room",
        "the run left no folder",
    ]
    assert list(leaks(growth(nothing.samples), 20)) == ["the run was never seen"]
