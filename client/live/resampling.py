"""One stream to another rate with a delay of a few ms, for sound that somebody waits for.

soxr hands a stream out in bursts of 40 ms (150 ms at 8 kHz): nothing for a conversation. This
filter keeps `TAPS` samples of the lower rate before it hands out: 1.3 ms at 24 kHz, 4 ms at 8 kHz.
"""

from __future__ import annotations

from math import gcd

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]

TAPS = 32
"""Samples of the lower rate on each side of a sample that shape it."""
_PASSED = 0.92  # of the lower rate's band
_KAISER = 8.0  # 80 dB of what would alias is taken away


class Resampler:
    """A linear-phase filter: sample k of what comes out lies at k / `new` s of what went in.

    Args:
        old: Samples a second of what goes in.
        new: Likewise, of what comes out.
    """

    def __init__(self, old: int, new: int) -> None:
        common = gcd(old, new)
        self._up, self._down = new // common, old // common
        scale = min(1.0, new / old)
        self._half = int(np.ceil(TAPS / scale))  # in samples of what goes in
        places = np.arange(-self._half + 1, self._half + 1)
        phases = np.arange(self._up) / self._up
        apart = places[None, :] - phases[:, None]
        window = np.kaiser(2 * 1024 + 1, _KAISER)
        at = np.clip(np.abs(apart) / self._half, 0, 1) * 1024 + 1024
        shape = np.interp(at, np.arange(window.size), window)
        taps = np.sinc(apart * scale * _PASSED) * shape
        self._taps = (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32)
        self._held: Samples = np.zeros(self._half - 1, dtype=np.float32)
        self._first = -(self._half - 1)  # place of the first held sample in what went in
        self._taken = 0
        self._given = 0

    @property
    def lag(self) -> int:
        """How many samples less come out than went in so far, at the new rate, at most."""
        return 0 if self._up == self._down else -(-(self._half + 1) * self._up // self._down) - 1

    def push(self, samples: Samples) -> Samples:
        """Return what is ready after these samples, shape (k,); may be empty.

        Args:
            samples: Shape (n,), the next piece.
        """
        if self._up == self._down:
            return samples
        self._taken += samples.size
        self._held = np.concatenate((self._held, samples))
        return self._ready(self._first + self._held.size)

    def finish(self) -> Samples:
        """Return the rest, shape (k,): as long in time as all that went in, to half a sample."""
        if self._up == self._down:
            return np.zeros(0, dtype=np.float32)
        wanted = (2 * self._taken * self._up + self._down) // (2 * self._down) - self._given
        self._held = np.concatenate((self._held, np.zeros(2 * self._half, dtype=np.float32)))
        return self._ready(self._first + self._held.size)[: max(0, wanted)]

    def _ready(self, end: int) -> Samples:
        """Return every sample whose whole neighbourhood lies before `end`."""
        last = (end - self._half - 1) * self._up // self._down
        numbers = np.arange(self._given, last + 1, dtype=np.int64)
        if numbers.size == 0:
            return np.zeros(0, dtype=np.float32)
        places = numbers * self._down
        base, phase = places // self._up, places % self._up
        first = base - (self._half - 1) - self._first
        around = np.lib.stride_tricks.sliding_window_view(self._held, 2 * self._half)[first]
        made = np.einsum("ij,ij->i", around, self._taps[phase])
        self._given = int(last) + 1
        keep = int(self._given * self._down // self._up) - (self._half - 1) - self._first
        self._held, self._first = self._held[keep:], self._first + keep
        return np.asarray(made, dtype=np.float32)
