"""Between the session's rate and the device's, both ways, with stamps and positions kept right."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.live.playout_buffer import PlayoutBuffer, Stretch

RATE = 48_000
BLOCK = 960
"""20 ms of the session's rate."""

_HELD_MS = 60


class Resampler(Protocol):
    """What we use of soxr's stream, which ships no types."""

    def resample_chunk(self, x: NDArray[np.int16], *, last: bool = False) -> NDArray[np.int16]:
        """Return what can be made of the samples so far."""
        ...


def one_channel(data: bytes, channels: int) -> NDArray[np.int16]:
    """Return interleaved samples as mono: the mean of all channels."""
    samples = np.frombuffer(data, np.int16)
    if channels == 1:
        return samples
    mixed: NDArray[np.int16] = samples.reshape(-1, channels).mean(axis=1).round().astype(np.int16)
    return mixed


class Incoming:
    """Makes blocks of 20 ms at the session's rate of whatever the microphone hands over."""

    def __init__(self, rate: int, channels: int) -> None:
        """Begin a stretch without a gap.

        Args:
            rate: The device's.
            channels: The device's.
        """
        self._rate = rate
        self._channels = channels
        self._stream = _resampler(rate, RATE)
        self._stamps: deque[tuple[int, int, int]] = deque()  # device frame, taken_ns, came_ns
        self._pushed = 0
        self._out = np.zeros(0, np.int16)
        self._made = 0

    def push(self, data: bytes, taken_ns: int, came_ns: int) -> list[tuple[bytes, int, int]]:
        """Take one callback's frames; return whole blocks, each with `taken_ns` and `came_ns`."""
        samples = one_channel(data, self._channels)
        if self._stream is None and len(samples) == BLOCK and not len(self._out):
            return [(samples.tobytes(), taken_ns, came_ns)]
        self._stamps.append((self._pushed, taken_ns, came_ns))
        self._pushed += len(samples)
        if self._stream is not None:
            samples = self._stream.resample_chunk(samples)
        self._out = np.concatenate([self._out, samples])
        blocks = []
        while len(self._out) >= BLOCK:
            block, self._out = self._out[:BLOCK], self._out[BLOCK:]
            blocks.append((block.tobytes(), self._taken_ns(), came_ns))
            self._made += BLOCK
        return blocks

    def _taken_ns(self) -> int:
        """Return when the next sample to be handed on was at the converter."""
        frame = self._made * self._rate / RATE
        while len(self._stamps) > 1 and self._stamps[1][0] <= frame:
            self._stamps.popleft()
        first, taken_ns, _ = self._stamps[0]
        return taken_ns + round((frame - first) * 1e9 / self._rate)


@dataclass(frozen=True, slots=True)
class _Anchor:
    """Where a stretch of the session ends and the next one starts, against the device's frames."""

    frame: int
    end: int
    start: int


class Outgoing:
    """Takes samples at the session's rate and plays them through a buffer at the device's."""

    def __init__(self, rate: int, channels: int, given: int = 0) -> None:
        """Begin a stretch.

        Args:
            rate: The device's.
            channels: The device's.
            given: How many samples of the session went before, to other devices.
        """
        self.buffer = PlayoutBuffer(2 * channels)
        self._rate = rate
        self._channels = channels
        self._stream = _resampler(RATE, rate)
        self._given = given
        self._held = False
        self._anchors: deque[_Anchor] = deque([_Anchor(0, given, given)])

    def put(self, pcm: bytes) -> None:
        """Queue samples."""
        samples = np.frombuffer(pcm, np.int16)
        self._given += len(samples)
        if self._stream is not None:
            samples = self._stream.resample_chunk(samples)
            self._held = True
        self._put(samples)

    def _put(self, samples: NDArray[np.int16]) -> None:
        wide = samples if self._channels == 1 else np.repeat(samples, self._channels)
        self.buffer.put(wide.tobytes())

    def flush(self) -> None:
        """Play what the resampler holds back if nothing came behind it in time."""
        if self._held and self._stream is not None and self._short:
            self._put(self._stream.resample_chunk(np.zeros(0, np.int16), last=True))
            self._begin_again(self._given)

    @property
    def _short(self) -> bool:
        return self.buffer.waiting < self._rate * _HELD_MS // 1000

    def _begin_again(self, end: int) -> None:
        if self._stream is not None:
            self._stream = _resampler(RATE, self._rate)
        self._held = False
        self._anchors.append(_Anchor(self.buffer.put_frames, end, self._given))

    def clear(self) -> int:
        """Throw away what is not played yet; return how many samples of the session that was."""
        thrown = self.buffer.clear()
        end = self._sample(self.buffer.put_frames - thrown)
        self._begin_again(self._sample(self.buffer.put_frames))
        return self._given - end

    def played(self, stretch: Stretch) -> tuple[int, int]:
        """Return position and length of what was played, in samples of the session."""
        while len(self._anchors) > 1 and self._anchors[1].frame <= stretch.position:
            self._anchors.popleft()
        first = self._sample(stretch.position)
        return first, self._end(stretch.position + stretch.frames) - first

    def _end(self, frame: int) -> int:
        """Return which sample of the session lies behind a frame that was played last."""
        for anchor in self._anchors:
            if anchor.frame == frame > 0:
                return anchor.end
        return self._sample(frame - 1, 1)

    def _sample(self, frame: int, more: int = 0) -> int:
        """Return which sample of the session the end of `more` frames from `frame` on is."""
        anchor = [anchor for anchor in self._anchors if anchor.frame <= frame][-1]
        frames = frame + more - anchor.frame
        return min(self._given, anchor.start + round(frames * RATE / self._rate))


def _resampler(old: int, new: int) -> Resampler | None:
    if old == new:
        return None
    import soxr

    stream: Resampler = soxr.ResampleStream(old, new, 1, dtype="int16", quality="HQ")
    return stream
