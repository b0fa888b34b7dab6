"""Stage 1: who is asked what, when, how many at a time, and what is written down."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, cast

import pytest
from captures import capture_of
from fakes import ToyCodec, ToyTransport

from voxmeter.client import config
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.clips import Clip
from voxmeter.client.finish import Attempt, Lateness
from voxmeter.client.plan import Plan, Trial, build
from voxmeter.client.redaction import Redactor
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.speaking import Patience
from voxmeter.client.streaming import Streaming
from voxmeter.client.target import Target
from voxmeter.endpoints.codec import Address, Codec
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.suites.suite import Item, QuestionVia, Suite

Row = dict[str, Any]


class ShortClip:
    """A question of 20 ms."""

    params: Mapping[str, object] = MappingProxyType({})

    def row(self) -> dict[str, object]:
        return {"sha256": "ab"}

    def utterance(self, rate: int) -> Utterance:
        return Utterance(bytes(rate // 25), rate, 0, rate // 50)


def clip_of(item: Item, condition: str = "clean") -> Clip:
    if item.item.startswith("bad"):
        raise ClipError(item.item, "holds no samples")
    return cast("Clip", ShortClip())


@dataclass
class Sessions:
    """Stands for every session: notes how each was asked, and how many were at a time.

    Those that are no warm-up turns go on when `together` of them have come together once.
    """

    asked: list[dict[str, Any]] = field(default_factory=list)
    now: int = 0
    most: int = 0
    most_in_warm_up: int = 0
    warm_ups: int = 0
    together: int = 1
    gathered: asyncio.Event = field(default_factory=asyncio.Event)
    on_ask: Callable[[], None] = lambda: None

    async def attempt(self, target: Target, question: object, **how: Any) -> Capture:
        self.asked.append({"target": target.name, **how})
        self.now += 1
        self.most = max(self.most, self.now)
        if len(self.asked) <= self.warm_ups:
            self.most_in_warm_up = max(self.most_in_warm_up, self.now)
        self.on_ask()
        if len(self.asked) > self.warm_ups and self.now >= self.together:
            self.gathered.set()
        if len(self.asked) > self.warm_ups:
            async with asyncio.timeout(10):
                await self.gathered.wait()
        self.now -= 1
        return capture_of()


class InPlace:
    """Finishes attempts here and now."""

    problem: Exception | None = None
    ended: list[str]
    lateness: Lateness | None = None

    def __init__(self) -> None:
        type(self).ended = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.append("ended")

    async def finish(self, capture: Capture, attempt: Attempt) -> Row:
        await asyncio.sleep(0)
        if self.problem is not None:
            raise self.problem
        type(self).lateness = attempt.lateness
        return {**attempt.fields, "status": "ok", "fault": None, "latency": {}}


@dataclass
class Show:
    """Notes what it is told."""

    told: list[tuple[str, Any]] = field(default_factory=list)

    def endpoint(self, name: str, trials: int) -> None:
        self.told.append((name, trials))

    def trial(self, trial: Trial, row: Mapping[str, Any]) -> None:
        self.told.append((trial.key, row["status"]))

    def again(self, trial: Trial, row: Mapping[str, Any], wait_s: float) -> None:
        raise AssertionError(row)  # nothing here is refused


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    sessions = Sessions()
    monkeypatch.setattr("voxmeter.client.streaming.attempt", sessions.attempt)
    monkeypatch.setattr("voxmeter.client.streaming.Finisher", InPlace)
    return sessions


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder.create(tmp_path, "test", {}) as folder:
        yield folder


def plan(
    *names: str, via: QuestionVia | None = None, endpoints: Sequence[str] = ("m",), **run: object
) -> Plan:
    names = names or ("q0", "q1", "q2")
    tables = {
        "run": {"warmup": 0} | run,
        "endpoint": [{"name": name, "builtin": "echo"} for name in endpoints],
        "suite": [{"kind": "jsonl", "name": "mine", "path": "x"}],
    }
    items = tuple(
        Item("mine", name, "open", (), question=f"About {name}?", question_via=via)
        for name in names
    )
    return build(config.parse(tables, "bench.toml"), [Suite("mine", "jsonl", items)])


@dataclass
class Stage:
    """What one run of stage 1 was like."""

    starts: list[str] = field(default_factory=list)
    show: Show = field(default_factory=Show)

    def run(self, made: Plan, folder: RunFolder, at_a_time: int = 1, **fields: Any) -> list[Row]:
        def start(name: str, stack: ExitStack) -> tuple[Target, int]:
            self.starts.append(f"start {name}")
            stack.callback(self.starts.append, f"end {name}")
            return Target(name, "openai-realtime", "ws://127.0.0.1:1"), at_a_time

        known: dict[str, Any] = {"clip_of": clip_of, "start": start, "redactor": Redactor()}
        Streaming(plan=made, folder=folder, show=self.show, **(known | fields)).run()
        return list(folder.rows("trials"))


def stream(made: Plan, folder: RunFolder, at_a_time: int = 1, **fields: Any) -> list[Row]:
    return Stage().run(made, folder, at_a_time, **fields)


def test_one_at_a_time_the_order_is_that_of_the_plan(sessions: Sessions, folder: RunFolder) -> None:
    made = plan(trials=2, warmup=1)
    rows = stream(made, folder)
    assert [row["key"] for row in rows] == [trial.key for trial in made]
    assert sessions.most == 1


def test_warm_up_turns_come_first_and_alone(sessions: Sessions, folder: RunFolder) -> None:
    sessions.warm_ups = sessions.together = 3
    rows = stream(plan(warmup=3), folder, at_a_time=3)
    assert [row["warmup"] for row in rows] == [True] * 3 + [False] * 3
    assert sessions.most_in_warm_up == 1
    assert sessions.most == 3


@pytest.mark.parametrize("at_a_time", [1, 2, 7, 100])
def test_so_many_sessions_at_a_time_and_no_more(
    at_a_time: int, sessions: Sessions, folder: RunFolder
) -> None:
    sessions.together = min(at_a_time, 8)
    rows = stream(plan(*[f"q{n}" for n in range(8)]), folder, at_a_time=at_a_time)
    assert sessions.most == min(at_a_time, 8)
    assert len(rows) == 8


def test_sessions_side_by_side_do_not_send_in_step(sessions: Sessions, folder: RunFolder) -> None:
    sessions.together = 4
    stream(plan(*[f"q{n}" for n in range(8)]), folder, at_a_time=4)
    staggers = {one["stagger_ns"] for one in sessions.asked}
    assert staggers == {0, 5_000_000, 10_000_000, 15_000_000}


def test_every_trial_is_one_row_whatever_the_concurrency(
    sessions: Sessions, folder: RunFolder
) -> None:
    made = plan(*[f"q{n}" for n in range(20)], trials=3)
    keys = [row["key"] for row in stream(made, folder, at_a_time=6)]
    assert sorted(keys) == sorted(trial.key for trial in made)


def test_every_item_has_a_session_and_a_tag_of_its_own(  # ST-10
    sessions: Sessions, folder: RunFolder
) -> None:
    rows = stream(plan(trials=4), folder, at_a_time=2)
    tags = [row["session_tag"] for row in rows]
    assert len(set(tags)) == 12
    assert sorted(tags) == sorted(one["tag"] for one in sessions.asked)


def test_a_bad_clip_is_a_row_and_stops_nobody(sessions: Sessions, folder: RunFolder) -> None:
    rows = stream(plan("q0", "bad1", "q2"), folder)
    assert [row["status"] for row in rows] == ["ok", "bad_clip", "ok"]
    assert rows[1]["fault"] == "bad1: holds no samples"
    assert set(rows[1]["latency"].values()) == {None}
    assert len(sessions.asked) == 2


def test_how_late_is_too_late_reaches_every_attempt(sessions: Sessions, folder: RunFolder) -> None:
    stream(plan("q0"), folder, lateness=Lateness(5, 7))
    assert InPlace.lateness == Lateness(5, 7)


def test_a_warm_up_turn_with_a_bad_clip_is_a_row_too(sessions: Sessions, folder: RunFolder) -> None:
    rows = stream(plan("bad0", "q1", warmup=1), folder)
    assert [(row["warmup"], row["status"]) for row in rows] == [
        (True, "bad_clip"),
        (False, "bad_clip"),
        (False, "ok"),
    ]


def test_a_row_says_everything_that_was_known_before(sessions: Sessions, folder: RunFolder) -> None:
    (row,) = stream(plan("q0"), folder)
    assert row | {"session_tag": "", "started_at": ""} == {
        "key": "m/mine/q0/clean/1",
        "endpoint": "m",
        "suite": "mine",
        "item": "q0",
        "condition": "clean",
        "trial": 1,
        "turn": None,
        "attempt": 1,
        "warmup": False,
        "started_at": "",
        "condition_params": {},
        "waited_s": 0.0,
        "session_tag": "",
        "clip": {"sha256": "ab"},
        "reply_channel": "speech",
        "status": "ok",
        "fault": None,
        "latency": {},
    }
    assert row["started_at"].endswith("+00:00")


@pytest.mark.parametrize(("via", "text"), [("text", "About q0?"), (None, ""), ("speech-after", "")])
def test_a_question_in_writing_goes_with_the_clip(
    via: QuestionVia | None, text: str, sessions: Sessions, folder: RunFolder
) -> None:
    stream(plan("q0", via=via), folder)
    assert [one["text"] for one in sessions.asked] == [text]


def test_what_is_finished_is_not_asked_again_and_the_rest_is_the_next_attempt(
    sessions: Sessions, folder: RunFolder
) -> None:
    made = plan(warmup=1)
    for trial, status in zip(made, ["ok", "ok", "disconnected", "refused"], strict=True):
        folder.append("trials", {"key": trial.key, "attempt": 1, "status": status})
    rows = stream(made, folder)[4:]
    assert [(row["key"], row["attempt"]) for row in rows] == [
        ("m/mine/q0/clean/0", 2),
        ("m/mine/q1/clean/1", 2),
        ("m/mine/q2/clean/1", 2),
    ]


def test_an_endpoint_with_nothing_left_is_not_started(
    sessions: Sessions, folder: RunFolder
) -> None:
    made = plan("q0", endpoints=("a", "b"))
    folder.append("trials", {"key": "a/mine/q0/clean/1", "attempt": 1, "status": "timeout"})
    stage = Stage()
    stage.run(made, folder)
    assert stage.starts == ["start b", "end b"]


def test_endpoints_come_one_after_another_each_ended_before_the_next(
    sessions: Sessions, folder: RunFolder
) -> None:
    stage = Stage()
    stage.run(plan("q0", "q1", endpoints=("a", "b")), folder, at_a_time=2)
    assert stage.starts == ["start a", "end a", "start b", "end b"]
    assert [one["target"] for one in sessions.asked] == ["a", "a", "b", "b"]
    assert [told for told in stage.show.told if told[1] == 2] == [("a", 2), ("b", 2)]


def test_whoever_watches_is_told_of_every_trial_after_it_is_written(
    sessions: Sessions, folder: RunFolder
) -> None:
    class Careful(Show):
        def trial(self, trial: Trial, row: Mapping[str, Any]) -> None:
            assert [one["key"] for one in folder.rows("trials")][-1] == trial.key
            super().trial(trial, row)

    stage = Stage(show=Careful())
    stage.run(plan(warmup=1), folder)
    assert len(stage.show.told) == 1 + 4


def test_a_secret_that_an_endpoint_repeats_is_neither_written_nor_shown(
    sessions: Sessions, folder: RunFolder
) -> None:
    class Heard(Show):
        def trial(self, trial: Trial, row: Mapping[str, Any]) -> None:
            self.told.append((trial.key, dict(row)))

    def bad(item: Item, condition: str) -> Clip:
        raise ClipError(item.item, "the key is sk-very-secret")

    stage = Stage(show=Heard())
    rows = stage.run(plan("q0"), folder, clip_of=bad, redactor=Redactor(["sk-very-secret"]))
    assert "sk-very-secret" not in repr(rows)
    assert "sk-very-secret" not in repr(stage.show.told)
    assert "[redacted]" in repr(stage.show.told)


def test_a_full_disk_in_many_tasks_is_one_error_of_the_users(
    sessions: Sessions, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = UserError("audio", "no space left on the disk", "free some")
    monkeypatch.setattr(InPlace, "problem", full)
    stage = Stage()
    with pytest.raises(UserError, match="no space left"):
        stage.run(plan(*[f"q{n}" for n in range(6)]), folder, at_a_time=4)
    assert stage.starts == ["start m", "end m"]
    assert InPlace.ended == ["ended"]


def test_a_voice_that_is_missing_stops_the_run_in_one_line(
    sessions: Sessions, folder: RunFolder
) -> None:
    def no_voice(item: Item, condition: str) -> Clip:
        raise UserError("voice 'x'", "no such voice", "use another")

    with pytest.raises(UserError, match="no such voice"):
        stream(plan(), folder, at_a_time=2, clip_of=no_voice)


def test_a_server_of_ours_that_does_not_start_is_one_line(
    sessions: Sessions, folder: RunFolder
) -> None:
    def start(name: str, stack: ExitStack) -> tuple[Target, int]:
        raise UserError('builtin = "echo"', "did not start", "try it by itself")

    with pytest.raises(UserError, match="did not start"):
        stream(plan(), folder, start=start)


async def test_inside_a_running_loop_it_says_to_use_a_thread(
    sessions: Sessions, folder: RunFolder
) -> None:
    with pytest.raises(UserError, match=r"asyncio\.to_thread"):
        stream(plan("q0"), folder)
    rows = await asyncio.to_thread(stream, plan("q0"), folder)
    assert [row["status"] for row in rows] == ["ok"]


def test_the_collector_is_left_as_it_was(sessions: Sessions, folder: RunFolder) -> None:
    frozen: list[int] = []
    sessions.on_ask = lambda: frozen.append(gc.get_freeze_count())
    gc.unfreeze()
    stream(plan("q0"), folder)
    assert frozen[0] > 0
    assert gc.get_freeze_count() == 0


def test_an_interrupt_ends_everything_and_keeps_what_is_written(
    sessions: Sessions, folder: RunFolder
) -> None:
    def interrupt() -> None:
        if len(sessions.asked) == 3:
            signal.raise_signal(signal.SIGINT)

    sessions.on_ask = interrupt
    stage = Stage()
    with pytest.raises(KeyboardInterrupt):
        stage.run(plan(*[f"q{n}" for n in range(6)]), folder)
    assert len(list(folder.rows("trials"))) == 2
    assert stage.starts == ["start m", "end m"]
    assert InPlace.ended == ["ended"]


# Through real sessions and the real finishing process, with a peer that is a coroutine


class ToyTarget(Target):
    """A target whose every session is a toy."""

    opened: list[ToyTransport]

    def codec(self, tag: str = "", asked: object = None, lane: int = 0) -> Codec:
        return ToyCodec()

    def transport(self) -> ToyTransport:
        async def play(peer: ToyTransport) -> None:
            peer.say("ready")
            await peer.until(1, "audio")
            peer.say("started r", "sound " + "0040" * 80, "text Yes.", "end")

        OPENED.append(ToyTransport(play))
        return OPENED[-1]

    def address(self, codec: Codec, tag: str) -> Address:
        return Address(f"toy://peer?tag={tag}")


OPENED: list[ToyTransport] = []


def test_a_whole_stage_leaves_rows_logs_and_audio(folder: RunFolder) -> None:
    OPENED.clear()

    def start(name: str, stack: ExitStack) -> tuple[Target, int]:
        patience = Patience(first_reply_timeout_s=5, reply_limit_s=5, drain_ms=0)
        return ToyTarget(name, "openai-realtime", "toy://peer", patience=patience), 2

    rows = stream(plan("q0", "q1", "q2", "q3"), folder, start=start)
    assert [row["reply_text"] for row in rows] == ["Yes."] * 4
    assert {row["audit"]["send_lateness_ms"] is None for row in rows} == {False}
    for row in rows:
        paths = folder.attempt_paths(row)
        assert paths.events.is_file()
        assert paths.audio.is_file()
    assert len(OPENED) == 4
    (bad,) = stream(plan("bad"), folder, start=start)[4:]
    assert bad.keys() == rows[0].keys()
    assert bad["latency"].keys() == rows[0]["latency"].keys()
    assert all(one.closed and one.sent[0] == "hello" for one in OPENED)
