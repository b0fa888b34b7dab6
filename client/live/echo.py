"""The reply taken out of the microphone, for talking without a headset: never for a figure.

It is WebRTC's echo canceller, through `pywebrtc-audio`. It eats into the user's own voice while
both talk, so no measured run has it; a live session that has it says so beside every figure.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.live.device_rate import RATE
from voxmeter.endpoints.errors import MissingExtraError

_FRAME = RATE // 100
_SECONDS = 4
_JUMP_SAMPLES = RATE // 100
"""Stamps that wander by less than this are one stream; a step in what was played is no echo's."""


class EchoCanceller:
    """Knows what the speaker put out and when, and takes it out of what the microphone takes up.

    Both are laid on one timeline by the stamps of the converters, so what is left to be found is
    the way through the room.
    """

    def __init__(self) -> None:
        """Load the canceller.

        Raises:
            MissingExtraError: If pywebrtc-audio is not installed.
        """
        try:
            import pywebrtc_audio
        except ImportError as error:
            raise MissingExtraError(
                "voxmeter live --cancel-echo", "pywebrtc-audio", "echo"
            ) from error
        self._canceller = pywebrtc_audio.EchoCanceller(
            sample_rate=RATE, num_channels=1, stream_delay_ms=0
        )
        self._given: deque[tuple[int, NDArray[np.int16]]] = deque()
        self._total = 0
        self._far = np.zeros(_SECONDS * RATE, np.int16)
        self._far_end: int | None = None
        self._near_end: int | None = None

    def given(self, pcm: bytes) -> None:
        """Learn what is going to be played."""
        samples = np.frombuffer(pcm, np.int16)
        self._given.append((self._total, samples))
        self._total += len(samples)

    def played(self, position: int, samples: int, heard_ns: int) -> None:
        """Learn when a stretch of it is at the converter of the speaker."""
        at = _followed(self._far_end, heard_ns)
        stretch = self._stretch(position, samples)
        start = at if self._far_end is None else self._far_end
        if at > start:
            self._write(start, np.zeros(min(at - start, len(self._far)), np.int16))
        self._write(at, stretch)
        self._far_end = at + len(stretch)

    def _stretch(self, position: int, samples: int) -> NDArray[np.int16]:
        while self._given and self._given[0][0] + len(self._given[0][1]) <= position:
            self._given.popleft()
        out = np.zeros(samples, np.int16)
        for start, pcm in self._given:
            if start >= position + samples:
                break
            first, last = max(start, position), min(start + len(pcm), position + samples)
            out[first - position : last - position] = pcm[first - start : last - start]
        return out

    def _write(self, at: int, samples: NDArray[np.int16]) -> None:
        self._far[np.arange(at, at + len(samples)) % len(self._far)] = samples

    def _read(self, at: int, count: int) -> NDArray[np.int16]:
        places = np.arange(at, at + count)
        out = self._far[places % len(self._far)]
        end = self._far_end or 0
        out[(places >= end) | (places < end - len(self._far))] = 0
        return out

    def clean(self, pcm: bytes, taken_ns: int) -> bytes:
        """Return a block of the microphone without what was played.

        Args:
            pcm: Whole frames of 10 ms.
            taken_ns: When its first sample was at the converter.
        """
        near = np.frombuffer(pcm, np.int16)
        at = _followed(self._near_end, taken_ns)
        far = self._read(at, len(near))
        self._near_end = at + len(near)
        parts = [
            self._canceller.process(near[start : start + _FRAME], far[start : start + _FRAME])
            for start in range(0, len(near), _FRAME)
        ]
        return np.concatenate(parts).astype(np.int16).tobytes()


def _followed(end: int | None, t_ns: int) -> int:
    """Return the sample of a moment: right behind what came before, unless the stamps jumped."""
    at = round(t_ns * RATE / 1e9)
    return at if end is None or abs(at - end) > _JUMP_SAMPLES else end
