"""The process that ends what a killed run had started."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from voxmeter.client.guard import Guard

WAITING = "import sys; sys.stdin.read()"


@contextmanager
def program() -> Iterator[subprocess.Popen[bytes]]:
    """A program in a process group of its own that waits for the end of its input."""
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], stdin=subprocess.PIPE, start_new_session=True
    ) as started:
        yield started
        started.kill()


def test_what_is_still_watched_at_the_end_is_killed() -> None:
    with program() as one:
        guard = Guard()
        guard.watch(one.pid)
        guard.close()
        assert one.wait(10) == -signal.SIGKILL


def test_what_was_forgotten_goes_on() -> None:
    with program() as one, program() as other:
        guard = Guard()
        guard.watch(one.pid)
        guard.watch(other.pid)
        guard.forget(one.pid)
        guard.close()
        assert other.wait(10) == -signal.SIGKILL
        assert one.poll() is None
        assert one.stdin is not None
        one.stdin.close()
        assert one.wait(10) == 0


def test_a_guard_that_watched_nothing_has_nothing_to_end() -> None:
    Guard().close()
