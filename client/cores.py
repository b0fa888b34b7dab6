"""How many processor cores this process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the cores that this process may use: those of the machine, or fewer by `taskset`."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
