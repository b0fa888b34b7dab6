"""The plugin in repositories of others: several workers, packages of our names, switched off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_layers import ROOT
from test_pytest_plugin import PLUGIN

from voxmeter.client.audio import write_flac
from voxmeter.client.servers.voice import babble

OWN = ("client", "endpoints", "scoring", "suites", "tests")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with packages that have our folders' names and must not be taken for ours."""
    for name in OWN:
        (tmp_path / name).mkdir()
        told = "" if name == "tests" else "raise RuntimeError('a package of the repository')\n"
        (tmp_path / name / "__init__.py").write_text(told)
    return tmp_path


def run(repository: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "error", *arguments],
        cwd=repository,
        env={
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "XDG_CACHE_HOME": str(repository / "cache"),
            "TMPDIR": str(repository),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


IN_PARALLEL = ("-p", PLUGIN, "-p", "xdist", "-n", "2", "--dist", "each")
SHARED = """
from conversations import conversation, spread

def test_shared(voxmeter, worker_id):
    centre = 300 if worker_id == "gw0" else 350
    voxmeter.assert_no_regression(conversation(spread(centre)), "shared.json")

def test_own(voxmeter, worker_id):
    voxmeter.assert_no_regression(conversation(spread(300)), f"{worker_id}.json")
"""


def test_of_several_workers_one_writes_a_baseline_and_the_others_are_told(
    repository: Path,
) -> None:
    (repository / "tests" / "test_it.py").write_text(SHARED)
    status, said = run(repository, *IN_PARALLEL, "--voxmeter-update")
    assert status == 1, said
    assert "1 failed, 3 passed" in said
    assert "shared.json: was written from another conversation by this very command" in said
    written = json.loads((repository / "tests" / "shared.json").read_text())
    assert written["metrics"]["first_audible_ms"]["p50"] in (300, 350)
    assert {one.name for one in (repository / "tests").glob("*.json")} == {
        "gw0.json",
        "gw1.json",
        "shared.json",
    }
    assert not [one for one in (repository / "tests").iterdir() if "partial" in one.name]


def test_the_next_command_may_write_it_again_and_figures_of_all_workers_are_shown(
    repository: Path,
) -> None:
    (repository / "tests" / "test_it.py").write_text(SHARED)
    for _ in range(2):
        status, said = run(repository, *IN_PARALLEL, "--voxmeter-update", "-k", "own")
        assert status == 0, said
        assert said.count("wrote tests/gw") == 2
    status, said = run(repository, *IN_PARALLEL, "-k", "own")
    assert status == 0, said
    assert said.count("first_audible_ms p50 300 ms [") == 2


def test_servers_of_several_workers_do_not_meet(repository: Path) -> None:
    write_flac(repository / "tests" / "clip.flac", babble(16_000, 0.3), 16_000)
    (repository / "tests" / "test_it.py").write_text(
        """
def test_it(voxmeter, worker_id):
    endpoint = "metronome?delay_ms=250&pacing=burst"
    found = voxmeter.converse(endpoint, "clip.flac", 2, transcribe=None)
    assert [trial["status"] for trial in found.trials] == ["ok"] * 2
"""
    )
    status, said = run(repository, *IN_PARALLEL)
    assert status == 0, said
    assert "2 passed" in said


def test_it_can_be_switched_off(repository: Path) -> None:
    (repository / "tests" / "test_it.py").write_text("def test_it(request): pass\n")
    status, said = run(repository, "-p", f"no:{PLUGIN}")
    assert status == 0, said
    status, said = run(repository, "-p", f"no:{PLUGIN}", "--voxmeter-update")
    assert status == 4, said
    assert "unrecognized arguments: --voxmeter-update" in said
