"""A run's own server: started on a free port, gone with the run, its failure one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from voxmeter.client.builtin import serving
from voxmeter.client.builtin_name import parse_builtin
from voxmeter.endpoints.errors import UserError


def greeted(url: str) -> bool:
    with connect(url, compression=None) as connection:
        return bool(json.loads(connection.recv())["type"] == "session.created")


def test_a_builtin_server_lives_as_long_as_its_block(tmp_path: Path) -> None:
    options = ("--truth", str(tmp_path / "truth.jsonl"))
    with serving("metronome?delay_ms=300&jitter_ms=20", options=options) as url:
        assert greeted(url)
    assert (tmp_path / "truth.jsonl").exists()
    with pytest.raises(OSError, match="refused"):
        connect(url)


def test_two_run_side_by_side() -> None:
    with serving("echo") as one, serving(parse_builtin("metronome")) as other:
        assert one != other
        assert greeted(one)
        assert greeted(other)


def test_the_server_ends_when_the_block_fails() -> None:
    with pytest.raises(KeyError), serving("echo") as url:
        raise KeyError
    with pytest.raises(OSError, match="refused"):
        connect(url)


def test_a_server_that_does_not_start_says_why() -> None:
    with (
        pytest.raises(UserError, match="query key 'delay' is unknown") as error,
        serving("metronome?delay=1"),
    ):
        pass
    assert str(error.value).startswith('builtin = "metronome?delay=1": did not start: ')
    assert "\n" not in str(error.value)


def test_a_server_that_takes_too_long_is_ended() -> None:
    with (
        pytest.raises(UserError, match="was not ready within 0 s"),
        serving("echo", ready_timeout_s=0.001),
    ):
        pass


def test_a_server_does_not_outlive_a_run_that_is_killed() -> None:
    code = (
        "import os, signal\n"
        "from voxmeter.client.builtin import serving\n"
        "with serving('echo') as url:\n"
        "    print(url, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert done.returncode == -9
    url = done.stdout.strip()
    assert url.startswith("ws://127.0.0.1:")
    assert any(gone(url) for _ in range(10_000))


def gone(url: str) -> bool:
    """Whether nobody listens any more; a session that is still taken is held until it is closed."""
    try:
        with connect(url, compression=None) as connection:
            for _ in connection:
                pass
    except ConnectionRefusedError:
        return True
    except (OSError, EOFError, WebSocketException):
        return False  # in the middle of ending
    return False
