"""A process beside this one that calls our own functions, one at a time, and dies with us.

Unlike a pool of `multiprocessing` it never runs the user's main module again, so that a script
without a `__main__` guard works; it holds none of this process's streams; and it ends by itself
when this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import IO, Any, ParamSpec, Self, TypeVar

_Taken = ParamSpec("_Taken")
_Result = TypeVar("_Result")


class WorkerDiedError(Exception):
    """The process ended while it had work; the text is how, and the end of what it wrote."""


class Worker:
    """One process of low priority, started with the first call and again after a death.

    Args:
        name: What to call its thread.
    """

    def __init__(self, name: str) -> None:
        # One thread waits for the process, so that no caller's pool of threads fills up.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
            `WorkerDiedError`.
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
                raise WorkerDiedError("it was ended")
            if self._process is None:
                self._process = _Process()
            process = self._process
        try:
            done, result = process.ask(request)
        except WorkerDiedError:
            self._drop(process)
            raise
        if not done:
            raise result
        return result

    def _drop(self, process: _Process) -> None:
        with self._lock:
            if self._process is process:
                self._process = None
        process.end()


class _Process:
    """The process as its parent sees it: started, asked, ended."""

    def __init__(self) -> None:
        # The same import path as here, whatever folder or zip this program was started from.
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            "from voxmeter.client.worker import main; main()"
        )
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives until `end`
        self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            start_new_session=True,  # Ctrl-C is for this process, which then ends the other
        )
        if self._child.stdin is None or self._child.stdout is None:
            raise RuntimeError("a child without pipes")
        self._requests, self._replies = self._child.stdin, self._child.stdout

    def ask(self, request: bytes) -> tuple[bool, Any]:
        """Return whether the call came through, and its result or exception; blocking.

        Raises:
            WorkerDiedError: If the process ended.
        """
        try:
            _write(self._requests, request)
            done, result = pickle.loads(_read(self._replies))  # noqa: S301 - our own process
        except (OSError, EOFError):
            raise WorkerDiedError(self._last_words()) from None
        return bool(done), result

    def kill(self) -> None:
        """End the process now; any thread may call."""
        self._child.kill()

    def end(self) -> None:
        """End the process and free what it held; may be called twice."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._requests, self._replies):
            with contextlib.suppress(OSError):  # what was not sent yet has nobody to read it
                pipe.close()
        self._complaints.close()

    def _last_words(self) -> str:
        status = self._child.wait()
        end = self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, end - 400))
        return f"exit status {status}; {self._complaints.read().decode(errors='replace').strip()}"


def main() -> None:
    """Serve one parent until it closes the pipe or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the replies
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
