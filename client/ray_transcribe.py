"""Stage 2 over several machines: one Whisper to a processor or a GPU, anywhere in a cluster.

Each is an actor around the pool of any other run, with one process and a cache on its own node. A
reply travels as the bytes of its file; texts come back as futures, like those of
`client.transcribe.TranscriberPool`.
"""

from __future__ import annotations

import contextlib
import queue
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from voxmeter.client import affinity, leftovers, ray_cluster
from voxmeter.client.ray_cluster import LostError, Node, NotStartedError
from voxmeter.client.terminal import warn
from voxmeter.client.transcribe import TranscriberPool
from voxmeter.client.transcribe_settings import asr_settings
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.asr import AsrSettings, Transcript
from voxmeter.scoring.types import Unscored

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench

_TRIES = 2


class TranscribeActor:
    """One model on one node; a Ray actor.

    It opens the model when it is told to: what a constructor raises would reach nobody by name.

    Args:
        model: Its name or path; it must be on this node.
        settings: How it reads.
        core: Which of the cores that streaming leaves it computes on, counted round; None for all
            of them, where a GPU computes.
        of: How many streaming workers this machine has; their cores are never used.
        allow_downloads: Whether the hub may be asked for the model.
    """

    def __init__(
        self,
        model: str,
        settings: AsrSettings,
        core: int | None,
        of: int,
        *,
        allow_downloads: bool,
    ) -> None:
        others = affinity.split(affinity.allowed(), 0, of).others
        if core is not None and others:
            others = (others[core % len(others)],)
        affinity.confine_all(others)
        leftovers.remove_left()
        self._open = partial(
            TranscriberPool, model, settings, workers=1, allow_downloads=allow_downloads
        )
        self._pool: TranscriberPool | None = None

    def open(self) -> str:
        """Find the model; return the sha256 of its own file.

        Raises:
            UserError: If it is not there or not the pinned one.
        """
        self._pool = self._pool or self._open()
        return self._pool.model_hash

    def cores(self) -> tuple[int, ...]:
        """Return the cores it may use."""
        return affinity.allowed()

    def read(self, audio: bytes, key: str, language: str | None) -> Transcript | Unscored:
        """Return what is heard in one reply.

        Args:
            audio: The content of its file.
            key: The caller's name for it.
            language: Its language; None for the settings'.

        Raises:
            UserError: If the model is missing, or the settings do not fit it or the machine.
        """
        self._pool = self._pool or self._open()
        with tempfile.NamedTemporaryFile(prefix=leftovers.own_prefix(), suffix=".flac") as file:
            file.write(audio)
            file.flush()
            return self._pool.submit(Path(file.name), key, language).result()


@dataclass(frozen=True, slots=True)
class _Job:
    audio: Path
    key: str
    language: str | None
    future: Future[Any]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one reader runs: its node, a GPU or its turn among the processors."""

    node: Node
    gpus: int
    core: int | None


class ClusterTranscriber:
    """Whisper wherever a cluster has a processor that does not stream.

    Attributes:
        workers: How many models read at a time.
    """

    def __init__(self, bench: Bench) -> None:
        """Find the model here; nothing is started before the first reply.

        Raises:
            UserError: If the model is not on this machine.
        """
        wanted = bench.transcribe
        self._settings = asr_settings(wanted)
        self._downloads = wanted.allow_downloads
        # It says what the model is; the processes of this pool never start.
        self._known = TranscriberPool(
            wanted.model, self._settings, workers=1, allow_downloads=wanted.allow_downloads
        )
        self._places = places(ray_cluster.nodes(), wanted.device)
        self.workers = len(self._places)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._left = 0  # places that were given up
        self._refused: Exception | None = None
        self._actors: set[Any] = set()
        self._lock = threading.Lock()
        self._closing = False

    @property
    def at_a_time(self) -> int:
        """How many replies it reads side by side."""
        return self.workers

    def record(self) -> Mapping[str, object]:
        """Return `model`, `model_hash` and `settings` as a transcript's record holds them."""
        return self._known.record()

    def submit(
        self, audio: Path, key: str = "", language: str | None = None
    ) -> Future[Transcript | Unscored]:
        """Queue one reply; any thread may call, and nothing here blocks.

        Args:
            audio: Its file, on this machine.
            key: The caller's name for it.
            language: Of this reply; None takes the settings'.

        Returns:
            A future as `TranscriberPool.submit` returns it.

        Raises:
            UserError: If no node has a GPU, where the bench wants one, or a processor.

        The future raises `UserError` if a node's model is missing or another one, or if no node
        has given a processor.
        """
        if not self._places:
            raise UserError("--ray", "no node has a place for Whisper", "see: ray status")
        job = _Job(audio, key, language, Future())
        with self._lock:
            if self._refused is not None:
                job.future.set_exception(self._refused)
                return job.future
            self._open_places(1)
            self._jobs.put(job)
        return job.future

    def _open_places(self, most: int) -> None:
        """Start threads for places that have none; the lock is held."""
        for place in self._places[len(self._threads) :][:most]:
            thread = threading.Thread(target=self._serve, args=(place,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End all readers; what is queued is cancelled."""
        self._closing = True
        with contextlib.suppress(queue.Empty):
            while (job := self._jobs.get_nowait()) is not None:
                job.future.cancel()
        for _ in self._threads:
            self._jobs.put(None)
        with self._lock:
            actors = list(self._actors)
        for actor in actors:
            ray_cluster.ended(actor)
        for thread in self._threads:
            thread.join(timeout=10)
        self._known.close()

    def _serve(self, place: _Place) -> None:
        """Feed one reader; in a thread that only waits."""
        try:
            actor = self._start(place)
            while (job := self._jobs.get()) is not None:
                if job.future.running() or job.future.set_running_or_notify_cancel():
                    actor = self._do(job, place, actor)
        except LostError as error:
            self._leave(place, error)
        except Exception as error:  # noqa: BLE001 - whoever waits for a reply raises it
            self._refuse(error)

    def _do(self, job: _Job, place: _Place, actor: Any) -> Any:  # noqa: ANN401 - Ray's handles
        """Fulfil one job, with a new reader if the first one dies of it; return the reader.

        Raises:
            LostError: If there is no new reader; the job is in the queue again.
        """
        try:
            audio = job.audio.read_bytes()
        except OSError as error:
            _settle(job, "the reply's audio cannot be read", str(error))
            return actor
        problem = ""
        for tried in range(1, _TRIES + 1):
            if self._closing:
                break
            try:
                found = ray_cluster.answer(actor.read.remote(audio, job.key, job.language))
            except LostError as error:
                problem = str(error)
                self._forget(actor)
                if tried == _TRIES:
                    _settle(job, "the transcribing worker was lost twice", problem)
                actor = self._start_again(job, place)
            except Exception as error:  # noqa: BLE001 - whoever waits for the reply raises it
                job.future.set_exception(error)
                return actor
            else:
                job.future.set_result(found)
                return actor
        if not job.future.done():
            _settle(job, "interrupted", problem)
        return actor

    def _start_again(self, job: _Job, place: _Place) -> Any:  # noqa: ANN401 - a handle of Ray's
        """Start a reader in the place of a dead one; without one, others read the job.

        Raises:
            LostError: If none starts.
            UserError: As `_start`.
        """
        try:
            return self._start(place)
        except (LostError, UserError):
            if not job.future.done():
                self._put_back(job)
            raise

    def _put_back(self, job: _Job) -> None:
        with self._lock:
            if self._closing:
                _settle(job, "interrupted", "")
            elif self._refused is not None:
                job.future.set_exception(self._refused)
            else:
                self._jobs.put(job)

    def _start(self, place: _Place) -> Any:  # noqa: ANN401 - a handle of Ray's
        """Start a reader, again if the first one dies at once.

        Raises:
            NotStartedError: If the node gives no processor in time.
            LostError: If all die at once, or all is over.
            UserError: If its model is missing or another one than here.
        """
        node, problem = place.node, LostError("interrupted")
        arguments = (self._known.model, self._settings, place.core, node.of)
        for _ in range(_TRIES):
            if self._closing:
                break
            actor = ray_cluster.actor(
                node, TranscribeActor, *arguments, gpus=place.gpus, allow_downloads=self._downloads
            )
            with self._lock:
                self._actors.add(actor)
            try:
                ray_cluster.answer(actor.cores.remote(), ray_cluster.STARTED_S)
                self._check(node, actor)
            except LostError as error:
                self._forget(actor)
                problem = error
                if isinstance(error, NotStartedError):
                    break
            else:
                return actor
        raise problem

    def _check(self, node: Node, actor: Any) -> None:  # noqa: ANN401 - a handle of Ray's
        """Let an actor open its model, which must be the one that is here."""
        try:
            model_hash = ray_cluster.answer(actor.open.remote())
        except UserError as error:
            place, found = f"node {node.host}", f"{error.place}: {error.found}"
            raise UserError(place, found, error.cure) from None
        if model_hash != self._known.model_hash:
            cure = "put the same one on every node"
            raise UserError(f"node {node.host}", f"has another model {self._known.model}", cure)

    def _forget(self, actor: Any) -> None:  # noqa: ANN401 - a handle of Ray's
        """End an actor that is dead, or still waits for a processor."""
        ray_cluster.ended(actor)
        with self._lock:
            self._actors.discard(actor)

    def _leave(self, place: _Place, error: LostError) -> None:
        """Give a place up: the other ones are tried at once, and read what it would have."""
        if self._closing:
            return
        with self._lock:
            self._left += 1
            self._open_places(len(self._places))
            alone = self._left == len(self._places)
        why = f"node {place.node.host} starts no Whisper: {error}"
        if not alone:
            warn(f"{why}; the others go on")
            return
        cure = "see what holds the processors: ray status; then: voxmeter score RUN"
        self._refuse(UserError("--ray", why, cure))

    def _refuse(self, error: Exception) -> None:
        """Let everybody who waits for a reply, now or later, know why there is none."""
        with self._lock:
            self._refused = self._refused or error
            with contextlib.suppress(queue.Empty):
                while (job := self._jobs.get_nowait()) is not None:
                    if job.future.running() or job.future.set_running_or_notify_cancel():
                        job.future.set_exception(error)


def _settle(job: _Job, reason: str, problem: str) -> None:
    job.future.set_result(Unscored(reason, {"key": job.key, "problem": problem}))


def places(nodes: list[Node], device: str) -> list[_Place]:
    """Return where readers run: one to a GPU, or one to a processor that does not stream.

    Where the cluster tells nodes that stream from others, only the others are used, if there are
    any. A processor that streamed is used where there is no other at all: by then all is asked.

    Args:
        nodes: Of the cluster.
        device: Of the bench: `auto`, `cpu` or `cuda`.
    """
    apart = [node for node in nodes if not node.streams]
    chosen = apart if apart and any(node.marked for node in nodes) else nodes
    found: list[_Place] = []
    turns: Counter[str] = Counter()  # two nodes of one machine share its cores
    if device != "cpu":
        found = [_Place(node, 1, None) for node in chosen for _ in range(node.gpus)]
    if found or device == "cuda":
        return found
    for spared in (True, False):
        for node in chosen:
            count = node.cpus - (spared and node.streams)
            found.extend(_Place(node, 0, turns[node.host] + core) for core in range(count))
            turns[node.host] += count
        if found:
            break
    return found
