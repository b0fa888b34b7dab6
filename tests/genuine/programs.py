"""Genuine programs: where `make conformance` put them, and one that runs for as long as a test."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

HERE = Path(__file__).parent
INSTALLED = HERE.parent.parent / ".genuine"
READY = r"ready on port (\d+)"
"""What the server programs in this folder print when they take connections."""
LAST_LINES = 40
"""How much of what a program printed is shown when it fails."""
PATIENT_END_S = 10
"""How long a program has to end by itself."""


def python_of(name: str, *, heavy: bool = False) -> Path:
    """Return the interpreter of one program's own environment.

    Where there is none the test is skipped, with the command that installs it; under
    `GENUINE=required`, which `make conformance` sets, it fails instead.

    Args:
        name: Of its file of requirements.
        heavy: It is too large for `make conformance`, and has a target of its own.
    """
    python = INSTALLED / name / "bin" / "python"
    if (INSTALLED / name / "installed").exists():
        return python
    if heavy:
        pytest.skip(f"needs {name}, which is large: make conformance-{name} installs and tests it")
    reason = f"needs {name} from tests/genuine/{name}.txt: make conformance installs it"
    if os.environ.get("GENUINE") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs and takes connections.

    Attributes:
        port: On 127.0.0.1.
        pid: Its process, and the group of all that it starts.
        lines: What it has printed so far; more lines are added while it runs.
    """

    port: int
    pid: int
    lines: list[str]


@contextlib.contextmanager
def running(
    python: Path,
    *arguments: str | Path,
    ready: str = READY,
    patience_s: float = 120,
    environment: dict[str, str] | None = None,
) -> Iterator[Program]:
    """Run a program from its own environment until the block is left, however it is left.

    Args:
        python: From `python_of`.
        arguments: The program's file, or `-m` and a module, and what it takes. Let it choose its
            port (most take 0), as one that is chosen here may be taken by the time it is used.
        ready: Pattern of the line that says where it listens; its first group is the port.
        patience_s: How long it may take to get there.
        environment: Variables that are set beside those of the test.
    """
    variables = os.environ | {"PYTHONUNBUFFERED": "1"} | (environment or {})
    variables.pop("PYTHONPATH", None)  # another environment's packages are not its own
    lines: list[str] = []
    port: Future[int] = Future()
    with subprocess.Popen(
        [python, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=variables,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        told = (process.stdout, lines, port, re.compile(ready))
        reader = threading.Thread(target=_read, args=told, name=f"output of {arguments[0]}")
        reader.start()
        try:
            yield Program(port.result(patience_s), process.pid, lines)
        finally:
            _end(process)
            reader.join()
            print(*lines[-LAST_LINES:], sep="\n")  # pytest shows it beside a failure


def _read(output: IO[str], lines: list[str], port: Future[int], ready: re.Pattern[str]) -> None:
    """Keep what the program prints, to its end: one whose output nobody reads stands still."""
    for line in output:
        lines.append(line.rstrip())
        found = ready.search(line)
        if found and not port.done():
            port.set_result(int(found[1]))
    if not port.done():
        said = "\n".join(lines[-LAST_LINES:])
        port.set_exception(AssertionError(f"it ended before it was ready; it said:\n{said}"))


def _end(process: subprocess.Popen[str]) -> None:
    """End a program and all that it started; they are one group, which is named by its id."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, how)
            process.wait(PATIENT_END_S)
