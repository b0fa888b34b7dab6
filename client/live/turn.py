"""One turn of a live talk while it goes on, and which turn something that comes belongs to.

All figures in here are provisional: the log tells what counts (`saving.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.capture import Outcome
from voxmeter.client.ear import Ear
from voxmeter.client.live.playback import Put
from voxmeter.client.live.sound import Trouble
from voxmeter.client.live.updates import Mark, MarkName
from voxmeter.endpoints.events import (
    Event,
    InputTranscript,
    Interrupted,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)
from voxmeter.scoring.quiet import QuietDetector

_MS = 1e6
_NS = 1_000_000_000
LIVE = "live"
"""Name of the suite that people's own turns belong to."""
REPLY = (ReplyStarted, ReplyAudio, ReplyText, ReplyEnded, Interrupted)


@dataclass(frozen=True, slots=True)
class Question:
    """What a turn is kept as.

    Attributes:
        suite: `live`, or the suite whose question was asked aloud.
        item: Id in it.
        trial: How often it has been asked, from 1.
        row: Its line of `items.jsonl`.
    """

    suite: str
    item: str
    trial: int = 1
    row: dict[str, object] = field(default_factory=dict)


def own_question(number: int) -> Question:
    """Return what a turn of the user's own is kept as."""
    item = f"turn-{number}"
    row: dict[str, object] = {
        "suite": LIVE,
        "item": item,
        "cluster": item,
        "groups": [],
        "kind": "open",
        "question": "",
        "reference": None,
        "options": [],
        "language": "en",
        "question_via": None,
    }
    return Question(LIVE, item, 1, row)


@dataclass(slots=True)
class Turn:
    """What is known of a turn so far.

    Attributes:
        number: From 1.
        question: What it is kept as.
        condition: Name of what is done to the microphone in it.
        params: What was drawn for that.
        first: First sample of the outgoing stream that belongs to it: some quiet before the speech.
        onset: First voiced sample.
        since_ns: When `first` was at the converter.
        ear: Says when its reply is over.
        started_at: Wall clock.
        end: One past the last voiced sample, None while the user speaks.
        t0_ns: When that was at the converter.
        last: One past the last sample that belongs to it, once the user speaks again.
        outcome: How it ended, where that is not by the end of its reply.
        interrupted: Whether the user cut its reply by hand.
        cut: Whether its reply was taken back by the endpoint.
        transcript: What the endpoint believes the user said.
    """

    number: int
    question: Question
    condition: str
    params: dict[str, object]
    first: int
    onset: int
    since_ns: int
    ear: Ear
    started_at: str
    end: int | None = None
    t0_ns: int | None = None
    last: int | None = None
    outcome: tuple[Outcome, str | None] | None = None
    interrupted: bool = False
    cut: bool = False
    transcript: str = ""
    note: str | None = None
    replies: set[str] = field(default_factory=set)
    begun: bool = False
    reply_over: bool = False
    first_packet_ns: int | None = None
    puts: list[Put] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    hops_ms: list[float] = field(default_factory=list)
    heard: tuple[int, int] | None = None
    buffer_ms: int | None = None
    _detector: QuietDetector | None = None
    _detected_from: int = 0
    _rate: int = 0
    _shown: set[MarkName] = field(default_factory=set)

    def ended(self, end: int, t0_ns: int, *, reply_from: int | None) -> None:
        """Take note that the user stopped speaking.

        Args:
            end: One past the last voiced sample.
            t0_ns: When it was at the converter.
            reply_from: Where output flows all the time: where in it the answer may begin.
        """
        self.end, self.t0_ns = end, t0_ns
        if reply_from is not None:
            self._detector, self._detected_from = None, reply_from

    def resumed(self) -> None:
        """Take note that the user goes on: the end was none."""
        self.end = self.t0_ns = None

    def hear(self, t_ns: int, event: Event) -> None:
        """Take one event of a reply."""
        name = getattr(event, "reply", "")
        if name:
            self.replies.add(name)
        if isinstance(event, ReplyAudio | ReplyText):
            self.begun = True
        if isinstance(event, ReplyAudio) and self.first_packet_ns is None:
            self.first_packet_ns = t_ns
        if isinstance(event, ReplyEnded | Interrupted):
            self.reply_over = True
            self.cut = self.cut or getattr(event, "reason", "cancelled") == "cancelled"
        if isinstance(event, ReplyStarted):
            self.reply_over = False
        if isinstance(event, ReplyEnded) and event.reason == "incomplete":
            self.note = f"a reply was cut short: {event.detail or 'it is not told why'}"
        self.ear.hear(t_ns, event)

    def sounds(
        self, start: int, samples: NDArray[np.float32], rate: int, buffer_ms: int = 0
    ) -> None:
        """Take decoded audio of its reply.

        Args:
            start: Place of the first sample in the reply stream.
            samples: Shape (n,), in [-1, 1].
            rate: Samples a second.
            buffer_ms: What a reply that begins now waits before it is played.
        """
        self.buffer_ms = buffer_ms if self.buffer_ms is None else self.buffer_ms
        if samples.size == 0:
            return
        if self._detector is None:
            self._detector, self._rate = QuietDetector(rate), rate
            self._detected_from = start
        self._detector.feed(samples)
        self.heard = (self.heard[0] if self.heard else start, start + samples.size)

    def played(self, put: Put) -> bool:
        """Take what was put out; return whether any of it is this turn's."""
        if self.heard is None or put.sample + put.samples <= self.heard[0]:
            return False
        if put.sample >= self.heard[1]:
            return False
        self.puts.append(put)
        return True

    def heard_ms(self, now_ns: int) -> int:
        """Return how much of the reply has been heard by now, ms."""
        samples = 0.0
        for put in self.puts:
            passed = (now_ns - put.heard_ns) * self._rate / _NS
            samples += min(float(put.samples), max(0.0, passed))
        return round(samples * 1000 / self._rate) if self._rate else 0

    def new_marks(self, *, settled: bool) -> Iterator[Mark]:
        """Yield the marks that are known now and were not told yet, in order.

        Args:
            settled: Whether its reply is over and played.
        """
        if self.t0_ns is None:
            return
        found: list[tuple[MarkName, int | None]] = [
            ("speech_end", self.t0_ns),
            ("first_packet", self.first_packet_ns),
            ("first_audible", self.first_audible_ns),
            ("reply_end", self._reply_end_ns() if settled else None),
        ]
        for name, t_ns in found:
            if t_ns is not None and name not in self._shown:
                self._shown.add(name)
                yield Mark(self.number, name, (t_ns - self.t0_ns) / _MS)

    @property
    def first_audible_ns(self) -> int | None:
        """When the first audible sample of its reply was put out, None while it was not."""
        onset = None if self._detector is None else self._detector.onset
        return None if onset is None else self._heard_ns(self._detected_from + onset)

    def _reply_end_ns(self) -> int | None:
        last = None if self._detector is None else self._detector.last_audible
        if last is None or not self.puts:
            return None
        t_ns = self._heard_ns(self._detected_from + last - 1)
        end = self.puts[-1]
        return t_ns or end.heard_ns + end.samples * _NS // self._rate

    def _heard_ns(self, sample: int) -> int | None:
        for put in reversed(self.puts):
            if put.sample <= sample < put.sample + put.samples:
                return put.heard_ns + (sample - put.sample) * _NS // self._rate
        return None


class Turns:
    """The turns that are not over: the newest, and one before it whose reply was talked over."""

    def __init__(self) -> None:
        self.number = 0
        self.open: list[Turn] = []

    @property
    def current(self) -> Turn | None:
        """The newest turn, while it is not over."""
        last = self.open[-1] if self.open else None
        return last if last is not None and last.number == self.number else None

    @property
    def speaking(self) -> bool:
        """Whether the user speaks."""
        return self.current is not None and self.current.end is None

    def begin(self, turn: Turn) -> None:
        """Add a turn; what was open before has no more of the user."""
        for one in self.open:
            if one.last is None:
                one.last = turn.first
        self.open.append(turn)
        self.number = turn.number

    def of(self, event: Event) -> Turn | None:
        """Return the turn that an event belongs to, None between two turns."""
        current = self.current
        older = next((one for one in self.open if one is not current), None)
        if older is None or not isinstance(event, REPLY) or isinstance(event, ReplyStarted):
            return current if older is None or current is not None else older
        name = getattr(event, "reply", "")
        if name and name in older.replies:
            return older
        speaking = current is not None and current.end is None and not current.begun
        ending = isinstance(event, ReplyEnded | Interrupted)
        if not name and speaking and older.begun and (ending or not older.reply_over):
            return older
        return current or older

    def number_of(self, events: Sequence[Event]) -> int:
        """Return the number of the turn that a message belongs to; that of the next, if none is."""
        for event in events:
            if isinstance(event, REPLY):
                found = self.of(event)
                return found.number if found is not None else self.number + 1
        current = self.current
        if current is None and any(isinstance(event, InputTranscript) for event in events):
            return self.number
        return current.number if current is not None else self.number + 1
