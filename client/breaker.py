"""Stops asking a dead endpoint: after many failures in a row, a few more tries far apart, no more.

What is left of its trials stays as it is: a resumed run asks it. The waits between the last tries
add up to more than two minutes, so that a server that starts anew does not lose its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from voxmeter.client.clock import Clock

_NS = 1_000_000_000
WAITS_S = (5.0, 10.0, 20.0, 40.0, 80.0)
"""Before each of the last tries."""

Leave = Literal["ask", "try", "stop"]
"""`try` is one of the last tries: all others wait for how it ends."""


class Breaker:
    """Whether one endpoint is still asked.

    Args:
        failures: So many in a row without one success, then only single tries; 0 never.
        clock: For the waits.
        waits_s: Before each single try.
        tell: Told, in words, why nothing goes on.

    Attributes:
        why: Why it is asked no more, in words; empty while it is.
    """

    def __init__(
        self,
        failures: int,
        clock: Clock,
        waits_s: Sequence[float] = WAITS_S,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.why = ""
        self._limit = failures
        self._clock = clock
        self._waits_s = tuple(waits_s)
        self._tell = tell
        self._failed = 0
        self._tries = 0
        self._trying = False
        self._changed = asyncio.Event()

    async def admit(self) -> Leave:
        """Wait until the next trial may be asked, and return how; `stop`: not any more."""
        while not self.why:
            if not self._limit or self._failed < self._limit:
                return "ask"
            if not self._trying:
                self._trying = True
                await self._back_off()
                return "try"
            self._changed.clear()
            await self._changed.wait()
        return "stop"

    def succeeded(self, leave: Leave) -> None:
        """Note that the endpoint took a question; whatever came of it, it is there."""
        self._failed = self._tries = 0
        self.ended(leave)

    def failed(self, leave: Leave, fault: str) -> None:
        """Note that it did not, and why; may be the end of asking (`why`)."""
        self._failed += 1
        if leave == "try" and self._failed >= self._limit and self._tries >= len(self._waits_s):
            waited = f"the last {self._tries} over {sum(self._waits_s):.0f} s"
            self.stop(f"{self._failed} failures in a row, {waited}: {fault}")
        self.ended(leave)

    def ended(self, leave: Leave) -> None:
        """Note that a trial is over that says nothing of the endpoint."""
        if leave == "try":
            self._trying = False
        self._changed.set()

    def stop(self, why: str) -> None:
        """Ask it no more."""
        self.why = self.why or why
        self._changed.set()

    async def _back_off(self) -> None:
        wait_s = self._waits_s[min(self._tries, len(self._waits_s) - 1)]
        self._tries += 1
        self._tell(f"{self._failed} failures in a row; one more try in {wait_s:g} s")
        await self._clock.sleep_until(self._clock.now() + int(wait_s * _NS))
