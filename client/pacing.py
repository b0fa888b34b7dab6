"""When each outgoing frame is due."""

from __future__ import annotations

from dataclasses import dataclass

_NS = 1_000_000_000


@dataclass(slots=True)
class Outgoing:
    """The outgoing stream of one session: absolute deadlines, counted in samples.

    Attributes:
        rate: Samples a second.
        start_ns: The moment at which sample 0 begins to exist.
        frame: Samples in one whole frame.
        position: Samples sent so far.
    """

    rate: int
    start_ns: int
    frame: int
    position: int = 0

    @property
    def silence(self) -> bytes:
        """One frame of digital silence, 16-bit."""
        return bytes(2 * self.frame)

    def due(self, samples: int) -> int:
        """Return when the next `samples` samples all exist, ns."""
        return self.start_ns + (self.position + samples) * _NS // self.rate

    def rebase(self, now_ns: int) -> None:
        """Let the stream go on from now, after frames were sent without waiting."""
        self.start_ns = now_ns - self.position * _NS // self.rate
