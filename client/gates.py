"""Judges a run's gates: every limit against every cell it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from voxmeter.scoring.definitions import ERRORS, LATENCY, is_judged
from voxmeter.scoring.stats import LEAST_SAMPLES

if TYPE_CHECKING:
    from voxmeter.client.bench import Gate

Verdict = Literal["passed", "failed", "not applicable"]

_LEAST = {f"p{100 * fraction:g}": least for fraction, least in LEAST_SAMPLES.items()}


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate in one cell.

    Attributes:
        gate: The gate in words: `first_audible_ms p50 max 800`.
        cell: `endpoint/suite/condition`; empty for a gate that is not judged by cell.
        value: What was measured, in the metric's unit; None where there is no value.
        verdict: A gate without a value has failed: what was not measured keeps no limit.
        reason: Why it failed or does not apply; empty when it passed.
    """

    gate: str
    cell: str
    value: float | None
    verdict: Verdict
    reason: str = ""


def judge(gates: Sequence[Gate], summary: Mapping[str, Any]) -> list[GateResult]:
    """Return every gate's result in every cell it is about.

    Args:
        gates: Of the bench.
        summary: Content of `summary.json`.
    """
    return [result for gate in gates for result in _judged(gate, summary)]


def named(gate: Gate) -> str:
    """Return a gate in words."""
    words = [gate.metric, *([gate.at] if gate.at else [])]
    if gate.regression is not None:
        words.append("regression")
    words += [f"max {gate.max:g}"] if gate.max is not None else []
    words += [f"min {gate.min:g}"] if gate.min is not None else []
    return " ".join(words)


def _judged(gate: Gate, summary: Mapping[str, Any]) -> Iterator[GateResult]:
    if gate.regression is not None:
        reason = "needs a second run: voxmeter compare"
        yield GateResult(named(gate), "", None, "not applicable", reason)
        return
    met = False
    for cell in summary["cells"]:
        if _is_about(gate, cell):
            met = True
            yield _in_cell(gate, cell)
    if not met:
        yield GateResult(named(gate), "", None, "failed", "no cell that it is about was run")


def _is_about(gate: Gate, cell: Mapping[str, Any]) -> bool:
    metrics = cell["metrics"]
    if cell.get("control") is not None and gate.endpoint is None and of_answers(gate.metric):
        return False
    if is_judged(gate.metric) and gate.metric not in metrics and gate.suite is None:
        return False  # nothing in this cell was for the judge
    wanted = {"endpoint": gate.endpoint, "suite": gate.suite, "condition": gate.condition}
    return all(name is None or cell[what] == name for what, name in wanted.items())


def _in_cell(gate: Gate, cell: Mapping[str, Any]) -> GateResult:
    name = "/".join((cell["endpoint"], cell["suite"], cell["condition"]))
    value = _value(gate, cell["metrics"])
    if value is None:
        return GateResult(named(gate), name, None, "failed", _lack(gate, cell["metrics"]))
    if gate.max is not None and value > gate.max:
        return GateResult(named(gate), name, value, "failed", f"{value:g} is over {gate.max:g}")
    if gate.min is not None and value < gate.min:
        return GateResult(named(gate), name, value, "failed", f"{value:g} is under {gate.min:g}")
    return GateResult(named(gate), name, value, "passed")


def of_answers(metric: str) -> bool:
    """Return whether a metric says how good answers are: a control answers all alike."""
    return metric not in LATENCY and metric not in ERRORS and metric != "reply_rate"


def _lack(gate: Gate, metrics: Mapping[str, Any]) -> str:
    """Say why there is no value."""
    n = int((metrics.get(gate.metric) or {}).get("n") or 0)
    least = _LEAST.get(gate.at or "", 1)
    if n >= least:
        return "there is no value"
    return f"too few samples: {gate.at or 'it'} needs {least}, and there are {n or 'none'}"


def _value(gate: Gate, metrics: Mapping[str, Any]) -> float | None:
    """Return what the gate looks at: latency metrics say which statistic, p50 by default."""
    found = metrics.get(gate.metric) or {}
    if "value" not in found:
        found = found.get(gate.at or "p50") or {}
    value = found.get("value")
    return float(value) if isinstance(value, int | float) else None
