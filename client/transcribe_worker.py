"""The process that runs Whisper: lowest priority, one model, one reply at a time or a few.

Started by `voxmeter.client.transcribe`; it ends when its parent closes the pipe or dies.
"""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from voxmeter.client.audio import Pcm, read, resample, sha256
from voxmeter.client.child import lower_priority, pipes
from voxmeter.client.transcribe_wire import Samples, receive, send
from voxmeter.client.transcript_cache import TranscriptCache
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.scoring.asr import RATE, AsrSettings, Transcriber, Transcript, placement


def main() -> None:
    """Serve one parent until it closes the pipe."""
    requests, replies = pipes()
    with contextlib.suppress(EOFError, BrokenPipeError):
        setup, _ = receive(requests)
        if setup["priority"] != "normal":
            lower_priority(idle=setup["priority"] == "idle")
        reader = _Reader(setup)
        lanes = ThreadPoolExecutor(setup["lanes"])
        while True:
            request, samples = receive(requests)
            if request["what"] == "batch":
                found = lanes.map(partial(_reply, reader, samples=samples), request["requests"])
                send(replies, {"batch": list(found)})
            else:
                send(replies, _reply(reader, request, samples))
    # Threads of the libraries may still hold locks; there is nothing left to save.
    os._exit(0)


def _reply(reader: _Reader, request: dict[str, Any], samples: Samples) -> dict[str, object]:
    try:
        return reader.serve(request, samples)
    except UserError as error:
        return {"user_error": [error.place, error.found, error.cure]}
    except ClipError as error:
        return {"unscored": "the reply's audio cannot be read", "problem": str(error)}
    except Exception as error:  # noqa: BLE001 - foreign code; out of memory on a GPU, for one
        problem = f"{type(error).__name__}: {error}"
        return {"unscored": "Whisper failed", "problem": problem[:500]}


class _Reader:
    """The cache, and behind it a model that is loaded when the first reply is not in the cache."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self._setup = setup
        self._settings = AsrSettings(**setup["settings"])
        self._cache: TranscriptCache | None = None
        self._whisper: Transcriber | None = None
        self._asked = 0
        self._lock = threading.Lock()

    def serve(self, request: dict[str, Any], samples: Samples) -> dict[str, object]:
        """Return the transcript, or this process's own state for `what = "state"`."""
        if request["what"] == "load":
            self._model()
        if request["what"] != "transcribe":
            return {"state": self._state()}
        pcm = _pcm(request, samples)
        language = request["language"] or self._settings.language
        cache, key = self._open_cache(), sha256(pcm)
        found = cache.get(key, language) if cache else None
        if found is None:
            found = self._read(pcm, language)
            if cache:
                cache.put(key, language, found)
        return {"transcript": asdict(found)}

    def _read(self, pcm: Pcm, language: str) -> Transcript:
        model = self._model()
        with self._lock:
            self._asked += 1
        return model.transcribe(resample(pcm, RATE).samples, language)

    def _model(self) -> Transcriber:
        with self._lock:
            if self._whisper is None:
                folder = Path(self._setup["model"])
                self._whisper = Transcriber(folder, self._settings, lanes=self._setup["lanes"])
        return self._whisper

    def _open_cache(self) -> TranscriptCache | None:
        if self._setup["cache"] is None:
            return None
        if self._cache is None:
            device, compute_type = placement(self._settings)
            settings = self._settings.recorded() | {
                "device": device,
                "compute_type": compute_type,
            }
            self._cache = TranscriptCache(
                Path(self._setup["cache"]), self._setup["model_hash"], settings
            )
        return self._cache

    def _state(self) -> dict[str, object]:
        policy = os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None
        idle = policy is not None and policy == os.SCHED_IDLE
        return {"pid": os.getpid(), "nice": os.nice(0), "idle": idle, "asked": self._asked}


def _pcm(request: dict[str, Any], samples: Samples) -> Pcm:
    if request["path"] is not None:
        return read(request["path"])
    wrong = ~np.isfinite(samples)
    return Pcm(np.where(wrong, np.float32(0), samples), request["rate"])


if __name__ == "__main__":
    main()
