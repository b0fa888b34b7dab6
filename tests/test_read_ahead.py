"""Replies are read while others are asked: by other processes, into the cache, and nowhere else."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from sample_run import Row, build, item, trial

from voxmeter.client import config, read_ahead
from voxmeter.client.audio import Pcm, write_flac
from voxmeter.client.bench import Bench
from voxmeter.client.jsonlines import growing
from voxmeter.client.model_files import user_cache
from voxmeter.client.plan import Trial
from voxmeter.client.progress import Quiet
from voxmeter.client.read_ahead import Reader, ahead_workers, reading_ahead
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.score import score_run
from voxmeter.client.speakers import speaker

TRIAL = cast("Trial", None)


def bench(**transcribe: Any) -> Bench:
    return config.parse(
        {
            "endpoint": [{"name": "bot", "url": "ws://127.0.0.1:1"}],
            "suite": [{"kind": "demo"}],
            "transcribe": {"beam_size": 1, "overlap": True, **transcribe},
        },
        "test",
    )


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return user_cache() / "transcripts"


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "cores", lambda: 4)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    """A run of one reply that says "The answer is B.", and of one that was not heard."""
    rows = [trial("q0", first_audible_ms=1.0), trial("q1", "timeout")]
    with build(tmp_path, [item("q0"), item("q1")], rows) as made:
        voice = speaker("hibari")
        spoken = Pcm(np.concatenate([*voice.speak("The answer is B.")]), voice.rate)
        reply = made.attempt_paths(rows[0]).reply
        reply.parent.mkdir(parents=True)
        write_flac(reply, spoken.samples, spoken.rate)
        yield made


def rows_of(folder: RunFolder) -> list[Row]:
    return list(folder.newest_trials())


def read_one(reader: Reader) -> None:
    """Wait until one reply has been read."""
    assert reader._child is not None
    assert reader._child.replies.read(1) == b"."


def test_a_reply_is_in_the_cache_before_scoring_begins(folder: RunFolder, cache: Path) -> None:
    reader = Reader(bench(), folder, 1)
    reader.wake()
    read_one(reader)
    reader.close()
    assert not list(folder.rows("transcripts"))  # the folder has one writer
    (kept,) = cache.rglob("*.json")
    before = kept.stat().st_mtime_ns
    score_run(folder, bench())
    assert [row["text"] for row in folder.rows("transcripts")] == ["The answer is B."]
    assert list(cache.rglob("*.json")) == [kept]
    assert kept.stat().st_mtime_ns == before


def test_what_the_run_has_read_already_is_left_alone(folder: RunFolder, cache: Path) -> None:
    score_run(folder, bench())
    (kept,) = cache.rglob("*.json")
    kept.unlink()
    later = trial("q0", number=2, first_audible_ms=1.0)
    paths, first = folder.attempt_paths(later), folder.attempt_paths(rows_of(folder)[0])
    paths.reply.write_bytes(first.reply.read_bytes())
    folder.append("trials", later)
    reader = Reader(bench(), folder, 1)
    reader.wake()
    read_one(reader)
    assert reader.close() == 0  # of two replies one was read


def test_a_process_that_is_killed_costs_nothing_but_time(folder: RunFolder) -> None:
    reader = Reader(bench(), folder, 1)
    reader.wake()
    assert reader._child is not None
    os.kill(reader._child._process.pid, signal.SIGKILL)
    assert reader._child.replies.read() == b""
    for _ in range(3):
        reader.wake()
    assert reader.close() == 0
    reader.wake()
    assert reader._child is None
    score_run(folder, bench())
    assert [row["text"] for row in folder.rows("transcripts")] == ["The answer is B."]


def test_it_runs_only_when_nothing_else_wants_to(folder: RunFolder) -> None:
    reader = Reader(bench(), folder, 1)
    reader.wake()
    read_one(reader)
    assert reader._child is not None
    pid = reader._child._process.pid
    assert os.getpriority(os.PRIO_PROCESS, pid) == 19
    if hasattr(os, "SCHED_IDLE"):
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
    if hasattr(os, "sched_getaffinity"):
        there = sorted(os.sched_getaffinity(0))
        assert os.sched_getaffinity(pid) == set(there[:-1] or there)
    reader.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_only_replies_that_were_heard_wake_it(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(Reader, "wake", lambda _: woken.append(1))
    with reading_ahead(bench(), folder, Quiet(), range(1000)) as show:
        for row in rows_of(folder):
            show.trial(TRIAL, row)
            show.again(TRIAL, row, 1.0)
        show.endpoint("bot", 3)
    assert woken == [1]


@pytest.mark.parametrize(
    ("table", "there", "workers"),
    [
        ({}, 4, 3),
        ({}, 64, 8),
        ({"workers": 2}, 64, 2),
        ({"device": "cuda"}, 16, 1),
        ({}, 1, 0),
    ],
)
def test_no_more_processes_read_ahead_than_would_score(
    monkeypatch: pytest.MonkeyPatch, table: dict[str, Any], there: int, workers: int
) -> None:
    monkeypatch.setattr(read_ahead, "cores", lambda: there)
    assert read_ahead.ahead_workers(bench(**{"device": "cpu", **table})) == workers


@pytest.mark.parametrize(
    ("table", "trials", "there"),
    [({"overlap": False}, 1000, 4), ({"overlap": None}, 1000, 4), ({}, 19, 4), ({}, 1000, 1)],
)
def test_a_short_run_or_a_single_core_or_the_bench_leaves_it_out(
    folder: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
    table: dict[str, Any],
    trials: int,
    there: int,
) -> None:
    monkeypatch.setattr(read_ahead, "cores", lambda: there)
    show = Quiet()
    with reading_ahead(bench(**table), folder, show, range(trials)) as told:
        assert told is show


@pytest.mark.parametrize(
    ("endpoints", "wanted"),
    [
        ([{"url": "wss://api.example/v1"}], True),
        ([{"url": "wss://api.example/v1"}, {"url": "ws://localhost:8998/api/chat"}], False),
        ([{"url": "wss://api.example/v1"}, {"builtin": "cascade"}], False),
        ([{"url": "wss://{env:HOST}/v1"}], False),
        ([{"url": "ws://192.0.2.7/v1"}, {"url": "wss://[2001:db8::7]/v1"}], True),
        *(
            ([{"url": f"ws://{host}:8000/v1"}], False)
            for host in ("0", "[::]", "[::ffff:127.0.0.1]", "127.1", "localhost.", "a.localhost")
        ),
        ([{"url": f"ws://{socket.gethostname()}/v1"}], False),
    ],
)
def test_unless_the_bench_says_it_replies_are_read_ahead_where_no_endpoint_runs_beside_us(
    endpoints: list[dict[str, str]], wanted: bool, folder: RunFolder
) -> None:
    made = config.parse(
        {
            "endpoint": [{"name": f"e{n}", **one} for n, one in enumerate(endpoints)],
            "suite": [{"kind": "demo"}],
        },
        "test",
    )
    show = Quiet()
    with reading_ahead(made, folder, show, range(1000)) as told:
        assert (told is not show) == wanted


def test_one_core_is_left_to_the_stream() -> None:
    assert [ahead_workers(bench(**table)) for table in ({}, {"workers": 2}, {"workers": 9})] == [
        3,
        2,
        3,
    ]


def test_a_file_that_grows_gives_each_whole_row_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    more = growing(path)
    assert list(more()) == []
    path.write_text('{"n": 1}\n{"n": 2}\n{"n"')
    assert list(more()) == [{"n": 1}, {"n": 2}]
    with path.open("a") as stream:
        stream.write(": 3}\n")
    assert list(more()) == [{"n": 3}]
    assert list(more()) == []
