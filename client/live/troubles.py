"""The signs by which trouble of a device is seen: its flags alone miss most of it.

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
    "input-overflow": "the device lost part of the microphone (times: {count})",
    "output-underflow": "the speaker had nothing to play in time (times: {count})",
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
    """One sign of trouble.

    Attributes:
        problem: What.
        count: How many or how much.
        text: How it is told, with `{count}` in it; empty: as is usual for a sound card.
    """

    problem: Problem
    count: int = 1
    text: str = ""


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


@dataclass(slots=True)
class _Held:
    """Signs of one kind that are not told yet."""

    first_ns: int
    last_ns: int
    count: int


class Tally:
    """Sums signs up, so that one kind of trouble is told once a second at the most."""

    def __init__(self) -> None:
        self._held: dict[tuple[Problem, str], _Held] = {}
        self._told_ns: dict[tuple[Problem, str], int] = {}

    def add(self, found: Iterable[Found], seen_ns: int) -> None:
        """Count what was found at a moment."""
        for one in found:
            kind = one.problem, one.text or _TEXTS[one.problem]
            held = self._held.setdefault(kind, _Held(seen_ns, seen_ns, 0))
            worst = one.problem in _LARGEST
            held.count = max(held.count, one.count) if worst else held.count + one.count
            held.first_ns = min(held.first_ns, seen_ns)
            held.last_ns = max(held.last_ns, seen_ns)

    def take(self, now_ns: int) -> list[Trouble]:
        """Return what is to be told now."""
        due = [
            kind
            for kind in self._held
            if now_ns - self._told_ns.get(kind, now_ns - _PAUSE_NS) >= _PAUSE_NS
        ]
        return [self._tell(kind, now_ns) for kind in due]

    def take_all(self, now_ns: int) -> list[Trouble]:
        """Return all that is not told yet: nothing may come after it."""
        return [self._tell(kind, now_ns) for kind in list(self._held)]

    def _tell(self, kind: tuple[Problem, str], now_ns: int) -> Trouble:
        held, (problem, text) = self._held.pop(kind), kind
        self._told_ns[kind] = now_ns
        until_ns = None if held.last_ns == held.first_ns else held.last_ns
        return Trouble(problem, text.format(count=held.count), held.first_ns, held.count, until_ns)
