"""The rows of one log, read into values that can be trusted.

Rows are outside data. A row whose time is missing, not a number or far from this attempt (an epoch
time, a counter of another machine) is left out and counted, so that no figure can come from it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from voxmeter.scoring.log import Row

_MS = 1_000_000
_BEFORE_NS = 600_000 * _MS  # a greeting may come long before the first frame is sent,
_AFTER_NS = 7_200_000 * _MS  # but no attempt takes two hours


@dataclass(frozen=True, slots=True)
class Header:
    """The log's first row, as `voxmeter.scoring.log` describes it."""

    t_ns: int
    input_rate: int
    output_rate: int
    onset_sample: int
    speech_end_sample: int
    latency_kind: str
    commit_after_ms: float
    pacing: str
    live: bool = False
    full_duplex: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """One paced frame: when it left, when it was due, and its place in the outgoing stream.

    Attributes:
        taken_ns: Of a microphone: when its first sample was at the converter.
    """

    t_ns: int
    due_ns: int | None
    start: int
    end: int
    taken_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PutOut:
    """Samples of the reply stream that a device put out one after the other, from `heard_ns` on."""

    start: int
    end: int
    heard_ns: int


@dataclass(frozen=True, slots=True)
class Came:
    """One incoming row with a time that can be true.

    Attributes:
        samples: Decoded samples, 0 unless it is audio.
        text: The text of a `reply_text`.
        reply: The reply's id, empty where there is none.
        reason: Why a reply ended, or which kind a fault is of.
    """

    t_ns: int
    kind: str
    samples: int = 0
    text: str = ""
    reply: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, in the order of its log.

    Attributes:
        frames: What was sent, paced.
        request_ns: Start of the request that carried the clip, where there was one.
        commit: The message that closed the turn, where there was one, with its due time.
        came: What came in.
        warnings: What was left out, and why.
        put_out: Of a live session: what its loudspeaker played, in the order of the stream.
    """

    header: Header
    frames: tuple[Sent, ...]
    request_ns: int | None
    commit: Sent | None
    came: tuple[Came, ...]
    warnings: tuple[str, ...]
    put_out: tuple[PutOut, ...] = ()

    def sent_ns(self, sample: int) -> int | None:
        """Return when the last moment of a sample of the outgoing stream left, or None.

        That is the actual send time of the frame that holds it, minus the audio after it in that
        frame; in a request everything leaves at once. A microphone's sample left the mouth, so to
        speak, when it was at the converter.
        """
        number = bisect_right(self.frames, sample, key=lambda frame: frame.start) - 1
        if number < 0 or sample >= self.frames[number].end:
            return None
        frame = self.frames[number]
        if frame.taken_ns is not None:
            before = sample + 1 - frame.start
            return frame.taken_ns + round(before * 1e9 / self.header.input_rate)
        after = frame.end - sample - 1
        return frame.t_ns - round(after * 1e9 / self.header.input_rate)

    @property
    def duplex(self) -> bool:
        """Whether output flows all the time, so that replies must be found in it."""
        return self.header.full_duplex or self.header.latency_kind == "duplex"

    @property
    def t0_ns(self) -> int | None:
        """The user's end of speech, or None if the clip's last voiced sample was never sent."""
        asked = self.header.latency_kind == "request" or not self.frames
        if asked and self.request_ns is not None:
            return self.request_ns - round(self.header.commit_after_ms * _MS)
        return self.sent_ns(self.header.speech_end_sample - 1)

    @property
    def question_ns(self) -> int | None:
        """When the question began to leave: its first voiced sample, or the request, or None."""
        asked = self.header.latency_kind == "request" or not self.frames
        return self.request_ns if asked else self.onset_ns

    @property
    def onset_ns(self) -> int | None:
        """When the user's first voiced sample left, as far as that is known."""
        asked = self.header.latency_kind == "request" or not self.frames
        if not asked:
            return self.sent_ns(self.header.onset_sample)
        t0_ns = self.t0_ns
        spoken = self.header.speech_end_sample - self.header.onset_sample
        return None if t0_ns is None else t0_ns - round(spoken * 1e9 / self.header.input_rate)


def read(rows: Sequence[Row]) -> Attempt | None:
    """Return what a log says, or None if it has no usable header."""
    head = next((row for row in rows if row.get("kind") == "start"), None)
    header = None if head is None else _header(head)
    if header is None:
        return None
    frames: list[Sent] = []
    came: list[Came] = []
    put_out: list[PutOut] = []
    request_ns: int | None = None
    commit: Sent | None = None
    left_out = position = 0
    for row in rows:
        if row is head:
            continue
        t_ns = _time(row, "t_ns", header)
        if row.get("dir") == "out" and row.get("kind") == "audio":
            samples = _count(row, "samples")
            position += samples
            if t_ns is not None:
                due = _time(row, "due_ns", header)
                taken = _time(row, "taken_ns", header)
                frames.append(Sent(t_ns, due, position - samples, position, taken))
        elif t_ns is None:
            left_out += 1
        elif row.get("dir") == "out" and row.get("kind") == "request" and request_ns is None:
            request_ns = t_ns
        elif row.get("dir") == "out" and row.get("kind") == "commit" and commit is None:
            commit = Sent(t_ns, _time(row, "due_ns", header), position, position)
        elif row.get("kind") == "played":
            _add_put_out(put_out, row, header)
        elif row.get("dir") == "in":
            came.append(_came(row, t_ns))
    warnings = (f"{left_out} rows without a possible time",) if left_out else ()
    return Attempt(header, tuple(frames), request_ns, commit, tuple(came), warnings, tuple(put_out))


def number(row: Row, key: str) -> float | None:
    """Return a finite number of a row, or None."""
    value = row.get(key)
    if type(value) is int:  # nearly every value of a log; bool is not int here
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def _header(row: Row) -> Header | None:
    needed = ("t_ns", "input_rate", "output_rate", "speech_end_sample")
    values = [number(row, key) for key in needed]
    t_ns, input_rate, output_rate, speech_end = (int(value or 0) for value in values)
    if None in values or input_rate <= 0 or output_rate <= 0 or speech_end <= 0:
        return None
    return Header(
        t_ns,
        input_rate,
        output_rate,
        int(number(row, "onset_sample") or 0),
        speech_end,
        str(row.get("latency_kind", "")),
        number(row, "commit_after_ms") or 0,
        str(row.get("pacing", "real-time")),
        row.get("live") is True,
        row.get("full_duplex") is True,
    )


def _time(row: Row, key: str, header: Header) -> int | None:
    value = number(row, key)
    if value is None or not -_BEFORE_NS <= value - header.t_ns <= _AFTER_NS:
        return None
    return int(value)


def _count(row: Row, key: str) -> int:
    return max(0, int(number(row, key) or 0))


def _add_put_out(put_out: list[PutOut], row: Row, header: Header) -> None:
    """Add what a loudspeaker played; nothing is played twice, or before what came before it."""
    heard_ns = _time(row, "heard_ns", header)
    first = number(row, "sample")
    if heard_ns is None or first is None:
        return
    start = int(first)
    end = start + _count(row, "samples")
    after = put_out[-1].end if put_out else 0
    if end > max(start, after):
        skipped = max(0, after - start)
        heard_ns += round(skipped * 1e9 / header.output_rate)
        put_out.append(PutOut(start + skipped, end, heard_ns))


def _came(row: Row, t_ns: int) -> Came:
    kind = str(row.get("kind", ""))
    reason = row.get("reason") if kind != "fault" else row.get("fault_kind")
    return Came(
        t_ns,
        kind,
        _count(row, "samples") if kind == "reply_audio" else 0,
        str(row.get("text") or "") if kind == "reply_text" else "",
        str(row.get("reply") or ""),
        str(reason or ""),
    )
