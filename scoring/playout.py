"""When a listener hears each sample: early audio queues, late audio makes a gap.

The player has no buffer of its own: audio that arrives while nothing is queued is heard at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxmeter.scoring.attempt import Attempt, PutOut, read
from voxmeter.scoring.log import Row
from voxmeter.scoring.speech import find_sound

STALL_MS = 10
"""A shorter gap is not counted: it is a click at most, and network jitter makes many."""

_NS = 1_000_000_000


class Arrival(NamedTuple):
    """A chunk of the decoded reply stream; chunks follow each other without gaps.

    Attributes:
        t_ns: When it arrived.
        samples: How many samples it holds.
        reply: The id of the reply that it belongs to, empty where there is none.
    """

    t_ns: int
    samples: int
    reply: str = ""


class Flush(NamedTuple):
    """At `t_ns` the player threw away what it had queued: of one reply, or everything ("")."""

    t_ns: int
    reply: str = ""


class Piece(NamedTuple):
    """Samples that are heard one after the other: `start` to `end` of the stream, from `t_ns`."""

    start: int
    end: int
    t_ns: int
    reply: str = ""


class Stall(NamedTuple):
    """A silence that the stream does not have, before sample `sample`, from `t_ns` on."""

    sample: int
    t_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class Playout:
    """What was heard, in the order of the stream and of time.

    Attributes:
        pieces: None is empty; samples in none of them were never heard.
        rate: Samples a second of the stream.
    """

    pieces: tuple[Piece, ...]
    rate: int

    def heard_ns(self, sample: int) -> int | None:
        """Return when a sample begins to be heard, or None if it never was.

        One past the last sample of a piece is the moment when that piece has been heard.
        """
        number = bisect_right(self.pieces, sample, key=lambda piece: piece.start) - 1
        if number < 0 or sample > self.pieces[number].end:
            return None
        piece = self.pieces[number]
        return piece.t_ns + _duration(sample - piece.start, self.rate)

    def heard_end_ns(self, sample: int) -> int | None:
        """Return when all that is heard of what lies before a sample has been heard, or None."""
        number = bisect_right(self.pieces, sample - 1, key=lambda piece: piece.start) - 1
        if number < 0:
            return None
        piece = self.pieces[number]
        return piece.t_ns + _duration(min(sample, piece.end) - piece.start, self.rate)

    def stalls(self, first: int, end: int) -> list[Stall]:
        """Return the gaps of at least `STALL_MS` between two samples of the stream.

        A gap counts when audio from `first` on was heard before it and audio before `end` after it:
        what comes before the first audible sample is latency, not a stall.
        """
        found: list[Stall] = []
        for before, piece in zip(self.pieces, self.pieces[1:], strict=False):
            stopped = before.t_ns + _duration(before.end - before.start, self.rate)
            if before.end > first and piece.start < end:
                gap = piece.t_ns - stopped
                if gap >= STALL_MS * 1_000_000:
                    found.append(Stall(piece.start, stopped, gap))
        return found


def play(
    arrivals: Sequence[Arrival],
    rate: int,
    *,
    flushes: Sequence[Flush] = (),
    audible: NDArray[np.int64] | None = None,
) -> Playout:
    """Return when each chunk is heard.

    Args:
        arrivals: In the order of the stream.
        rate: Samples a second.
        flushes: When the player threw away what it had not played yet.
        audible: Shape (k, 2), audible stretches of the stream. Given for a full-duplex stream,
            whose player drops silence to catch up after a hiccup; without it nothing is dropped.
    """
    pieces: list[Piece] = []
    waiting = sorted(flushes, key=lambda flush: flush.t_ns, reverse=True)
    head = position = 0
    for t_ns, samples, reply in arrivals:
        while waiting and waiting[-1].t_ns <= t_ns:
            head = _flush(pieces, waiting.pop(), rate, head)
        late = max(0, head - t_ns)
        head = max(head, t_ns)
        end = position + samples
        for start, stop, silent in _parts(position, end, audible if late else None):
            dropped = min(stop - start, late * rate // _NS) if silent else 0
            late -= _duration(dropped, rate)
            if start + dropped < stop:
                pieces.append(Piece(start + dropped, stop, head, reply))
                head += _duration(stop - start - dropped, rate)
        position = end
    while waiting:
        head = _flush(pieces, waiting.pop(), rate, head)
    return Playout(tuple(pieces), rate)


def listen(attempt: Attempt, rate: int, samples: int, audible: NDArray[np.int64] | None) -> Playout:
    """Return when each sample of an attempt's reply stream is heard.

    What a cancelled reply still had queued is thrown away, as every voice client does; an
    interruption, and a cancellation that names no reply, empty the whole queue. Of a live session
    nothing is modelled: its loudspeaker says what it played, and when.

    Args:
        attempt: The log as `voxmeter.scoring.attempt.read` returns it.
        rate: Samples a second of the stream.
        samples: Length of the stream; chunks that claim more are cut.
        audible: As for `play`.
    """
    if attempt.header.live:
        return _put_out(attempt.put_out, rate, samples)
    arrivals: list[Arrival] = []
    for row in attempt.came:
        if row.samples:
            arrivals.append(Arrival(row.t_ns, min(row.samples, samples), row.reply))
            samples -= arrivals[-1].samples
    flushes = [
        Flush(row.t_ns, "" if row.kind == "interrupted" else row.reply)
        for row in attempt.came
        if row.kind == "interrupted" or (row.kind == "reply_ended" and row.reason == "cancelled")
    ]
    return play(arrivals, rate, flushes=flushes, audible=audible)


def _put_out(stretches: Sequence[PutOut], rate: int, samples: int) -> Playout:
    """Return what a device played or took; stretches that follow each other are one piece.

    A device's stamps jitter by a few ms, which is no gap that anybody hears.
    """
    pieces: list[Piece] = []
    for one in stretches:
        end = min(one.end, samples)
        if end <= one.start:
            continue
        last = pieces[-1] if pieces else None
        apart = 0 if last is None else one.heard_ns - _over_ns(last, rate)
        if last is not None and last.end == one.start and abs(apart) < STALL_MS * 1_000_000:
            pieces[-1] = last._replace(end=end)
        else:
            pieces.append(Piece(one.start, end, one.heard_ns))
    return Playout(tuple(pieces), rate)


def heard(rows: Sequence[Row], stream: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what a listener heard, with gaps, from the moment of the log's header on.

    Args:
        rows: The log of one attempt.
        stream: Shape (n,), the decoded reply without gaps, at the header's `output_rate`.

    Returns:
        Shape (m,), at the same rate; empty when the log has no usable header.
    """
    attempt = read(rows)
    if attempt is None or not stream.size:
        return np.zeros(0, dtype=np.float32)
    rate = attempt.header.output_rate
    audible = find_sound(stream, rate).spans if attempt.duplex else None
    return track(listen(attempt, rate, stream.size, audible), stream, attempt.header.t_ns)


def spoken(rows: Sequence[Row], sent: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what a microphone took, each sample at its moment, from that of the header on.

    Args:
        rows: The log of one turn of a live session.
        sent: Shape (n,), its frames one after the other, at the header's `input_rate`.

    Returns:
        Shape (m,), at the same rate: with a gap where the device lost samples.
    """
    attempt = read(rows)
    if attempt is None:
        return sent
    rate = attempt.header.input_rate
    frames = [one for one in attempt.frames if one.taken_ns is not None]
    taken = [PutOut(one.start, one.end, one.taken_ns or 0) for one in frames]
    return track(_put_out(taken, rate, sent.size), sent, attempt.header.t_ns)


def track(playout: Playout, stream: NDArray[np.float32], origin_ns: int) -> NDArray[np.float32]:
    """Return what was heard as one signal, shape (m,), whose sample 0 is heard at `origin_ns`.

    What was heard before that moment is cut.
    """
    placed: list[tuple[int, Piece]] = []
    head = 0
    for piece in playout.pieces:
        begin = round((piece.t_ns - origin_ns) * playout.rate / _NS)
        # Rounding must not tear a sample's gap into audio that is heard without one.
        begin = head if placed and begin <= head + 1 else begin
        placed.append((begin, piece))
        head = begin + piece.end - piece.start
    track = np.zeros(max(0, head), dtype=np.float32)
    for begin, piece in placed:
        skipped = max(0, -begin)
        audio = stream[piece.start + skipped : piece.end]
        track[begin + skipped : begin + skipped + audio.size] = audio
    return track


def _duration(samples: int, rate: int) -> int:
    return (samples * _NS + rate // 2) // rate


def _parts(start: int, end: int, audible: NDArray[np.int64] | None) -> list[tuple[int, int, bool]]:
    """Split a range of the stream where it becomes audible or silent."""
    if audible is None:
        return [(start, end, False)] if end > start else []
    first = int(np.searchsorted(audible[:, 1], start, side="right"))
    parts: list[tuple[int, int, bool]] = []
    for a, b in audible[first:].tolist():
        if a >= end:
            break
        if a > start:
            parts.append((start, a, True))
        parts.append((max(a, start), min(b, end), False))
        start = min(b, end)
    if start < end:
        parts.append((start, end, True))
    return parts


def _flush(pieces: list[Piece], flush: Flush, rate: int, head: int) -> int:
    """Cut what a flush threw away, let what was queued behind it move up; return when all is heard.

    What is queued has arrived, so that nothing but the queue decides when it is heard.
    """
    queued: list[Piece] = []
    while pieces and _over_ns(pieces[-1], rate) > flush.t_ns:
        queued.append(pieces.pop())
    head = min(head, flush.t_ns)
    for piece in reversed(queued):
        played = max(0, flush.t_ns - piece.t_ns) * rate // _NS
        if flush.reply and piece.reply != flush.reply:
            pieces.append(piece._replace(t_ns=piece.t_ns if played else head))
            head = _over_ns(pieces[-1], rate)
        elif played:
            pieces.append(piece._replace(end=min(piece.end, piece.start + played)))
    return head


def _over_ns(piece: Piece, rate: int) -> int:
    return piece.t_ns + _duration(piece.end - piece.start, rate)
