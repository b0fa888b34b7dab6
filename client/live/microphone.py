"""From a device's blocks to frames at the endpoint's rate, each sample with its ADC moment."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.audio import from_pcm16, to_pcm16
from voxmeter.client.live.resampling import Resampler
from voxmeter.client.live.sound import Block

Samples = NDArray[np.float32]
Effect = Callable[[Samples, int], Samples]
"""Done to every block, shape (n,), at a rate in samples a second; returns as many samples."""

_NS = 1_000_000_000
_KEPT_S = 4


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """One frame of the outgoing stream.

    Attributes:
        start: Its first sample's place in the stream.
        pcm: 16-bit little-endian mono samples at the endpoint's rate, as they are sent.
        clean: The same before a condition was done to them: where speech ends is found in these.
        taken_ns: When its first sample was at the converter.
        came_ns: When the block with its last sample was handed to us: from then on it can be sent.
    """

    start: int
    pcm: bytes
    clean: bytes
    taken_ns: int
    came_ns: int

    @property
    def end(self) -> int:
        """One past its last sample."""
        return self.start + len(self.pcm) // 2


@dataclass(frozen=True, eq=False, slots=True)
class Taken:
    """A block as it was taken, before anything was done to it but muting.

    Attributes:
        place: Of its first sample in the outgoing stream.
        pcm: 16-bit little-endian mono samples.
        rate: Samples a second.
    """

    place: float
    pcm: bytes
    rate: int


@dataclass(frozen=True, slots=True)
class _Anchor:
    start: float
    end: float
    taken_ns: int


class Microphone:
    """Cuts blocks into frames; counts samples from 0 for as long as it lives.

    Args:
        rate: Samples a second of the frames.
        frame_ms: Their length, ms.

    Attributes:
        muted: Whether silence is sent in place of what is heard.
        taken: The newest block.
    """

    def __init__(self, rate: int, frame_ms: int) -> None:
        self.rate = rate
        self.muted = False
        self.taken = Taken(0.0, b"", rate)
        self._frame = rate * frame_ms // 1000
        self._resampler: Resampler | None = None
        self._device_rate = 0
        self._altering: Resampler | None = None  # a second filter, of what a condition made
        self._ready: Samples = np.zeros(0, dtype=np.float32)
        self._altered: Samples = self._ready
        self._start = 0  # place of the first ready sample
        self._taken = 0.0  # place of the next sample that comes
        self._anchors: deque[_Anchor] = deque()

    def take(self, block: Block, device_rate: int, effect: Effect | None = None) -> list[Frame]:
        """Return the frames that a block completes."""
        samples = from_pcm16(block.pcm)
        if self.muted:
            samples, effect = np.zeros_like(samples), None
        pcm = bytes(len(block.pcm)) if self.muted else block.pcm
        if self._resampler is None or device_rate != self._device_rate:
            self._begin(device_rate)
        assert self._resampler is not None  # noqa: S101 - made above
        if effect is None:
            self._altering = None
        elif self._altering is None:
            self._altering = deepcopy(self._resampler)
        end = self._taken + samples.size * self.rate / device_rate
        self._anchors.append(_Anchor(self._taken, end, block.taken_ns))
        self.taken = Taken(self._taken, pcm, device_rate)
        self._taken = end
        clean = self._resampler.push(samples)
        sent = clean
        if effect is not None and self._altering is not None:
            sent = self._altering.push(effect(samples, device_rate))
        self._ready = np.concatenate((self._ready, clean))
        self._altered = np.concatenate((self._altered, sent))
        frames = list(self._whole(block.came_ns))
        while len(self._anchors) > 1 and self._anchors[0].end < self._start - _KEPT_S * self.rate:
            self._anchors.popleft()
        return frames

    def taken_ns(self, sample: int) -> int:
        """Return when a sample of the stream was at the converter; exact for the last seconds."""
        if not self._anchors:
            return 0
        found = self._anchors[-1]
        for anchor in reversed(self._anchors):
            found = anchor
            if anchor.start <= sample:
                break
        return found.taken_ns + round((sample - found.start) * _NS / self.rate)

    def _begin(self, device_rate: int) -> None:
        """Start with what the filter holds back as silence, so that no frame waits for a block."""
        rest = self._resampler.finish() if self._resampler is not None else self._ready[:0]
        self._resampler, self._device_rate = Resampler(device_rate, self.rate), device_rate
        lag = np.zeros(self._resampler.lag, dtype=np.float32)
        self._altering = None
        self._ready = np.concatenate((self._ready, rest, lag))
        self._altered = np.concatenate((self._altered, rest, lag))
        self._taken = float(self._start + self._ready.size)

    def _whole(self, came_ns: int) -> list[Frame]:
        frames: list[Frame] = []
        while self._ready.size >= self._frame:
            clean, self._ready = self._ready[: self._frame], self._ready[self._frame :]
            sent, self._altered = self._altered[: self._frame], self._altered[self._frame :]
            frames.append(
                Frame(
                    self._start,
                    to_pcm16(sent),
                    to_pcm16(clean),
                    self.taken_ns(self._start),
                    came_ns,
                )
            )
            self._start += self._frame
        return frames
