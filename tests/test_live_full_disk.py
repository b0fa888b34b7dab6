"""A disk that fills up while people talk: a real limit on files, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TALK = """
import resource, signal, sys
import test_live_command
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as on a full disk, the write fails
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(test_live_command.held(sys.argv[2:]))
"""
BENCH = """
[[endpoint]]
name = "metronome"
builtin = "metronome?delay_ms=300"
[[suite]]
kind = "demo"
"""


@pytest.mark.parametrize("limit", [1_000, 20_000], ids=["at the first turn", "in a turn's files"])
def test_a_full_disk_ends_the_talk_with_one_line(tmp_path: Path, limit: int) -> None:
    bench = tmp_path / "bench.toml"
    bench.write_text(BENCH)
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here), str(here.parent / "src")])
    options = ["--plain", "-o", str(tmp_path / "runs")]
    made = subprocess.run(
        [sys.executable, "-c", TALK, str(limit), str(bench), *options],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=90,
    )
    assert made.returncode == 2, made.stderr
    (line,) = made.stderr.splitlines()
    assert "no space left on the disk; free some" in line
    for rows in (tmp_path / "runs").rglob("trials.jsonl"):
        assert all(json.loads(row)["item"] for row in rows.read_text().splitlines())
