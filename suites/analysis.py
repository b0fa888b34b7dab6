"""What a benchmark's paper tells beside one accuracy: tables drawn from how items were answered.

A suite kind that has such tables names a function in `suites/catalog.py`; it gets the answers of
one endpoint and returns tables. It reads no file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from voxmeter.scoring.stats import Floats, Indices, Interval


@dataclass(frozen=True, eq=False, slots=True)
class Measured:
    """What items have under one metric, each item once; items without any value are not in it.

    Attributes:
        items: Shape (n,), integers naming items.
        clusters: Shape (n,), integers naming their clusters.
        groups: Where each is reported, outermost first.
        values: Shape (n,), mean of each item's trials, in the metric's unit.
    """

    items: Indices
    clusters: Indices
    groups: Sequence[tuple[str, ...]]
    values: Floats

    def of(self, wanted: Callable[[tuple[str, ...]], bool]) -> Measured:
        """Return the items whose groups are wanted."""
        chosen = [number for number, groups in enumerate(self.groups) if wanted(groups)]
        return Measured(
            self.items[chosen],
            self.clusters[chosen],
            [self.groups[number] for number in chosen],
            self.values[chosen],
        )


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """How the items of a suite were answered in one condition, each item once.

    Attributes:
        items: Shape (n,), integers naming items; the same in every condition.
        clusters: Shape (n,), integers naming their clusters, likewise.
        groups: Where each is reported, outermost first.
        accuracy: Shape (n,), share of each item's counted trials that were right; a trial without
            a clear answer was not.
        chance: Shape (n,), what guessing earns.
        measured: What the suite's items have under every other metric but time, by its name; a
            judge's `judge_accuracy` counts failures of the endpoint as wrong.
    """

    items: Indices
    clusters: Indices
    groups: Sequence[tuple[str, ...]]
    accuracy: Floats
    chance: Floats
    measured: Mapping[str, Measured] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of items."""
        return len(self.items)

    def of(self, wanted: Callable[[tuple[str, ...]], bool]) -> Answers:
        """Return the answers whose groups are wanted."""
        chosen = [number for number, groups in enumerate(self.groups) if wanted(groups)]
        return Answers(
            self.items[chosen],
            self.clusters[chosen],
            [self.groups[number] for number in chosen],
            self.accuracy[chosen],
            self.chance[chosen],
            {name: one.of(wanted) for name, one in self.measured.items()},
        )


Cell = str | float | int | Interval | None
"""One figure of a table; None where there is none."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a benchmark's analysis.

    Attributes:
        name: Its name in `summary.json`.
        title: What it shows, for people.
        heads: Names of the columns.
        rows: As many figures each.
        note: How it is to be read.
        unit: Of its figures: `fraction`; empty where they are of several kinds.
    """

    name: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    unit: str = ""


Analysis = Callable[[Mapping[str, Answers], Mapping[str, object], int], Sequence[Table]]
"""Returns the tables of one endpoint: from its answers by condition, the suite's own options and
the seed of intervals."""
