"""The latency of one attempt, as a pure function of its log and its reply stream.

`docs/metrics.md` says what each figure means. What did not happen is None: never 0, never the
length of a time-out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from voxmeter.scoring.attempt import Attempt, read
from voxmeter.scoring.log import Row
from voxmeter.scoring.playout import Piece, Playout, Stall, listen
from voxmeter.scoring.segments import (
    Segment,
    as_heard,
    stream_roles,
    stream_segments,
    told_roles,
    told_segments,
)
from voxmeter.scoring.speech import find_sound

NAMES = (
    "first_packet_ms",
    "first_audible_ms",
    "leading_silence_ms",
    "first_text_ms",
    "stream_first_audible_ms",
    "endpointing_ms",
    "reply_ms",
    "reply_end_ms",
    "stall_ms",
    "stalls",
    "delivery_rate",
    "yield_ms",
    "overlap_ms",
)
"""Every latency name of the contract; `stalls` is a count, `delivery_rate` a ratio."""

LATE_MS = 20
"""A frame that left later than this, from `WATCHED_S` before t0 on, spoils the trial's latency,
unless the run says another limit."""
WATCHED_S = 1

_FROM_T0 = (
    "first_packet_ms",
    "first_audible_ms",
    "first_text_ms",
    "endpointing_ms",
    "reply_end_ms",
)
_MS = 1e6
Status = Literal["ok", "no_reply", "timeout"]


@dataclass(frozen=True, slots=True)
class Marks:
    """What a log says of one attempt.

    Attributes:
        t0_ns: The user's end of speech, None if it never left.
        latency: Every name of `NAMES`; ms but for `stalls` and `delivery_rate`.
        segments: Every reply: `role`, `reply`, `start_ms` and `end_ms` (heard, from t0), and
            `start_sample`, `end_sample`, `stream_start_ms`, `stream_end_ms` (in the stream). Null
            where nothing in it is audible.
        stall_spans: `start_ms` (from t0), `ms`, and `sample`, the place in the stream.
        status: As far as rows tell: `ok` (something audible answered; for a text channel, words),
            `no_reply` (something came, no such answer), `timeout` (nothing came).
        answer: Sample ranges of the stream that are the answer, empty unless it is audible.
        audit: `send_lateness_ms` {p50, p99, max} or None, `late_frames`, `latency_valid`, and
            `warnings`, in words.
    """

    t0_ns: int | None
    latency: dict[str, float | None]
    segments: list[dict[str, Any]]
    stall_spans: list[dict[str, Any]]
    status: Status
    answer: list[tuple[int, int]]
    audit: dict[str, Any]


def latency(rows: Sequence[Row], stream: NDArray[np.float32], *, late_ms: float = LATE_MS) -> Marks:
    """Return the marks of one attempt.

    Args:
        rows: Its log, as `voxmeter.scoring.log` describes it; whatever is odd in it is left out
            and said in `audit["warnings"]`.
        stream: Shape (n,), the decoded output without gaps, in [-1, 1], at the header's
            `output_rate`.
        late_ms: A frame that left later than this spoils the trial's latency.

    Raises:
        ValueError: If the stream is not finite floats of one dimension.
    """
    attempt = read(rows)
    if attempt is None:
        came = any(str(row.get("kind", "")).startswith("reply_") for row in rows)
        audit = {
            "send_lateness_ms": None,
            "late_frames": 0,
            "latency_valid": True,
            "warnings": ["the log has no usable header"],
        }
        status: Status = "no_reply" if came else "timeout"
        return Marks(None, dict.fromkeys(NAMES), [], [], status, [], audit)
    warnings = list(attempt.warnings)
    segments, playout = _find_segments(attempt, stream, warnings)
    answer = next((segment for segment in segments if segment.is_answer), None)
    found: dict[str, float | None] = dict.fromkeys(NAMES)
    stalls: list[Stall] = []
    fast = attempt.header.pacing == "fast"  # then no time means anything
    if not fast and attempt.t0_ns is not None:
        heard = None if answer is None else as_heard(answer, playout, stream)
        stalls = _stalls(heard, playout)
        found |= _answer_marks(attempt, heard, segments, playout, stalls)
        found["endpointing_ms"] = _endpointing_ms(attempt)
        _check(attempt, found, warnings)
    return Marks(
        attempt.t0_ns,
        found,
        [_told(segment, playout, None if fast else attempt.t0_ns) for segment in segments],
        [_stall_span(stall, attempt.t0_ns or 0) for stall in stalls],
        _status(attempt, answer),
        list(answer.ranges) if answer is not None and answer.onset is not None else [],
        {**_audit(attempt, late_ms), "warnings": warnings},
    )


def _find_segments(
    attempt: Attempt, stream: NDArray[np.float32], warnings: list[str]
) -> tuple[list[Segment], Playout]:
    rate = attempt.header.output_rate
    claimed = sum(row.samples for row in attempt.came)
    if claimed != stream.size:
        warnings.append(f"rows tell of {claimed} samples, the stream has {stream.size}")
    t0_ns, onset_ns = attempt.t0_ns, attempt.onset_ns
    if not attempt.duplex:
        playout = listen(attempt, rate, stream.size, None)
        told = told_segments(attempt, stream, rate)
        return told_roles(told, playout, onset_ns, t0_ns), playout
    spans = np.empty((0, 2), dtype=np.int64)
    if stream.size:
        sound = find_sound(stream, rate)
        # Noise in which no speech was found has no beginning that anyone could wait for.
        spans = sound.spans if sound.kind == "speech" else spans
    playout = listen(attempt, rate, stream.size, spans)
    if attempt.header.pacing == "fast" and t0_ns is not None:
        playout, onset_ns, t0_ns = _by_place(attempt, rate, stream.size)
    return stream_roles(stream_segments(spans, rate), playout, onset_ns, t0_ns), playout


def _by_place(attempt: Attempt, rate: int, samples: int) -> tuple[Playout, int, int]:
    """Return a stream as if it had been heard while the question was spoken, and its two moments.

    A question that is sent without pacing is over before anything of the stream has come: only
    places in the two streams tell what came before it.
    """
    header = attempt.header
    pieces = (Piece(0, samples, header.t_ns),) if samples else ()
    second = 1e9 / header.input_rate
    onset_ns = header.t_ns + round(header.onset_sample * second)
    return Playout(pieces, rate), onset_ns, header.t_ns + round(header.speech_end_sample * second)


def _stalls(answer: Segment | None, playout: Playout) -> list[Stall]:
    if answer is None or answer.onset is None or answer.end is None:
        return []
    return playout.stalls(answer.onset, answer.end)


def _answer_marks(
    attempt: Attempt,
    answer: Segment | None,
    segments: Sequence[Segment],
    playout: Playout,
    stalls: Sequence[Stall],
) -> dict[str, float | None]:
    """Return the marks that only an answer has; `answer` is the answer as it was heard."""
    t0_ns = attempt.t0_ns
    found: dict[str, float | None] = {}
    found["first_text_ms"] = _since(t0_ns, _first_text_ns(attempt, answer, segments, playout))
    if answer is None:
        return found
    found["first_packet_ms"] = _since(t0_ns, answer.first_packet_ns)
    found["delivery_rate"] = _delivery_rate(attempt, answer)
    if answer.onset is None or answer.end is None:
        return found
    header = attempt.header
    found["first_audible_ms"] = _since(t0_ns, playout.heard_ns(answer.onset))
    found["leading_silence_ms"] = _since(answer.first_packet_ns, playout.heard_ns(answer.onset))
    found["reply_ms"] = _heard_samples(playout, answer) * 1000 / header.output_rate
    found["reply_end_ms"] = _since(t0_ns, playout.heard_end_ns(answer.end))
    found["stall_ms"] = sum(stall.ns for stall in stalls) / _MS
    found["stalls"] = len(stalls)
    if attempt.duplex and not header.live:
        spoken = header.speech_end_sample * 1000 / header.input_rate
        found["stream_first_audible_ms"] = answer.onset * 1000 / header.output_rate - spoken
    return found


def _since(from_ns: int | None, t_ns: int | None) -> float | None:
    return None if from_ns is None or t_ns is None else (t_ns - from_ns) / _MS


def _first_text_ns(
    attempt: Attempt, answer: Segment | None, segments: Sequence[Segment], playout: Playout
) -> int | None:
    """Return when the answer's first words came.

    A full-duplex stream does not say which words belong to which sound: then it is the first text
    after the segment before the answer was heard, at the earliest after the user began to speak.
    """
    if not attempt.duplex:
        return None if answer is None else answer.first_text_ns
    after = attempt.onset_ns or attempt.t0_ns or 0
    for segment in segments:
        if segment.is_answer or segment.role == "later":
            break
        end_ns = None if segment.end is None else playout.heard_end_ns(segment.end)
        after = max(after, end_ns or 0)
    if answer is None:
        after = max(after, attempt.t0_ns or 0)
    texts = (row for row in attempt.came if row.kind == "reply_text" and row.text.strip())
    return next((row.t_ns for row in texts if row.t_ns >= after), None)


def _heard_samples(playout: Playout, answer: Segment) -> int:
    """Return how many samples were heard from the answer's first audible one to its last."""
    first, end = answer.onset or 0, answer.end or 0
    inside = (
        min(b, piece.end, end) - max(a, piece.start, first)
        for piece in playout.pieces
        for a, b in answer.ranges
    )
    return sum(max(0, samples) for samples in inside)


def _delivery_rate(attempt: Attempt, answer: Segment) -> float | None:
    """Return seconds of audio for each second of waiting, after the first chunk came."""
    position = samples = 0
    first_ns = last_ns = None
    for row in attempt.came:
        start, position = position, position + row.samples
        if row.samples and any(start < b and a < position for a, b in answer.ranges):
            if first_ns is not None:
                samples += row.samples
            first_ns = row.t_ns if first_ns is None else first_ns
            last_ns = row.t_ns
    if first_ns is None or last_ns is None or last_ns <= first_ns:
        return None
    return samples / attempt.header.output_rate / ((last_ns - first_ns) / 1e9)


def _endpointing_ms(attempt: Attempt) -> float | None:
    """Return when the server said that the user had stopped.

    Its first word of that after t0 counts. One before t0 counts if the server did not hear the
    user again after it, and nothing came after t0: it cut the user off.
    """
    t0_ns = attempt.t0_ns or 0
    before: int | None = None
    for row in attempt.came:
        if row.kind == "speech_stopped":
            if row.t_ns >= t0_ns:
                return _since(t0_ns, row.t_ns)
            before = row.t_ns
        elif row.kind == "speech_started":
            before = None
    return _since(t0_ns, before)


def _check(attempt: Attempt, found: dict[str, float | None], warnings: list[str]) -> None:
    """Take out what cannot be true: an answer cannot come before there was a question."""
    earliest = _since(attempt.t0_ns, attempt.question_ns)
    if earliest is None:
        return
    for name in _FROM_T0:
        value = found[name]
        if value is not None and value < earliest:
            found[name] = None
            warnings.append(f"{name} of {value:.0f} left out: that is before the question")
            if name in {"first_packet_ms", "first_audible_ms"}:
                found["leading_silence_ms"] = None


def _told(segment: Segment, playout: Playout, t0_ns: int | None) -> dict[str, Any]:
    onset, end = segment.onset, segment.end
    ms = 1000 / playout.rate
    return {
        "role": segment.role,
        "reply": segment.reply,
        "start_ms": None if onset is None else _since(t0_ns, playout.heard_ns(onset)),
        "end_ms": None if end is None else _since(t0_ns, playout.heard_end_ns(end)),
        "start_sample": onset,
        "end_sample": end,
        "stream_start_ms": None if onset is None else onset * ms,
        "stream_end_ms": None if end is None else end * ms,
    }


def _stall_span(stall: Stall, t0_ns: int) -> dict[str, Any]:
    return {
        "start_ms": (stall.t_ns - t0_ns) / _MS,
        "ms": stall.ns / _MS,
        "sample": stall.sample,
    }


def _status(attempt: Attempt, answer: Segment | None) -> Status:
    if attempt.header.latency_kind == "text":
        words = answer is not None and answer.first_text_ns is not None
        if words:
            return "ok"
    elif answer is not None and answer.onset is not None:
        return "ok"
    came = any(row.kind.startswith("reply_") for row in attempt.came)
    return "no_reply" if came else "timeout"


def _audit(attempt: Attempt, late_ms: float) -> Mapping[str, Any]:
    """Return how exactly this client itself sent, and whether that spoils the latency."""
    paced = [*attempt.frames, *([attempt.commit] if attempt.commit else [])]
    late = [(f.t_ns, (f.t_ns - f.due_ns) / _MS) for f in paced if f.due_ns is not None]
    watched_ns = (attempt.t0_ns or 0) - WATCHED_S * 1_000_000_000
    spoiled = 0
    if attempt.t0_ns is not None and attempt.header.pacing != "fast":
        spoiled = sum(ms > late_ms and t_ns >= watched_ns for t_ns, ms in late)
    lateness: dict[str, float] | None = None
    if late:
        values = [ms for _, ms in late]
        p50, p99 = np.percentile(values, [50, 99])
        lateness = {"p50": float(p50), "p99": float(p99), "max": max(values)}
    return {
        "send_lateness_ms": lateness,
        "late_frames": spoiled,
        "latency_valid": spoiled == 0,
    }
