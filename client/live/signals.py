"""The signals by which trouble of a device is seen: its flags alone miss most of it.

Under PulseAudio a callback that was blocked for half a second raises no flag at all. So four things
are looked at: the flags, the device's own stamps against the frames that it moved, how late a
callback ran, and what was dropped or missing on our side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from voxmeter.client.live.sound import Problem, Trouble

STEP_NS = 10_000_000
LATE_NS = 50_000_000
_PAUSE_NS = 1_000_000_000

_TEXTS: dict[Problem, str] = {
    "input-overflow": "the device lost part of the microphone ({count} times)",
    "output-underflow": "the speaker had nothing to play in time ({count} times)",
    "time-step": "the device's clock jumped by {count} ms: latencies around here are doubtful",
    "late-callback": "sound came {count} ms late: the machine is busy",
    "dropped": "{count} blocks of the microphone were thrown away: this program was too busy",
    "starved": "the reply ran dry for {count} ms: it comes slower than it is spoken",
    "clock-step": "the system's clock was set by {count} ms: a latency across that moment is wrong",
}
_LARGEST = {"time-step", "late-callback", "clock-step"}
"""Of these the worst one is told, of the others the sum."""


@dataclass(frozen=True, slots=True)
class Found:
    """One sign of trouble: what, and how many or how much."""

    problem: Problem
    count: int = 1


class Watch:
    """Looks at every callback of one direction."""

    def __init__(self, side: str, rate: int, latency_ms: float) -> None:
        """Begin with the next callback.

        Args:
            side: `input` or `output`.
            rate: Frames a second.
            latency_ms: What the device says of itself.
        """
        self._input = side == "input"
        self._rate = rate
        self._allowed_ns = LATE_NS + (round(latency_ms * 1e6) if self._input else 0)
        self._due_ns: int | None = None

    def look(self, frames: int, stamp_ns: int, came_ns: int, *, flagged: bool) -> Iterable[Found]:
        """Yield what is wrong with a callback.

        Args:
            frames: How many it was about.
            stamp_ns: When the first of them is at the converter.
            came_ns: When it ran.
            flagged: Whether the device said that something was lost.
        """
        if flagged:
            yield Found("input-overflow" if self._input else "output-underflow")
        length_ns = round(frames * 1e9 / self._rate)
        step_ns = 0 if self._due_ns is None else stamp_ns - self._due_ns
        self._due_ns = stamp_ns + length_ns
        if abs(step_ns) > STEP_NS:
            yield Found("time-step", round(abs(step_ns) / 1e6))
        # A block of the microphone should be here soon after its end; one of the speaker before it.
        late_ns = came_ns - (stamp_ns + length_ns if self._input else stamp_ns)
        if late_ns > self._allowed_ns:
            yield Found("late-callback", round(late_ns / 1e6))


class Tally:
    """Sums signs up, so that one kind of trouble is told once a second at the most."""

    def __init__(self) -> None:
        self._counts: dict[Problem, int] = {}
        self._told_ns: dict[Problem, int] = {}

    def add(self, found: Iterable[Found]) -> None:
        """Count what was found."""
        for one in found:
            before = self._counts.get(one.problem, 0)
            worst = one.problem in _LARGEST
            self._counts[one.problem] = max(before, one.count) if worst else before + one.count

    def take(self, now_ns: int) -> list[Trouble]:
        """Return what is to be told now."""
        due = [
            problem
            for problem in self._counts
            if now_ns - self._told_ns.get(problem, now_ns - _PAUSE_NS) >= _PAUSE_NS
        ]
        return [self._tell(problem, now_ns) for problem in due]

    def _tell(self, problem: Problem, now_ns: int) -> Trouble:
        count = self._counts.pop(problem)
        self._told_ns[problem] = now_ns
        return Trouble(problem, _TEXTS[problem].format(count=count), now_ns, count)
