"""Whether a gate makes sense: its metric is known, and its limit is in the metric's unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voxmeter.client.nearest import nearest
from voxmeter.scoring.definitions import ALL, JUDGES, definition

if TYPE_CHECKING:
    from voxmeter.client.bench import Regression

JUDGED = tuple(JUDGES)
"""Metrics that carry a judge's name: `judge_score:<judge>`."""

_KNOWN_ELSEWHERE = {
    "audio_ttfp": "first_packet_ms",
    "audio_ttft": "first_audible_ms",
    "latency": "first_audible_ms",
    "ttfa": "first_audible_ms",
    "ttfb": "first_packet_ms",
    "ttft": "first_text_ms",
}
"""What other tools call them, for suggestions only."""


def suggestion(name: str) -> str | None:
    """Return the metric that an unknown name most likely means, None where nothing is near."""
    bare = name.removesuffix("_ms").removesuffix("_s")
    if bare in _KNOWN_ELSEWHERE:
        return _KNOWN_ELSEWHERE[bare]
    return nearest(f"{bare}_ms", ALL) or nearest(name, (*ALL, *JUDGED))


def metric_problem(name: str) -> tuple[str, str] | None:
    """Return what is wrong with a metric's name and the cure, None when it is known.

    Metrics of installed packages (entry-point group `voxmeter.metrics`) are known.
    """
    from voxmeter.client import kinds

    bare, _, judge = name.partition(":")
    if name in ALL or (bare in JUDGED and judge):
        return None
    if bare in JUDGED:
        return f'"{name}" names no judge', f'write "{bare}:<name of the judge>"'
    if name in kinds.added("voxmeter.metrics"):
        return None
    near = suggestion(name)
    cure = f'did you mean "{near}"?' if near else f"known: {', '.join(sorted(ALL))}"
    return f'unknown metric "{name}"', cure


def has_percentiles(metric: str) -> bool:
    """Return whether a gate on this metric may say `at`."""
    known = definition(metric)
    return known is None or known.kind == "latency"


def limit_problem(metric: str, limit: float) -> tuple[str, str] | None:
    """Return what is wrong with a limit in the metric's unit and the cure, None when it may be."""
    known = definition(metric)
    if known is not None and known.kind == "rate" and not 0 <= limit <= 1:
        cure = f"write {limit / 100:g} for {limit:g} %" if 1 < limit <= 100 else "write 0 to 1"
        return f"{limit:g} is not a fraction, as {metric} is", cure
    starts = metric.startswith("first_") or metric in {"reply_ms", "reply_end_ms"}
    if starts and 0 < limit < 20:
        return (
            f"{limit:g} ms is too short for {metric}; it looks like seconds",
            f"write {limit * 1000:g} for {limit:g} s",
        )
    return None


def regression_problem(metric: str, regression: Regression) -> tuple[str, str] | None:
    """Return what is wrong with a regression limit and the cure, None when it may be."""
    known = definition(metric)
    in_ms = known is None or known.unit == "ms"
    if regression.absolute_ms is not None and not in_ms:
        return f"absolute_ms: {metric} is not a time", "write absolute"
    if regression.absolute is not None and known is not None and in_ms:
        return f"absolute: {metric} is a time", "write absolute_ms"
    return None
