"""A live decision whether the user speaks: cheap enough to run on every message of 50 sessions."""

from __future__ import annotations

import math
from collections import deque
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

_FRAME_MS = 5
_ABSOLUTE = 1e-6  # power of -60 dBFS
_ABOVE_FLOOR = 10.0  # power ratio of 10 dB
_BELOW_SPEECH = 3.0  # power ratio of 5 dB
_MIN_SPEECH_MS = 100  # a shorter burst counts only if sound resumes
_GAP_MS = 150
_BLOCK = 10  # frames: the floor is learnt from 50 ms means
_MEMORY_MS = 3_000


class Change(NamedTuple):
    """Speech began, or the quiet behind it was long enough.

    Attributes:
        sample: First sample of the speech, or one past its last, in the whole stream.
    """

    kind: Literal["started", "stopped"]
    sample: int


class Gate:
    """Follows 5 ms frames by the audible rule, with a floor that adapts to steady noise.

    The rule is that of `voxmeter.scoring.speech`, which later finds the exact end in the whole
    turn. A live decision cannot wait for the turn's own quiet, so its floor is the quietest 50 ms
    of the last three seconds; sound that only turns out to be above the floor once it has stopped
    (a stream that begins in the middle of a tone) is judged again then. The floor never rises so
    far that it swallows speech that is going on.
    """

    def __init__(self, rate: int, endpoint_ms: int) -> None:
        self._frame = max(1, rate * _FRAME_MS // 1000)
        self._rest: npt.NDArray[np.float32] = np.zeros(0, np.float32)
        self._number = 0
        self._recent: deque[float] = deque(maxlen=_MEMORY_MS // _FRAME_MS)
        self._means: deque[float] = deque(maxlen=_MEMORY_MS // _FRAME_MS // _BLOCK)
        self._threshold = math.inf
        self._speaking = False
        self._onset: int | None = None
        self._last_loud = 0
        self._loud = 0
        self._loud_power = 0.0
        self._quiet = 0
        self.endpoint(endpoint_ms)

    @property
    def idle(self) -> bool:
        """Whether nothing has begun that may turn out to be speech."""
        return not self._speaking and self._onset is None

    def endpoint(self, quiet_ms: int) -> None:
        """Set the quiet that ends speech, ms."""
        self._quiet = max(1, -(-quiet_ms // _FRAME_MS))

    def rest(self) -> None:
        """Take the speech so far as over."""
        self._quieten()
        self._recent.clear()

    def hear(self, samples: npt.NDArray[np.float32]) -> list[Change]:
        """Take samples, shape (n,), in [-1, 1]; return each change that they complete."""
        joined = np.concatenate((self._rest, samples)) if len(self._rest) else samples
        whole = len(joined) // self._frame * self._frame
        frames = joined[:whole].reshape(-1, self._frame)
        self._rest = joined[whole:]
        changes: list[Change] = []
        for power in (np.einsum("ij,ij->i", frames, frames) / self._frame).tolist():
            self._recent.append(power)
            self._number += 1
            if self._number % _BLOCK == 0 and self._learn() and not self._speaking:
                changes += self._judge_again()
            else:
                changes += self._step(self._number - 1, power)
        return changes

    def _step(self, number: int, power: float) -> list[Change]:
        if power > self._limit():
            return self._loud_frame(number, power)
        quiet = number - self._last_loud
        if self._speaking and quiet >= self._quiet:
            end = (self._last_loud + 1) * self._frame
            self.rest()
            return [Change("stopped", end)]
        if not self._speaking and self._onset is not None and quiet > _GAP_MS // _FRAME_MS:
            self._quieten()
        return []

    def _loud_frame(self, number: int, power: float) -> list[Change]:
        self._last_loud = number
        self._loud += 1
        self._loud_power += power
        if self._speaking:
            return []
        if self._onset is None:
            self._onset = number
        if self._loud * _FRAME_MS < _MIN_SPEECH_MS:
            return []
        self._speaking = True
        return [Change("started", self._onset * self._frame)]

    def _limit(self) -> float:
        if not self._speaking:
            return self._threshold
        return min(self._threshold, max(_ABSOLUTE, self._loud_power / self._loud / _BELOW_SPEECH))

    def _quieten(self) -> None:
        self._speaking, self._onset, self._loud, self._loud_power = False, None, 0, 0.0

    def _learn(self) -> bool:
        """Learn the floor from the last 50 ms; return whether the limit fell by 10 dB."""
        before = self._threshold
        last = list(self._recent)[-_BLOCK:]
        self._means.append(sum(last) / len(last))
        self._threshold = max(_ABSOLUTE, _ABOVE_FLOOR * min(self._means))
        return self._threshold * _ABOVE_FLOOR < before < math.inf

    def _judge_again(self) -> list[Change]:
        """Judge the frames since the last speech by the limit that is known now."""
        frames = list(self._recent)
        first = self._number - len(frames)
        self._quieten()
        changes: list[Change] = []
        for offset, power in enumerate(frames):
            changes += self._step(first + offset, power)
        return changes
