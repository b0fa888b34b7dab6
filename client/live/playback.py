"""The reply on its way to a loudspeaker: decoded, resampled, and found again in what was played."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import soxr
from numpy.typing import NDArray

from voxmeter.client.audio import from_pcm16, to_pcm16
from voxmeter.client.encodings import Decoder, decoder
from voxmeter.client.live.resampling import Resampler
from voxmeter.client.live.sound import Played, Problem, Sound
from voxmeter.endpoints.events import ReplyAudio

_NS = 1_000_000_000
SILENT_DBFS = -120.0
JITTER_BUFFER_MS = 20
"""What a reply waits before it is played, so that a piece which comes a little late is no gap."""
_BUFFER_STEP_MS, _BUFFER_STEPS = 20, 2
_AHEAD_MS = 2_000
_PIECE_MS = 100


class Put(NamedTuple):
    """A stretch of the reply stream that was put out.

    Attributes:
        sample: Its first sample in the reply stream.
        samples: How many.
        heard_ns: When the first one was at the converter.
    """

    sample: int
    samples: int
    heard_ns: int


@dataclass(slots=True)
class _Run:
    """Samples that went through one filter: where they are in both streams.

    Attributes:
        position: Place of the first one among all that the device was given.
        given: How many of the device's samples it has so far.
        sample: Place of the first one in the reply stream; None for other sound, such as a
            question that is asked aloud.
        rate: Samples a second of the reply stream.
        device_rate: Likewise, of the device.
        pushed: Samples that went into the filter.
    """

    position: int
    given: int
    sample: int | None
    rate: int
    device_rate: int
    pushed: int = 0

    @property
    def end(self) -> int:
        return self.position + self.given

    def place(self, position: int) -> int:
        """Return which sample of the reply stream a device's sample stands for."""
        return (self.sample or 0) + round((position - self.position) * self.rate / self.device_rate)


class Replies:
    """Decodes the replies of one connection to one stream at one rate, that of its first piece."""

    def __init__(self) -> None:
        self.rate = 0
        self.samples = 0
        self._decoders: dict[tuple[str, str, int], Decoder] = {}

    def decode(self, event: ReplyAudio) -> NDArray[np.float32]:
        """Return the samples, shape (n,), that a piece completes; the next in the stream.

        Raises:
            ValueError: If it cannot be decoded.
            RuntimeError: Likewise.
        """
        self.rate = self.rate or event.rate
        key = (event.reply, event.encoding, event.rate)
        if key not in self._decoders:
            self._decoders[key] = decoder(event.encoding, event.rate)
        samples = from_pcm16(self._decoders[key].decode(event.data).tobytes())
        if event.rate != self.rate:
            samples = np.asarray(soxr.resample(samples, event.rate, self.rate), dtype=np.float32)
        self.samples += samples.size
        return samples


class Playback:
    """Plays on a `Sound` and says which part of the reply stream came out when.

    A reply that finds the loudspeaker idle waits `buffer_ms` before its first sample: silence is
    given first, and told in no `Put`, so that the wait is in every latency that a listener has.

    Args:
        sound: What is played on; given by nobody else.
        buffer_ms: That wait; after a reply that ran dry it is longer by 20 ms, twice at most.
    """

    def __init__(self, sound: Sound, buffer_ms: int = JITTER_BUFFER_MS) -> None:
        self.buffer_ms = buffer_ms
        self._longest_ms = buffer_ms + _BUFFER_STEPS * _BUFFER_STEP_MS if buffer_ms else 0
        self._sound = sound
        self._waiting: deque[tuple[NDArray[np.float32], int, int | None] | None] = deque()
        self._waiting_s = 0.0
        self._given = 0
        self._over = 0  # all before this place was played or thrown away
        self._runs: deque[_Run] = deque()
        self._resampler: Resampler | None = None
        self._levels: deque[tuple[int, float]] = deque()
        self._level = SILENT_DBFS

    @property
    def level(self) -> float:
        """How loud what was played last is, dB below full scale."""
        return self._level

    @property
    def pending(self) -> int:
        """How many of the device's samples are still to be played."""
        waiting = math.ceil(self._waiting_s * self._sound.facts.rate) if self._waiting else 0
        return self._ahead + waiting

    @property
    def _ahead(self) -> int:
        return max(0, self._given - self._over)

    @property
    def pending_ms(self) -> float:
        """The same in ms."""
        return self.pending * 1000 / self._sound.facts.rate

    def play(self, samples: NDArray[np.float32], rate: int, sample: int | None) -> None:
        """Queue samples; those that are far from being played wait here, as they came.

        Args:
            samples: Shape (n,), in [-1, 1].
            rate: Samples a second.
            sample: Place of the first one in the reply stream; None for other sound.
        """
        step = max(1, rate * _PIECE_MS // 1000)
        for first in range(0, samples.size, step):
            place = None if sample is None else sample + first
            self._waiting.append((samples[first : first + step], rate, place))
        self._waiting_s += samples.size / rate
        self._feed()

    def flush(self) -> None:
        """Queue what the filter still holds: nothing follows for now."""
        if self._waiting:
            self._waiting.append(None)
        else:
            self._finish()

    def _feed(self) -> None:
        """Give the device what it plays next: minutes that come at once take nobody's time."""
        while self._waiting and self._ahead * 1000 < _AHEAD_MS * self._sound.facts.rate:
            one = self._waiting.popleft()
            if one is None:
                self._finish()
                continue
            samples, rate, sample = one
            self._waiting_s -= samples.size / rate
            self._give(self._run(rate, sample), samples)
        if not self._waiting:
            self._waiting_s = 0.0

    def _finish(self) -> None:
        if self._resampler is not None and self._runs:
            self._put(self._runs[-1], self._resampler.finish())
        self._resampler = None

    def trouble(self, problem: Problem) -> None:
        """Take note of what the device says: gone, or out of samples in the middle of a reply."""
        if problem == "lost":
            self.clear()
        elif problem == "starved":
            self.buffer_ms = min(self.buffer_ms + _BUFFER_STEP_MS, self._longest_ms)

    def clear(self) -> None:
        """Throw away what is not played yet."""
        self._resampler = None
        self._waiting.clear()
        self._waiting_s = 0.0
        self._sound.clear()
        self._levels.clear()
        self._level = SILENT_DBFS
        self._over = self._given

    def played(self, told: Played) -> list[Put]:
        """Return which parts of the reply stream a device says it played."""
        end = told.position + told.samples
        self._over = max(self._over, end)
        while self._levels and self._levels[0][0] < end:
            self._level = self._levels.popleft()[1]
        found: list[Put] = []
        for run in self._runs:
            first, last = max(told.position, run.position), min(end, run.end)
            if run.sample is None or first >= last:
                continue
            place = run.place(first)
            heard_ns = told.heard_ns + (first - told.position) * _NS // run.device_rate
            found.append(Put(place, run.place(last) - place, heard_ns))
        while self._runs and self._runs[0].end <= end and len(self._runs) > 1:
            self._runs.popleft()
        self._feed()
        return found

    def _run(self, rate: int, sample: int | None) -> _Run:
        device_rate = self._sound.facts.rate
        last = self._runs[-1] if self._runs else None
        if self._resampler is not None and last is not None:
            follows = None if last.sample is None else last.sample + last.pushed
            if (last.rate, last.device_rate, follows) == (rate, device_rate, sample):
                return last
            self._finish()
        idle = self._ahead == 0 and sample is not None
        self._resampler = Resampler(rate, device_rate)
        # What the filter holds back would else be missed in a moment.
        ahead = self._resampler.lag + (self.buffer_ms * device_rate // 1000 if idle else 0)
        if ahead:
            self._given += ahead
            self._sound.play(bytes(2 * ahead))
        self._runs.append(_Run(self._given, 0, sample, rate, device_rate))
        return self._runs[-1]

    def _give(self, run: _Run, samples: NDArray[np.float32]) -> None:
        assert self._resampler is not None  # noqa: S101 - its run has one
        run.pushed += samples.size
        self._put(run, self._resampler.push(samples))

    def _put(self, run: _Run, samples: NDArray[np.float32]) -> None:
        if samples.size:
            run.given += samples.size
            for first in range(0, samples.size, run.device_rate // 50):
                level = dbfs(samples[first : first + run.device_rate // 50])
                self._levels.append((self._given + first, level))
            self._given += samples.size
            self._sound.play(to_pcm16(samples))


def dbfs(samples: NDArray[np.float32]) -> float:
    """Return the level of samples, shape (n,): root mean square, dB below full scale."""
    power = float(np.mean(np.square(samples))) if samples.size else 0.0
    return 10 * math.log10(max(power, 10 ** (SILENT_DBFS / 10)))
