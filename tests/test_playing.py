"""A peer that waits for it is told when all that it said has been played, and no other is."""

from __future__ import annotations

import asyncio

from voxmeter.client.playing import Playout
from voxmeter.endpoints.events import Interrupted, ReplyAudio, ReplyText

MS = 1_000_000
HUNDRED_MS = ReplyAudio(bytes(3200), "pcm16", 16000, "r1")


class HandClock:
    """A clock that stands where it was asked to sleep until."""

    def __init__(self) -> None:
        self.t_ns = 0

    def now(self) -> int:
        return self.t_ns

    async def sleep_until(self, t_ns: int) -> None:
        await asyncio.sleep(0)
        self.t_ns = max(self.t_ns, t_ns)


async def test_pieces_play_one_after_another_from_their_arrival_on() -> None:
    clock, playout = HandClock(), Playout()
    playout.hear(5 * MS, HUNDRED_MS)
    playout.hear(6 * MS, HUNDRED_MS)
    assert await playout.over(clock) == "r1"
    assert clock.now() == 205 * MS
    playout.hear(300 * MS, HUNDRED_MS)
    assert await playout.over(clock) == "r1"
    assert clock.now() == 400 * MS


async def test_what_comes_while_it_plays_is_played_too() -> None:
    clock, playout = HandClock(), Playout()
    playout.hear(0, HUNDRED_MS)
    over = asyncio.create_task(playout.over(clock))
    await asyncio.sleep(0)
    playout.hear(50 * MS, HUNDRED_MS)
    await over
    assert clock.now() == 200 * MS


async def test_an_interrupted_reply_is_over_at_once() -> None:
    clock, playout = HandClock(), Playout()
    playout.hear(0, HUNDRED_MS)
    playout.hear(10 * MS, Interrupted())
    await playout.over(clock)
    assert clock.now() == 10 * MS


async def test_without_sound_nothing_is_ever_over() -> None:
    clock, playout = HandClock(), Playout()
    playout.hear(0, ReplyText("Hi.", "r1"))
    over = asyncio.create_task(playout.over(clock))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not over.done()
    over.cancel()
