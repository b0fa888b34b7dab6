"""The fuzzer runs for a bounded number of inputs; `make fuzz` runs it for as long as one likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_inputs import TARGETS

from genuine.programs import python_of

ROOT = Path(__file__).parent.parent.parent
RUNS = {
    "codecs": 60_000,
    "audio": 2_000,
    "stream": 4_000,
    "config": 500,
    "lines": 60,
    "run_folder": 150,
    "judgement": 1_000,
}


def test_every_target_is_fuzzed_here_and_by_make_fuzz() -> None:
    assert RUNS.keys() == {"codecs", *TARGETS}
    assert f"FUZZED := {' '.join(RUNS)}\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("target", RUNS)
def test_no_bytes_bring_a_reader_down(target: str, tmp_path: Path) -> None:
    packages = next((python_of("atheris").parent.parent / "lib").glob("python3*/site-packages"))
    script = ["fuzz_codecs.py"] if target == "codecs" else ["fuzz_inputs.py", target]
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "tests" / script[0],
            *script[1:],
            tmp_path / "corpus",
            f"-runs={RUNS[target]}",
            "-timeout=60",
            "-rss_limit_mb=3000",
            f"-artifact_prefix={tmp_path}/",
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "ATHERIS": str(packages)},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert f"Done {RUNS[target]} runs" in done.stderr
