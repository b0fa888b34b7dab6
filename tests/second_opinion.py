"""The latency figures of one attempt a second time, by another road.

Written from the design and `docs/metrics.md` alone, to check `voxmeter.scoring.marks`: a
loudspeaker takes one sample from its queue at each tick of its clock, and what a listener heard
is read from its diary. Slow, plain, and sharing no code with what it checks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxmeter.scoring.log import Row

Samples = NDArray[np.float32]
Span = tuple[int, int]
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
_NS = 1_000_000_000
_NEVER = -1
_ENDS = ("reply_end_ms", "endpointing_ms")


@dataclass(slots=True)
class Reply:
    """One reply of the endpoint, as the log tells it."""

    name: str
    told: bool = False  # its beginning, in a row of its own
    pieces: list[tuple[int, int, int]] = field(default_factory=list)  # arrival ns, start, stop
    texts: list[int] = field(default_factory=list)  # arrival, ns, of those that are not blank
    closed_ns: int | None = None
    taken_back: bool = False


@dataclass(slots=True)
class Told:
    """What the rows tell, in the order of time."""

    replies: list[Reply] = field(default_factory=list)
    cuts: list[tuple[int, Reply | None]] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """The answer: its pieces as they arrived, its samples, and when its first word came."""

    pieces: list[tuple[int, int, int]]
    samples: list[int]
    text_ns: int | None


def second_latency(rows: Sequence[Row], stream: Samples) -> dict[str, float | None]:
    """Return every latency figure of the contract for one attempt; None where there is none."""
    header = rows[0]
    figures: dict[str, float | None] = dict.fromkeys(NAMES)
    moments = moments_of_speech(rows)
    if moments is None or header["pacing"] == "fast":
        return figures
    onset_ns, t0 = moments
    rate = int(header["output_rate"])
    told = tell(timely(rows), rate)
    _part(told, {"t_ns": t0}, rate)  # a greeting that nothing follows is still over
    figures["endpointing_ms"] = endpointing(told, t0)
    duplex = header["latency_kind"] == "duplex" or bool(header.get("full_duplex"))
    if header.get("live"):
        diary = put_out(rows, len(stream), rate)
    else:
        diary = play(told, stream, rate, duplex=duplex)
    if duplex:
        answer: Answer | None = duplex_answer(told, stream, rate, diary, moments)
    else:
        answer = turn_answer(told, t0)
    if answer is not None:
        measure(figures, header, stream, answer, diary, t0)
    for name in ("first_packet_ms", "first_audible_ms", "first_text_ms", *_ENDS):
        if (figures[name] or 0.0) < (onset_ns - t0) / 1e6:
            figures[name] = None  # nothing answers a question that has not begun
    if figures["first_packet_ms"] is None or figures["first_audible_ms"] is None:
        figures["leading_silence_ms"] = None
    return figures


# What the rows tell ------------------------------------------------------------------------------


def timely(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows with a possible time, in order of time; audio knows its place."""
    start = rows[0]["t_ns"]
    place = 0
    kept = []
    for row in rows[1:]:
        copy = dict(row)
        if copy["kind"] == "reply_audio":
            copy["start"] = place
            place += int(copy.get("samples", 0))
            copy["stop"] = place
        t_ns = copy.get("t_ns")
        if isinstance(t_ns, int) and start - 600 * _NS <= t_ns <= start + 7200 * _NS:
            kept.append(copy)
    return sorted(kept, key=lambda row: int(row["t_ns"]))


def moments_of_speech(rows: Sequence[Row]) -> tuple[int, int] | None:
    """Return when the user's first and last voiced sample left, ns."""
    header = rows[0]
    for row in rows:
        if row["kind"] == "request":
            sent = int(row["t_ns"])
            return sent, sent - int(header["commit_after_ms"] * 1_000_000)
    left: dict[int, float] = {}
    wanted = (int(header["onset_sample"]) + 1, int(header["speech_end_sample"]))
    position = 0
    for row in rows:
        if row["kind"] != "audio":
            continue
        after = position + int(row["samples"])
        for sample in wanted:
            if position < sample <= after and "taken_ns" in row:  # a mouth, not a file
                left[sample] = row["taken_ns"] + (sample - position) / header["input_rate"] * _NS
            elif position < sample <= after:
                left[sample] = row["t_ns"] - (after - sample) / header["input_rate"] * _NS
        position = after
    if wanted[1] not in left:
        return None
    return round(left.get(wanted[0], left[wanted[1]])), round(left[wanted[1]])


def tell(rows: Sequence[Row], rate: int) -> Told:
    """Sort the rows of the other side into replies, cuts and beliefs."""
    told = Told()
    for row in rows:
        t_ns = int(row["t_ns"])
        match row["kind"]:
            case "reply_started":
                _reply(told, row, fresh=True).told = True
            case "reply_audio" if row["stop"] > row["start"]:
                _part(told, row, rate)
                _reply(told, row).pieces.append((t_ns, row["start"], row["stop"]))
            case "reply_text" if str(row["text"]).strip():
                _part(told, row, rate)
                _reply(told, row).texts.append(t_ns)
            case "reply_ended":
                reply = _reply(told, row)
                reply.taken_back |= reply.closed_ns is None and row["reason"] == "cancelled"
                reply.closed_ns = reply.closed_ns or t_ns
                if row["reason"] == "cancelled":
                    told.cuts.append((t_ns, reply if reply.name else None))
            case "interrupted":
                told.cuts.append((t_ns, None))
                for reply in told.replies[-1:]:
                    reply.taken_back |= reply.closed_ns is None
                    reply.closed_ns = reply.closed_ns or t_ns
            case "speech_started":
                told.started.append(t_ns)
            case "speech_stopped":
                told.stopped.append(t_ns)
    return told


def _part(told: Told, row: Row, rate: int) -> None:
    """Close a reply of which nothing was told when it has been over for 1.5 s."""
    last = told.replies[-1] if told.replies else Reply("", told=True)
    if row.get("reply") or last.name or last.told or last.closed_ns or not last.pieces:
        return
    over = 0
    for t_ns, begin, end in last.pieces:
        over = max(over, t_ns) + (end - begin) * _NS // rate
    if row["t_ns"] - over >= 1.5 * _NS:
        last.closed_ns = over


def _reply(told: Told, row: Row, *, fresh: bool = False) -> Reply:
    """Return the reply that a row belongs to: by name, else the one that is open."""
    name = str(row.get("reply") or "")
    for reply in reversed(told.replies):
        if name and reply.name == name:
            return reply
        if not name and not fresh and reply.closed_ns is None:
            return reply
    told.replies.append(Reply(name))
    return told.replies[-1]


def endpointing(told: Told, t0: int) -> float | None:
    """Return when the server said that the user had stopped, ms after t0."""
    after = [t for t in told.stopped if t >= t0]
    if after:
        return (after[0] - t0) / 1e6
    before = [t for t in told.stopped if t < t0]
    if before and not any(t > before[-1] for t in told.started):
        return (before[-1] - t0) / 1e6
    return None


# The loudspeaker ---------------------------------------------------------------------------------


def play(told: Told, stream: Samples, rate: int, *, duplex: bool) -> list[int]:
    """Return, for each sample of the stream, the moment at which it sounded, ns; or never (-1)."""
    diary = [_NEVER] * len(stream)
    happenings = _happenings(told)
    if not happenings:
        return diary
    sounding = np.full(len(stream), not duplex)
    for begin, end in stretches(stream, rate) if duplex else []:
        sounding[begin:end] = True
    queue: deque[tuple[int, Reply]] = deque()
    start, tick = happenings[0][0], 0
    while happenings or queue:
        now = start + tick * _NS // rate
        while happenings and happenings[0][0] <= now:
            _, piece, reply = happenings.popleft()
            if piece is None:
                queue = deque(q for q in queue if reply is not None and q[1] is not reply)
            elif reply is not None:
                late = len(queue)
                for sample in range(*piece):
                    if late and not sounding[sample]:
                        late -= 1  # silence that comes too late is not played
                    else:
                        queue.append((sample, reply))
        if not queue:
            if happenings:
                start, tick = happenings[0][0], 0
            continue
        diary[queue.popleft()[0]] = now
        tick += 1
    return diary


def put_out(rows: Sequence[Row], length: int, rate: int) -> list[int]:
    """Return the same of a live turn: the diary is written by the loudspeaker itself."""
    diary = [_NEVER] * length
    for row in rows:
        if row["kind"] == "played":
            for number in range(row["samples"]):
                sample = row["sample"] + number
                if sample < length and diary[sample] == _NEVER:
                    diary[sample] = row["heard_ns"] + number * _NS // rate
    return diary


def _happenings(told: Told) -> deque[tuple[int, Span | None, Reply | None]]:
    """Return arrivals and cuts in order of time; at one moment arrivals come first."""
    arrivals: list[tuple[int, Span | None, Reply | None]] = [
        (t, (a, b), reply) for reply in told.replies for t, a, b in reply.pieces
    ]
    arrivals.sort(key=lambda one: (one[0], one[1] or (0, 0)))
    cuts: list[tuple[int, Span | None, Reply | None]] = [(t, None, reply) for t, reply in told.cuts]
    return deque(sorted(arrivals + cuts, key=lambda one: one[0]))


# What is audible ---------------------------------------------------------------------------------


def loud(samples: Samples, rate: int) -> NDArray[np.bool_]:
    """Return which samples lie between two that stand out in one 5 ms frame that does."""
    mask = np.zeros(len(samples), dtype=bool)
    frame = max(1, round(0.005 * rate))
    if not len(samples):
        return mask
    bar = max(1e-3, 10**0.5 * floor(samples, frame))
    padded = np.pad(samples.astype(np.float64), frame)
    power, mean = (np.convolve(x, np.ones(frame), "valid") / frame for x in (padded**2, padded))
    power -= mean**2  # an offset is not sound
    standing = np.flatnonzero(np.abs(padded) >= bar)
    for begin in np.flatnonzero(power >= bar**2):
        first = standing[np.searchsorted(standing, begin)]
        last = standing[np.searchsorted(standing, begin + frame) - 1]
        mask[first - frame : last + 1 - frame] = True
    return mask


def floor(samples: Samples, frame: int) -> float:
    """Return the steady level (RMS) before the first loud stretch, else one elsewhere, else 0."""
    whole = samples[: len(samples) // frame * frame].astype(np.float64).reshape(-1, frame)
    power = whole.var(axis=1)
    for number in range(20, len(power)):
        before = power[:number].mean()
        if power[:number].max() > 10 * before:
            break
        if power[number] > 10 * before:
            return float(np.sqrt(before))
    windows = [power[begin : begin + 30] for begin in range(len(power) - 29)]
    steady = [w.mean() for w in windows if w.max() < 10 * w.mean() and w.min() > w.mean() / 10]
    lowest = min(steady, default=np.inf)
    if lowest < power.max(initial=0.0) / 1000:
        return float(np.sqrt(lowest))
    levels = [power[begin : begin + 6].mean() for begin in range(max(1, len(power) - 5))]
    sixth = float(np.quantile(levels, 0.16))
    return float(np.sqrt(sixth)) if sixth <= 1e-6 else 0.0


def stretches(samples: Samples, rate: int) -> list[Span]:
    """Return the stretches of sound that count, as samples from and to.

    Quiet up to 150 ms is inside of one; under 100 ms, or with less than 30 ms of sound, it is a
    click.
    """
    mask = loud(samples, rate)
    edges = np.flatnonzero(np.diff(np.pad(mask.astype(np.int8), 1))).tolist()
    found: list[Span] = []
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if found and begin - found[-1][1] <= 0.150 * rate:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    long = [(a, b) for a, b in found if b - a >= 0.100 * rate]
    return [(a, b) for a, b in long if mask[a:b].sum() >= 0.030 * rate]


# Which reply is the answer -----------------------------------------------------------------------


def turn_answer(told: Told, t0: int) -> Answer | None:
    """Return the first reply not over before t0, passing over empty ones.

    One that was taken back before a sound of it came is the answer only if there is no other.
    """
    unspoken: Answer | None = None
    for reply in told.replies:
        over = reply.closed_ns is not None and reply.closed_ns < t0
        if over or not (reply.pieces or reply.texts):
            continue
        samples = [n for _, a, b in reply.pieces for n in range(a, b)]
        answer = Answer(reply.pieces, samples, reply.texts[0] if reply.texts else None)
        if reply.pieces or not reply.taken_back:
            return answer
        unspoken = unspoken or answer
    return unspoken


def duplex_answer(
    told: Told, stream: Samples, rate: int, diary: Sequence[int], moments: tuple[int, int]
) -> Answer:
    """Return the first stretch of sound that began with the user or later and outlasts t0."""
    onset_ns, t0 = moments
    segments: list[Span] = []
    for begin, end in stretches(stream, rate):
        if segments and begin - segments[-1][1] < 1.5 * rate:
            segments[-1] = (segments[-1][0], end)
        else:
            segments.append((begin, end))
    pieces = [p for reply in told.replies for p in reply.pieces]
    texts = sorted(t for reply in told.replies for t in reply.texts)
    before = onset_ns
    for begin, end in segments:
        times = [diary[n] for n in range(begin, end) if diary[n] != _NEVER]
        if times and times[0] >= onset_ns and times[-1] >= t0:
            inside = sorted(piece for piece in pieces if piece[1] < end and piece[2] > begin)
            word = next((t for t in texts if t >= before), None)
            return Answer(inside, list(range(begin, end)), word)
        before = max([before, *times])
    return Answer([], [], next((t for t in texts if t >= max(before, t0)), None))


# The figures -------------------------------------------------------------------------------------


def measure(
    figures: dict[str, float | None],
    header: Row,
    stream: Samples,
    answer: Answer,
    diary: Sequence[int],
    t0: int,
) -> None:
    """Write down what the listener heard of the answer."""
    rate = int(header["output_rate"])
    duplex = header["latency_kind"] == "duplex" or bool(header.get("full_duplex"))
    if answer.text_ns is not None:
        figures["first_text_ms"] = (answer.text_ns - t0) / 1e6
    if answer.pieces:
        figures["delivery_rate"] = delivery(answer.pieces, rate)
        if not duplex:
            figures["first_packet_ms"] = (answer.pieces[0][0] - t0) / 1e6
    sounds = [n for a, b in stretches(stream[answer.samples], rate) for n in answer.samples[a:b]]
    sounds = [n for n in sounds if diary[n] != _NEVER]
    if not sounds:
        return
    first, last = sounds[0], sounds[-1]
    between = answer.samples[answer.samples.index(first) : answer.samples.index(last) + 1]
    audible = [n for n in between if diary[n] != _NEVER]
    figures["first_audible_ms"] = (diary[first] - t0) / 1e6
    figures["reply_ms"] = len(audible) / rate * 1e3
    figures["reply_end_ms"] = (diary[last] - t0) / 1e6 + 1e3 / rate
    sounded = sorted(t_ns for t_ns in diary if diary[first] <= t_ns <= diary[last])
    waits = [(after - before) / 1e6 - 1e3 / rate for before, after in pairwise(sounded)]
    waits = [wait for wait in waits if wait >= 10]
    figures["stalls"], figures["stall_ms"] = float(len(waits)), sum(waits)
    if duplex and not header.get("live"):
        asked = header["speech_end_sample"] / header["input_rate"]
        figures["stream_first_audible_ms"] = (first / rate - asked) * 1e3
    elif not duplex:
        figures["leading_silence_ms"] = (diary[first] - answer.pieces[0][0]) / 1e6


def delivery(pieces: Sequence[tuple[int, int, int]], rate: int) -> float | None:
    """Return seconds of audio for each second of waiting, the first piece not counted."""
    waited = (pieces[-1][0] - pieces[0][0]) / _NS
    behind = sum(b - a for _, a, b in pieces[1:])
    return behind / rate / waited if waited > 0 else None
