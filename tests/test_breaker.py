"""A dead endpoint stops being asked, a restarted one does not; the others go on."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from captures import capture_of
from limits_world import Clock, Peer, Statuses, gone, run
from merge_world import write_bench

from voxmeter.client import streaming
from voxmeter.client.breaker import WAITS_S, Breaker, Leave
from voxmeter.client.capture import Capture
from voxmeter.client.cli import main
from voxmeter.client.retries import Retries
from voxmeter.client.runfolder import RunFolder
from voxmeter.endpoints.events import FaultKind


def refused(kind: FaultKind | None) -> Capture:
    return capture_of(outcome="refused", fault="no", refusal=kind)


# By itself


async def leaves(breaker: Breaker, outcomes: list[bool]) -> list[Leave]:
    """Ask one by one until the outcomes are used up or it stops."""
    given: list[Leave] = []
    for took in outcomes:
        given.append(await breaker.admit())
        if given[-1] == "stop":
            break
        breaker.succeeded(given[-1]) if took else breaker.failed(given[-1], "refused")
    return given


async def test_after_so_many_failures_in_a_row_come_a_few_tries_far_apart_then_nothing() -> None:
    clock = Clock()
    breaker = Breaker(3, clock)
    assert await leaves(breaker, [False] * 20) == [*["ask"] * 3, *["try"] * 5, "stop"]
    assert clock.s() == sum(WAITS_S) > 120
    assert breaker.why == "8 failures in a row, the last 5 over 155 s: refused"


async def test_one_success_at_any_time_begins_the_count_anew() -> None:
    clock = Clock()
    breaker = Breaker(2, clock)
    given = await leaves(breaker, [False, True, False, False, False, True, False, False, False])
    assert given == ["ask", "ask", "ask", "ask", "try", "try", "ask", "ask", "try"]
    assert not breaker.why
    assert clock.until_s == [5, 15, 20]  # the waits begin anew as well


async def test_zero_never_stops() -> None:
    breaker = Breaker(0, Clock())
    assert await leaves(breaker, [False] * 100) == ["ask"] * 100


async def test_during_a_try_the_others_wait_for_how_it_ends() -> None:
    breaker = Breaker(1, Clock())
    breaker.failed("ask", "refused")
    assert await breaker.admit() == "try"
    others = [asyncio.create_task(breaker.admit()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(other.done() for other in others)
    breaker.failed("ask", "one that was under way before")  # decides nothing
    await asyncio.sleep(0)
    assert not any(other.done() for other in others)
    breaker.succeeded("try")
    async with asyncio.timeout(10):
        assert [await other for other in others] == ["ask"] * 3


async def test_all_who_wait_stop_when_it_is_given_up() -> None:
    breaker = Breaker(1, Clock(), waits_s=(1,))
    breaker.failed("ask", "refused")
    assert await breaker.admit() == "try"
    others = [asyncio.create_task(breaker.admit()) for _ in range(3)]
    await asyncio.sleep(0)
    breaker.failed("try", "refused")
    async with asyncio.timeout(10):
        assert [await other for other in others] == ["stop"] * 3


async def test_a_try_that_says_nothing_of_the_endpoint_is_made_again() -> None:
    breaker = Breaker(1, Clock(), waits_s=(1,))
    breaker.failed("ask", "refused")
    for _ in range(3):
        assert await breaker.admit() == "try"
        breaker.ended("try")
    assert not breaker.why


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


@pytest.mark.parametrize("sessions", [1, 4])
def test_a_dead_endpoint_is_left_and_the_others_go_on_and_resume_asks_what_is_left(
    sessions: int,
    peer: Peer,
    clock: Clock,
    folder: RunFolder,
    capsys: pytest.CaptureFixture[str],
) -> None:
    peer.dead = "a"
    limit = Retries(give_up_after=4 + sessions)
    made = run(folder, clock, 40, sessions, ("a", "b"), limit)
    dead = [row for row in made if row["endpoint"] == "a"]
    assert {row["status"] for row in dead} == {"disconnected"}
    assert 4 + sessions + 5 <= len(dead) < 4 + 2 * sessions + 5  # some were under way
    assert [bool(row.get("gave_up")) for row in dead] == [False] * (len(dead) - 1) + [True]
    assert [row["status"] for row in made if row["endpoint"] == "b"] == ["ok"] * 40
    assert clock.s() == 155
    told = capsys.readouterr().err
    assert "failures in a row; one more try in 5 s" in told
    assert f"a is asked no more: {len(dead)} failures in a row" in told
    assert "40 trials are to be asked again" in told  # those that failed are asked again as well
    peer.dead = ""
    again = run(folder, clock, 40, sessions, ("a", "b"))[len(made) :]
    assert {row["endpoint"] for row in again} == {"a"}
    assert [row["status"] for row in again] == ["ok"] * 40
    assert "asked no more" not in capsys.readouterr().err


def test_a_server_that_starts_anew_within_a_minute_is_asked_on(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [capture_of(), *[gone() for _ in range(20 + 3)]]
    rows = run(folder, clock, trials=60)
    statuses = [row["status"] for row in rows]
    assert statuses == ["ok", *["disconnected"] * 23, *["ok"] * 36]
    assert clock.s() == 5 + 10 + 20 + 40
    assert not any(row.get("gave_up") for row in rows)


def test_many_sessions_that_one_restart_ends_together_are_no_dead_endpoint(
    peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [gone() for _ in range(30)]
    rows = run(folder, clock, trials=100, sessions=30)
    assert [row["status"] for row in rows].count("ok") == 70


@pytest.mark.parametrize("kind", ["policy", "request"])
def test_questions_that_are_refused_for_what_they_say_are_no_dead_endpoint(
    kind: FaultKind, peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [refused(kind) for _ in range(30)]
    assert len(run(folder, clock, trials=40)) == 40
    assert clock.until_s == []


@pytest.mark.parametrize("kind", ["auth", "quota", "server", None])
def test_an_endpoint_that_lets_nobody_in_is_dead(
    kind: FaultKind | None, peer: Peer, clock: Clock, folder: RunFolder
) -> None:
    peer.captures[:] = [refused(kind) for _ in range(40)]
    rows = run(folder, clock, trials=40)
    assert len(rows) == 20 + 5
    assert rows[-1]["gave_up"].endswith(": no")


def test_a_bad_clip_of_ours_counts_for_neither(peer: Peer, clock: Clock, folder: RunFolder) -> None:
    peer.captures[:] = [gone() for _ in range(8)]
    names = [*[f"bad{n}" for n in range(30)], "q0", "bad30", "q1", *[f"q{n}" for n in range(2, 9)]]
    rows = run(folder, clock, names=names, retries=Retries(give_up_after=2))
    assert [row["status"] for row in rows].count("bad_clip") == 31
    assert len(rows) == 31 + 2 + 5
    assert rows[-1]["gave_up"]


@pytest.mark.parametrize("options", [[], ["--json"], ["--quiet"]])
def test_a_whole_run_says_at_its_end_who_was_left_and_what_to_do(
    options: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench = write_bench(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody listens there once it is closed
    text = bench.read_text().replace("[run]\n", "[run]\ngive_up_after = 3\n", 1)
    dead = f'[[endpoint]]\nname = "dead"\nurl = "ws://127.0.0.1:{port}"\n'
    bench.write_text(text.replace("[[endpoint]]", f"{dead}[[endpoint]]", 1))
    monkeypatch.setattr(streaming, "Breaker", partial(Breaker, waits_s=(0.0, 0.0)))
    assert main(["run", str(bench), "--out", str(tmp_path / "runs"), *options]) == 3
    (made,) = (tmp_path / "runs").iterdir()
    shown = capsys.readouterr()
    assert "dead is asked no more: " in shown.err
    assert (
        f"56 trials are to be asked again; see that it answers, then: voxmeter run --resume {made}"
        in shown.err
    )
    found = json.loads((made / "summary.json").read_text())
    (warning,) = [one for one in found["warnings"] if one["code"] == "gave-up"]
    assert warning["text"].startswith("dead was asked no more: ")
    assert "failures in a row, the last 2 over 0 s: " in warning["text"]
    told = (made / "report.md").read_text()
    assert "**gave-up**: dead was asked no more" in told
    ok = {cell["endpoint"]: cell["status"].get("ok", 0) for cell in found["cells"]}
    assert ok == {"dead": 0, "a": 28, "b": 28}
    if not options:
        assert "warning: dead was asked no more" in shown.out
