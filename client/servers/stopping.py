"""When a server is to stop: a signal, or the death of whoever started it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

_INTERRUPTED = 130


class Stop:
    """Waits for SIGINT, SIGTERM or the end of standard input. Made inside a running loop."""

    def __init__(self, *, until_stdin: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._status: asyncio.Future[int] = self._loop.create_future()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._set, _INTERRUPTED)
        if until_stdin:
            threading.Thread(target=self._watch_stdin, name="stdin", daemon=True).start()

    async def wait(self) -> int:
        """Return the exit status to stop with."""
        return await self._status

    def _set(self, status: int) -> None:
        if not self._status.done():
            self._status.set_result(status)

    def _watch_stdin(self) -> None:
        while os.read(0, 4096):
            pass
        try:
            self._loop.call_soon_threadsafe(self._set, 0)
        except RuntimeError:
            return  # the loop has ended already
