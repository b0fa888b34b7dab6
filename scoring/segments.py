"""Which stretches of an endpoint's output are replies, and which of them is the answer.

Where replies are told apart by the protocol they are taken as told. In a full-duplex stream, which
never starts or stops, they are found in stream time: what is audible, split at 1.5 s of quiet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from voxmeter.scoring.attempt import Attempt, Came
from voxmeter.scoring.playout import Playout
from voxmeter.scoring.speech import find_sound, speech_bounds

SPLIT_MS = 1500

Role = Literal["greeting", "early", "backchannel", "talk-over", "answer", "later"]
"""`greeting`: over (a told reply) or begun (full duplex) before the user began to speak, or to ask
where worked examples come first.
`early`: told to be over before the user's end of speech. `backchannel`: the same in a full-duplex
stream, by its sound. `talk-over`: the answer, audible before the user's end of speech.
`answer`: the first that is none of these. `later`: what follows it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One reply, or one stretch of a full-duplex stream.

    Attributes:
        ranges: Sample ranges of the stream that belong to it, in order.
        onset: First audible sample of the stream in it, None if nothing in it is audible.
        end: One past its last audible sample, likewise.
        reply: The reply's id, empty where there is none.
        first_packet_ns: Arrival of its first audio, None where it has none of its own.
        first_text_ns: Arrival of its first text that is not blank.
        ended_ns: When its end was told, None if it was not.
        reason: Why it ended, as told.
        role: None until it is known, and where the user's end of speech is not.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    onset: int | None = None
    end: int | None = None
    reply: str = ""
    first_packet_ns: int | None = None
    first_text_ns: int | None = None
    ended_ns: int | None = None
    reason: str = ""
    role: Role | None = None

    @property
    def is_answer(self) -> bool:
        """Whether this is what the user waited for."""
        return self.role in {"answer", "talk-over"}


@dataclass(slots=True)
class _Reply:
    """A reply while its rows are read."""

    name: str
    ranges: list[tuple[int, int]] = field(default_factory=list)
    first_packet_ns: int | None = None
    first_text_ns: int | None = None
    ended_ns: int | None = None
    reason: str = ""
    started: bool = False
    heard_ns: int = 0


def told_segments(attempt: Attempt, stream: NDArray[np.float32], rate: int) -> list[Segment]:
    """Return the replies that the protocol told of, in the order in which they began.

    Rows without an id belong to the reply that is open; audio after an end opens a new one. Where
    the protocol tells neither beginnings nor ends, a reply is over once it has been heard and
    nothing more has come for 1.5 s.
    """
    replies: list[_Reply] = []
    position = 0
    for row in attempt.came:
        if row.kind == "reply_started":
            _find(replies, row.reply, fresh=True).started = True
        elif row.kind == "reply_audio":
            samples = min(row.samples, stream.size - position)
            if samples > 0:
                _part(replies, row.reply, row.t_ns)
                reply = _find(replies, row.reply)
                _add_audio(reply, row.t_ns, position, position + samples)
                reply.heard_ns = max(reply.heard_ns, row.t_ns) + round(samples * 1e9 / rate)
            position += max(0, samples)
        elif row.kind == "reply_text" and row.text.strip():
            _part(replies, row.reply, row.t_ns)
            reply = _find(replies, row.reply)
            reply.first_text_ns = reply.first_text_ns or row.t_ns
        elif row.kind in {"reply_ended", "interrupted"}:
            _close(replies, row)
    _part(replies, "", attempt.t0_ns)
    return [_segment(reply, stream, rate) for reply in replies]


def stream_segments(spans: NDArray[np.int64], rate: int, split_ms: int = SPLIT_MS) -> list[Segment]:
    """Return the stretches of a full-duplex stream, in stream time.

    Args:
        spans: Shape (k, 2), the stream's audible stretches, in order.
        rate: Samples a second.
        split_ms: Quiet that parts two segments.
    """
    if spans.size == 0:
        return []
    quiet = spans[1:, 0] - spans[:-1, 1]
    breaks = np.flatnonzero(quiet >= split_ms * rate / 1000)
    first = spans[np.concatenate(([0], breaks + 1)), 0].tolist()
    end = spans[np.concatenate((breaks, [spans.shape[0] - 1])), 1].tolist()
    return [Segment(((a, b),), a, b) for a, b in zip(first, end, strict=True)]


def told_roles(
    segments: Sequence[Segment], playout: Playout, onset_ns: int | None, t0_ns: int | None
) -> list[Segment]:
    """Return the segments with their roles.

    A reply that ended or was cancelled before `t0_ns` is not the answer; the answer is the first
    that is not, passing over those without audio and without a word, and those that were taken
    back before any audio came, whose words nobody was told.
    """
    if t0_ns is None:
        return list(segments)
    over = [s.ended_ns is not None and s.ended_ns < t0_ns for s in segments]
    waiting = [number for number, gone in enumerate(over) if not gone]
    full = [n for n in waiting if segments[n].ranges or segments[n].first_text_ns is not None]
    kept = [n for n in full if segments[n].ranges or segments[n].reason != "cancelled"]
    chosen = next(iter(kept or full or waiting), None)
    found: list[Segment] = []
    for number, (segment, gone) in enumerate(zip(segments, over, strict=True)):
        role: Role
        if number == chosen:
            role = "talk-over" if _begins_before(segment, playout, t0_ns) else "answer"
        elif gone:
            greeted = onset_ns is not None and (segment.ended_ns or 0) < onset_ns
            role = "greeting" if greeted else "early"
        else:
            role = "later" if chosen is not None and number > chosen else "early"
        found.append(replace(segment, role=role))
    return found


def stream_roles(
    segments: Sequence[Segment], playout: Playout, onset_ns: int | None, t0_ns: int | None
) -> list[Segment]:
    """Return the segments of a full-duplex stream with their roles, by when they were heard."""
    if t0_ns is None:
        return list(segments)
    found: list[Segment] = []
    answered = False
    for segment in segments:
        role: Role = "later"
        end_ns = None if segment.end is None else playout.heard_end_ns(segment.end)
        if onset_ns is not None and _begins_before(segment, playout, onset_ns):
            role = "greeting"
        elif end_ns is not None and end_ns < t0_ns:
            role = "backchannel"
        elif not answered:
            role = "talk-over" if _begins_before(segment, playout, t0_ns) else "answer"
            answered = True
        found.append(replace(segment, role=role))
    return found


def as_heard(segment: Segment, playout: Playout, stream: NDArray[np.float32]) -> Segment:
    """Return a segment with the first and last audible sample that a listener heard of it.

    They differ from those of its audio where a part of it was thrown away before it was heard.

    Args:
        segment: Any.
        playout: When each sample was heard.
        stream: Shape (n,), what the segment's ranges lie in.
    """
    if segment.onset is None or segment.end is None:
        return segment
    heard = np.zeros(stream.size, dtype=bool)
    for piece in playout.pieces:
        heard[piece.start : piece.end] = True
    place = np.concatenate([np.arange(a, b) for a, b in segment.ranges])
    inside = place[(place >= segment.onset) & (place < segment.end)]
    if bool(heard[inside].all()):
        return segment
    spans = find_sound(stream[place], playout.rate).spans.tolist()
    sound = np.concatenate([place[a:b] for a, b in spans] or [place[:0]])
    left = sound[heard[sound]]
    if left.size == 0:
        return replace(segment, onset=None, end=None)
    return replace(segment, onset=int(left[0]), end=int(left[-1]) + 1)


def _begins_before(segment: Segment, playout: Playout, t_ns: int) -> bool:
    begins = None if segment.onset is None else playout.heard_ns(segment.onset)
    return begins is not None and begins < t_ns


def _find(replies: list[_Reply], name: str, *, fresh: bool = False) -> _Reply:
    """Return the reply of this name; without a name, the one that is open; else a new one."""
    for reply in reversed(replies):
        if name and reply.name == name:
            return reply
        if not name and not fresh and reply.ended_ns is None:
            return reply
    replies.append(_Reply(name))
    return replies[-1]


def _add_audio(reply: _Reply, t_ns: int, start: int, end: int) -> None:
    if reply.first_packet_ns is None:
        reply.first_packet_ns = t_ns
    if reply.ranges and reply.ranges[-1][1] == start:
        start = reply.ranges.pop()[0]
    reply.ranges.append((start, end))


def _part(replies: list[_Reply], name: str, t_ns: int | None) -> None:
    """End a reply of which nothing was told, when quiet has parted it from what comes then."""
    last = replies[-1] if replies else None
    if last is None or name or last.name or last.started or last.ended_ns is not None:
        return
    if last.heard_ns and t_ns is not None and t_ns - last.heard_ns >= SPLIT_MS * 1_000_000:
        last.ended_ns = last.heard_ns


def _close(replies: list[_Reply], row: Came) -> None:
    """Note the end of a reply; the end of one that never began is an empty reply."""
    if row.kind == "interrupted":
        if not replies or replies[-1].ended_ns is not None:
            return
        reply, reason = replies[-1], "cancelled"
    else:
        reply, reason = _find(replies, row.reply), row.reason
    if reply.ended_ns is None:
        reply.ended_ns, reply.reason = row.t_ns, reason


def _segment(reply: _Reply, stream: NDArray[np.float32], rate: int) -> Segment:
    onset = end = None
    if reply.ranges:
        audio = np.concatenate([stream[a:b] for a, b in reply.ranges])
        bounds = speech_bounds(audio, rate)
        if bounds is not None:
            onset = _in_stream(bounds.onset_sample, reply.ranges)
            end = _in_stream(bounds.end_sample - 1, reply.ranges) + 1
    return Segment(
        tuple(reply.ranges),
        onset,
        end,
        reply.name,
        reply.first_packet_ns,
        reply.first_text_ns,
        reply.ended_ns,
        reply.reason,
    )


def _in_stream(sample: int, ranges: Sequence[tuple[int, int]]) -> int:
    """Return where a sample of the joined ranges lies in the stream."""
    for start, end in ranges:
        if sample < end - start:
            return start + sample
        sample -= end - start
    return ranges[-1][1]
