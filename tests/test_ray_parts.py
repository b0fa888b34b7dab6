"""What a run over a cluster is made of, each part alone: cores, what waits, where Whisper goes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from voxmeter.client import affinity, ray_cluster
from voxmeter.client.affinity import Split
from voxmeter.client.ray_cluster import Node
from voxmeter.client.ray_transcribe import places
from voxmeter.client.ray_worker import Ended, Made, Outbox, Taken, Told


def node(
    name: str, cpus: int, *, gpus: int = 0, streams: bool = True, marked: bool = False
) -> Node:
    return Node(name, name, cpus, gpus, streams, marked=marked)


def made(size: int) -> Made:
    return Made({"key": "k"}, {"reply": bytes(size)})


# Cores


def test_each_worker_of_a_machine_has_a_core_that_nothing_else_has() -> None:
    assert affinity.split(range(4)) == Split(3, (0, 1, 2))
    found = [affinity.split(range(4), number, 2) for number in (0, 1)]
    assert found == [Split(3, (0, 1)), Split(2, (0, 1))]


@pytest.mark.parametrize(("cores", "of"), [(1, 1), (2, 2), (2, 3), (0, 1)])
def test_where_no_core_would_be_left_none_is_set_apart(cores: int, of: int) -> None:
    assert affinity.split(range(cores), 0, of) == Split(None, tuple(range(cores)))


def test_a_machine_that_only_transcribes_uses_all_of_its_cores() -> None:
    assert affinity.split(range(4), 0, 0) == Split(None, (0, 1, 2, 3))


def test_streaming_workers_of_a_machine_are_counted_there_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        {
            "Alive": True,
            "NodeID": name,
            "NodeManagerHostname": host,
            "Resources": {"CPU": 4, **({ray_cluster.STREAMS: 1} if streams else {})},
        }
        for name, host, streams in (("a", "one", True), ("b", "one", True), ("c", "two", False))
    ]
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(nodes=lambda: rows))
    found = [(one.host, one.number, one.of) for one in ray_cluster.nodes()]
    assert found == [("one", 0, 2), ("one", 1, 2), ("two", 0, 0)]


@pytest.mark.skipif(len(affinity.allowed()) < 2, reason="needs two cores")
def test_what_a_streaming_process_starts_runs_on_the_other_cores() -> None:
    code = """
import subprocess, sys, threading
from voxmeter.client import affinity
from voxmeter.client.child import Child
cores = affinity.split(affinity.allowed())
affinity.reserve(cores)
assert affinity.allowed() == cores.others
affinity.confine({cores.streaming})
assert affinity.allowed() == (cores.streaming,)
show = [sys.executable, "-c", "import os; print(*sorted(os.sched_getaffinity(0)))"]
with affinity.elsewhere():
    seen = subprocess.run(show, capture_output=True, text=True).stdout.split()
assert tuple(map(int, seen)) == cores.others, seen
assert affinity.allowed() == (cores.streaming,)
child = Child("voxmeter.client.worker")
import os
assert tuple(sorted(os.sched_getaffinity(child._process.pid))) == cores.others
child.end()
found = []
thread = threading.Thread(target=lambda: (affinity.leave(), found.append(affinity.allowed())))
thread.start(); thread.join()
assert found == [cores.others]
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# What waits for the driver


def test_messages_come_in_order_and_in_batches() -> None:
    box = Outbox()
    big = 9 * 2**20
    told: list[Told] = [Taken("k", 1), made(big), made(big), Ended()]
    for one in told:
        box.put(one)
    assert box.take(0) == told[:2]
    assert box.take(0) == told[2:]
    assert box.take(0) == []


def test_an_attempt_waits_while_the_room_is_full_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = Outbox(room_bytes=10)
    box.put(made(25))  # larger than all the room, and alone
    put, waits = threading.Event(), threading.Event()
    wait_for = box._changed.wait_for

    def watched(has_room: Callable[[], bool], limit_s: float | None = None) -> bool:
        def seen() -> bool:
            if not (room := has_room()):
                waits.set()
            return room

        return wait_for(seen, limit_s)

    monkeypatch.setattr(box._changed, "wait_for", watched)

    def second() -> None:
        box.put(made(5))
        put.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert waits.wait(60)
    box.put(Taken("k", 2))  # by the event loop, which must not wait
    assert not put.is_set()
    first = box.take(0)
    assert put.wait(60)
    thread.join()
    assert [type(one) for one in first] == [Made, Taken]
    assert box.take(0) == [made(5)]


# Where Whisper goes


def test_one_whisper_reads_for_each_processor_that_does_not_stream() -> None:
    found = places([node("a", 4), node("b", 2)], "auto")
    assert [(one.node.id, one.core) for one in found] == [("a", 0), ("a", 1), ("a", 2), ("b", 0)]


def test_gpus_come_first_one_model_each() -> None:
    nodes = [node("a", 4, gpus=2), node("b", 8)]
    assert [(one.node.id, one.gpus) for one in places(nodes, "auto")] == [("a", 1), ("a", 1)]
    assert len(places(nodes, "cpu")) == 3 + 7
    assert places([node("a", 4)], "cuda") == []


def test_nodes_set_apart_for_streaming_do_not_read() -> None:
    nodes = [node("a", 4, marked=True), node("b", 2, streams=False)]
    assert [one.node.id for one in places(nodes, "cpu")] == ["b", "b"]


def test_a_processor_that_streamed_reads_only_where_there_is_no_other() -> None:
    assert [one.node.id for one in places([node("a", 1), node("b", 1)], "cpu")] == ["a", "b"]
    assert [one.node.id for one in places([node("a", 1), node("b", 2)], "cpu")] == ["b"]


def test_two_nodes_of_one_machine_do_not_read_on_the_same_cores() -> None:
    nodes = [Node(name, "one", 2, 0, streams=False, of=0) for name in ("a", "b")]
    found = [(one.node.id, one.core) for one in places(nodes, "cpu")]
    assert found == [("a", 0), ("a", 1), ("b", 2), ("b", 3)]
