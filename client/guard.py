"""A process that outlives this one for a moment, to end the programs that this one started.

A run that is killed cannot clean up. The guard holds a pipe from it and a list of process groups;
when the pipe ends, however that came about, the groups are killed.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress

_CODE = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class Guard:
    """Started with the first group that it is told of; `close` ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def watch(self, group: int) -> None:
        """Kill a process group when this process ends."""
        with self._lock:
            if self._closed:
                return
            if self._process is None:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                    [sys.executable, "-I", "-S", "-c", _CODE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for this process
                )
            self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Leave a process group alone from now on: its number may become another's."""
        with self._lock:
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """End the guard; groups that it was not told to forget are killed."""
        with self._lock:
            self._closed = True
            if self._process is not None and self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.close()
                self._process.wait()

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with suppress(OSError, ValueError):  # it was killed or closed; the programs go on
            self._process.stdin.write(line.encode("ascii"))
            self._process.stdin.flush()
