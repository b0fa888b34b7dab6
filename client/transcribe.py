"""Whisper beside everything else: warm processes of the lowest priority, and a cache on disk.

Whisper computes for seconds at a time, and the streaming process stamps what comes in, so replies
are read by processes of their own. Each holds one model; a reply is a path or samples, and comes
back as a future, so that reading may overlap with streaming or follow it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from voxmeter.client.audio import Pcm
from voxmeter.client.child import ChildDiedError
from voxmeter.client.cores import cores
from voxmeter.client.model_files import user_cache
from voxmeter.client.models import locate
from voxmeter.client.transcribe_child import TranscribingChild
from voxmeter.client.transcribe_wire import Samples
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.asr import AsrSettings, Transcript, placement
from voxmeter.scoring.types import Unscored

Priority = Literal["idle", "nice", "normal"]

MOST_WORKERS = 8
_GPU_LANES = 4
"""Replies that one process reads side by side on a GPU, which one alone does not fill."""
_TRIES = 2
_ITEM_LIMIT_S = 900.0
_GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")


@dataclass(frozen=True, slots=True)
class _Job:
    request: Mapping[str, object]
    samples: Samples | None
    future: Future[Any]
    key: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it is a reply that the process reads from a file."""
        return self.samples is None and self.request["what"] == "transcribe"


class TranscriberPool:
    """Whisper in `workers` processes, started as they are needed, one reply each, or a few.

    Attributes:
        model_hash: sha256 of the model's own file.
        workers: Most processes at a time.
        lanes: Replies that each reads side by side.
    """

    def __init__(
        self,
        model: str,
        settings: AsrSettings | None = None,
        *,
        workers: int | None = None,
        lanes: int | None = None,
        cache: Path | None = None,
        use_cache: bool = True,
        priority: Priority = "idle",
        allow_downloads: bool = False,
        item_limit_s: float = _ITEM_LIMIT_S,
    ) -> None:
        """Find and check the model; blocking, but nothing is loaded here.

        Args:
            model: A model name or path (see `voxmeter.client.models.locate`).
            settings: How to transcribe; `cpu_threads` is set here so that all workers together
                use no more threads than there are cores.
            workers: Most processes; None sizes them to the cores this process may use, and is one
                where there is a GPU.
            lanes: Replies that one process reads side by side; None is 1, and several on a GPU.
            cache: Folder of earlier transcripts; None is the one in the user's cache.
            use_cache: Whether earlier transcripts are used and new ones kept.
            priority: `idle` and `nice` yield to everything else on the machine.
            allow_downloads: Whether the hub may be asked for the model.
            item_limit_s: Longest time one reply may take, seconds; then its process is ended.

        Raises:
            UserError: If the model is not there or not the pinned one.
        """
        located = locate(model, "whisper", allow_downloads=allow_downloads)
        chosen = settings or AsrSettings()
        there = cores()
        gpu = on_gpu(chosen)
        self.workers = workers or (1 if gpu else min(there, MOST_WORKERS))
        self.lanes = lanes or (_GPU_LANES if gpu else 1)
        self.model = model
        self.model_hash = located.sha256
        self.settings = replace(chosen, cpu_threads=max(1, there // self.workers))
        self._item_limit_s = item_limit_s
        self._setup = {
            "model": str(located.path),
            "model_hash": located.sha256,
            "settings": asdict(self.settings),
            "cache": str(cache or user_cache() / "transcripts") if use_cache else None,
            "priority": priority,
            "lanes": self.lanes,
        }
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._processes: set[TranscribingChild] = set()
        self._lock = threading.Lock()
        self._unfinished = 0
        self._closing = False

    @property
    def at_a_time(self) -> int:
        """How many replies it reads side by side."""
        return self.workers * self.lanes

    def record(self) -> Mapping[str, object]:
        """Return `model`, `model_hash` and `settings` as a transcript's record holds them."""
        return {
            "model": self.model,
            "model_hash": self.model_hash,
            "settings": self.settings.recorded(),
        }

    def submit(
        self, audio: Path | Pcm, key: str = "", language: str | None = None
    ) -> Future[Transcript | Unscored]:
        """Queue one reply; any thread may call, and nothing here blocks.

        Args:
            audio: A file that libsndfile reads, or samples.
            key: The caller's name for it, for the record of a failure.
            language: Of this reply; None takes the settings'.

        Returns:
            A future (`asyncio.wrap_future` makes it awaitable): a transcript, or `Unscored` when
            the audio cannot be read or the process that read it died twice. It raises `UserError`
            when the settings do not fit the model or the machine.
        """
        request: dict[str, object] = {"what": "transcribe", "language": language, "path": None}
        if isinstance(audio, Path):
            return self._put(_Job(request | {"path": str(audio)}, None, Future(), key))
        return self._put(_Job(request | {"rate": audio.rate}, audio.samples, Future(), key))

    def warm(self) -> Future[Mapping[str, Any]]:
        """Load the model in one process now; the future raises `UserError` if that fails.

        Its result says what the process is: `pid`, `nice`, `idle` and `asked` (how many replies
        it has given to Whisper).
        """
        return self._put(_Job({"what": "load"}, None, Future()))

    def state(self) -> Future[Mapping[str, Any]]:
        """Ask one process what it is, as `warm` does, without loading anything."""
        return self._put(_Job({"what": "state"}, None, Future()))

    def _put(self, job: _Job) -> Future[Any]:
        with self._lock:
            if self._closing:
                raise RuntimeError("the pool is closed")
            self._unfinished += 1
            if len(self._threads) < min(self.workers, self._unfinished):
                name = f"transcriber-{len(self._threads) + 1}"
                thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)
        return job.future

    def _serve(self) -> None:
        """Feed one process; in a thread that only waits."""
        process: TranscribingChild | None = None
        while (job := self._jobs.get()) is not None:
            jobs = [job, *self._more(job)]
            wanted = [one for one in jobs if one.future.set_running_or_notify_cancel()]
            if len(wanted) > 1:
                process = self._do_batch(wanted, process)
            elif wanted:
                process = self._do(wanted[0], process)
            with self._lock:
                self._unfinished -= len(jobs)
        if process is not None:
            self._end(process)

    def _more(self, first: _Job) -> list[_Job]:
        """Return what else goes to the process in one message: files, for its lanes to share."""
        found: list[_Job] = []
        while self.lanes > 1 and first.is_file and len(found) < 2 * self.lanes - 1:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None or not job.is_file:
                self._jobs.put(job)
                break
            found.append(job)
        return found

    def _do_batch(
        self, jobs: list[_Job], process: TranscribingChild | None
    ) -> TranscribingChild | None:
        """Fulfil several jobs; where the process dies of them, each once more by itself."""
        request = {"what": "batch", "requests": [dict(job.request) for job in jobs]}
        try:
            process = process or self._start()
            replies = process.ask(request, None, len(jobs) * self._item_limit_s)["batch"]
        except (ChildDiedError, OSError):
            if process is not None:
                self._end(process)
            process = None
            for job in jobs:
                process = self._do(job, process)
            return process
        for job, reply in zip(jobs, replies, strict=True):
            _settle(job.future, reply)
        return process

    def _do(self, job: _Job, process: TranscribingChild | None) -> TranscribingChild | None:
        """Fulfil one job, with a new process if the first one dies of it."""
        problem = ""
        for _ in range(_TRIES):
            if self._closing:
                break
            try:
                process = process or self._start()
                reply = process.ask(job.request, job.samples, self._item_limit_s)
            except (ChildDiedError, OSError) as error:
                problem = str(error)
                if process is not None:
                    self._end(process)
                    process = None
                continue
            _settle(job.future, reply)
            return process
        reason = "interrupted" if self._closing else "the transcribing process died twice"
        job.future.set_result(Unscored(reason, {"key": job.key, "problem": problem}))
        return process

    def _start(self) -> TranscribingChild:
        process = TranscribingChild(self._setup, self.settings.cpu_threads)
        with self._lock:
            self._processes.add(process)
            late = self._closing
        if late:
            process.kill()
        return process

    def _end(self, process: TranscribingChild) -> None:
        process.end()
        with self._lock:
            self._processes.discard(process)

    def close(self, *, wait: bool = False) -> None:
        """End all processes.

        Args:
            wait: Finish what is queued first; otherwise it is cancelled, and what is being read
                comes back as `Unscored("interrupted")`.
        """
        if not wait:
            with self._lock:
                self._closing = True
                processes = list(self._processes)
            with contextlib.suppress(queue.Empty):
                while (job := self._jobs.get_nowait()) is not None:
                    job.future.cancel()
            for process in processes:
                process.kill()
        for _ in self._threads:
            self._jobs.put(None)
        try:
            for thread in self._threads:
                thread.join()
        except KeyboardInterrupt:
            self.close()
            raise
        self._closing = True
        self._threads.clear()

    def __enter__(self) -> Self:
        """Return the pool itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish what is queued; after an exception, Ctrl-C for one, end everything at once."""
        self.close(wait=kind is None)


def _settle(future: Future[Any], reply: dict[str, Any]) -> None:
    match reply:
        case {"user_error": [place, found, cure]}:
            future.set_exception(UserError(place, found, cure))
        case {"unscored": reason, "problem": problem}:
            future.set_result(Unscored(reason, {"problem": problem}))
        case {"transcript": transcript}:
            future.set_result(Transcript(**transcript))
        case _:
            future.set_result(reply["state"])


def on_gpu(settings: AsrSettings) -> bool:
    """Return whether Whisper will run on a GPU; a library is loaded only where there may be one."""
    if settings.device != "auto":
        return settings.device == "cuda"
    return any(map(os.path.exists, _GPU_DEVICES)) and placement(settings)[0] == "cuda"
