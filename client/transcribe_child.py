"""One transcribing process as its parent sees it: started, asked, ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

from voxmeter.client.transcribe_wire import Samples, receive, send


class ChildDiedError(Exception):
    """A child ended while it had work; the text is its exit status and the end of what it wrote."""


class TranscribingChild:
    """One child and its two pipes."""

    def __init__(self, setup: Mapping[str, object], threads: int) -> None:
        # The child gets this process's import path as it is, so that it runs the same code;
        # nothing of the user's own main module is run again, unlike with multiprocessing.
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            "from voxmeter.client.transcribe_worker import main; main()"
        )
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives until `end`
        self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=environment,
        )
        if self._child.stdin is None or self._child.stdout is None:
            raise RuntimeError("a child without pipes")
        self._requests, self._replies = self._child.stdin, self._child.stdout
        with contextlib.suppress(OSError):  # a child that is dead already is found by `ask`
            send(self._requests, setup)

    def ask(
        self, request: Mapping[str, object], samples: Samples | None, limit_s: float
    ) -> dict[str, Any]:
        """Return the child's reply; blocking.

        Raises:
            ChildDiedError: If it ended, or was ended because the limit passed.
        """
        timer = threading.Timer(limit_s, self.kill)
        timer.daemon = True
        timer.start()
        try:
            send(self._requests, request, samples)
            reply, _ = receive(self._replies)
        except (OSError, EOFError):
            raise ChildDiedError(self._last_words()) from None
        else:
            return reply
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the child now; any thread may call."""
        self._child.kill()

    def end(self) -> None:
        """End the child and free what it held."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._requests, self._replies):
            with contextlib.suppress(OSError):  # what was not sent yet has nobody to read it
                pipe.close()
        self._complaints.close()

    def _last_words(self) -> str:
        status = self._child.wait()
        end = self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, end - 400))
        return f"exit status {status}; {self._complaints.read().decode(errors='replace').strip()}"
