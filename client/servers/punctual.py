"""Waiting for an exact moment without holding up the other sessions of a server."""

from __future__ import annotations

import asyncio

from voxmeter.client.clock import Clock

_SPIN_NS = 1_500_000  # the event loop's timer rounds up to whole milliseconds
_MAX_SPINNING = 4


class Punctual:
    """Waits exactly, as long as few wait at a time; shared by all sessions of a server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spinning = 0

    async def until(self, t_ns: int) -> None:
        """Return at `t_ns`, usually within 0.1 ms; at once, after other tasks, if it has passed.

        The last moment is spent running the other tasks of the loop over and over, unless several
        replies already do so: then the loop's own timer, up to 1 ms late, has to do.
        """
        exact = self._spinning < _MAX_SPINNING
        await self._clock.sleep_until(t_ns - _SPIN_NS if exact else t_ns)
        if not exact:
            return
        self._spinning += 1
        try:
            while self._clock.now() < t_ns:  # noqa: ASYNC110 - no event stands for a moment
                await asyncio.sleep(0)
        finally:
            self._spinning -= 1
