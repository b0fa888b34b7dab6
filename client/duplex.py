"""Follows a full-duplex session, whose output flows all the time: replies are found in the sound.

Everything is judged in stream time, so that a server which lags is not taken for one that is quiet.
Like every ear it only decides how long to stay; `scoring/segments.py` says what was an answer.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from voxmeter.client.encodings import Decoder, decoder
from voxmeter.endpoints.events import Event, ReplyAudio, ReplyText
from voxmeter.scoring.quiet import QuietDetector


class DuplexEar:
    """Hears an answer be audible at or after the end of the question, and end in `quiet_ms`.

    What began before the user did is a greeting, however long it goes on.
    """

    def __init__(self, *, quiet_ms: int) -> None:
        self._quiet_ms = quiet_ms
        self._decoder: Decoder | None = None
        self._detector: QuietDetector | None = None
        self._rate = self._began_at = 0
        self._asked_at: int | None = None
        self._answer_from: int | None = None
        self._last_ns = self._last_size = 0
        self._text: list[tuple[int, str]] = []

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
        return self._answer_from is not None

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
                    self._last_size = samples.size
                self._look()
            case ReplyText(text):
                self._text.append((self._position, text))
            case _:
                pass

    def question_began(self, onset_ns: int) -> None:
        """Note where the stream is now: what has begun by here is a greeting."""
        self._began_at = self._heard_by(onset_ns)

    def question_ended(self, t0_ns: int) -> None:
        """Note where the stream is now: only what is audible from here on can be the answer."""
        self._asked_at = self._heard_by(t0_ns)

    def over_at(self) -> int | None:
        """Return the arrival that completed the quiet behind the answer."""
        if not self.answering or self._detector is None:
            return None
        return self._last_ns if self._detector.quiet_ms >= self._quiet_ms else None

    def text(self) -> str:
        """Return the text that came since the user began to speak and what was said before ended.

        Without an answer it is the text that came after the question.
        """
        if self._asked_at is None:
            return ""
        first = self._asked_at if self._answer_from is None else self._answer_from
        return "".join(text for position, text in self._text if position >= first).strip()

    @property
    def _position(self) -> int:
        return self._detector.samples if self._detector else 0

    def _heard_by(self, t_ns: int) -> int:
        """Return which part of the stream a listener has heard: the last piece is still playing."""
        if self._rate == 0:
            return 0
        playing = self._last_size - (t_ns - self._last_ns) * self._rate // 1_000_000_000
        return self._position - min(max(0, playing), self._last_size)

    def _look(self) -> None:
        """Note the answer when it is first heard: its words may have come a little before it."""
        detector = self._detector
        if self._answer_from is not None or self._asked_at is None or detector is None:
            return
        if detector.began is None or (detector.last_audible or 0) <= self._asked_at:
            return
        if detector.began >= self._began_at:
            self._answer_from = max(self._began_at, detector.parted_at)
