"""Stage 3, by rules: a row for every metric of every trial that has changed.

Few trials are scored here; many are handed in batches to processes of low priority, one a core.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from voxmeter.client.child import ChildDiedError
from voxmeter.client.trial_scores import Unrated, Written, rows_of_batch, trial_rows
from voxmeter.client.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from voxmeter.client.runfolder import RunFolder

_BATCH = 16
_WORTH_PROCESSES = 200
"""Trials; fewer are scored sooner than a process has started."""


class RuleScoring:
    """Scores trials as they are put in, as long as `run` runs.

    Args:
        folder: Open for writing.
        processes: Most that score side by side.
        tell: Told how many trials are done, and of how many.
    """

    def __init__(self, folder: RunFolder, processes: int, tell: Callable[[int, int], None]) -> None:
        keys = {key: number for number, key in enumerate(folder.newest())}
        self._folder = folder
        self._written = Written.read(keys, folder.rows("scores"))
        self._total = len(keys)
        self._done = 0
        self._tell = tell
        self._batch: list[Unrated] = []
        self._processes = processes if self._total >= _WORTH_PROCESSES else 0
        self._queue: asyncio.Queue[list[Unrated] | None] = asyncio.Queue(2 * processes)

    async def run(self) -> None:
        """Score what is put in, until `end`.

        Raises:
            UserError: If the disk is full.
        """
        with ExitStack() as stack:
            async with asyncio.TaskGroup() as group:
                for number in range(self._processes):
                    worker = stack.enter_context(Worker(f"scorer-{number}"))
                    group.create_task(self._work(worker), name=f"scorer {number}")

    async def put(self, one: Unrated) -> None:
        """Take one attempt, waiting while too many are on their way."""
        if not self._processes:
            self._append(1, trial_rows(self._folder, one))
            return
        self._batch.append(one)
        if len(self._batch) >= _BATCH:
            await self._send()

    async def end(self) -> None:
        """Let `run` end when all is scored."""
        if self._processes:
            await self._send()
            for _ in range(self._processes):
                await self._queue.put(None)

    async def _send(self) -> None:
        batch, self._batch = self._batch, []
        await self._queue.put(batch)

    async def _work(self, worker: Worker) -> None:
        while (batch := await self._queue.get()) is not None:
            rows = await self._rows(worker, batch)
            self._append(len(batch), iter(rows))

    async def _rows(self, worker: Worker, batch: list[Unrated]) -> list[dict[str, Any]]:
        """Return the rows of a batch; a process that dies is replaced once, then done without."""
        for _ in range(2):
            try:
                future = worker.submit(rows_of_batch, self._folder.path, batch)
                return await asyncio.wrap_future(future)
            except ChildDiedError:
                continue
        return rows_of_batch(self._folder.path, batch)

    def _append(self, trials: int, rows: Iterator[dict[str, Any]]) -> None:
        for row in rows:
            if self._written.is_new(row):
                self._folder.append("scores", row)
        self._done += trials
        self._tell(self._done, self._total)
