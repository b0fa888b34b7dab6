"""One node's streaming in a run over several machines: shares of trials in, rows and files out.

A Ray actor holds one `StreamWorker`. It streams with the code of any other run, into a folder of
its own; what an attempt left there travels to the driver as soon as its row is written.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from voxmeter import __version__
from voxmeter.client import affinity, leftovers
from voxmeter.client.affinity import Split
from voxmeter.client.jsonlines import disk
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.plan import Plan, Trial
    from voxmeter.client.runfolder import AttemptPaths, Newest, RunFolder

ROOM_BYTES = 64 * 2**20
"""What waits for the driver at most; then sessions wait before their next question."""
_BATCH_BYTES = 16 * 2**20
FILES = ("events", "audio", "reply", "stream")


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker has to know; no secret is in it, only names of variables.

    Attributes:
        tables: The resolved configuration, as in `run.json`.
        source: Its name for errors.
        number: Which of the workers of its machine it is, from 0.
        of: How many that machine has.
    """

    tables: Mapping[str, Any]
    source: str
    number: int = 0
    of: int = 1


@dataclass(frozen=True, slots=True)
class Share:
    """Trials of one endpoint for one worker, warm-up turns first."""

    endpoint: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """An attempt begins: nothing is waited for any more, and its session starts."""

    key: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Made:
    """An attempt has ended.

    Attributes:
        row: Its line of `trials.jsonl`.
        files: What it left, by the names of `FILES`.
        wait_s: How long its next attempt waits; None where it was the last.
    """

    row: Mapping[str, Any]
    files: Mapping[str, bytes] = field(repr=False)
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A share is done, or as much of it as could be.

    Attributes:
        error: The user's mistake, or the machine's, that ended it.
        fault: A fault of this program that ended it, as a traceback.
    """

    error: UserError | None = None
    fault: str = ""


Told = Taken | Made | Ended


class Outbox:
    """What a worker has to tell, in order; putting blocks while it is full."""

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._room = room_bytes
        self._used = 0
        self._told: deque[tuple[Told, int]] = deque()
        self._changed = threading.Condition()

    def put(self, told: Told) -> None:
        """Add one message; one that is larger than all the room is let in alone."""
        size = sum(map(len, told.files.values())) if isinstance(told, Made) else 0
        with self._changed:
            if size:  # the rest takes no room, and is put by the event loop, which must not wait
                self._changed.wait_for(lambda: not self._used or self._used + size <= self._room)
            self._told.append((told, size))
            self._used += size
            self._changed.notify_all()

    def take(self, wait_s: float) -> list[Told]:
        """Return what there is, some megabytes at most; wait a while where there is nothing."""
        taken: list[Told] = []
        with self._changed:
            self._changed.wait_for(lambda: bool(self._told), wait_s)
            total = 0
            while self._told and (not taken or total + self._told[0][1] <= _BATCH_BYTES):
                told, size = self._told.popleft()
                taken.append(told)
                total += size
            self._used -= total
            self._changed.notify_all()
        return taken


class StreamWorker:
    """Streams shares one after another; its methods are called from several threads.

    Args:
        setup: What it has to know.
    """

    def __init__(self, setup: Setup) -> None:
        from voxmeter.client import config

        bench = config.reread(setup.tables, setup.source)
        # A share's folder is gone when it is done: nobody would find what was read ahead of it.
        later = bench.transcribe.model_copy(update={"overlap": False})
        self._bench: Bench = bench.model_copy(update={"transcribe": later})
        self._split = affinity.split(affinity.allowed(), setup.number, setup.of)
        affinity.reserve(self._split)
        leftovers.remove_left()
        self._outbox = Outbox()

    def about(self, endpoints: tuple[str, ...], recordings: tuple[Path, ...]) -> dict[str, Any]:
        """Return what this worker is, if it has what it needs.

        Args:
            endpoints: Names of those that will be asked.
            recordings: Some of the clips that the driver has.

        Raises:
            UserError: If a key is missing from this node's environment, or the clips are not here.
        """
        from voxmeter.client.access import access
        from voxmeter.client.machine import load_average, machine, packages

        here = f"node {socket.gethostname()}"
        for endpoint in self._bench.endpoints:
            if endpoint.name in endpoints:
                try:
                    access(endpoint, self._bench.source)
                except UserError as error:
                    cure = "export it on this node before `ray start`"
                    raise UserError(here, error.found, cure) from None
        if recordings and not any(path.is_file() for path in recordings):
            cure = "put the data set at the same path on every node"
            raise UserError(here, f"has no {recordings[0]}", cure)
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "voxmeter": __version__,
            "streaming_core": self._split.streaming,
            "other_cores": list(self._split.others),
            "machine": machine(),
            "load_average": load_average(),
            "packages": packages(),
        }

    def stream(self, share: Share) -> None:
        """Ask a share; blocks until it is done. How it went is in the outbox."""
        try:
            with _folder() as folder:
                self._stream(share, Path(folder))
        except UserError as error:
            self._outbox.put(Ended(error))
        except Exception:  # noqa: BLE001 - the driver raises it
            self._outbox.put(Ended(fault=traceback.format_exc()))
        else:
            self._outbox.put(Ended())

    def collect(self, wait_s: float) -> list[Told]:
        """Return what happened since the last call; wait a while where nothing has."""
        return self._outbox.take(wait_s)

    def remove_files(self) -> None:
        """Remove the recordings that lie here; the worker is ended next."""
        leftovers.remove_own()

    def _stream(self, share: Share, parent: Path) -> None:
        from voxmeter.client import run
        from voxmeter.client.access import redactor
        from voxmeter.client.runfolder import RunFolder

        hides = redactor(self._bench)
        given = _Given(share)

        def begun(trial: Trial) -> None:
            self._outbox.put(Taken(trial.key, trial.attempt))

        # Streaming asks nothing else of a plan than a share can answer.
        prepared = run.Prepared(self._bench, (), cast("Plan", given), hides)
        with RunFolder.create(parent, "share", {}, hides) as folder:
            show = _Shipping(folder, self._outbox, self._split)
            before = affinity.allowed()
            try:
                run.stream(prepared, folder, show, begun)
            finally:
                affinity.confine(before)


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=leftovers.own_prefix(), ignore_cleanup_errors=True)


@dataclass(frozen=True, slots=True)
class _Given:
    """A share as a plan."""

    share: Share

    def __len__(self) -> int:
        return sum(not one.warmup for one in self.share.trials)

    @property
    def endpoints(self) -> tuple[str, ...]:
        return (self.share.endpoint,)

    def remaining(self, endpoint: str, newest: Mapping[str, Newest]) -> Iterator[Trial]:
        del endpoint, newest  # a share has one endpoint, and nothing of it is done
        yield from self.share.trials

    def count_remaining(self, endpoint: str, newest: Mapping[str, Newest]) -> int:
        del endpoint
        done = {key for key, one in newest.items() if one.finished}
        return sum(not one.warmup and one.key not in done for one in self.share.trials)


@dataclass(frozen=True, slots=True)
class _Shipping:
    """Hears of every attempt once its row is written, and sends it to the driver."""

    folder: RunFolder
    outbox: Outbox
    cores: Split

    def endpoint(self, name: str, trials: int) -> None:
        """Take the event loop to its core; called in its thread, before anything is asked."""
        del name, trials
        if self.cores.streaming is None:
            return
        affinity.confine({self.cores.streaming})
        # Threads inherit the core of the one that starts them: clips are made on the others.
        threads = ThreadPoolExecutor(thread_name_prefix="beside", initializer=affinity.leave)
        asyncio.get_running_loop().set_default_executor(threads)

    def trial(self, trial: Trial, row: Mapping[str, Any]) -> None:
        """Send the last attempt at a trial."""
        del trial
        self.outbox.put(Made(row, self._files(row)))

    def again(self, trial: Trial, row: Mapping[str, Any], wait_s: float) -> None:
        """Send an attempt that another follows."""
        del trial
        self.outbox.put(Made(row, self._files(row), wait_s))

    def _files(self, row: Mapping[str, Any]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name, path in paths_of(self.folder.attempt_paths(row)).items():
            if path.is_file():
                with disk(path):
                    found[name] = path.read_bytes()
                    path.unlink()
        return found


def paths_of(paths: AttemptPaths) -> dict[str, Path]:
    """Return where an attempt's files lie, by the names of `FILES`."""
    return {name: getattr(paths, name) for name in FILES}
