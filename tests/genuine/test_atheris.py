"""The fuzzer runs for a bounded number of inputs; `make fuzz` runs it for as long as one likes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from genuine.programs import python_of

ROOT = Path(__file__).parent.parent.parent
RUNS = 60_000


def test_no_bytes_bring_a_codec_down(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            python_of("atheris"),
            ROOT / "tests" / "fuzz_codecs.py",
            tmp_path / "corpus",
            f"-runs={RUNS}",
            f"-artifact_prefix={tmp_path}/",
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert f"Done {RUNS} runs" in done.stderr
