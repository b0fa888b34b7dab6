"""When each outgoing frame is due, and when each of many sessions may begin."""

from __future__ import annotations

from dataclasses import dataclass, field

from voxmeter.client.clock import Clock, SystemClock

_NS = 1_000_000_000


@dataclass(slots=True)
class Outgoing:
    """The outgoing stream of one session: absolute deadlines, counted in samples.

    Attributes:
        rate: Samples a second.
        start_ns: The moment at which sample 0 begins to exist.
        frame: Samples in one whole frame.
        position: Samples sent so far.
        silence: One frame of digital silence, 16-bit.
    """

    rate: int
    start_ns: int
    frame: int
    position: int = 0

    silence: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.silence = bytes(2 * self.frame)

    def due(self, samples: int) -> int:
        """Return when the next `samples` samples all exist, ns."""
        return self.start_ns + (self.position + samples) * _NS // self.rate

    def rebase(self, now_ns: int) -> None:
        """Let the stream go on from now, after frames were sent without waiting."""
        self.start_ns = now_ns - self.position * _NS // self.rate


class Spacing:
    """Lets sessions begin one after another, so that none opens while all others open too.

    Opening a session costs more than a frame does; fifty at once would make every frame late.

    Args:
        sessions: Sessions at a time; their beginnings are spread over a second.
        clock: Other than the machine's own, in tests.
    """

    def __init__(self, sessions: int, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._gap_ns = _NS // sessions if sessions > 1 else 0
        self._next_ns = 0

    async def turn(self) -> None:
        """Wait until a session may begin."""
        if self._gap_ns:
            self._next_ns = max(self._next_ns + self._gap_ns, self._clock.now())
            await self._clock.sleep_until(self._next_ns)
