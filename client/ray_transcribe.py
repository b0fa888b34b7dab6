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
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from voxmeter.client import affinity, ray_cluster
from voxmeter.client.ray_cluster import Node
from voxmeter.client.transcribe import TranscriberPool
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.asr import AsrSettings, Transcript
from voxmeter.scoring.types import Unscored

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench

_TRIES = 2


class Reader:
    """One model on one node; a Ray actor.

    Args:
        model: Its name or path; it must be on this node.
        settings: How it reads.
        core: Which of the cores that streaming leaves it computes on, counted round; None for all
            of them, where a GPU computes.
        of: How many streaming workers this machine has; their cores are never used.
        allow_downloads: Whether the hub may be asked for the model.

    Raises:
        UserError: If the model is not there or not the pinned one.
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
        self._pool = TranscriberPool(model, settings, workers=1, allow_downloads=allow_downloads)

    def model_hash(self) -> str:
        """Return the sha256 of the model's own file."""
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
            UserError: If the settings do not fit the model or the machine.
        """
        with tempfile.NamedTemporaryFile(prefix="voxmeter-", suffix=".flac") as file:
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
        self._settings = AsrSettings(
            language=wanted.language or "en",
            beam_size=wanted.beam_size,
            device=wanted.device,
            compute_type=wanted.compute_type,
        )
        self._downloads = wanted.allow_downloads
        # It says what the model is; the processes of this pool never start.
        self._known = TranscriberPool(
            wanted.model, self._settings, workers=1, allow_downloads=wanted.allow_downloads
        )
        self._places = places(ray_cluster.nodes(), wanted.device)
        self.workers = len(self._places)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
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
        """
        if not self._places:
            raise UserError("--ray", "no node has a place for Whisper", "see: ray status")
        job = _Job(audio, key, language, Future())
        with self._lock:
            if len(self._threads) < self.workers:
                place = self._places[len(self._threads)]
                thread = threading.Thread(target=self._serve, args=(place,), daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)
        return job.future

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
        actor: Any = None
        while (job := self._jobs.get()) is not None:
            if job.future.set_running_or_notify_cancel():
                actor = self._do(job, place, actor)

    def _do(self, job: _Job, place: _Place, actor: Any) -> Any:  # noqa: ANN401 - Ray's handles
        """Fulfil one job, with a new reader if the first one dies of it; return the reader."""
        import ray

        problem = ""
        for _ in range(_TRIES):
            if self._closing:
                break
            try:
                actor = actor or self._start(place)
                job.future.set_result(
                    ray.get(actor.read.remote(job.audio.read_bytes(), job.key, job.language))
                )
            except ray.exceptions.RayTaskError as error:
                job.future.set_exception(ray_cluster.cause(error))
                return actor
            except UserError as error:
                job.future.set_exception(error)
                return None
            except (ray.exceptions.RayError, OSError) as error:
                problem = str(error).strip().split("\n")[0][:200]
                with self._lock:
                    self._actors.discard(actor)
                actor = None
                continue
            return actor
        reason = "interrupted" if self._closing else "the transcribing worker was lost twice"
        job.future.set_result(Unscored(reason, {"key": job.key, "problem": problem}))
        return actor

    def _start(self, place: _Place) -> Any:  # noqa: ANN401 - a handle of Ray's
        """Start a reader.

        Raises:
            UserError: If its model is another one than here.
        """
        import ray

        node = place.node
        arguments = (self._known.model, self._settings, place.core, node.of)
        actor = ray_cluster.actor(
            node, Reader, *arguments, gpus=place.gpus, allow_downloads=self._downloads
        )
        with self._lock:
            self._actors.add(actor)
        try:
            found = ray.get(actor.model_hash.remote())
        except ray.exceptions.RayTaskError as error:
            raise ray_cluster.cause(error) from None
        if found != self._known.model_hash:
            cure = "put the same one on every node"
            raise UserError(f"node {node.host}", f"has another model {self._known.model}", cure)
        return actor


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
    if device != "cpu":
        found = [_Place(node, 1, None) for node in chosen for _ in range(node.gpus)]
    if found or device == "cuda":
        return found
    for spared in (True, False):
        for node in chosen:
            count = node.cpus - (spared and node.streams)
            found.extend(_Place(node, 0, core) for core in range(count))
        if found:
            break
    return found
