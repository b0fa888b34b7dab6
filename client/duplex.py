"""Follows a full-duplex session, whose output flows all the time: replies are found in the sound.

Everything is judged in stream time, so that a server which lags is not taken for one that is quiet.
Like every ear it only decides how long to stay; `scoring/segments.py` says what was an answer.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

import numpy as np

from voxmeter.client.encodings import Decoder, decoder
from voxmeter.endpoints.events import Event, ReplyAudio, ReplyText
from voxmeter.scoring.quiet import QuietDetector

_PIECES = 64  # more than come between a moment and the word of it, one frame later


class DuplexEar:
    """Hears an answer be audible at or after the end of the question, and end in `quiet_ms`.

    What began before the user did is a greeting, however long it goes on.

    Args:
        quiet_ms: Quiet in stream time that ends an answer.
        fast: Whether the question is sent without pacing: then it is where the same place of the
            stream is, however late that comes.
    """

    def __init__(self, *, quiet_ms: int, fast: bool = False) -> None:
        self._quiet_ms, self._fast = quiet_ms, fast
        self._decoder: Decoder | None = None
        self._detector: QuietDetector | None = None
        self._rate = 0
        self._began_s = 0.0
        self._asked_s: float | None = None
        self._answer_from_s: float | None = None
        self._last_ns = 0
        self._pieces: deque[tuple[int, int]] = deque(maxlen=_PIECES)
        self._text: list[tuple[float, str]] = []

    @property
    def greeted(self) -> bool:
        """Whether something was said and has been followed by quiet."""
        detector = self._detector
        return (
            detector is not None
            and detector.onset is not None
            and detector.quiet_ms >= self._quiet_ms
        )

    @property
    def heard(self) -> bool:
        """Whether any output has come, silent or not."""
        return self._detector is not None

    @property
    def answering(self) -> bool:
        """Whether anything but a greeting was audible at or after the end of the question."""
        return self._answer_from_s is not None

    def hear(self, t_ns: int, event: Event) -> None:
        """Take one event."""
        match event:
            case ReplyAudio(data, encoding, rate):
                self._decoder = self._decoder or decoder(encoding, rate)
                self._detector = self._detector or QuietDetector(rate)
                self._rate = rate
                self._last_ns = t_ns
                with suppress(ValueError, RuntimeError):  # finishing the attempt tells of it
                    samples = self._decoder.decode(data).astype(np.float32)
                    self._detector.feed(samples / np.float32(32768))
                    self._pieces.append((t_ns, samples.size))
                self._look()
            case ReplyText(text):
                self._text.append((self._place_s, text))
            case _:
                pass

    def question_began(self, onset_ns: int, place_s: float = 0.0) -> None:
        """Note where the stream is now: what has begun by here is a greeting."""
        self._began_s = place_s if self._fast else self._heard_s(onset_ns)

    def question_ended(self, t0_ns: int, place_s: float = 0.0) -> None:
        """Note where the stream is now: only what is audible from here on can be the answer."""
        self._asked_s = place_s if self._fast else self._heard_s(t0_ns)

    def over_at(self) -> int | None:
        """Return the arrival that completed the quiet behind the answer."""
        if not self.answering or self._detector is None:
            return None
        return self._last_ns if self._detector.quiet_ms >= self._quiet_ms else None

    def text(self) -> str:
        """Return the text that came since the user began to speak and what was said before ended.

        Without an answer it is the text that came after the question.
        """
        if self._asked_s is None:
            return ""
        first_s = self._asked_s if self._answer_from_s is None else self._answer_from_s
        return "".join(text for place_s, text in self._text if place_s >= first_s).strip()

    @property
    def _place_s(self) -> float:
        return self._detector.samples / self._rate if self._detector else 0.0

    def _heard_s(self, t_ns: int) -> float:
        """Return which part of the stream a listener had heard at a moment that may be past.

        Pieces have come since, or are still playing.
        """
        unheard = 0.0
        for came_ns, size in reversed(self._pieces):
            if came_ns <= t_ns:
                unheard += max(0.0, size - (t_ns - came_ns) * self._rate / 1e9)
                break
            unheard += size
        return self._place_s - unheard / self._rate if self._rate else 0.0

    def _look(self) -> None:
        """Note the answer when it is first heard: its words may have come a little before it."""
        detector, rate = self._detector, self._rate
        if self._answer_from_s is not None or self._asked_s is None or detector is None:
            return
        if detector.began is None or (detector.last_audible or 0) / rate <= self._asked_s:
            return
        if detector.began / rate >= self._began_s:
            self._answer_from_s = max(self._began_s, detector.parted_at / rate)
