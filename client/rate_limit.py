"""One endpoint's rate limits, kept by all its sessions together: when one may begin, and how many.

A wait that the endpoint names holds everybody back, not only the session that was refused. A
refusal for too many requests halves the sessions at a time (never below one); every answer gives
a part of one back, up to what the bench allows: additive increase, multiplicative decrease.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from voxmeter.client.clock import Clock

_NS = 1_000_000_000
_DECREASE = 0.5


@dataclass(frozen=True, slots=True)
class Pass:
    """Leave to begin one session.

    Attributes:
        waited_s: How long was waited for it.
        round: Decreases so far; sessions of one round that are refused together decrease once.
        others: Sessions that were under way when this one began.
        number: Counts the sessions from 1.
    """

    waited_s: float
    round: int
    others: int = 0
    number: int = 0


class RateLimit:
    """What is known of one endpoint's limits.

    Args:
        sessions: Sessions at a time that the bench allows.
        clock: For the waits.
        longest_s: No limit that is used up is waited for longer than this without a refusal.
    """

    def __init__(self, sessions: int, clock: Clock, longest_s: float = 60.0) -> None:
        self._most = max(1, sessions)
        self._clock = clock
        self._longest_s = longest_s
        self._allowed = float(self._most)
        self._active = 0
        self._begun = 0
        self._round = 0
        self._opens_ns = 0
        self._changed = asyncio.Event()

    @property
    def sessions(self) -> int:
        """Sessions that are allowed at a time now, 1 to what the bench allows."""
        return int(self._allowed)

    async def enter(self, not_before_ns: int = 0) -> Pass:
        """Wait until a session may begin; `leave` has to follow.

        Args:
            not_before_ns: A wait of this session's own.
        """
        began, waited = self._clock.now(), False
        while True:
            opens_ns = max(self._opens_ns, not_before_ns)
            if self._clock.now() < opens_ns:
                waited = True
                await self._clock.sleep_until(opens_ns)
            elif self._active >= self.sessions:
                waited = True
                self._changed.clear()
                await self._changed.wait()
            else:
                break
        others, self._active, self._begun = self._active, self._active + 1, self._begun + 1
        waited_s = (self._clock.now() - began) / _NS if waited else 0.0
        return Pass(waited_s, self._round, others, self._begun)

    async def opened(self) -> float:
        """Wait for a time that was named meanwhile, if one was; return how long, s."""
        began = self._clock.now()
        while self._clock.now() < self._opens_ns:
            await self._clock.sleep_until(self._opens_ns)
        return (self._clock.now() - began) / _NS if self._opens_ns > began else 0.0

    def beside_others(self, one: Pass) -> bool:
        """Return whether other sessions were under way at any time since a session began."""
        return one.others > 0 or self._begun > one.number

    def leave(self) -> None:
        """Make room for another session."""
        self._active -= 1
        self._changed.set()

    def wait(self, wait_s: float) -> None:
        """Let nobody begin for a time that the endpoint named."""
        self._opens_ns = max(self._opens_ns, self._clock.now() + int(max(0.0, wait_s) * _NS))

    def spent(self, reset_s: float) -> None:
        """Let nobody begin until a limit that is used up is whole again."""
        self.wait(min(reset_s, self._longest_s))

    def refused(self, one: Pass) -> None:
        """Ask fewer at a time: one session was refused because there were too many."""
        if one.round == self._round:
            self._round += 1
            self._allowed = max(1.0, float(int(self._allowed * _DECREASE)))

    def answered(self) -> None:
        """Ask a few more at a time, one more after as many answers as there are sessions."""
        if self._allowed < self._most:
            self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)
            self._changed.set()
