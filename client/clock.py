"""The one clock: nanoseconds of `time.perf_counter_ns`, read nowhere else in the client."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Time as the session driver sees it; tests hand in one that they move themselves."""

    def now(self) -> int:
        """Return monotonic nanoseconds, comparable within this machine."""
        ...

    async def sleep_until(self, t_ns: int) -> None:
        """Return at or after `t_ns`; at once, but after other tasks ran, when it has passed."""
        ...


class SystemClock:
    """The machine's monotonic clock; the same one in every process of the machine."""

    def now(self) -> int:
        """Return `time.perf_counter_ns()`."""
        return time.perf_counter_ns()

    async def sleep_until(self, t_ns: int) -> None:
        """Sleep by the event loop's timer; the loop wakes up to 1 ms late (epoll rounds up)."""
        left_ns = t_ns - time.perf_counter_ns()
        await asyncio.sleep(left_ns / 1e9 if left_ns > 0 else 0)


def utc_now() -> datetime:
    """Return the wall clock in UTC: for names and records, never for a latency."""
    return datetime.now(UTC)
