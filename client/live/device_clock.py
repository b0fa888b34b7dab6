"""The clock of a sound device against the session's: PortAudio stamps in seconds of its own."""

from __future__ import annotations

from collections.abc import Callable

from voxmeter.client.clock import Clock

AGAIN_NS = 3_000_000_000
_READS = 5
_STEP_NS = 8_000_000  # less than that is how well JACK knows its own time at first
_SLEW_NS_PER_S = 1_000_000  # a system may turn its clock by half of this while it corrects it
_EARLY_NS, _LATE_NS = 1_000_000, 5_000_000


class DeviceClock:
    """Turns moments of one stream into moments of the session, sampled again every few seconds.

    Under ALSA the device's clock is the wall clock, which can be set while we listen; under JACK it
    starts near 0. So neither is ever compared with another clock, only mapped.
    """

    def __init__(self, read: Callable[[], float], clock: Clock) -> None:
        """Begin with a first sample.

        Args:
            read: Returns the device's time now, in seconds.
            clock: The session's.
        """
        self._read = read
        self._clock = clock
        self._offset_ns, self._sampled_ns = self._sample()
        self._before_ns = self._offset_ns

    def _sample(self) -> tuple[int, int]:
        """Return the offset, by the read that took the shortest, and when that was."""
        best: tuple[int, int, int] | None = None
        for _ in range(_READS):
            before = self._clock.now()
            device_s = self._read()
            after = self._clock.now()
            middle = (before + after) // 2
            found = (after - before, middle - round(device_s * 1e9), middle)
            best = found if best is None else min(best, found)
        if best is None:
            raise ValueError("no sample")
        return best[1], best[2]

    def follow(self) -> int:
        """Sample again; return by how many ns the device's clock was set, 0 if it only drifted."""
        offset, now = self._sample()
        allowed = _STEP_NS + _SLEW_NS_PER_S * max(0, now - self._sampled_ns) // 1_000_000_000
        stepped = self._offset_ns - offset
        if abs(stepped) <= allowed:
            self._before_ns = self._offset_ns = offset
            self._sampled_ns = now
            return 0
        self._before_ns, self._offset_ns, self._sampled_ns = self._offset_ns, offset, now
        return stepped

    def check(self, current_s: float, came_ns: int) -> int:
        """Follow the clock if that is due, or if a callback's own stamp looks wrong.

        Args:
            current_s: The device's time as the callback was given it.
            came_ns: When the callback ran.

        Returns:
            As `follow`.
        """
        apart = came_ns - self._offset_ns - round(current_s * 1e9)
        if -_EARLY_NS <= apart <= _LATE_NS and self._clock.now() - self._sampled_ns < AGAIN_NS:
            return 0
        return self.follow()

    def ns(self, device_s: float, current_s: float, came_ns: int) -> int:
        """Return a moment of the device on the session's clock.

        Args:
            device_s: The moment.
            current_s: The device's time as the callback with that stamp was given it; tells which
                side of a step of the clock it lies on.
            came_ns: When that callback ran.
        """
        current_ns = round(current_s * 1e9)
        offset = min(
            (self._offset_ns, self._before_ns),
            key=lambda offset: abs(came_ns - offset - current_ns),
        )
        return offset + round(device_s * 1e9)
