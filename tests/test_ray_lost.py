"""Workers that are lost on a cluster: who is asked again, who is not, and what is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from merge_world import write_bench
from needs import needs_extra

from voxmeter.client import affinity, config, leftovers, plan, ray_cluster, ray_stream
from voxmeter.client.bench_suites import load_suites
from voxmeter.client.plan import Trial
from voxmeter.client.ray_cluster import Node
from voxmeter.client.ray_worker import Ended, Made, Setup, Share, StreamWorker, Taken
from voxmeter.endpoints.errors import UserError
from voxmeter.suites.suite import Recording

NODE = Node("n", "host", 2, 0, streams=True)


def trial(item: str, number: int = 1) -> Trial:
    asked: Any = SimpleNamespace(suite="s", item=item)
    return Trial("e", "clean", asked, number)


class Run:
    """A run folder and a plan with nothing fresh, and the driver of both."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[dict[str, Any]] = []
        self.shown: list[str] = []
        self.started = 0
        plan = SimpleNamespace(endpoints=(), of=lambda _: iter(()), warmup=0)
        prepared: Any = SimpleNamespace(plan=plan)
        folder: Any = SimpleNamespace(
            newest=dict, append=self.append, attempt_paths=lambda _: SimpleNamespace()
        )
        show: Any = SimpleNamespace(trial=lambda one, _: self.shown.append(one.key))
        show.again = lambda *_: None
        monkeypatch.setattr(ray_cluster, "nodes", lambda: [NODE])
        monkeypatch.setattr(ray_stream, "paths_of", lambda _: {})
        self.work = ray_stream._Work(prepared, folder, show)
        monkeypatch.setattr(self.work, "_start", self.start)

    def append(self, name: str, row: Mapping[str, Any]) -> None:
        if name == "trials":
            self.rows.append(dict(row))

    def start(self, node: Node) -> None:
        del node
        self.started += 1

    def worker(self, share: Share) -> ray_stream._Worker:
        left = {one.key: one for one in share.trials}
        return ray_stream._Worker(NODE, None, "host:n:1", "host", share, left)

    def next(self) -> Share | None:
        return self.work._next(self.worker(Share("e", ())))

    def lose(self, share: Share, *under_way: Trial, brought: int = 1) -> None:
        worker = self.worker(share)
        worker.under_way = {one.key: one.attempt for one in under_way}
        worker.brought = brought
        self.work._lose(worker, RuntimeError("killed"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(monkeypatch)


def test_a_trial_that_ends_every_worker_is_asked_alone_and_then_written_down(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run.lose(Share("e", (trial("bad"), trial("good"))), trial("bad"))
    for _ in range(2):
        share = run.next()
        assert share is not None
        bad = next(one for one in share.trials if one.item.item == "bad")
        if len(share.trials) == 2:
            run.lose(share, bad)
            good = run.next()  # what is not suspected comes first
            assert good is not None
            assert [one.item.item for one in good.trials] == ["good"]
        else:
            run.lose(share, bad, brought=0)
    assert run.next() is None
    (row,) = run.rows
    assert (row["item"], row["attempt"], row["status"]) == ("bad", 3, "disconnected")
    assert (row["fault"], row["lost_attempts"]) == (
        "the worker that asked it was lost 3 times",
        2,
    )
    assert run.shown == [trial("bad").key]
    assert run.started == 3
    told = capsys.readouterr().err.splitlines()
    assert told[1].endswith("was lost; 1 trials under way are asked again")
    assert told[2].endswith("was lost; 0 trials under way are asked again, 1 given up")


def test_a_node_whose_workers_bring_warm_up_turns_alone_is_left(run: Run) -> None:
    warm, counted = trial("w", 0), trial("x")
    assert warm.warmup
    for _ in range(2):
        worker = run.worker(Share("e", (warm, counted)))
        run.work._write(worker, Made({"key": warm.key, "attempt": 1}, {}))
        run.work._lose(worker, RuntimeError("killed"))
        run.next()
    assert run.started == 2
    with pytest.raises(UserError, match="3 workers of node host died"):
        run.lose(Share("e", (counted,)), brought=0)


def test_a_worker_that_is_being_heard_when_a_run_is_interrupted_is_ended_as_the_others(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = needs_extra("ray", "ray")
    done: list[str] = []
    handle: Any = SimpleNamespace(
        remove_files=SimpleNamespace(remote=lambda: done.append("files removed"))
    )
    worker = replace(run.worker(Share("e", (trial("q"),))), handle=handle)
    run.work._workers.append(worker)
    run.work._asked["answer"] = worker
    monkeypatch.setattr(ray, "wait", lambda asked, **_: (asked, []))
    monkeypatch.setattr(ray, "get", interrupt)
    monkeypatch.setattr(ray_cluster, "awaited", lambda references, _: list(references))
    monkeypatch.setattr(ray_cluster, "ended", lambda _: done.append("ended"))
    with pytest.raises(KeyboardInterrupt):
        run.work._wait()
    run.work.end()
    assert done == ["files removed", "ended"]


def interrupt(_: object) -> None:
    raise KeyboardInterrupt


def test_only_what_was_begun_counts_as_lost(run: Run) -> None:
    begun, waiting, again = trial("begun"), trial("waiting"), trial("again")
    worker = run.worker(Share("e", (begun, waiting, again)))
    worker.under_way = {begun.key: 1, again.key: 1}
    run.work._write(worker, Made({"key": again.key, "attempt": 1}, {}, wait_s=9.0))
    run.work._lose(worker, RuntimeError("killed"))
    share = run.next()
    assert share is not None
    assert [(one.item.item, one.attempt) for one in share.trials] == [
        ("begun", 2),
        ("waiting", 1),
        ("again", 2),
    ]
    assert set(run.work._lost) == {begun.key}


def test_a_worker_tells_of_an_attempt_when_its_session_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(affinity, "allowed", lambda: ())  # this process keeps its cores
    bench = config.load(write_bench(tmp_path))
    first, second = islice(plan.build(bench, load_suites(bench)).of("a"), 2)
    lacks = replace(second, item=replace(second.item, recipe=(Recording(tmp_path / "no.flac"),)))
    worker = StreamWorker(Setup(config.resolved(bench), "bench.toml"))
    worker.stream(Share("a", (first, lacks)))
    told = worker.collect(0)
    assert [one.key for one in told if isinstance(one, Taken)] == [first.key]
    rows = {one.row["key"]: one.row["status"] for one in told if isinstance(one, Made)}
    assert rows == {first.key: "ok", lacks.key: "bad_clip"}
    assert told[-1] == Ended()


# What workers leave


def test_what_ended_workers_left_is_removed_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mine = leftovers.own_prefix()
    theirs = mine.replace(f"-{os.getpid()}-", f"-{ended.pid}-")
    for name in (f"{theirs}a", f"{mine}b", "voxmeter-worker-other", "another"):
        (tmp_path / name / "share").mkdir(parents=True)
    (tmp_path / f"{theirs}c.flac").touch()
    leftovers.remove_left()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"{mine}b", "voxmeter-worker-other", "another"}
    leftovers.remove_own()
    assert (tmp_path / f"{mine}b").is_file()  # in place of the folder: nothing can be written
    assert (tmp_path / f"{mine}b").stat().st_size == 0


def test_a_worker_removes_what_others_left_and_reads_nothing_ahead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[str] = []
    monkeypatch.setattr(leftovers, "remove_left", lambda: done.append("left"))
    monkeypatch.setattr("voxmeter.client.affinity.reserve", lambda _: None)
    tables = config.resolved(config.load(write_bench(tmp_path)))
    worker = StreamWorker(Setup(tables, "bench.toml"))
    assert done == ["left"]
    assert worker._bench.transcribe.overlap is False
