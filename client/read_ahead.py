"""Transcription during the streaming: a process beside the run reads what has been answered.

It does nothing but put transcripts into the user's cache, where scoring finds them; the run folder
has its one writer, and a process that dies costs time and nothing else. It and its Whisper
processes run when no other process wants to, and never on the last core, which the stream thus
always finds free of them. Nothing of it is in the streaming process but one byte a trial, written
from the thread that has written the trial's row.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from voxmeter.client.child import Child
from voxmeter.client.cores import cores
from voxmeter.client.dialing import loopback
from voxmeter.client.transcribe_settings import asr_settings
from voxmeter.client.transcribe_wire import send
from voxmeter.client.transcripts import is_spoken_reply

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.plan import Trial
    from voxmeter.client.runfolder import RunFolder
    from voxmeter.client.streaming import Show

_WORTH_IT = 20
"""Trials; the replies of fewer are read sooner than the processes have started."""

_ENDS_WITHIN_S = 20.0
"""A process of the lowest priority may have to wait for a core before it can end."""


@contextlib.contextmanager
def reading_ahead(bench: Bench, folder: RunFolder, show: Show, plan: Sized) -> Iterator[Show]:
    """Read replies while others are still asked, as far as the machine has cores for it.

    Args:
        bench: Its `[transcribe]`.
        folder: The run.
        show: Who is told how the run goes.
        plan: As long as the run has trials; few are not worth a start.

    Yields:
        Who is to be told instead of `show`.
    """
    shard = (folder.run.get("selection") or {}).get("shard")
    if not _wanted(bench) or shard or len(plan) < _WORTH_IT:
        yield show
        return
    workers = ahead_workers(bench)
    if not workers:
        yield show
        return
    reader = Reader(bench, folder, workers)
    try:
        yield _Telling(reader, show)
    finally:
        reader.close()


def _wanted(bench: Bench) -> bool:
    """Return whether to read ahead: what the bench says, or where no endpoint runs beside us."""
    if bench.transcribe.overlap is not None:
        return bench.transcribe.overlap
    urls = [endpoint.url or "" for endpoint in bench.endpoints]
    return all(url and "{env:" not in url and not _here(url) for url in urls)


def _here(url: str) -> bool:
    """Return whether a URL names this machine: as itself, by its name or one of its addresses."""
    host = (urlsplit(url).hostname or "").removesuffix(".")
    if loopback(url) or host == "localhost" or host.endswith(".localhost"):
        return True
    if host == socket.gethostname().lower():
        return True
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as own:
            own.bind((socket.inet_ntop(family, _packed(host, family)), 0))  # of ours alone it can
    except OSError:  # a name, or the address of another machine
        return False
    return True


def _packed(host: str, family: int) -> bytes:
    """Return the bytes of an address, `127.1` and `0` as well; nothing is looked up."""
    return socket.inet_aton(host) if family == socket.AF_INET else socket.inet_pton(family, host)


def ahead_workers(bench: Bench) -> int:
    """Return how many processes may read while the run streams: one less than there are cores.

    As many as scoring would use, at most: one on a GPU, whose memory holds one model.
    """
    from voxmeter.client.transcribe import MOST_WORKERS, on_gpu

    free = cores() - 1
    if free < 1:
        return 0
    usual = 1 if on_gpu(asr_settings(bench.transcribe)) else MOST_WORKERS
    return min(free, bench.transcribe.workers or usual)


class Reader:
    """The process, started with the first reply that can be read.

    Args:
        bench: Its `[transcribe]`.
        folder: The run.
        workers: Whisper processes.
    """

    def __init__(self, bench: Bench, folder: RunFolder, workers: int) -> None:
        table = bench.transcribe.model_dump() | {"workers": workers}
        self._setup = {"folder": str(folder.path), "transcribe": table}
        self._child: Child | None = None
        self._lock = threading.Lock()
        self._closed = False

    def wake(self) -> None:
        """Say that `trials.jsonl` has a reply more; any thread may, and nothing here waits."""
        with self._lock, contextlib.suppress(OSError):  # one that has died is not replaced
            if self._closed:
                return
            if self._child is None:
                self._child = Child("voxmeter.client.read_ahead_child")
                send(self._child.requests, self._setup)
                os.set_blocking(self._child.requests.fileno(), False)
            os.write(self._child.requests.fileno(), b"\n")

    def close(self) -> int:
        """End it and its Whisper processes; what they had read is in the cache.

        Returns:
            How many replies that is.
        """
        with self._lock:
            self._closed = True
            child, self._child = self._child, None
        if child is None:
            return 0
        limit = threading.Timer(_ENDS_WITHIN_S, child.kill)
        limit.daemon = True
        limit.start()
        try:
            with contextlib.suppress(OSError):
                child.requests.close()
            return len(child.replies.read())  # it ends with the process, after its own ones
        except BaseException:
            child.kill()  # a second Ctrl-C waits for nothing
            raise
        finally:
            limit.cancel()
            child.end()


class _Telling:
    """Wakes the reader for every reply, besides telling whoever is told."""

    def __init__(self, reader: Reader, show: Show) -> None:
        self._reader, self._show = reader, show

    def endpoint(self, name: str, trials: int) -> None:
        self._show.endpoint(name, trials)

    def trial(self, trial: Trial, row: Mapping[str, Any]) -> None:
        if is_spoken_reply(row):
            self._reader.wake()
        self._show.trial(trial, row)

    def again(self, trial: Trial, row: Mapping[str, Any], wait_s: float) -> None:
        self._show.again(trial, row, wait_s)
