"""How late the event loop itself runs: the client's own fault, measured beside every trial."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, overload

from voxmeter.client.clock import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PERIOD_NS = 10_000_000
_SPARE = 5_000
_KEPT = 60_000  # ten minutes: longer than any trial may take


class Lags(Sequence[tuple[int, float]]):
    """(due in ns, lateness in ms) of wake-ups, kept as numbers: a minute of them has thousands."""

    def __init__(self, due_ns: array[int], late_ns: array[int]) -> None:
        self._due_ns, self._late_ns = due_ns, late_ns

    def __len__(self) -> int:
        return len(self._due_ns)

    @overload
    def __getitem__(self, index: int) -> tuple[int, float]: ...
    @overload
    def __getitem__(self, index: slice) -> Lags: ...
    def __getitem__(self, index: int | slice) -> tuple[int, float] | Lags:
        if isinstance(index, slice):
            return Lags(self._due_ns[index], self._late_ns[index])
        return self._due_ns[index], self._late_ns[index] / 1e6


class LoopMonitor:
    """Wakes every 10 ms and notes how late it was woken.

    One for each event loop; a trial asks for the part that is its own.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._due = array("q")
        self._lag = array("q")

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[LoopMonitor]:
        """Watch the running loop inside a `with` block."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._watch(), name="loop lag")
            try:
                yield self
            finally:
                task.cancel()

    def between(self, start_ns: int, end_ns: int) -> Lags:
        """Return the wake-ups that were due between two moments."""
        first, last = bisect_left(self._due, start_ns), bisect_right(self._due, end_ns)
        return Lags(self._due[first:last], self._lag[first:last])

    async def _watch(self) -> None:
        due = self._clock.now() + _PERIOD_NS
        while True:
            await self._clock.sleep_until(due)
            now = self._clock.now()
            self._note(due, max(0, now - due))
            # A blocked loop misses wake-ups; the one lag that spans them stands for all.
            due = max(due + _PERIOD_NS, now)

    def _note(self, due_ns: int, late_ns: int) -> None:
        self._due.append(due_ns)
        self._lag.append(late_ns)
        if len(self._due) >= _KEPT + _SPARE:  # seldom, for what stays is moved
            del self._due[:_SPARE]
            del self._lag[:_SPARE]
