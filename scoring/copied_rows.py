"""Finds rows of result tables that were copied from one system to another.

A row of many figures that two different systems share to the last digit is a slip of the hand far
more often than chance: two published tables of ADU-Bench hold such rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

LEAST_FIGURES = 4
"""Rows of fewer figures may agree by chance."""


class TableRow(NamedTuple):
    """One row of a table.

    Attributes:
        table: Which one.
        columns: What its columns mean; only rows of the same columns are compared.
        system: Whose figures they are, size included.
        figures: As printed.
    """

    table: str
    columns: tuple[str, ...]
    system: str
    figures: tuple[str, ...]


class Copied(NamedTuple):
    """Two rows that are the same though their systems are not."""

    one: TableRow
    other: TableRow


def copied_rows(rows: Iterable[TableRow]) -> list[Copied]:
    """Return every pair of rows of different systems that have the same figures.

    A row that says one figure in every column (a system that scores the lowest everywhere) is
    left out, and so is one with fewer than `LEAST_FIGURES`.

    Args:
        rows: Of any number of tables.
    """
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[TableRow]] = defaultdict(list)
    for row in rows:
        if len(row.figures) >= LEAST_FIGURES and len(set(row.figures)) > 1:
            alike[row.columns, row.figures].append(row)
    return [
        Copied(one, other)
        for same in alike.values()
        for place, one in enumerate(same)
        for other in same[place + 1 :]
        if one.system != other.system
    ]
