"""Figures of one endpoint while it is being asked, as a run's summary would count them."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from voxmeter.scoring.metrics import OURS, WITH_REPLY
from voxmeter.scoring.stats import LEAST_SAMPLES

Row = Mapping[str, Any]

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_CUT = "interrupted"  # by the user of a live session, who may
METRICS = ("first_audible_ms", "first_packet_ms", "reply_ms")


class Rolling:
    """Counts trials and keeps their latencies in order.

    Args:
        endpoint: Its name.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._statuses: Counter[str] = Counter()
        self._values: dict[str, list[float]] = {metric: [] for metric in METRICS}
        self._accuracy: tuple[float | None, int] = (None, 0)

    def add(self, row: Row) -> None:
        """Count one row of `trials.jsonl`; warm-up turns count nowhere."""
        if row.get("warmup"):
            return
        self._statuses[str(row["status"])] += 1
        valid = (row.get("audit") or {}).get("latency_valid", True)
        if row["status"] not in WITH_REPLY or not valid:
            return
        latency = row.get("latency") or {}
        for metric, values in self._values.items():
            if latency.get(metric) is not None:
                insort(values, float(latency[metric]))

    def scored(self, summary: Mapping[str, Any]) -> None:
        """Take over the endpoint's accuracy from a summary."""
        self._accuracy = accuracy(summary, self.endpoint)

    def content(self) -> dict[str, Any]:
        """Return what is published: counts, and percentiles in ms, null where withheld."""
        failed = {name: n for name, n in sorted(self._statuses.items()) if name != "ok"}
        ours = sum(n for name, n in failed.items() if name in OURS)
        errors = sum(failed.values()) - ours - failed.get(_CUT, 0)
        return {
            "endpoint": self.endpoint,
            "n": self._statuses.total() - ours,
            "ok": self._statuses["ok"],
            "errors": errors,
            "status": failed,
            "accuracy": self._accuracy[0],
            "accuracy_n": self._accuracy[1],
            **{metric: _figures(values) for metric, values in self._values.items()},
        }


def accuracy(summary: Mapping[str, Any], endpoint: str) -> tuple[float | None, int]:
    """Return an endpoint's accuracy over all its cells, each weighing as it has trials, and n.

    Args:
        summary: As in `summary.json`.
        endpoint: Its name.
    """
    found = [
        (entry["value"], entry["n"])
        for cell in summary["cells"]
        if cell["endpoint"] == endpoint
        if (entry := cell["metrics"].get("accuracy")) and entry["value"] is not None
    ]
    n = sum(count for _, count in found)
    if not n:
        return None, 0
    return round(sum(value * count for value, count in found) / n, 6), n


def _figures(values: Sequence[float]) -> dict[str, Any]:
    found: dict[str, Any] = {"n": len(values)}
    for name, fraction in PERCENTILES.items():
        enough = len(values) >= LEAST_SAMPLES.get(fraction, 1)
        found[name] = round(_between(values, fraction), 3) if enough else None
    return found


def _between(ordered: Sequence[float], fraction: float) -> float:
    """Return a percentile, interpolated linearly between its neighbours, as reports do."""
    place = fraction * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
