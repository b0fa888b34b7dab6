"""A process of our own code beside this one: started, spoken to over two pipes, ended.

Unlike `multiprocessing` it never runs the user's main module again, so that a script without a
`__main__` guard works; it holds none of this process's streams; and it ends by itself when this
process is killed, because its pipe ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import IO

from voxmeter.client.affinity import elsewhere


class ChildDiedError(Exception):
    """A child ended while it had work; the text is its exit status and the end of what it wrote."""


class Child:
    """One process, as its parent sees it.

    Attributes:
        requests: What it reads.
        replies: What it writes.
    """

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        """Start it.

        Args:
            module: Its `main()` is run; it begins with `pipes`.
            environment: All of its variables; None gives it this process's.
        """
        # The same import path as here, whatever folder or zip this program was started from.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives until `end`
        with elsewhere():
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                env=environment,
                start_new_session=True,  # Ctrl-C is for this process, which then ends the other
            )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("a child without pipes")
        self.requests, self.replies = self._process.stdin, self._process.stdout

    def kill(self) -> None:
        """End it now; any thread may call."""
        self._process.kill()

    def end(self) -> None:
        """End it and free what it held; may be called twice."""
        self._process.kill()
        self._process.wait()
        for pipe in (self.requests, self.replies):
            with contextlib.suppress(OSError):  # what was not sent yet has nobody to read it
                pipe.close()
        self._complaints.close()

    def died(self) -> ChildDiedError:
        """Return what to raise once one of its pipes has ended."""
        status = self._process.wait()
        end = self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, end - 400))
        words = self._complaints.read().decode(errors="replace").strip()
        return ChildDiedError(f"exit status {status}; {words}")


def lower_priority(*, idle: bool = True) -> None:
    """Run this process only when others do not want to: pacing and time stamps come first.

    Args:
        idle: Also behind processes that are merely nice, where the system can do that.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.nice(19)
    if idle and sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return what a child is asked and where it answers; the first call of its `main`.

    From then on Ctrl-C is the parent's to handle, and what a library prints goes to standard error:
    it must not get between the messages.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return requests, replies
