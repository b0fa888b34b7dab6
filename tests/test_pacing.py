"""Deadlines of the outgoing stream."""

from __future__ import annotations

from fakes import FrozenClock
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.pacing import Outgoing, Spacing


def test_frame_k_is_due_when_its_last_sample_exists() -> None:
    sending = Outgoing(rate=24_000, start_ns=1_000, frame=480)
    due = []
    for _ in range(3):
        due.append(sending.due(480))
        sending.position += 480
    assert due == [20_001_000, 40_001_000, 60_001_000]


def test_a_short_last_frame_is_due_when_its_own_last_sample_exists() -> None:
    sending = Outgoing(rate=24_000, start_ns=0, frame=480, position=480)
    assert sending.due(120) == 25_000_000


@given(
    rate=st.sampled_from([8_000, 16_000, 22_050, 24_000, 44_100, 48_000]),
    frames=st.integers(1, 500_000),
)
def test_deadlines_never_drift_from_the_sample_clock(rate: int, frames: int) -> None:
    frame = rate // 50
    sending = Outgoing(rate=rate, start_ns=0, frame=frame, position=frame * (frames - 1))
    exact = frame * frames * 1e9 / rate
    assert abs(sending.due(frame) - exact) < max(2.0, exact * 1e-15)


def test_a_stream_goes_on_from_the_moment_it_is_rebased_at() -> None:
    sending = Outgoing(rate=1_000, start_ns=0, frame=20, position=500)
    sending.rebase(10_000_000_000)
    assert sending.due(20) == 10_020_000_000


def test_silence_is_one_whole_frame_of_zeros() -> None:
    assert Outgoing(rate=16_000, start_ns=0, frame=320).silence == bytes(640)


async def test_sessions_begin_one_by_one_spread_over_a_second() -> None:
    clock = FrozenClock()
    start = clock.now()
    spacing = Spacing(4, clock)
    begun = []
    for _ in range(5):
        await spacing.turn()
        begun.append(clock.now() - start)
    assert begun == [0, 250_000_000, 500_000_000, 750_000_000, 1_000_000_000]


async def test_who_comes_late_does_not_make_the_next_ones_hurry() -> None:
    clock = FrozenClock()
    spacing = Spacing(2, clock)
    await spacing.turn()
    clock.t_ns += 10_000_000_000
    late = clock.now()
    await spacing.turn()
    await spacing.turn()
    assert clock.now() - late == 500_000_000


async def test_one_session_at_a_time_never_waits() -> None:
    clock = FrozenClock()
    start = clock.now()
    for _ in range(3):
        await Spacing(1, clock).turn()
    assert clock.now() == start
