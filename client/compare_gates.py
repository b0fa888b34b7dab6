"""Judges regression gates: a difference beyond zero, beyond both floors, and not one of many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from voxmeter.client import config
from voxmeter.client.compare_cells import CellPair, common_items, controls
from voxmeter.client.compare_verdict import doubt, unmeasured
from voxmeter.client.compared_run import Cell, Side
from voxmeter.client.gates import named, of_answers
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.definitions import LATENCY, definition, is_judged
from voxmeter.scoring.paired import (
    LEAST_CLUSTERS,
    LEAST_TRIALS,
    Difference,
    Floors,
    holm,
    mcnemar,
    outcome,
    percentile_difference,
)

if TYPE_CHECKING:
    from voxmeter.client.bench import Gate

Json = dict[str, Any]

DEFAULTS: Sequence[Mapping[str, Any]] = (
    {"metric": "first_audible_ms", "regression": {"relative": 0.05, "absolute_ms": 20}},
    {"metric": "accuracy", "regression": {"absolute": 0.05}},
    {"metric": "reply_rate", "regression": {"absolute": 0.05}},
)
"""Gates of a comparison whose new run has none of its own."""

_FRACTIONS = {"p90": 0.9, "p95": 0.95, "p99": 0.99}


def of_run(
    run: Mapping[str, Any], place: str, bench: str | Path | None = None
) -> Sequence[Gate] | None:
    """Return the regression gates of a bench.toml, or of a run's own configuration.

    Args:
        run: Content of `run.json`.
        place: The run's folder, for messages.
        bench: The bench.toml, where one is given.

    Returns:
        None where the run has no regression gate: the defaults hold.

    Raises:
        UserError: If the bench.toml or the configuration is wrong, or `bench` has no such gate.
    """
    if bench is not None:
        found = [one for one in config.load(Path(bench)).gates if one.regression is not None]
        if not found:
            cure = 'add [[gate]] metric = "first_audible_ms", regression = {relative = 0.1}'
            raise UserError(str(bench), "has no regression gate", cure)
        return found
    stored = run.get("config")
    if not stored:
        return None
    gates = config.reread(stored, f"{place}/run.json").gates
    return [one for one in gates if one.regression is not None] or None


@dataclass(slots=True)
class _Test:
    """One gate in one cell; a `problem` says why there is no verdict, `lacks` that of samples."""

    gate: Gate
    cell: str
    found: Difference | None = None
    base: float | None = None
    n: int = 0
    p: float | None = None
    problem: str = ""
    refused: bool = False
    lacks: bool = False


@dataclass(slots=True)
class Judging:
    """Collects every gate's difference cell by cell; Holm needs them all before any verdict."""

    base: Side
    new: Side
    missing: Sequence[tuple[str, Cell]]
    gates: Sequence[Gate] | None
    _tests: list[_Test] = field(default_factory=list)

    def take(self, cell: CellPair) -> None:
        """Take the gates that are about a cell, which has its samples."""
        for gate in self._wanted():
            if _is_about(gate, cell.base[0], cell.new) and self._is_there(gate, cell):
                test = _test(gate, cell, self.new.seed)
                self._tests.append(self._told(test, cell) if test.lacks else test)

    def results(self) -> tuple[list[Json], bool]:
        """Return the rows of all gates, and whether what they are about cannot be compared."""
        tests = [*self._tests, *self._of_missing()]
        if self.gates is not None:
            tests += self._without_cell(tests)
        judged = [test for test in tests if test.p is not None and not test.problem]
        adjusted = holm([test.p for test in judged if test.p is not None])
        by_test = {id(test): one for test, one in zip(judged, adjusted, strict=True)}
        rows = [self._result(test, by_test.get(id(test))) for test in tests]
        # A gate that nobody wrote must not pass for one that was kept: what was lost is no success.
        # A regression that was found stands, whatever else could not be judged.
        found = any(row["verdict"] == "failed" and row["p_holm"] is not None for row in rows)
        unjudged = self.gates is None and len(judged) < max(1, len(tests)) and not found
        return rows, unjudged or any(test.refused for test in tests)

    def _wanted(self) -> Sequence[Gate]:
        if self.gates is not None:
            return self.gates
        from voxmeter.client.bench import Gate

        return [Gate.model_validate(one) for one in DEFAULTS]

    def _is_there(self, gate: Gate, cell: CellPair) -> bool:
        """A default gate is about the cells that have its metric; so is one on a judge.

        One on answers is about no control, unless it names it.
        """
        if (
            gate.endpoint is None
            and of_answers(gate.metric)
            and controls(self.base, self.new, cell)
        ):
            return False
        if self.gates is not None and not (is_judged(gate.metric) and gate.suite is None):
            return True
        return any(
            side.has(names, gate.metric)
            for side, names in ((self.base, cell.base), (self.new, cell.new))
        )

    def _told(self, test: _Test, cell: CellPair) -> _Test:
        """Say what a gate that lacks samples has left, and where the others are."""
        late = self._late(cell) if test.gate.metric in LATENCY else 0
        test.lacks = bool(late or test.n)  # more of what the endpoint never did would not help
        if test.lacks:
            items = len(common_items(self.base, self.new, cell))
            test.problem = unmeasured(test.problem, test.n, items, late)
        return test

    def _late(self, cell: CellPair) -> int:
        """Count the trials that this machine spoilt: what it lost is not the endpoint's doing."""
        sides = ((self.base, cell.base), (self.new, cell.new))
        return sum(side.left_out(names)["latency_invalid"] for side, names in sides)

    def _of_missing(self) -> Iterator[_Test]:
        for gate in self.gates or ():
            for side, cell in self.missing:
                if _is_about(gate, cell[0], cell):
                    yield _Test(gate, "/".join(cell), problem=f"the {side} run has no such cell")

    def _without_cell(self, tests: Sequence[_Test]) -> list[_Test]:
        met = {id(test.gate) for test in tests}
        return [
            _Test(gate, "", problem="no cell that it is about is in either run")
            for gate in self.gates or ()
            if id(gate) not in met
        ]

    def _result(self, test: _Test, adjusted: float | None) -> Json:
        row: Json = {
            "gate": _words(test.gate),
            "metric": test.gate.metric,
            "at": _at(test.gate),
            "cell": test.cell,
            "base": _rounded(test.base),
            "n": test.n,
            "difference": None if test.found is None else [_rounded(one) for one in test.found[:3]],
            "p": test.p,
            "p_holm": adjusted,
        }
        if test.problem or test.found is None or adjusted is None or test.base is None:
            applies = self.gates is not None or test.refused
            verdict = "failed" if applies else "not applicable"
            reason = test.problem if test.lacks else f"cannot be evaluated: {test.problem}"
            return row | {"verdict": verdict, "reason": reason}
        meant = definition(test.gate.metric)
        better = meant.better if meant and meant.better else "lower"
        said = outcome(test.found, adjusted, test.base, better, _floors(test.gate))
        if said == "regression":
            return row | {"verdict": "failed", "reason": f"a regression of {_amount(test)}"}
        unit = meant.unit if meant else ""
        open_to = doubt(test.found, test.base, better, _floors(test.gate), unit)
        return row | {"verdict": "passed", "reason": open_to}


def _test(gate: Gate, cell: CellPair, seed: int) -> _Test:
    test, name = _Test(gate, cell.name), gate.metric
    refused = cell.refused.get("latency" if name in LATENCY else "answers")
    if refused:
        test.problem, test.refused = refused[0], True
        return test
    meant = definition(name)
    if meant is None or meant.better is None:
        test.problem = f"neither way is known to be worse for {name}"
        return test
    pairs = cell.pairs.get(name)
    if pairs is None:
        test.problem, test.lacks = "no item has a value in both runs", True
        return test
    test.n = len(pairs.base)
    if pairs.cluster_count < LEAST_CLUSTERS:
        test.lacks = True
        test.problem = (
            f"{_counted(test.n, 'item')} from {_counted(pairs.cluster_count, 'source')}, and "
            f"{LEAST_CLUSTERS} sources are the least"
        )
        return test
    at = _at(gate)
    if at in _FRACTIONS:
        fraction = _FRACTIONS[at]
        old, now = cell.samples[name]
        test.found = percentile_difference(old, now, fraction, seed=seed)
        if test.found is None:
            test.lacks = True
            test.problem = f"{at} needs {LEAST_TRIALS[fraction]} trials on each side"
            return test
        test.base = float(np.quantile(old.values[np.isin(old.items, now.items)], fraction))
    elif at == "p50":
        test.found, test.base = cell.medians[name], float(np.median(pairs.base))
    else:
        test.found, test.base = cell.means[name], float(np.mean(pairs.base))
    exact = mcnemar(pairs) if meant.kind == "rate" else None
    test.p = exact.p if exact else test.found.p
    if test.p is None:
        test.problem, test.lacks = "the difference has no interval", True
    return test


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _at(gate: Gate) -> str:
    return (gate.at or "p50") if gate.metric in LATENCY else "mean"


def _is_about(gate: Gate, base_endpoint: str, cell: Cell) -> bool:
    return (
        gate.endpoint in (None, base_endpoint, cell[0])
        and gate.suite in (None, cell[1])
        and gate.condition in (None, cell[2])
    )


def _floors(gate: Gate) -> Floors:
    told = gate.regression
    assert told is not None  # noqa: S101 - only regression gates come here
    return Floors(told.relative or 0.0, told.absolute_ms or told.absolute or 0.0)


def _words(gate: Gate) -> str:
    floors = _floors(gate)
    unit = " ms" if gate.regression and gate.regression.absolute_ms is not None else ""
    more = [f"{floors.relative:.3g} of the base"] if floors.relative else []
    more += [f"{floors.absolute:g}{unit}"] if floors.absolute else []
    return f"{named(gate)} over {' and '.join(more) or 'nothing'}"


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 6)


def _amount(test: _Test) -> str:
    meant = definition(test.gate.metric)
    assert test.found is not None  # noqa: S101 - a verdict stands on a difference
    low, high = test.found.low, test.found.high
    unit = f" {meant.unit}" if meant and meant.unit == "ms" else ""
    return f"{test.found.value:+.4g}{unit} [{low:+.4g} to {high:+.4g}]"
