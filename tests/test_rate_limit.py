"""Rate limits belong to the endpoint: every session keeps them, and none of it is a latency."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from captures import capture_of
from fakes import FrozenClock
from hypothesis import given
from hypothesis import strategies as st
from limits_world import Clock, Peer, Statuses, busy, run

from voxmeter.client.rate_limit import Pass, RateLimit
from voxmeter.client.retries import Retries
from voxmeter.client.runfolder import RunFolder
from voxmeter.endpoints import events

# The limits by themselves


async def test_without_a_limit_nobody_waits() -> None:
    clock = Clock()
    limit = RateLimit(3, clock)
    passes = [await limit.enter() for _ in range(3)]
    assert [one.waited_s for one in passes] == [0, 0, 0]
    assert clock.until_s == []


async def test_a_wait_that_one_session_is_told_of_holds_back_all() -> None:
    clock = Clock()
    limit = RateLimit(3, clock)
    limit.wait(7)
    assert [(await limit.enter()).waited_s for _ in range(2)] == [7, 0]
    assert clock.s() == 7
    limit.wait(-3)
    limit.wait(2)
    limit.wait(1)  # an earlier end does not shorten a later one
    assert await limit.opened() == 2
    assert await limit.opened() == 0


async def test_a_wait_of_ones_own_holds_back_nobody_else() -> None:
    clock = Clock()
    limit = RateLimit(2, clock)
    assert (await limit.enter(clock.now() + 3_000_000_000)).waited_s == 3
    assert (await limit.enter()).waited_s == 0


async def test_a_limit_that_is_used_up_is_waited_for_but_not_for_a_day() -> None:
    clock = Clock()
    limit = RateLimit(1, clock, longest_s=60)
    limit.spent(4)
    assert (await limit.enter()).waited_s == 4
    limit.leave()
    limit.spent(86_400)
    assert (await limit.enter()).waited_s == 60


async def test_refusals_halve_the_sessions_once_a_round_and_answers_bring_them_back() -> None:
    limit = RateLimit(8, Clock())
    first = [await limit.enter() for _ in range(8)]
    for one in first:
        limit.refused(one)
        limit.leave()
    assert limit.sessions == 4
    for expected in (2, 1, 1):
        limit.refused(await limit.enter())
        limit.leave()
        assert limit.sessions == expected
    counts = []
    for _ in range(40):
        limit.answered()
        counts.append(limit.sessions)
    assert counts[:6] == [2, 2, 2, 3, 3, 3]  # one more after about as many answers as sessions
    assert counts == sorted(counts)
    assert counts[-1] == 8


async def test_a_session_waits_for_room_and_gets_it_when_another_leaves() -> None:
    limit = RateLimit(2, Clock())
    one = await limit.enter()
    await limit.enter()
    limit.refused(one)
    limit.leave()
    waiting = asyncio.create_task(limit.enter())
    await asyncio.sleep(0)
    assert not waiting.done()
    limit.leave()
    async with asyncio.timeout(10):
        assert (await waiting).round == 1


async def test_a_session_knows_whether_others_were_under_way_beside_it() -> None:
    limit = RateLimit(2, Clock())
    first, second = await limit.enter(), await limit.enter()
    assert limit.beside_others(first)
    assert limit.beside_others(second)
    limit.refused(first)
    limit.leave()
    limit.leave()
    alone = await limit.enter()
    assert not limit.beside_others(alone)
    limit.leave()
    assert not limit.beside_others(await limit.enter())


@given(st.integers(1, 1000), st.lists(st.booleans(), max_size=200))
def test_there_is_always_room_for_one_and_never_for_more_than_allowed(
    most: int, refusals: list[bool]
) -> None:
    limit, round_now = RateLimit(most, FrozenClock()), 0
    for refused in refusals:
        if refused:
            limit.refused(Pass(0.0, round_now))
            round_now += 1
        else:
            limit.answered()
        assert 1 <= limit.sessions <= most


# In a run


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def peer(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Peer:
    peer = Peer(clock)
    monkeypatch.setattr("voxmeter.client.streaming.attempt", peer.attempt)
    monkeypatch.setattr("voxmeter.client.streaming.Finisher", Statuses)
    return peer


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder.create(tmp_path, "test", {}) as folder:
        yield folder


def test_a_named_wait_is_kept_by_every_session_and_is_on_its_row(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [busy(7)]
    peer.together = [2]
    rows = run(folder, clock, trials=8, sessions=2, retries=Retries(most=0))
    assert peer.began_s == [0, 0, *[7] * 6]  # one of the first two was refused
    assert [row["status"] for row in rows].count("ok") == 7
    waits = {row["item"]: row["waited_s"] for row in rows}
    assert waits["q0"] == waits["q1"] == 0
    assert waits["q2"] == 7  # never refused itself
    assert set(waits.values()) == {0, 7}


def test_a_refused_trial_is_asked_again_after_its_wait_and_a_little(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [busy(7), busy(7)]
    rows = run(folder, clock, trials=1)
    assert [row["status"] for row in rows] == ["refused", "refused", "ok"]
    assert [row["refusal"] for row in rows[:2]] == ["busy", "busy"]
    assert all(7 <= row["waited_s"] <= 7.7 for row in rows[1:])


def test_a_limit_that_is_used_up_delays_the_next_beginning(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.told = {
        1: events.RateLimit("requests", 3, 9.0),
        2: events.RateLimit("requests", 0, 5),
        3: events.RateLimit("requests", 0, None),
        4: events.RateLimit("requests", None, 2.0),
    }
    rows = run(folder, clock, trials=5)
    assert peer.began_s == [0, 0, 5, 5, 5]
    assert [row["waited_s"] for row in rows] == [0, 0, 5, 0, 0]


def test_fewer_are_asked_at_a_time_after_a_refusal_and_more_again_after_answers(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [busy(1) for _ in range(8)]
    peer.together = [8, 4, 4, 5]
    rows = run(folder, clock, trials=60, sessions=8)
    assert peer.together == []
    assert peer.at_a_time[:8] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert max(peer.at_a_time[8:16]) == 4
    assert [row["status"] for row in rows].count("ok") == 60


def test_a_trial_is_not_lost_for_all_that_was_asked_beside_it(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [busy(1) for _ in range(16 + 8 + 4 + 2)]
    peer.together = [16, 8, 4, 2]
    rows = run(folder, clock, trials=20, sessions=16, retries=Retries(most=1))
    assert peer.together == []
    assert max(row["attempt"] for row in rows) > 2
    assert [row["status"] for row in folder.newest_trials()] == ["ok"] * 20


def test_two_at_a_time_that_are_refused_beside_each_other_keep_all_their_retries(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [busy(1), busy(1), busy(1)]
    peer.together = [2]  # then one alone, which has its one retry left
    rows = run(folder, clock, trials=2, sessions=2, retries=Retries(most=1))
    assert peer.together == []
    assert sorted(row["status"] for row in rows) == ["ok", "ok", "refused", "refused", "refused"]


def test_a_last_trial_that_is_alone_uses_its_retries_whatever_the_bench_allows(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [busy(1), busy(1)]
    rows = run(folder, clock, trials=1, sessions=4, retries=Retries(most=1))
    assert [row["status"] for row in rows] == ["refused", "refused"]


def test_a_trial_that_is_refused_alone_uses_up_its_retries(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [busy(1), busy(1), busy(1)]
    rows = run(folder, clock, trials=1, retries=Retries(most=1))
    assert [row["status"] for row in rows] == ["refused", "refused"]


def test_a_failure_of_the_servers_own_is_no_rate_limit(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [busy(None, "server")]
    peer.together = [4, 4]
    run(folder, clock, trials=40, sessions=4)
    assert peer.together == []


def test_limits_are_those_of_one_endpoint(peer: Peer, clock: Clock, folder: RunFolder) -> None:
    peer.told = {2: events.RateLimit("requests", 0, 50)}
    rows = run(folder, clock, trials=2, endpoints=("a", "b"))
    assert [row["endpoint"] for row in rows] == ["a", "a", "b", "b"]
    assert peer.began_s == [0, 0, 0, 0]


def test_an_endpoint_that_asks_for_too_long_a_wait_is_left_for_the_next(
    peer: Peer, clock: Clock, folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    peer.captures[:] = [capture_of(), busy(3600)]
    rows = run(folder, clock, trials=5, endpoints=("a", "b"))
    assert [(row["endpoint"], row["status"]) for row in rows] == [
        ("a", "ok"),
        ("a", "refused"),
        *[("b", "ok")] * 5,
    ]
    why = "it asks for a wait of 3600 s, longer than run.retry_wait_limit_s (60)"
    assert rows[1]["gave_up"] == why
    told = capsys.readouterr().err
    assert f"a is asked no more: {why}; 4 trials are to be asked again" in told
    assert f"voxmeter run --resume {folder.path}" in told
    assert clock.until_s == []
