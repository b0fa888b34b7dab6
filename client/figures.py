"""Figures as people read them: a value with its interval, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from voxmeter.scoring.definitions import Definition, definition

Entry = Mapping[str, Any]


def rate(entry: Entry | None) -> str:
    """Return a share as `62.5% [42-79]`; `n/a (0 scored)` when nothing was."""
    if entry is None or entry.get("value") is None:
        return "n/a (0 scored)"
    return f"{entry['value']:.1%}{_limits(entry, _percent)}"


def number(entry: Entry | None, unit: str = "") -> str:
    """Return a mean as `12.3 words [10-15]`; `n/a (0 scored)` when there is none."""
    if entry is None or entry.get("value") is None:
        return "n/a (0 scored)"
    word = f" {unit}" if unit else ""
    return f"{_plain(entry['value'])}{word}{_limits(entry, _plain)}"


def time(entry: Entry, at: str) -> str:
    """Return one statistic of a latency metric as `812 [790-850]`.

    Args:
        entry: Of `summary.json`.
        at: `mean`, `p50`, `p90`, `p95` or `p99`.
    """
    if not entry["n"]:
        return "n/a (0 timed)"
    found = entry[at]
    if found is None or found["value"] is None:
        return f"- (n {entry['n']})"
    shape = _whole if entry["unit"] == "ms" else _plain
    return f"{shape(found['value'])}{_limits(found, shape)}"


def brief(entry: Entry, at: str) -> str:
    """Return the same without its limits: `812`; `n/a` when nothing was timed."""
    return time(entry, at).partition(" [")[0] if entry["n"] else "n/a"


def any_figure(name: str, entry: Entry) -> str:
    """Return a figure of any metric that is not a latency."""
    meant = meaning(name)
    return rate(entry) if meant.unit == "fraction" else number(entry, _word(meant))


def meaning(name: str) -> Definition:
    """Return what a metric means; one that a plug-in added says only its name."""
    return definition(name) or Definition("score", None, name, "mean")


def _word(meant: Definition) -> str:
    return "" if meant.unit in {"score", "ratio", "count"} else meant.unit


def _limits(entry: Entry, shape: Callable[[float], str]) -> str:
    low, high = entry.get("low"), entry.get("high")
    if low is None and high is None:
        return ""
    ends = ["?" if end is None else shape(end) for end in (low, high)]
    dash = " to " if any(end.startswith("-") for end in ends) else "-"
    return f" [{dash.join(ends)}]"


def _percent(value: float) -> str:
    return f"{value * 100:.0f}"


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _plain(value: float) -> str:
    """Return three significant digits, and never a power of ten for a large number."""
    return _whole(value) if abs(value) >= 1000 else f"{value:.3g}"
