"""A process beside the event loop that finishes attempts: decoding, marks and files."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, Self

from voxmeter.client.finish import finish

if TYPE_CHECKING:
    from types import TracebackType

    from voxmeter.client.capture import Capture
    from voxmeter.client.finish import Attempt


class Finisher:
    """Finishes attempts in one process of low priority, so that none of it delays a frame.

    A process that dies (out of memory, killed) is replaced once for each attempt; a second death
    on the same attempt is raised.
    """

    def __init__(self) -> None:
        self._pool = _pool()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def finish(self, capture: Capture, attempt: Attempt) -> dict[str, Any]:
        """Write an attempt's files; return its line for `trials.jsonl`.

        Raises:
            UserError: If the disk is full.
        """
        loop = asyncio.get_running_loop()
        pool = self._pool
        try:
            return await loop.run_in_executor(pool, finish, capture, attempt)
        except BrokenProcessPool:
            if self._pool is pool:
                self._pool = _pool()
            return await loop.run_in_executor(self._pool, finish, capture, attempt)


def _pool() -> ProcessPoolExecutor:
    # Spawned, not forked: the parent has threads and an event loop.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_step_back)


def _step_back() -> None:
    """Yield the processor to the event loop, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(19)
