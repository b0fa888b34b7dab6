"""The frame that genuine programs run in: found or named, ready or told why not, and ended."""

from __future__ import annotations

import os
import select
import socket
import sys
from pathlib import Path

import pytest

from genuine import programs
from genuine.programs import python_of, running

PYTHON = Path(sys.executable)
SERVER = """
import os, signal, socket, subprocess, sys
listening = socket.create_server(("127.0.0.1", 0))
print("loading")
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print("child", child.pid)
print("PYTHONPATH", os.environ.get("PYTHONPATH"), "MOOD", os.environ.get("MOOD"))
print("ready on port", listening.getsockname()[1])
while True:
    listening.accept()
"""


def ended(process: int) -> bool:
    """Return whether a process, given as a file that watches it, ends within a while."""
    try:
        return bool(select.select([process], [], [], 10)[0])
    finally:
        os.close(process)


def test_an_environment_that_is_not_there_is_skipped_by_name_and_fails_under_make_conformance(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "INSTALLED", tmp_path)
    monkeypatch.delenv("GENUINE", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"needs toy from .* make conformance"):
        python_of("toy")
    monkeypatch.setenv("GENUINE", "required")
    with pytest.raises(pytest.fail.Exception, match="needs toy"):
        python_of("toy")


def test_an_environment_counts_once_everything_is_installed_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "INSTALLED", tmp_path)
    monkeypatch.delenv("GENUINE", raising=False)
    (tmp_path / "toy" / "bin").mkdir(parents=True)
    (tmp_path / "toy" / "bin" / "python").touch()
    with pytest.raises(pytest.skip.Exception):
        python_of("toy")
    (tmp_path / "toy" / "installed").touch()
    assert python_of("toy") == tmp_path / "toy" / "bin" / "python"


@pytest.mark.parametrize("temper", ["mild", "stubborn"])
def test_a_program_takes_connections_in_the_block_and_is_gone_with_its_children_after_it(
    monkeypatch: pytest.MonkeyPatch, temper: str
) -> None:
    monkeypatch.setattr(programs, "PATIENT_END_S", 1)
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    with running(PYTHON, "-c", SERVER, temper, environment={"MOOD": "calm"}) as program:
        with socket.create_connection(("127.0.0.1", program.port)):
            pass
        watched = [os.pidfd_open(program.pid), os.pidfd_open(int(program.lines[1].split()[1]))]
        assert program.lines[2] == "PYTHONPATH None MOOD calm"
        assert select.select(watched, [], [], 0)[0] == []
    assert [ended(process) for process in watched] == [True, True]


def test_a_program_is_ended_when_the_test_fails_and_its_last_words_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def test(watched: list[int]) -> None:
        with running(PYTHON, "-c", SERVER) as program:
            watched.append(os.pidfd_open(program.pid))
            pytest.fail("as it would")

    watched: list[int] = []
    with pytest.raises(pytest.fail.Exception, match="as it would"):
        test(watched)
    assert ended(watched[0])
    assert "loading" in capsys.readouterr().out


def test_a_program_that_ends_before_it_is_ready_fails_the_test_with_what_it_said() -> None:
    source = "import sys; sys.exit('no such model')"
    with (
        pytest.raises(AssertionError, match=r"ended before it was ready.*\n.*no such model"),
        running(PYTHON, "-c", source),
    ):
        pass


def test_a_program_that_never_gets_ready_is_ended_when_patience_is() -> None:
    with (
        pytest.raises(TimeoutError),
        running(PYTHON, "-c", SERVER, ready="never (.)", patience_s=1) as program,
    ):
        pytest.fail(f"{program} is not ready")
