"""The repository of examples/latency-regression as its reader uses it, with live conversations."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from voxmeter.client.audio import read, sha256, write_flac
from voxmeter.client.baseline import LATE, read_baseline
from voxmeter.client.servers.voice import babble

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "latency-regression"
BASELINE = Path("baselines") / "hamlet.json"
SLOWER = "metronome?delay_ms=450&pacing=burst"
WORKFLOW = (EXAMPLE / "latency.yml").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "repository"))


def run(folder: Path, *arguments: str, assistant: str | None = None) -> tuple[int, str]:
    """Run the tests of the repository by its workflow's command; exit status and what was said."""
    told = re.search(r"ASSISTANT: (\S+)", WORKFLOW)
    command = re.search(r"run: python (-m pytest.*)", WORKFLOW)
    assert told is not None
    assert command is not None
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "ASSISTANT": assistant or told[1],
        "TRIALS": "6",
    }
    done = subprocess.run(
        [sys.executable, *command[1].split(), "-p", "voxmeter.client.pytest_plugin", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout + done.stderr
    if re.search(rf"too few samples: \d of 6 trials.*{LATE}", said):
        pytest.skip("this machine was too busy to measure a latency")
    return done.returncode, said


def test_the_assistant_of_the_baseline_passes(folder: Path) -> None:
    status, said = run(folder)
    assert status == 0, said
    assert re.search(r"first_audible_ms p50 \d+ ms \[.*\] \(n \d.*\), was 301 ms .* \(n 20\)", said)
    assert "first_audible_ms" in (folder / "latency.xml").read_text(encoding="utf-8")


def test_a_planted_shift_fails_with_its_size_and_its_limits(folder: Path) -> None:
    status, said = run(folder, assistant=SLOWER)
    assert status == 1, said
    assert "first_audible_ms is worse than in baselines/hamlet.json" in said
    assert re.search(r"change \+\d+\.\d ms \[\+\d+\.\d to \+\d+\.\d\]", said)
    assert "30 ms (absolute_ms=30), 30 ms (relative=0.1 of 301 ms)" in said
    assert "the baseline was made on another machine (example, this is " in said


def test_a_baseline_whose_samples_were_raised_by_hand_hides_no_shift(folder: Path) -> None:
    rows = json.loads((folder / BASELINE).read_text())
    rows["metrics"]["first_audible_ms"]["samples"] = [900.0] * 20
    (folder / BASELINE).write_text(json.dumps(rows))
    status, said = run(folder, assistant=SLOWER)
    assert status == 1, said
    assert "UserError: baselines/hamlet.json: was changed by hand: p50 of first_audible_ms" in said


def test_a_baseline_of_another_clip_is_refused(folder: Path) -> None:
    write_flac(folder / "clips" / "hamlet.flac", babble(16_000, 0.3), 16_000)
    status, said = run(folder)
    assert status == 1, said
    assert "UserError: baselines/hamlet.json: was made from another clip_sha256 (" in said
    assert "is worse" not in said


def test_the_baseline_is_of_the_clip_beside_it_and_names_no_machine() -> None:
    found = read_baseline(EXAMPLE / BASELINE, "baseline", "pytest")
    assert found.subject.clip_sha256 == sha256(read(EXAMPLE / "clips" / "hamlet.flac"))
    assert found.host == "example"
    assert len(found.samples["first_audible_ms"].values) == 20


def test_the_readme_names_every_file_and_its_links_lead_somewhere() -> None:
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    for path in EXAMPLE.rglob("*.*"):
        name = path.relative_to(EXAMPLE).as_posix()
        if "__pycache__" not in name and ".pytest_cache" not in name:
            assert name in {"README.md", "pytest.ini"} or f"`{name}`" in text, name
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (EXAMPLE / target).resolve().exists(), target


def test_the_lines_to_copy_from_the_readme_write_a_baseline(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.search(r"```python\n(def test_.*?)```", text, re.DOTALL)
    assert lines is not None
    assert len(lines[1].splitlines()) == 10
    here = {"wss://host.example/v1/realtime": SLOWER, "trials=20": "trials=6", ".wav": ".flac"}
    code = lines[1]
    for old, new in here.items():
        assert old in code
        code = code.replace(old, new)
    (tmp_path / "test_latency.py").write_text(code)
    (tmp_path / "clips").mkdir()
    write_flac(tmp_path / "clips" / "hello.flac", babble(16_000, 0.3), 16_000)
    status, said = run(tmp_path, "--voxmeter-update")
    assert status == 0, said
    assert (tmp_path / "baselines" / "hello.json").is_file()
