"""Starts one of our own servers for a run, in a process of its own, and ends it again."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import voxmeter
from voxmeter.client.affinity import elsewhere
from voxmeter.client.builtin_name import Builtin, parse_builtin
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError

READY_TIMEOUT_S = 120.0
"""How long a server may take to load its models."""

_STOP_TIMEOUT_S = 5.0
_TAIL_LINES = 20
_CASCADE_NICENESS = 5


@contextmanager
def serving(
    builtin: Builtin | str,
    *,
    kind: str = "openai-realtime",
    options: Sequence[str] = (),
    ready_timeout_s: float = READY_TIMEOUT_S,
) -> Iterator[str]:
    """Run a built-in server while the `with` block lasts; blocks until it is ready.

    The server ends with the block, and also if this process dies without leaving it.

    Args:
        builtin: As in bench.toml: `"cascade"`, `"metronome?delay_ms=300&jitter_ms=20"`.
        kind: Protocol that it is to speak.
        options: Further options of `voxmeter serve`, such as `("--truth", "truth.jsonl")`.
        ready_timeout_s: How long it may take to be ready.

    Yields:
        Its URL.

    Raises:
        UserError: If it does not start, with the last line it wrote on standard error.
    """
    server = parse_builtin(builtin) if isinstance(builtin, str) else builtin
    command = ["serve", str(server), "--protocol", kind, "--until-stdin-closes", *options]
    with elsewhere():
        process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-P", "-m", "voxmeter", *command],  # nothing of the working folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the run, which then ends its servers itself
        )
    if server.name == "cascade":
        _step_back(process)
    try:
        said = _Said(process)
        yield _url(server, said, ready_timeout_s)
    finally:
        _stop(process)


def _step_back(process: subprocess.Popen[bytes]) -> None:
    """Let a server that computes hard on this same machine give way to the one who measures it."""
    with suppress(AttributeError, OSError):  # not everywhere, and the process may have ended
        os.setpriority(os.PRIO_PROCESS, process.pid, _CASCADE_NICENESS)


class _Said:
    """What a server writes: its first lines in order, and the tail of its complaints."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 - both are pipes
        assert process.stderr is not None  # noqa: S101
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._complaining = threading.Thread(
            target=self._keep, args=(process.stderr,), name="server's stderr", daemon=True
        )
        self._complaining.start()
        threading.Thread(
            target=self._pass_on, args=(process.stdout,), name="server's stdout", daemon=True
        ).start()

    def last_words(self) -> str:
        """Return the last line on standard error of a server that has ended, "" without one."""
        self._complaining.join(timeout=1.0)
        return self._tail[-1] if self._tail else ""

    def _keep(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                text = line.decode(errors="replace").strip()
                if text:
                    self._tail.append(text)

    def _pass_on(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self.lines.put(line.decode(errors="replace").strip())
        self.lines.put(None)


def _url(server: Builtin, said: _Said, timeout_s: float) -> str:
    place = f'builtin = "{server}"'
    try:
        line = said.lines.get(timeout=timeout_s)
    except queue.Empty:
        found = f"was not ready within {timeout_s:.0f} s"
        raise UserError(place, found, f'try "voxmeter serve {server.name}" by itself') from None
    if line is None or not line.startswith("ready "):
        words = said.last_words().removeprefix("voxmeter: ")
        found = f"did not start: {printable(words, 300)}" if words else "ended before it was ready"
        raise UserError(place, found, f'try "voxmeter serve {server.name}" by itself')
    return line.removeprefix("ready ")


def _environment() -> dict[str, str]:
    """Return this process's environment, in which the child finds the same voxmeter."""
    source = str(Path(voxmeter.__file__).parent.parent)
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, others] if others else [source])}


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    process.stdin.close()
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
