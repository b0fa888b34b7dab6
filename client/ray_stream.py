"""Stage 1 over several machines: workers stream shares, this process owns plan and run folder.

A share is a part of what is left of one endpoint. Workers take shares as they become free, so that
fast machines do more. Their rows and files are written here exactly as those of any other run;
`workers.jsonl` says who they were. The trials of a worker that is lost are put into a share again:
those that were under way count one attempt more, and say so. One that was lost twice is asked in a
share of its own, and written down as it is when it is lost once more.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxmeter.client import config, ray_cluster
from voxmeter.client.audio import write_whole
from voxmeter.client.clock import utc_now
from voxmeter.client.jsonlines import disk
from voxmeter.client.ray_cluster import Node
from voxmeter.client.ray_worker import (
    Ended,
    Made,
    Setup,
    Share,
    StreamWorker,
    Taken,
    Told,
    paths_of,
)
from voxmeter.client.terminal import warn
from voxmeter.client.trial_fields import lost
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.plan import Trial
    from voxmeter.client.run import Prepared
    from voxmeter.client.runfolder import Newest, RunFolder
    from voxmeter.client.streaming import Show

_TURNS_OF_A_SHARE = 200
"""Trials of a share for each session at a time: what is idle at its end is well under 1 %."""
_WAIT_S = 5.0
_REMOVED_S = 5.0
_MOST_LOST = 3
"""Workers of one node lost one after another that brought no counted row; or of one trial."""
_SAMPLE = 8


def stream(prepared: Prepared, folder: RunFolder, show: Show) -> None:
    """Ask all that is still to be asked, from every node of the cluster that is connected.

    Raises:
        UserError: If no node can stream, lacks a key, the clips or this version, or the disk is
            full; or if workers are lost one after another.
    """
    work = _Work(prepared, folder, show)
    try:
        work.do()
    finally:
        work.end()


@dataclass(slots=True)
class _Worker:
    """One worker as the driver sees it; `label` and `host` are known once it has started."""

    node: Node
    handle: Any
    label: str = ""
    host: str = ""
    share: Share | None = None
    left: dict[str, Trial] = field(default_factory=dict)
    """Trials of its share without a last row, by key."""
    under_way: dict[str, int] = field(default_factory=dict)
    """Attempts that were begun and have no row, by key."""
    gave_up: set[str] = field(default_factory=set)
    brought: int = 0


class _Work:
    """What is left of a run, and who does it."""

    def __init__(self, prepared: Prepared, folder: RunFolder, show: Show) -> None:
        self._prepared, self._folder, self._show = prepared, folder, show
        self._newest = folder.newest()
        plan = prepared.plan
        self._fresh: dict[str, Iterator[Trial]] = {}
        self._sizes: dict[str, int] = {}
        self._counts = {name: plan.count_remaining(name, self._newest) for name in plan.endpoints}
        self._unshared = dict(self._counts)
        self._again: deque[Share] = deque()
        self._alone: deque[Share] = deque()  # of one trial each, which may be what ends workers
        self._lost: dict[str, int] = {}
        self._warmed: dict[str, int] = {}
        self._shown: set[str] = set()
        self._workers: list[_Worker] = []  # all of them, also while one of them is heard
        self._asked: dict[Any, _Worker] = {}  # what each worker is asked to return
        self._idle: list[_Worker] = []
        self._losses: dict[str, int] = {}

    def do(self) -> None:
        """Work until nothing is left that anybody can do."""
        if not any(self._counts.values()):
            return
        nodes = [node for node in ray_cluster.nodes() if node.streams]
        if not nodes:
            cure = "give the cluster a processor, or a node with the resource voxmeter_stream"
            raise UserError("--ray", "no node can stream", cure)
        self._share_out(len(nodes))
        for node in nodes:
            self._start(node)
        while self._goes_on():
            self._wait()
        self._tell_left()

    def end(self) -> None:
        """End all workers; those in the middle of a share remove its files first."""
        busy = [worker for worker in self._workers if worker.share is not None]
        ray_cluster.awaited((one.handle.remove_files.remote() for one in busy), _REMOVED_S)
        for worker in self._workers:
            ray_cluster.ended(worker.handle)
        self._workers.clear()
        self._asked.clear()
        self._idle.clear()

    def _goes_on(self) -> bool:
        """Return whether anybody works, or may yet start to; who has nothing to do is not asked."""
        if any(worker.share for worker in self._asked.values()):
            return True
        return bool(self._asked) and self._is_left()

    def _is_left(self) -> bool:
        return bool(self._again or self._alone or any(self._unshared.values()))

    # Shares

    def _share_out(self, workers: int) -> None:
        """Decide how large the shares are."""
        bench, plan = self._prepared.bench, self._prepared.plan
        for table in bench.endpoints:
            if count := self._counts.get(table.name):
                sessions = table.concurrency or bench.run.concurrency
                most = _TURNS_OF_A_SHARE * sessions
                self._sizes[table.name] = min(most, math.ceil(count / workers))
                trials = plan.remaining(table.name, self._newest)
                self._fresh[table.name] = (one for one in trials if not one.warmup)

    def _next(self, worker: _Worker) -> Share | None:
        """Return a share for a worker: what others left, then new trials, last the risky ones."""
        if left := _take(self._again, worker.gave_up):
            return left
        for name, trials in self._fresh.items():
            if name not in worker.gave_up:
                counted = tuple(islice(trials, self._sizes[name]))
                if counted:
                    self._unshared[name] -= len(counted)
                    return Share(name, counted)
        return _take(self._alone, worker.gave_up)

    def _warmups(self, name: str) -> tuple[Trial, ...]:
        """Return the warm-up turns of the next share.

        Their numbers go down from share to share, so that no two of them have a key in common; a
        resumed run begins again with the first ones, as their next attempts.
        """
        plan = self._prepared.plan
        turns = self._warmed[name] = self._warmed.get(name, -1) + 1
        first = islice(plan.of(name), plan.warmup)
        mine = (replace(one, trial=one.trial - turns * plan.warmup) for one in first if one.warmup)
        return tuple(replace(one, attempt=_next_attempt(one, self._newest)) for one in mine)

    # Workers

    def _start(self, node: Node) -> None:
        """Start a worker; it is told of its share once it says what it is."""
        bench = self._prepared.bench
        setup = Setup(config.resolved(bench), bench.source, node.number, node.of)
        handle = ray_cluster.actor(node, StreamWorker, setup, mark=node.marked, threads=3)
        names = tuple(name for name, count in self._counts.items() if count)
        worker = _Worker(node, handle)
        self._workers.append(worker)
        self._asked[handle.about.remote(names, self._sample())] = worker

    def _sample(self) -> tuple[Path, ...]:
        """Return some recordings that are on this machine; the workers must have them too."""
        files = (path for item in self._prepared.plan.items() for path in item.files())
        return tuple(islice((path for path in files if path.is_file()), _SAMPLE))

    def _wait(self) -> None:
        """Take what the next worker has to tell."""
        import ray

        ready, _ = ray.wait(list(self._asked), num_returns=1, timeout=ray_cluster.STARTED_S)
        if not ready:
            self._refuse_waiting()
        for reference in ready:
            worker = self._asked.pop(reference)
            try:
                told = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                raise ray_cluster.cause(error) from None
            except ray.exceptions.RayError as error:
                self._lose(worker, error)
            else:
                self._hear(worker, told)

    def _refuse_waiting(self) -> None:
        """Workers answer every few seconds: nothing from any of them means none has started."""
        found = f"no node gave a processor within {ray_cluster.STARTED_S:.0f} s"
        raise UserError("--ray", found, "see what holds them: ray status; then resume the run")

    def _hear(self, worker: _Worker, told: Mapping[str, Any] | list[Told]) -> None:
        if isinstance(told, Mapping):
            self._introduce(worker, told)
            self._give(worker)
            return
        for one in told:
            match one:
                case Taken(key, attempt):
                    worker.under_way[key] = attempt
                case Made():
                    self._write(worker, one)
                case Ended(error, fault):
                    self._close_share(worker, error, fault)
                    self._give(worker)
                    return
        self._collect(worker)

    def _introduce(self, worker: _Worker, about: Mapping[str, Any]) -> None:
        from voxmeter import __version__

        worker.host = str(about["host"])
        worker.label = f"{worker.host}:{worker.node.id[:8]}:{about['pid']}"
        if about["voxmeter"] != __version__:
            found = f"has voxmeter {about['voxmeter']}, not {__version__}"
            raise UserError(f"node {worker.host}", found, "install the same version on every node")
        self._note(worker, "started", about)

    def _note(self, worker: _Worker, what: str, more: Mapping[str, Any]) -> None:
        at = utc_now().isoformat(timespec="milliseconds")
        row = {"worker": worker.label, "host": worker.host, "what": what, "at": at, **more}
        self._folder.append("workers", row)

    def _give(self, worker: _Worker) -> None:
        """Give a worker its next share; without one it waits for what others may leave."""
        share = self._next(worker)
        if share is None:
            self._idle.append(worker)
            return
        if share.endpoint not in self._shown:
            self._shown.add(share.endpoint)
            self._show.endpoint(share.endpoint, self._counts[share.endpoint])
        worker.share = share
        worker.left = {one.key: one for one in share.trials}
        worker.under_way = {}
        warm = self._warmups(share.endpoint)
        worker.left |= {one.key: one for one in warm}
        worker.handle.stream.remote(Share(share.endpoint, (*warm, *share.trials)))
        self._collect(worker)

    def _collect(self, worker: _Worker) -> None:
        self._asked[worker.handle.collect.remote(_WAIT_S)] = worker

    # Rows

    def _write(self, worker: _Worker, made: Made) -> None:
        """Write an attempt down as any other: its files first, its row last."""
        row = dict(made.row)
        trial = worker.left[row["key"]]
        row["worker"] = worker.label
        if lost := self._lost.get(trial.key):
            row["lost_attempts"] = lost
        for name, path in paths_of(self._folder.attempt_paths(row)).items():
            if name in made.files:
                self._write_file(path, made.files[name])
        self._folder.append("trials", row)
        worker.brought += not trial.warmup
        worker.under_way.pop(trial.key, None)
        if made.wait_s is not None:
            worker.left[trial.key] = replace(trial, attempt=row["attempt"] + 1)
            self._show.again(trial, row, made.wait_s)
            return
        del worker.left[trial.key]
        self._show.trial(trial, row)
        if row.get("gave_up"):
            worker.gave_up.add(trial.endpoint)
            warn(f"{trial.endpoint} is asked no more from {worker.host}: {row['gave_up']}")

    def _write_file(self, path: Path, data: bytes) -> None:
        if path.suffix == ".jsonl":
            text = self._prepared.redactor.text(data.decode("utf-8", "surrogateescape"))
            data = text.encode("utf-8", "surrogateescape")
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)

    def _close_share(self, worker: _Worker, error: UserError | None, fault: str) -> None:
        if error is not None or fault:
            ray_cluster.ended(worker.handle)
            raise error or RuntimeError(f"a worker on {worker.host} failed:\n{fault}")
        self._put_back(worker)

    def _put_back(self, worker: _Worker) -> None:
        """Let others have what a worker did not ask."""
        share, worker.share = worker.share, None
        left = [one for one in worker.left.values() if not one.warmup]
        worker.left = {}
        if share is not None and left:
            alone = [one for one in left if self._lost.get(one.key, 0) == _MOST_LOST - 1]
            self._alone.extend(Share(share.endpoint, (one,)) for one in alone)
            if others := tuple(one for one in left if one not in alone):
                self._again.append(Share(share.endpoint, others))
            idle, self._idle = self._idle, []
            for one in idle:
                self._give(one)

    def _lose(self, worker: _Worker, error: Exception) -> None:
        """Put the trials of a dead worker into a share again, and start another in its place."""
        self._workers = [one for one in self._workers if one is not worker]
        began = {key: n for key, n in worker.under_way.items() if key in worker.left}
        for key, attempt in began.items():
            self._lost[key] = self._lost.get(key, 0) + 1
            worker.left[key] = replace(worker.left[key], attempt=attempt + 1)
        count = sum(not worker.left[key].warmup for key in began)
        if worker.label:
            self._note(worker, "lost", {"trials_under_way": count, "why": _said(error)})
        written_off = self._write_off(worker)
        if worker.label:
            again = f"{count - written_off} trials under way are asked again"
            given_up = f", {written_off} given up" if written_off else ""
            warn(f"worker {worker.label} was lost; {again}{given_up}")
        self._put_back(worker)
        node = worker.node
        if not written_off:
            self._losses[node.id] = 1 if worker.brought else self._losses.get(node.id, 0) + 1
        if node.id not in {one.id for one in ray_cluster.nodes()}:
            self._refuse_alone(f"node {node.host} was lost")
        elif self._losses.get(node.id, 0) < _MOST_LOST:
            self._start(node)
        else:
            self._refuse_alone(f"{_MOST_LOST} workers of node {node.host} died: {_said(error)}")

    def _write_off(self, worker: _Worker) -> int:
        """Write down what no worker outlived; return how many trials that is."""
        found = [one for one in worker.left.values() if self._lost.get(one.key, 0) >= _MOST_LOST]
        for one in found:
            del worker.left[one.key]
            if one.warmup:
                continue
            trial = replace(one, attempt=one.attempt - 1)  # the one that was begun last
            row = lost(trial, _MOST_LOST) | {"worker": worker.label}
            self._folder.append("trials", row)
            self._show.trial(trial, row)
        return len(found)

    def _refuse_alone(self, why: str) -> None:
        """End the run where nobody is left to do it."""
        if self._asked or self._idle:
            warn(f"{why}; the others go on")
        elif self._is_left():
            cure = "see Ray's logs, and that every node has the same voxmeter[ray]"
            raise UserError("--ray", why, cure)

    def _tell_left(self) -> None:
        left: dict[str, int] = {}
        for share in (*self._again, *self._alone):
            left[share.endpoint] = left.get(share.endpoint, 0) + len(share.trials)
        for name, count in self._unshared.items():
            if count:
                left[name] = left.get(name, 0) + count
        for name, count in left.items():
            cure = f"see that it answers, then: voxmeter run --resume {self._folder.path}"
            warn(f"{name} is asked no more: every worker gave it up; {count} trials left; {cure}")


def _take(shares: deque[Share], gave_up: set[str]) -> Share | None:
    """Take the first share of an endpoint that is not given up."""
    for _ in range(len(shares)):
        share = shares.popleft()
        if share.endpoint not in gave_up:
            return share
        shares.append(share)
    return None


def _next_attempt(trial: Trial, newest: Mapping[str, Newest]) -> int:
    before = newest.get(trial.key)
    return before.attempt + 1 if before else 1


def _said(error: Exception) -> str:
    """Return why a worker died, in one line: of one that never began, its own last words."""
    lines = str(error).strip().split("\n")
    return lines[-1 if "creation task" in lines[0] else 0].strip()[:200]
