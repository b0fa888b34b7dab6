"""Where the last audible sample of a running stream was, and how long it has been quiet since."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from voxmeter.scoring.loudness import FRAME_MS, QUIETEST_DBFS, SILENCE_DBFS
from voxmeter.scoring.segments import SPLIT_MS
from voxmeter.scoring.speech import BURST_MS, MARGIN_DB, RESUME_MS, TICK_MS

_BLOCK = 10  # frames: the floor is learnt from 50 ms means
_MEMORY = 60  # blocks: from the quietest of the last 3 s
_CONTRAST_DB = 12.0  # with less between loudest and quietest, one of them has not been heard yet
_UNKNOWN_DBFS = -45.0  # and then only what is above this is sound


class QuietDetector:
    """The audible rule of `voxmeter.scoring.speech`, chunk by chunk, in stream time.

    It decides when to stop waiting, never what a latency is: it sees the past alone, so its floor
    is the quietest 50 ms of the last 3 s, and its marks are those of 5 ms frames.

    Attributes:
        samples: Samples heard so far.
        onset: First audible sample, or None while nothing has been.
        last_audible: One past the last audible sample so far, or None while nothing has been.
        began: First audible sample of the present stretch, which `split_ms` of quiet part from the
            one before; None while nothing has been audible.
        parted_at: One past the last audible sample before that stretch, 0 if it is the first.
    """

    def __init__(self, rate: int, *, split_ms: int = SPLIT_MS) -> None:
        self.samples = 0
        self.onset: int | None = None
        self.last_audible: int | None = None
        self.began: int | None = None
        self.parted_at = 0
        self._split = split_ms * rate / 1000
        self._rate = rate
        self._frame = max(1, round(rate * FRAME_MS / 1000))
        self._rest: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._number = 0
        self._block: list[float] = []
        self._floors: deque[float] = deque(maxlen=_MEMORY)
        self._loudest = 10 ** (SILENCE_DBFS / 10)
        self._threshold = 10 ** (_UNKNOWN_DBFS / 10)
        self._first = 0
        self._last = 0
        self._sounding = 0

    @property
    def quiet_ms(self) -> float:
        """How long it has been quiet in stream time; all that was heard, if nothing was audible."""
        return (self.samples - (self.last_audible or 0)) * 1000 / self._rate

    def feed(self, samples: NDArray[np.float32]) -> None:
        """Hear the next samples of the stream, shape (n,), in [-1, 1], n >= 0."""
        self.samples += samples.size
        heard = np.concatenate((self._rest, samples)) if self._rest.size else samples
        whole = heard.size // self._frame * self._frame
        self._rest = heard[whole:].copy()
        frames = heard[:whole].reshape(-1, self._frame)
        for power in frames.var(axis=1, dtype=np.float64).tolist():
            self._learn(power)
            if power >= self._threshold:
                self._sound()
            self._number += 1

    def _sound(self) -> None:
        """Count one audible frame; a burst counts once it is long enough or has resumed."""
        if not self._sounding or (self._number - self._last - 1) * FRAME_MS > RESUME_MS:
            self._first, self._sounding = self._number, 0
        self._last = self._number
        self._sounding += 1
        long = (self._last - self._first + 1) * FRAME_MS >= BURST_MS
        if long and self._sounding * FRAME_MS >= TICK_MS:
            first = self._first * self._frame
            if self.onset is None:
                self.onset = first
            if self.last_audible is None or first - self.last_audible >= self._split:
                self.began, self.parted_at = first, self.last_audible or 0
            self.last_audible = (self._last + 1) * self._frame

    def _learn(self, power: float) -> None:
        self._block.append(power)
        if len(self._block) < _BLOCK:
            return
        mean = sum(self._block) / _BLOCK
        self._block.clear()
        self._floors.append(mean)
        self._loudest = max(self._loudest, mean)
        floor = min(self._floors)
        quietest = 10 ** (QUIETEST_DBFS / 10)
        if self._loudest < floor * 10 ** (_CONTRAST_DB / 10) and floor > quietest:
            self._threshold = 10 ** (_UNKNOWN_DBFS / 10)
        else:
            self._threshold = max(quietest, floor * 10 ** (MARGIN_DB / 10))
