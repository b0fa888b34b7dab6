"""One transcribing process as its parent sees it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from typing import Any

from voxmeter.client.child import Child
from voxmeter.client.transcribe_wire import Samples, receive, send


class TranscribingChild:
    """One child that holds one model."""

    def __init__(self, setup: Mapping[str, object], threads: int) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
        self._child = Child("voxmeter.client.transcribe_worker", environment)
        with contextlib.suppress(OSError):  # a child that is dead already is found by `ask`
            send(self._child.requests, setup)

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
            send(self._child.requests, request, samples)
            reply, _ = receive(self._child.replies)
        except (OSError, EOFError):
            raise self._child.died() from None
        else:
            return reply
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the child now; any thread may call."""
        self._child.kill()

    def end(self) -> None:
        """End the child and free what it held."""
        self._child.end()
