"""How late the event loop itself runs: the client's own fault, measured beside every trial."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from voxmeter.client.clock import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PERIOD_NS = 10_000_000
_KEPT = 60_000  # ten minutes: longer than any trial may take


class LoopMonitor:
    """Wakes every 10 ms and notes how late it was woken.

    One for each event loop; a trial asks for the part that is its own.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._due: deque[int] = deque(maxlen=_KEPT)
        self._lag: deque[int] = deque(maxlen=_KEPT)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[LoopMonitor]:
        """Watch the running loop inside a `with` block."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._watch(), name="loop lag")
            try:
                yield self
            finally:
                task.cancel()

    def between(self, start_ns: int, end_ns: int) -> list[tuple[int, float]]:
        """Return (due, lag in ms) of every wake-up that was due between two moments."""
        found: list[tuple[int, float]] = []
        for due, lag in zip(reversed(self._due), reversed(self._lag), strict=False):
            if due < start_ns:  # a trial is recent: what came before it need not be looked at
                break
            if due <= end_ns:
                found.append((due, lag / 1e6))
        return found[::-1]

    async def _watch(self) -> None:
        due = self._clock.now() + _PERIOD_NS
        while True:
            await self._clock.sleep_until(due)
            now = self._clock.now()
            self._due.append(due)
            self._lag.append(max(0, now - due))
            # A blocked loop misses wake-ups; the one lag that spans them stands for all.
            due = max(due + _PERIOD_NS, now)
