"""What a server hears of its user: where turns are, and when their speech really ended."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from voxmeter.client.audio import Samples
from voxmeter.client.servers.gate import Change, Gate
from voxmeter.scoring.speech import speech_bounds

_NS = 1_000_000_000
_BEFORE_MS = 3_500  # the gate looks back three seconds


class Piece(NamedTuple):
    """The audio of one message.

    Attributes:
        start: Index of its first sample in the session's audio.
        samples: Shape (n,), in [-1, 1].
        t_ns: When the message was complete.
    """

    start: int
    samples: Samples
    t_ns: int


@dataclass(frozen=True, slots=True)
class Captured:
    """The audio of one closed turn, with the arrival of each of its messages.

    Attributes:
        at_once: Whether it came as one request: it was not spoken in real time, so that nothing is
            to be taken off its arrival.
    """

    pieces: tuple[Piece, ...]
    rate: int
    at_once: bool = False

    def samples(self) -> Samples:
        """Return the whole turn, shape (n,)."""
        if not self.pieces:
            return np.zeros(0, np.float32)
        return np.concatenate([piece.samples for piece in self.pieces])

    def end_ns(self, samples: Samples) -> int:
        """Return the user's end of speech by the rule that the client's t0 follows.

        Searches all of `samples` (those of this turn), so it is not for the event loop.

        Returns:
            Arrival of the message that holds the last voiced sample, minus the audio after it in
            that message; without anything audible, the arrival of the last message.

        Raises:
            ValueError: If the turn has no audio.
        """
        bounds = None if self.at_once else speech_bounds(samples, self.rate)
        end = len(samples) if bounds is None else bounds.end_sample
        before = 0
        for piece in self.pieces:
            after = before + len(piece.samples) - end
            if after >= 0:
                return piece.t_ns - after * _NS // self.rate
            before += len(piece.samples)
        return self.pieces[-1].t_ns

    def __add__(self, later: Captured) -> Captured:
        """Return both as one turn: what the client committed piece by piece."""
        return Captured(self.pieces + later.pieces, self.rate)


class Hearing:
    """Follows one session's incoming audio.

    Audio is kept until its turn is forgotten, at most `limit_s` of it; while nobody speaks, only
    the last seconds.

    Args:
        rate: Samples a second.
        limit_s: Longest turn that is kept, s; of a longer one the beginning is lost.
        detect: Whether turns are found by voice activity; False where the client commits them.
    """

    def __init__(self, rate: int, endpoint_ms: int, *, limit_s: float, detect: bool) -> None:
        self.rate = rate
        self.detect = detect
        self._limit = int(limit_s * rate)
        self._gate = Gate(rate, endpoint_ms)
        self._pieces: deque[Piece] = deque()
        self._heard = 0
        self._closed_at = 0

    @property
    def audio_ms(self) -> int:
        """How much audio has come in this session, ms."""
        return self._heard * 1000 // self.rate

    @property
    def pending(self) -> bool:
        """Whether audio has come since the last turn was closed."""
        return self._heard > self._closed_at

    def endpoint(self, quiet_ms: int) -> None:
        """Set the quiet that closes a turn, ms."""
        self._gate.endpoint(quiet_ms)

    def hear(self, samples: Samples, t_ns: int) -> list[Change]:
        """Take the audio of one message; return what changed with it."""
        if not len(samples):
            return []
        self._pieces.append(Piece(self._heard, samples, t_ns))
        self._heard += len(samples)
        changes = self._gate.hear(samples) if self.detect else []
        if not changes:  # whoever is told that a turn has ended takes it whole
            self._trim()
        return changes

    def close(self) -> Captured:
        """Close the turn: return all audio since the last one was forgotten."""
        self._closed_at = self._heard
        self._gate.rest()
        return Captured(tuple(self._pieces), self.rate)

    def forget(self) -> None:
        """Drop the audio of the turn that was closed last; speech after it is a turn of its own."""
        while self._pieces and self._pieces[0].start < self._closed_at:
            self._pieces.popleft()

    def clear(self) -> None:
        """Drop everything that has come so far."""
        self.close()
        self.forget()

    def _trim(self) -> None:
        keep = self._limit
        if self.detect and self._gate.idle and self._closed_at <= self._first():
            keep = _BEFORE_MS * self.rate // 1000
        while self._heard - self._first() - len(self._pieces[0].samples) > keep:
            self._pieces.popleft()

    def _first(self) -> int:
        return self._pieces[0].start if self._pieces else self._heard
