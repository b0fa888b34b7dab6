"""Which core the event loop of a streaming worker has for itself, and where all else runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_elsewhere: frozenset[int] = frozenset()


class Split(NamedTuple):
    """The cores of a machine, shared out.

    Attributes:
        streaming: For the event loop alone; None where there are too few, or none can be chosen.
        others: For everything else, scoring first of all.
    """

    streaming: int | None
    others: tuple[int, ...]


def allowed() -> tuple[int, ...]:
    """Return the cores that this thread may use, in order; none where a system does not tell."""
    if not hasattr(os, "sched_getaffinity"):
        return ()
    return tuple(sorted(os.sched_getaffinity(0)))


def split(cores: Collection[int], number: int = 0, of: int = 1) -> Split:
    """Share cores out between streaming and the rest.

    Args:
        cores: All that may be used.
        number: Which of the streaming workers of this machine, from 0: each has its own core.
        of: How many streaming workers this machine has; at least one core is left for the rest.
            With none, all are for the rest.
    """
    known = tuple(sorted(cores))
    if not of or len(known) <= of:
        return Split(None, known)
    return Split(known[-1 - number], known[:-of])


def reserve(cores: Split) -> None:
    """Move all threads of this process, and what is started from now on, off the streaming core."""
    global _elsewhere  # noqa: PLW0603 - the whole process has one such core
    if cores.streaming is None:
        return
    _elsewhere = frozenset(cores.others)
    confine_all(_elsewhere)


def confine_all(cores: Collection[int]) -> None:
    """Let all threads of this process run on these cores alone, and what is started from now on."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        return
    for thread in _threads():
        with suppress(OSError):  # it has ended
            os.sched_setaffinity(thread, cores)


def confine(cores: Collection[int]) -> None:
    """Let this thread run on these cores alone; threads that it starts do so too."""
    if cores and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # a container may have lost one since
            os.sched_setaffinity(0, cores)


def leave() -> None:
    """Take this thread off the streaming core, where one is reserved."""
    confine(_elsewhere)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Start processes inside the block off the streaming core, where one is reserved."""
    before = allowed()
    leave()
    try:
        yield
    finally:
        if _elsewhere:
            confine(before)


def _threads() -> list[int]:
    folder = Path("/proc/self/task")
    return [int(entry.name) for entry in folder.iterdir()] if folder.is_dir() else [0]
