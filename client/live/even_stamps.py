"""Stamps of a converter without the wander that a sound server adds to them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

WINDOW_BLOCKS = 1_000
"""20 s: a crystal that is 50 ppm off moves by half a millisecond in half of that."""

_STEP_NS = 10_000_000


class EvenStamps:
    """Frames leave a converter evenly; stamps of PulseAudio wander around that by several ms.

    So the moment of a block is reckoned from how many frames went before it, and from the median
    of what the stamps of the last 20 s said against that. A step begins anew.
    """

    def __init__(self, rate: int) -> None:
        """Begin with the next block.

        Args:
            rate: Frames a second.
        """
        self._rate = rate
        self._begin(0)

    def _begin(self, stamp_ns: int) -> None:
        self._origin_ns = self._due_ns = stamp_ns
        self._frames = 0
        self._recent: deque[int] = deque()
        self._sorted: list[int] = []

    def even(self, frames: int, stamp_ns: int) -> int:
        """Return when the first frame of a block was at the converter.

        Args:
            frames: How many it has.
            stamp_ns: What the device says.
        """
        if abs(stamp_ns - self._due_ns) > _STEP_NS:
            self._begin(stamp_ns)
        reckoned_ns = self._origin_ns + round(self._frames * 1e9 / self._rate)
        self._keep(stamp_ns - reckoned_ns)
        self._frames += frames
        self._due_ns = stamp_ns + round(frames * 1e9 / self._rate)
        return reckoned_ns + self._sorted[len(self._sorted) // 2]

    def _keep(self, error_ns: int) -> None:
        if len(self._recent) == WINDOW_BLOCKS:
            del self._sorted[bisect_left(self._sorted, self._recent.popleft())]
        self._recent.append(error_ns)
        insort(self._sorted, error_ns)
