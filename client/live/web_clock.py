"""The clocks of a page, read from outside: its script's clock, and the clock of its sound.

A page stamps by `performance.now()` (ms), its sound by the time of its audio context (s). Nothing
but messages connects either with the session's clock, so each mapping says how wrong it can be.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

PINGS = 8
"""Of one round; the one that was back first counts."""

ROUND_S = 10.0
"""From one round to the next."""

_ROUNDS = 6
_DRIFT = 50e-6  # of quartz clocks against each other, at worst
_WINDOW_S = 2.0
_STEP_MS = 10.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One ping: the page's clock was at `page_ms` between `sent_ns` and `got_ns`."""

    sent_ns: int
    page_ms: float
    got_ns: int

    @property
    def offset_ns(self) -> float:
        """What is added to the page's clock to get the session's, if both ways took as long."""
        return (self.sent_ns + self.got_ns) / 2 - self.page_ms * 1e6

    @property
    def error_ns(self) -> float:
        """How far `offset_ns` can be off: the answer was given anywhere between the two."""
        return (self.got_ns - self.sent_ns) / 2


class PageClock:
    """The page's clock against the session's, from the best pings of the last rounds."""

    def __init__(self) -> None:
        self._round: list[Reading] = []
        self._best: deque[Reading] = deque(maxlen=_ROUNDS)

    @property
    def known(self) -> bool:
        """Whether a round is complete."""
        return bool(self._best)

    @property
    def between_rounds(self) -> bool:
        """Whether the next ping begins a round."""
        return not self._round

    @property
    def rtt_ns(self) -> int:
        """Of the ping that counts."""
        best = self._counting()
        return best.got_ns - best.sent_ns

    @property
    def offset_ns(self) -> int:
        """What is added to the page's clock, in ns, to get the session's."""
        return round(self._counting().offset_ns)

    def note(self, reading: Reading) -> float | None:
        """Take one ping; a full round of `PINGS` becomes part of the mapping.

        Returns:
            How far the page's clock was set, in ms, if the new round and the old ones cannot both
            be right: then the old ones are forgotten. None if there was no such step.
        """
        self._round.append(reading)
        if len(self._round) < PINGS:
            return None
        best = min(self._round, key=lambda one: one.error_ns)
        self._round.clear()
        step_ms = self._step_ms(best)
        if step_ms is not None:
            self._best.clear()
        self._best.append(best)
        return step_ms

    def t_ns(self, page_ms: float) -> int:
        """Return the session's time of a moment of the page's."""
        return round(page_ms * 1e6 + self._counting().offset_ns)

    def _counting(self) -> Reading:
        now = self._best[-1].got_ns
        return min(self._best, key=lambda one: one.error_ns + _DRIFT * (now - one.got_ns))

    def _step_ms(self, new: Reading) -> float | None:
        if not self._best:
            return None
        old = self._counting()
        apart = new.offset_ns - old.offset_ns
        allowed = new.error_ns + old.error_ns + _DRIFT * (new.got_ns - old.got_ns)
        return apart / 1e6 if abs(apart) > allowed else None


class SoundClock:
    """The clock of a page's sound against the page's, for the microphone.

    A frame cannot have been taken after the page's script had it. So the smallest distance of the
    last two seconds counts: what is above it is how long messages waited inside the page.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()
        self._least = (0.0, math.inf)

    def note(self, end_s: float, page_ms: float) -> float | None:
        """Take a frame's end on the sound's clock, and when the page's script had it.

        Returns:
            How far the sound's clock has fallen behind, in ms, since this was said last, once all
            of a window shows it: the browser did not run its sound for so long. None if it did.
        """
        apart = page_ms - end_s * 1e3
        self._seen.append((end_s, apart))
        if apart < self._least[1] + self._drift_ms(end_s):
            self._least = (end_s, apart)
        while self._seen[0][0] <= end_s - _WINDOW_S:
            self._seen.popleft()
        step = self._apart() - self._least[1] - self._drift_ms(end_s)
        if step <= _STEP_MS:
            return None
        self._least = (end_s, self._apart())
        return step

    def _drift_ms(self, now_s: float) -> float:
        return _DRIFT * 1e3 * (now_s - self._least[0])

    def page_ms(self, context_s: float) -> float:
        """Return the latest moment of the page's clock at which a sample can have been taken."""
        return context_s * 1e3 + self._apart()

    def _apart(self) -> float:
        return min((apart for _, apart in self._seen), default=math.inf)
