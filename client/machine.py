"""What machine and which versions a run was made with: for `run.json`."""

from __future__ import annotations

import os
import platform
import socket
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from voxmeter import __version__

_PACKAGES = (
    "audiomentations",
    "ctranslate2",
    "cyllama",
    "faster-whisper",
    "h11",
    "hibari-tts",
    "numpy",
    "onnxruntime",
    "openai",
    "piper-tts",
    "python-stretch",
    "scipy",
    "soundfile",
    "soxr",
    "text2num",
    "uvloop",
    "websockets",
)


def machine() -> dict[str, Any]:
    """Return host, processor, memory, system and clock; nothing of it names a person or a path."""
    return {
        "host": socket.gethostname(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "clock": _clock(),
    }


def _clock() -> str:
    """Return what all times are read from, and how finely it tells them."""
    found = time.get_clock_info("perf_counter")
    return f"{found.implementation}, steps of {found.resolution * 1e9:.0f} ns"


def packages() -> dict[str, str]:
    """Return the versions of the packages that a number can depend on, those that are installed."""
    found: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def made_with() -> dict[str, Any]:
    """Return the version, the machine, its load now and the packages: fields of `run.json`."""
    return {
        "voxmeter": __version__,
        "machine": machine(),
        "load_average": load_average(),
        "packages": packages(),
    }


def load_average() -> float | None:
    """Return how many processes wanted a core in the last minute, where the system tells."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None
