"""How late the loop itself runs, with a clock that the test moves."""

from __future__ import annotations

import asyncio

from fakes import FrozenClock

from voxmeter.client.clock import SystemClock
from voxmeter.client.lag import LoopMonitor

MS = 1_000_000
PERIOD = 10 * MS


class LateClock(FrozenClock):
    """Wakes its sleepers late by what the test says, one number after another, then stops."""

    def __init__(self, *late_ms: float) -> None:
        super().__init__()
        self.late = [int(ms * MS) for ms in late_ms]
        self.spent = asyncio.Event()

    async def sleep_until(self, t_ns: int) -> None:
        if not self.late:
            self.spent.set()
            await asyncio.Event().wait()
        await super().sleep_until(t_ns + self.late.pop(0))


async def watched(*late_ms: float) -> tuple[LoopMonitor, int]:
    clock = LateClock(*late_ms)
    start = clock.now()
    async with LoopMonitor(clock).watching() as monitor:
        await clock.spent.wait()
    return monitor, start


async def test_every_wake_up_is_noted_with_how_late_it_was() -> None:
    monitor, start = await watched(0, 3, 0.5)
    assert list(monitor.between(start, start + 100 * MS)) == [
        (start + PERIOD, 0.0),
        (start + 2 * PERIOD, 3.0),
        (start + 3 * PERIOD, 0.5),
    ]


async def test_a_blocked_loop_is_one_lag_that_stands_for_all_it_missed() -> None:
    monitor, start = await watched(0, 500, 0)
    found = list(monitor.between(start, start + 2000 * MS))
    assert [lag for _, lag in found] == [0.0, 500.0, 0.0]
    assert found[2][0] == found[1][0] + 500 * MS


async def test_a_trial_gets_the_part_that_is_its_own() -> None:
    monitor, start = await watched(1, 2, 3, 4, 5)
    inside = list(monitor.between(start + 2 * PERIOD, start + 4 * PERIOD))
    assert [round(lag) for _, lag in inside] == [2, 3, 4]
    assert list(monitor.between(start + 4 * PERIOD + 1, start + 5 * PERIOD - 1)) == []
    assert list(monitor.between(0, start)) == []
    assert list(monitor.between(start + 10**12, start + 2 * 10**12)) == []


async def test_watching_ends_with_its_block() -> None:
    monitor, start = await watched(0)
    tasks = [task for task in asyncio.all_tasks() if task.get_name() == "loop lag"]
    assert tasks == []
    assert len(monitor.between(start, start + 10**12)) == 1


class TellingClock(SystemClock):
    """The machine's clock, which tells when somebody lies down on it."""

    def __init__(self) -> None:
        self.asleep = asyncio.Semaphore(0)

    async def sleep_until(self, t_ns: int) -> None:
        self.asleep.release()
        await super().sleep_until(t_ns)


async def test_a_loop_that_our_own_work_blocks_is_seen() -> None:  # PR-03
    clock = TellingClock()
    async with LoopMonitor(clock).watching() as monitor:
        await clock.asleep.acquire()
        until = clock.now() + 60 * MS
        while clock.now() < until:
            pass  # work that should have been elsewhere
        await clock.asleep.acquire()
    ((_, lag), *_) = monitor.between(0, 2**63)
    assert lag >= 40


async def test_memory_is_bounded() -> None:
    monitor, start = await watched(*[0] * 70_000)
    found = list(monitor.between(0, start + 10**15))
    assert 60_000 <= len(found) < 65_000
    assert found[-1][0] == start + 70_000 * PERIOD
