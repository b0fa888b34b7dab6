"""Compares two runs, or two endpoints of one: paired differences, refusals, gates, a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from voxmeter.client import compare_gates
from voxmeter.client.compare_cells import CellPair, controls, endpoints, refusals
from voxmeter.client.compare_verdict import said
from voxmeter.client.compared_run import Cell, Item, Side, read_side
from voxmeter.client.gates import of_answers
from voxmeter.client.planned import endpoint_config
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.definitions import LATENCY, definition
from voxmeter.scoring.paired import (
    Difference,
    Samples,
    mcnemar,
    mean_difference,
    median_difference,
    paired,
)

if TYPE_CHECKING:
    from voxmeter.client.bench import Gate

SCHEMA = 1

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of a comparison.

    Attributes:
        document: What `--json` writes; `docs/comparing.md` names its fields.
    """

    document: Mapping[str, Any] = field(repr=False)

    @property
    def status(self) -> int:
        """What the command ends with: 2 not comparable, 1 a regression, 0 neither."""
        return int(self.document["status"])

    @property
    def verdict(self) -> str:
        """`no regression`, `regression`, `gate failed` (one without a figure), `not comparable`."""
        return str(self.document["verdict"])

    @property
    def failed(self) -> tuple[str, ...]:
        """The gates that failed, each in words with its reason."""
        return tuple(
            f"{gate['gate']} ({gate['cell']}): {gate['reason']}"
            for gate in self.document["gates"]
            if gate["verdict"] == "failed"
        )


def compare_runs(
    base: str | Path,
    new: str | Path,
    *,
    mapped: Mapping[str, str] | None = None,
    bench: str | Path | None = None,
    force: bool = False,
) -> Comparison:
    """Compare a new run with a base run, item by item.

    Args:
        base: Run folder of the base.
        new: Run folder of the new run; the same one, with `mapped`, compares its endpoints.
        mapped: Endpoints with another name in the new run, by their name in the base.
        bench: A bench.toml whose regression gates are judged; None takes those of the new run's
            own configuration, and where it has none the defaults of `docs/comparing.md`.
        force: Whether to compare what is otherwise refused; what it was stays in the warnings.

    Raises:
        UserError: If the runs cannot be compared at all. What can be compared only in part is in
            the document instead, with status 2 where a gate was about it.
    """
    base_path, new_path = Path(base), Path(new)
    mapped = dict(mapped or {})
    with ExitStack() as stack:
        folders = [stack.enter_context(RunFolder.open(path)) for path in (base_path, new_path)]
        same = base_path.resolve() == new_path.resolve()
        if same and (not mapped or any(old == now for old, now in mapped.items())):
            raise UserError(
                str(new_path), "is compared with itself", "give another run, or --map OLD=NEW"
            )
        gates = compare_gates.of_run(folders[1].run, str(new_path), bench)
        warnings = _schemas(folders[0].run, folders[1].run, force=force)
        name = folders[0].run.get("run")
        if not same and name and name == folders[1].run.get("run"):
            warnings.append(f"both folders are copies of one run ({name})")
        sides = [read_side(folders[0])]
        sides.append(sides[0] if same else read_side(folders[1]))
    return _compared(sides[0], sides[1], mapped, gates, warnings, force=force)


def _schemas(base: Mapping[str, Any], new: Mapping[str, Any], *, force: bool) -> list[str]:
    if base["schema"] == new["schema"]:
        return []
    found = f"schema {base['schema']} against {new['schema']}"
    if not force:
        raise UserError(
            "compare", f"the runs have {found}", "run both with one version, or --force"
        )
    return [f"compared by force: {found}"]


def _compared(
    base: Side,
    new: Side,
    mapped: Mapping[str, str],
    gates: Sequence[Gate] | None,
    warnings: list[str],
    *,
    force: bool,
) -> Comparison:
    for side in (base, new):
        warnings += _unfinished(side, force=force)
    cells, missing = _cells(base, new, mapped, same=base is new)
    if not cells:
        raise UserError(
            "compare",
            f"{base.place} and {new.place} have no endpoint, suite and condition in common",
            "--map OLD=NEW pairs endpoints of different names",
        )
    warnings += _warnings(base, new, cells)
    named = {gate.endpoint for gate in gates or ()}
    judged = compare_gates.Judging(base, new, missing, gates)
    rows = []
    for cell in cells:
        refused = refusals(base, new, cell)
        if force:
            warnings += [f"compared by force: {cell.name}: {one}" for one in _all(refused)]
        else:
            cell.refused = refused
        alike = controls(base, new, cell)
        answers = not alike or bool(named & {cell.base[0], cell.new[0]})
        if alike == 1 and not answers:
            warnings.append(
                f"{cell.name}: a metronome is a control that answers every question alike; "
                "answers are not compared with its own"
            )
        _measure(base, new, cell, answers=answers)
        judged.take(cell)
        cell.samples.clear()
        rows.append(_row(base, new, cell))
    if not any(row["metrics"] for row in rows):
        reasons = [one for cell in cells for one in _all(cell.refused)]
        raise UserError(
            "compare",
            reasons[0] if reasons else "no item has a value in both runs",
            "compare runs of the same suites" if not reasons else "--force compares all the same",
        )
    results, not_comparable = judged.results()
    failed = [one for one in results if one["verdict"] == "failed"]
    worse = any(one["p_holm"] is not None for one in failed)
    status = 2 if not_comparable else int(bool(failed))
    verdict = _verdict(status, worse=worse)
    return Comparison(
        {
            "schema": SCHEMA,
            "base": _told(base),
            "new": _told(new),
            "verdict": verdict,
            "said": said(verdict, results),
            "status": status,
            "cells": rows,
            "missing": [
                {"in": side, "endpoint": cell[0], "suite": cell[1], "condition": cell[2]}
                for side, cell in missing
            ],
            "gates": results,
            "default_gates": gates is None,
            "warnings": list(dict.fromkeys(warnings)),
        }
    )


def _verdict(status: int, *, worse: bool) -> str:
    if status == 1:
        return "regression" if worse else "gate failed"
    return "not comparable" if status else "no regression"


def _told(side: Side) -> Json:
    return {
        "run": str(side.run.get("run") or Path(side.place).name),
        "schema": side.run["schema"],
        "voxmeter": side.run.get("voxmeter"),
        "host": side.host,
        "trials": len(side.columns.attempt),
    }


def _all(refused: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for what, reasons in refused.items():
        yield from (f"{what}: {reason}" for reason in reasons)


def _unfinished(side: Side, *, force: bool) -> list[str]:
    missing, planned = side.unfinished()
    if not missing:
        return []
    again = side.not_held()
    found = f"unfinished: {missing + again} of {planned} planned trials are to be asked again"
    found += f" ({again} could not be held, {missing} were not made)" if again else ""
    if not force:
        raise UserError(side.place, found, "voxmeter run --resume makes them up, or --force")
    return [f"compared by force: {side.place}: {found}"]


def _cells(
    base: Side, new: Side, mapped: Mapping[str, str], *, same: bool
) -> tuple[list[CellPair], list[tuple[str, Cell]]]:
    """Pair the cells of both runs; what one side lacks, with the side that lacks it."""
    known = {"base": base.columns.cells, "new": new.columns.cells}
    for side, names in (("base", mapped.keys()), ("new", mapped.values())):
        there = sorted({cell[0] for cell in known[side]})
        for name in names:
            if name not in there:
                shown = ", ".join(printable(one, 40) for one in there)
                found = f"the {side} run has no endpoint {printable(name, 40)!r}"
                raise UserError("--map", found, f"it has {shown}")
    targets = set(mapped.values())
    wanted: dict[Cell, Cell] = {}
    for cell in known["base"]:
        if cell[0] in mapped:
            wanted[cell] = (mapped[cell[0]], *cell[1:])
        elif not same and cell[0] not in targets:
            wanted[cell] = cell
    present = set(known["new"])
    pairs = [CellPair(old, cell) for old, cell in wanted.items() if cell in present]
    expected = set(wanted.values())
    lacking = [("new", cell) for cell in wanted.values() if cell not in present]
    # The new run's endpoint of a name that was mapped elsewhere is left alone, not missing.
    about = {cell for cell in present if cell[0] in targets or not (same or cell[0] in mapped)}
    surplus = [("base", cell) for cell in known["new"] if cell in about - expected]
    return pairs, lacking + surplus


def _warnings(base: Side, new: Side, cells: Sequence[CellPair]) -> Iterator[str]:
    if base.host and new.host and base.host != new.host:
        yield (
            f"the runs were made on different machines ({base.host} and {new.host}): their "
            "latencies differ by more than the endpoint"
        )
    for names in dict.fromkeys((cell.base[0], cell.new[0]) for cell in cells):
        kinds = [
            endpoint_config(side.run, name).get("kind")
            for side, name in zip((base, new), names, strict=True)
        ]
        if all(kinds) and kinds[0] != kinds[1]:
            yield f"{endpoints(*names)}: the endpoint kinds differ ({kinds[0]} and {kinds[1]})"


def _measure(base: Side, new: Side, cell: CellPair, *, answers: bool) -> None:
    codes = _Codes()
    old, now = base.samples(cell.base), new.samples(cell.new)
    for name in old:
        if name not in now or cell.refused.get("latency" if name in LATENCY else "answers"):
            continue
        if not answers and of_answers(name):
            continue
        samples = codes.samples(base, old[name]), codes.samples(new, now[name])
        pairs = paired(*samples)
        mean = mean_difference(pairs, seed=new.seed)
        median = median_difference(pairs, seed=new.seed)
        if mean is not None and median is not None:
            cell.pairs[name], cell.means[name], cell.medians[name] = pairs, mean, median
            cell.samples[name] = samples


@dataclass(slots=True)
class _Codes:
    """Items and clusters of both sides under common numbers."""

    items: dict[Item, int] = field(default_factory=dict)
    clusters: dict[tuple[str, str], int] = field(default_factory=dict)
    _tables: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def samples(self, side: Side, found: tuple[Any, Any]) -> Samples:
        """Return a metric's trials with the common numbers of their items and clusters."""
        if id(side) not in self._tables:
            items = [self.items.setdefault(one, len(self.items)) for one in side.items]
            sources = [(one[0], side.sources.get(one, one[1])) for one in side.items]
            clusters = [self.clusters.setdefault(one, len(self.clusters)) for one in sources]
            self._tables[id(side)] = np.array(items, np.int64), np.array(clusters, np.int64)
        items, clusters = self._tables[id(side)]
        rows, values = found
        codes = side.columns.item[rows]
        return Samples(values, items[codes], clusters[codes])


def _row(base: Side, new: Side, cell: CellPair) -> Json:
    return {
        "base_endpoint": cell.base[0],
        "endpoint": cell.new[0],
        "suite": cell.new[1],
        "condition": cell.new[2],
        "latency_kind": "+".join(sorted(new.kinds(cell.new))) or None,
        "left_out": {"base": base.left_out(cell.base), "new": new.left_out(cell.new)},
        "refused": cell.refused,
        "metrics": {name: _figure(cell, name) for name in cell.pairs},
    }


def _figure(cell: CellPair, name: str) -> Json:
    pairs, meant = cell.pairs[name], definition(name)
    base, new = float(np.mean(pairs.base)), float(np.mean(pairs.new))
    figure: Json = {
        "n": len(pairs.base),
        "clusters": pairs.cluster_count,
        "left_out": {"base_only": pairs.base_only, "new_only": pairs.new_only},
        "base": round(base, 6),
        "new": round(new, 6),
        "mean": told(cell.means[name]),
        "median": told(cell.medians[name]),
        "ratio": round(new / base, 6) if base > 0 else None,
        "unit": meant.unit if meant else "score",
        "better": meant.better if meant else None,
    }
    if meant is not None and meant.kind == "rate":
        exact = mcnemar(pairs)
        figure["mcnemar"] = None if exact is None else exact._asdict()
    return figure


def told(found: Difference) -> Json:
    """Return a difference as it stands in the document."""
    return {
        name: None if one is None else float(f"{one:.6g}") if name == "p" else round(one, 6)
        for name, one in found._asdict().items()
    }
