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
    """Hears an answer begin at or after the end of the question, and end in `quiet_ms` of quiet."""

    def __init__(self, *, quiet_ms: int) -> None:
        self._quiet_ms = quiet_ms
        self._decoder: Decoder | None = None
        self._detector: QuietDetector | None = None
        self._asked_at: int | None = None
        self._last_ns = 0
        self._text: list[str] = []

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
        """Whether anything was audible at or after the end of the question."""
        return (
            self._detector is not None
            and self._asked_at is not None
            and (self._detector.last_audible or 0) > self._asked_at
        )

    def hear(self, t_ns: int, event: Event) -> None:
        """Take one event."""
        match event:
            case ReplyAudio(data, encoding, rate):
                self._decoder = self._decoder or decoder(encoding, rate)
                self._detector = self._detector or QuietDetector(rate)
                self._last_ns = t_ns
                with suppress(ValueError, RuntimeError):  # finishing the attempt tells of it
                    samples = self._decoder.decode(data).astype(np.float32)
                    self._detector.feed(samples / np.float32(32768))
            case ReplyText(text) if self._asked_at is not None:
                self._text.append(text)
            case _:
                pass

    def question_ended(self, t0_ns: int) -> None:  # noqa: ARG002 - stream time needs no moment
        """Note where the stream is now: only what is audible from here on can be the answer."""
        self._asked_at = self._detector.samples if self._detector else 0

    def over_at(self) -> int | None:
        """Return the arrival that completed the quiet behind the answer."""
        if not self.answering or self._detector is None:
            return None
        return self._last_ns if self._detector.quiet_ms >= self._quiet_ms else None

    def text(self) -> str:
        """Return the text that came after the question."""
        return "".join(self._text).strip()
