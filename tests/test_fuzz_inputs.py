"""The seeds of the fuzzer and what little changes make of them: every reader stands them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_inputs import TARGETS, seeds

import voxmeter

COUNTS = {"audio": 12, "stream": 40, "config": 6, "lines": 40, "run_folder": 8, "judgement": 60}


@pytest.mark.parametrize("target", TARGETS)
def test_a_reader_gives_what_it_read_or_one_of_its_own_errors(target: str) -> None:
    draw = random.Random(target)  # noqa: S311 - any draw will do
    count = 0
    for data in seeds(target):
        TARGETS[target](data)
        for _ in range(COUNTS[target]):
            mangled = bytearray(data[: draw.randint(1, len(data))])
            for _ in range(draw.randint(1, 6)):
                mangled[draw.randrange(len(mangled))] = draw.randrange(256)
            TARGETS[target](bytes(mangled))
            count += 1
    assert count >= 30


def test_a_fuzzer_leaves_no_files_behind(tmp_path: Path) -> None:
    program = (
        "import fuzz_inputs as f; [f.TARGETS['run_folder'](one) for one in f.seeds('run_folder')]"
    )
    path = f"{Path(__file__).parent}:{Path(voxmeter.__file__).parent.parent}"
    there = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=there, check=True, timeout=120)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make: apt-get install -y make")
@pytest.mark.parametrize(("whole_s", "each_s"), [(5, 1), (70, 10)])
def test_each_target_is_fuzzed_for_a_second_at_least(
    whole_s: int, each_s: int, tmp_path: Path
) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    makefile = str(Path(__file__).parent.parent / "Makefile")
    there = ("-o", "install", "-o", ".genuine/atheris/installed")
    values = (f"BIN={python.parent}", f"FUZZ_S={whole_s}")
    done = subprocess.run(
        ["make", "-s", "-f", makefile, *there, *values, "fuzz-audio"],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert f" -max_total_time={each_s} " in done.stdout
