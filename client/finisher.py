"""A process beside the event loop that finishes attempts: decoding, marks and files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from voxmeter.client.child import ChildDiedError
from voxmeter.client.finish import finish
from voxmeter.client.worker import Worker

if TYPE_CHECKING:
    from voxmeter.client.capture import Capture
    from voxmeter.client.finish import Attempt


class Finisher:
    """Finishes attempts in one process of low priority, so that none of it delays a frame.

    A process that dies (out of memory, killed) is replaced once for each attempt; a second death
    on the same attempt is raised.
    """

    def __init__(self) -> None:
        self._worker = Worker("finisher")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.close()

    async def finish(self, capture: Capture, attempt: Attempt) -> dict[str, Any]:
        """Write an attempt's files; return its line for `trials.jsonl`.

        Raises:
            UserError: If the disk is full.
            ChildDiedError: If the process died twice on this attempt.
        """
        try:
            return await asyncio.wrap_future(self._worker.submit(finish, capture, attempt))
        except ChildDiedError:
            return await asyncio.wrap_future(self._worker.submit(finish, capture, attempt))
