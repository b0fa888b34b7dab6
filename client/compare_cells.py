"""A cell of two runs: its paired figures, and why some of them may not be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from voxmeter.client.compared_run import Cell, Item, Side
from voxmeter.client.planned import expected_latency
from voxmeter.client.terminal import printable
from voxmeter.scoring.definitions import LATENCY, is_judged
from voxmeter.scoring.paired import Difference, Pairs, Samples


@dataclass(slots=True)
class CellPair:
    """One cell on both sides.

    Attributes:
        base: Its names in the base run.
        new: Its names in the new run.
        refused: Why latency or answers may not be compared, by `latency` and `answers`.
        pairs: Of each metric that both sides have.
        means: Mean difference of each.
        medians: Median difference of each.
        samples: Trials of each on both sides, while the cell is being judged.
    """

    base: Cell
    new: Cell
    refused: dict[str, list[str]] = field(default_factory=dict)
    pairs: dict[str, Pairs] = field(default_factory=dict)
    means: dict[str, Difference] = field(default_factory=dict)
    medians: dict[str, Difference] = field(default_factory=dict)
    samples: dict[str, tuple[Samples, Samples]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`endpoint/suite/condition` of the new run; both endpoints where they differ."""
        return "/".join((endpoints(self.base[0], self.new[0]), *self.new[1:]))


def endpoints(base: str, new: str) -> str:
    """Return the name of a pair of endpoints."""
    return new if base == new else f"{base} -> {new}"


def controls(base: Side, new: Side, cell: CellPair) -> int:
    """Return how many of the two sides are a built-in metronome, whose answers are all alike."""
    sides = ((base, cell.base), (new, cell.new))
    return sum(expected_latency(side.run, names[0]) is not None for side, names in sides)


def common_items(base: Side, new: Side, cell: CellPair) -> set[Item]:
    """Return the items that both sides were asked."""
    return _items_of(base, cell.base) & _items_of(new, cell.new)


def refusals(base: Side, new: Side, cell: CellPair) -> dict[str, list[str]]:
    """Return why a cell's `latency` or its `answers` may not be compared; empty where they may."""
    found = {
        "latency": list(_latency_refusals(base, new, cell)),
        "answers": list(_answer_refusals(base, new, cell)),
    }
    return {what: reasons for what, reasons in found.items() if reasons}


def _latency_refusals(base: Side, new: Side, cell: CellPair) -> Iterator[str]:
    if base.pacing != new.pacing:
        yield f"pacing differs ({base.pacing} and {new.pacing})"
    kinds = [side.kinds(one) for side, one in ((base, cell.base), (new, cell.new))]
    if all(kinds) and (kinds[0] != kinds[1] or len(kinds[0]) > 1):
        words = [" + ".join(sorted(one)) for one in kinds]
        yield f"latency_kind differs ({words[0]} and {words[1]})"
    clips = base.clips.get(cell.base, {}), new.clips.get(cell.new, {})
    moved = [asked for asked, sha in clips[0].items() if clips[1].get(asked, sha) != sha]
    if moved:
        names = sorted({asked.item[1] for asked in moved})
        yield f"the clips of {_items(names)} differ"
    rules = _rules(base, new, cell, LATENCY)
    if rules:
        yield rules


def _answer_refusals(base: Side, new: Side, cell: CellPair) -> Iterator[str]:
    suite = cell.base[1]
    both = base.contents.keys() & new.contents.keys()
    asked = common_items(base, new, cell)
    changed = sorted(
        item[1]
        for item in both & asked
        if item[0] == suite and base.contents[item] != new.contents[item]
    )
    if changed:
        yield f"what is asked or right in {_items(changed)} differs"
    metrics = {name for one, name in (*base.versions, *new.versions) if name not in LATENCY}
    rules = _rules(base, new, cell, sorted(metrics))
    if rules:
        yield rules
    heard = base.recognisers.get(cell.base), new.recognisers.get(cell.new)
    if heard[0] and heard[1] and heard[0] != heard[1]:
        yield "the transcripts were made by different models or settings"
    yield from _judge_refusals(base, new, cell)


def _judge_refusals(base: Side, new: Side, cell: CellPair) -> Iterator[str]:
    judged = {
        name.partition(":")[2]
        for side, one in ((base, cell.base), (new, cell.new))
        for name in side.samples(one)
        if is_judged(name)
    }
    for judge in sorted(judged):
        tallies = base.columns.judged.get(judge), new.columns.judged.get(judge)
        if tallies[0] is None or tallies[1] is None:
            continue
        if tallies[0].models != tallies[1].models:
            yield f"judge {judge} is another model"
        if tallies[0].prompts != tallies[1].prompts:
            yield f"judge {judge} had another prompt"


def _rules(base: Side, new: Side, cell: CellPair, metrics: Iterable[str]) -> str | None:
    changed = []
    for name in metrics:
        versions = base.versions.get((cell.base, name)), new.versions.get((cell.new, name))
        if versions[0] and versions[1] and versions[0] != versions[1]:
            changed.append((name, *("+".join(sorted(one)) for one in versions if one)))
    if not changed:
        return None
    name, old, now = changed[0]
    more = f", and of {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"the rules of {name} differ ({old} and {now}){more}; voxmeter score RUN renews them"


def _items(names: Sequence[str]) -> str:
    first = printable(names[0], 60)
    return first if len(names) == 1 else f"{len(names)} items ({first}, ...)"


def _items_of(side: Side, cell: Cell) -> set[Item]:
    return {side.items[code] for code in np.unique(side.columns.item[side.rows(cell)]).tolist()}
