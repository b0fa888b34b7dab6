"""A process beside this one that calls our own functions, one at a time, and dies with us."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, ParamSpec, Self, TypeVar

from voxmeter.client.child import Child, ChildDiedError, pipes

_Taken = ParamSpec("_Taken")
_Result = TypeVar("_Result")


class Worker:
    """One process of low priority, started with the first call and again after a death.

    Args:
        name: What to call its thread.
    """

    def __init__(self, name: str) -> None:
        # One thread waits for the process, so that no caller's pool of threads fills up.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._process: Child | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def submit(
        self, function: Callable[_Taken, _Result], *args: _Taken.args, **kwargs: _Taken.kwargs
    ) -> Future[_Result]:
        """Queue one call; any thread may do so.

        Args:
            function: A function of a module of ours; it, its arguments and its result are pickled.
            *args: Its arguments.
            **kwargs: Likewise.

        Returns:
            A future with the result, or the exception that the function raised, or
            `ChildDiedError`.
        """
        return self._thread.submit(self._call, function, args, kwargs)

    def stop(self) -> None:
        """End what is under way, if anything is; a later call starts a new process."""
        with self._lock:
            process = None if self._closed else self._process
        if process is not None:
            process.kill()
            self._thread.submit(self._drop, process)

    def close(self) -> None:
        """End the process; calls that were not done yet fail."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()
        self._thread.shutdown(wait=True, cancel_futures=True)
        if self._process is not None:
            self._process.end()

    def _call(self, function: Callable[..., Any], args: object, kwargs: object) -> Any:  # noqa: ANN401 - any result
        request = pickle.dumps((function, args, kwargs), protocol=pickle.HIGHEST_PROTOCOL)
        with self._lock:
            if self._closed:
                raise ChildDiedError("it was ended")
            if self._process is None:
                self._process = Child("voxmeter.client.worker")
            process = self._process
        try:
            done, result = _asked(process, request)
        except ChildDiedError:
            self._drop(process)
            raise
        if not done:
            raise result
        return result

    def _drop(self, process: Child) -> None:
        with self._lock:
            if self._process is process:
                self._process = None
        process.end()


def _asked(child: Child, request: bytes) -> tuple[bool, Any]:
    """Return whether the call came through, and its result or exception; blocking.

    Raises:
        ChildDiedError: If the process ended.
    """
    try:
        _write(child.requests, request)
        done, result = pickle.loads(_read(child.replies))  # noqa: S301 - our own process
    except (OSError, EOFError):
        raise child.died() from None
    return bool(done), result


def main() -> None:
    """Serve one parent until it closes the pipe or dies."""
    requests, replies = pipes()
    with contextlib.suppress(OSError):
        os.nice(19)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            _write(replies, _reply(_read(requests)))
    # Threads of libraries may still hold locks; there is nothing left to save.
    os._exit(0)


def _reply(request: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(request)  # noqa: S301 - our own parent
        return pickle.dumps((True, function(*args, **kwargs)))
    except Exception as error:  # noqa: BLE001 - the parent raises it again
        error.add_note("".join(traceback.format_exception(error)))
        return _pickled(error)


def _pickled(error: Exception) -> bytes:
    try:
        data = pickle.dumps((False, error))
        pickle.loads(data)  # noqa: S301 - our own; an exception may fail only when it is read
    except Exception:  # noqa: BLE001 - a foreign exception that cannot travel
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return data


def _write(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(8, "big"))
    pipe.write(data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes:
    size = pipe.read(8)
    data = pipe.read(int.from_bytes(size, "big")) if len(size) == 8 else b""
    if len(size) < 8 or len(data) < int.from_bytes(size, "big"):
        raise EOFError
    return data
