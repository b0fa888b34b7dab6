"""What a listener hears: queues, stalls, flushes, and a duplex player that catches up."""

from __future__ import annotations

import attempt_logs as logs
import numpy as np
import pytest
from attempt_logs import MS
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.scoring.playout import Arrival, Flush, Piece, heard, play, track

RATE = 8000  # 8 samples a millisecond
T = 10**15


def arrival(ms: float, length_ms: float) -> Arrival:
    return Arrival(T + round(ms * MS), round(length_ms * 8))


def starts_ms(pieces: tuple[Piece, ...]) -> list[float]:
    return [(piece.t_ns - T) / MS for piece in pieces]


@pytest.mark.parametrize(
    ("arrivals", "starts"),
    [
        ([(0, 100), (0, 100), (0, 100)], [0, 100, 200]),  # a burst queues
        ([(0, 100), (100, 100), (200, 100)], [0, 100, 200]),  # real time
        ([(0, 100), (150, 100), (160, 100)], [0, 150, 250]),  # late, then early
        ([(0, 1000), (500, 100)], [0, 1000]),  # faster than real time
        ([(0, 100), (-50, 100)], [0, 100]),  # a stamp that goes back
        ([(5, 0), (6, 100)], [6]),  # an empty chunk is none
        ([], []),
    ],
)
def test_a_chunk_is_heard_when_it_has_arrived_and_what_came_before_is_over(
    arrivals: list[tuple[float, float]], starts: list[float]
) -> None:
    assert starts_ms(play([arrival(*a) for a in arrivals], RATE).pieces) == starts


def test_every_sample_has_its_moment() -> None:
    playout = play([arrival(0, 100), arrival(150, 100)], RATE)
    assert playout.heard_ns(0) == T
    assert playout.heard_ns(799) == T + 99.875 * MS
    assert playout.heard_ns(800) == T + 150 * MS
    assert playout.heard_end_ns(800) == T + 100 * MS
    assert playout.heard_end_ns(1600) == T + 250 * MS
    assert playout.heard_ns(1601) is None
    assert play([], RATE).heard_ns(0) is None
    assert play([], RATE).heard_end_ns(0) is None


@pytest.mark.parametrize(
    ("gap_ms", "first", "end", "stalls"),
    [
        (30, 0, 1600, [(800, 100, 30)]),
        (10, 0, 1600, [(800, 100, 10)]),
        (9.9, 0, 1600, []),  # too short to be one
        (30, 800, 1600, []),  # before the first audible sample: that is latency
        (30, 0, 800, []),  # behind the last one: that is nothing
        (30, 799, 801, [(800, 100, 30)]),
    ],
)
def test_a_gap_of_10_ms_inside_the_audible_reply_is_a_stall(
    gap_ms: float, first: int, end: int, stalls: list[tuple[int, float, float]]
) -> None:
    playout = play([arrival(0, 100), arrival(100 + gap_ms, 100)], RATE)
    found = playout.stalls(first, end)
    assert [(s.sample, (s.t_ns - T) / MS, s.ns / MS) for s in found] == stalls


def test_what_is_queued_at_a_flush_is_never_heard() -> None:
    arrivals = [arrival(0, 100), arrival(0, 100), arrival(200, 50)]
    playout = play(arrivals, RATE, flushes=[Flush(T + 130 * MS)])
    assert playout.pieces == (
        Piece(0, 800, T),
        Piece(800, 1040, T + 100 * MS),
        Piece(1600, 2000, T + 200 * MS),
    )
    assert playout.heard_ns(1300) is None
    assert playout.heard_end_ns(1600) == T + 130 * MS


def test_a_flush_after_everything_was_heard_changes_nothing() -> None:
    arrivals = [arrival(0, 100), arrival(300, 100)]
    flushes = [Flush(T + 200 * MS), Flush(T + 900 * MS)]
    assert play(arrivals, RATE, flushes=flushes) == play(arrivals, RATE)


def test_a_flush_of_one_reply_leaves_the_others_queued() -> None:
    named = [Arrival(T, 800, reply) for reply in ("a", "b", "c")]
    cut = play(named, RATE, flushes=[Flush(T + 30 * MS, "b")])
    assert starts_ms(cut.pieces) == [0, 100]
    assert [piece.reply for piece in cut.pieces] == ["a", "c"]
    cut = play(named, RATE, flushes=[Flush(T + 130 * MS, "b"), Flush(T + 150 * MS, "a")])
    assert starts_ms(cut.pieces) == [0, 100, 130]
    assert cut.heard_end_ns(1600) == T + 130 * MS
    assert cut.heard_end_ns(2400) == T + 230 * MS


def hiccup() -> list[Arrival]:
    """80 ms frames in real time, with nothing between 400 and 800 ms, then all of it at once."""
    return [arrival(800 if 400 <= ms < 800 else ms, 80) for ms in range(0, 2400, 80)]


def test_a_duplex_player_drops_silence_to_catch_up_after_a_hiccup() -> None:
    audible = np.array([[1600 * 8, 2000 * 8]])
    caught_up = play(hiccup(), RATE, audible=audible)
    assert caught_up.heard_ns(1600 * 8) == T + 1600 * MS
    assert play(hiccup(), RATE).heard_ns(1600 * 8) == T + 2000 * MS


def test_a_duplex_player_never_drops_what_is_audible() -> None:
    audible = np.array([[300 * 8, 1000 * 8]])
    playout = play(hiccup(), RATE, audible=audible)
    kept = [range(piece.start, piece.end) for piece in playout.pieces]
    assert sum(len([n for n in kept_range if 2400 <= n < 8000]) for kept_range in kept) == 5600
    assert playout.heard_ns(1600 * 8) == T + 1600 * MS  # it caught up in the silence behind


chunks = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2000)), max_size=20)


@given(chunks)
def test_no_sample_is_lost_or_heard_twice_or_early(steps: list[tuple[int, int]]) -> None:
    t_ns, arrivals = T, []
    for wait_ms, samples in steps:
        t_ns += wait_ms * MS
        arrivals.append(Arrival(t_ns, samples))
    playout = play(arrivals, RATE)
    assert sum(piece.end - piece.start for piece in playout.pieces) == sum(
        a.samples for a in arrivals
    )
    position, free = 0, 0
    for piece, came in zip(playout.pieces, [a for a in arrivals if a.samples], strict=True):
        assert piece.start == position
        assert piece.t_ns == max(came.t_ns, free)
        position = piece.end
        free = piece.t_ns + round((piece.end - piece.start) * 1e9 / RATE)


@given(chunks, st.integers(1, 300))
def test_how_an_arrival_is_cut_into_chunks_changes_nothing(
    steps: list[tuple[int, int]], size: int
) -> None:
    t_ns, whole, cut = T, [], []
    for wait_ms, samples in steps:
        t_ns += wait_ms * MS
        whole.append(Arrival(t_ns, samples))
        cut += [Arrival(t_ns, min(size, samples - k)) for k in range(0, samples, size)]
    one, other = play(whole, RATE), play(cut, RATE)
    for sample in range(0, sum(a.samples for a in whole), 97):
        assert other.heard_ns(sample) == pytest.approx(one.heard_ns(sample), abs=300)
    stream = np.arange(1, 1 + sum(a.samples for a in whole), dtype=np.float32)
    assert np.array_equal(track(one, stream, T), track(other, stream, T))


@given(chunks)
def test_the_track_holds_every_sample_once_in_order(steps: list[tuple[int, int]]) -> None:
    t_ns, arrivals = T, []
    for wait_ms, samples in steps:
        t_ns += wait_ms * MS
        arrivals.append(Arrival(t_ns, samples))
    stream = np.arange(1, 1 + sum(a.samples for a in arrivals), dtype=np.float32)
    sound = track(play(arrivals, RATE), stream, T)
    assert np.array_equal(sound[sound > 0], stream)


def test_a_track_begins_at_its_origin() -> None:
    stream = np.ones(1600, dtype=np.float32)
    playout = play([arrival(50, 200)], RATE)
    late = track(playout, stream, T)
    assert np.flatnonzero(late).tolist() == list(range(400, 2000))
    cut = track(playout, stream, T + 100 * MS)
    assert (cut.size, float(cut.min())) == (1200, 1.0)


def test_the_heard_track_of_a_log_lies_on_the_timeline_of_its_header() -> None:
    stream = logs.joined(logs.voice(100), logs.voice(100))
    rows = logs.log(logs.frames(200), [logs.audio(300, 2400), logs.audio(450, 2400)])
    sound = heard(rows, stream)
    loud = np.flatnonzero(np.abs(sound) > 0.01)
    assert loud[0] == 2300 * 24
    assert np.diff(loud).max() == pytest.approx(50 * 24, abs=60)
    assert sound.size == 2550 * 24
    assert heard([], stream).size == 0
    assert heard(rows, logs.silence(0)).size == 0


def test_what_a_cancelled_reply_had_queued_is_not_heard() -> None:
    cancelled = logs.came(150, "reply_ended", reason="cancelled", reply="r1")
    rows = logs.log(logs.frames(200), [logs.audio(0, 24_000), cancelled])
    assert heard(rows, logs.voice(1000)).size == pytest.approx(2150 * 24, abs=1)
