"""A benchmark's own tables as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voxmeter.client import figures
from voxmeter.client.escape import markdown


@dataclass(frozen=True, slots=True)
class Shown:
    """One table, ready for Markdown."""

    heading: str
    note: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(summary: Mapping[str, Any]) -> Iterator[Shown]:
    """Yield every table that the benchmarks of a run have of their own; a control has none.

    Args:
        summary: Content of `summary.json`.
    """
    controls = {cell["endpoint"] for cell in summary["cells"] if cell.get("control") is not None}
    found = [one for one in summary.get("analyses") or [] if one["endpoint"] not in controls]
    several = len({one["endpoint"] for one in found}) > 1
    for one in found:
        of = f"{one['suite']}, {one['endpoint']}" if several else str(one["suite"])
        for table in one["tables"]:
            yield Shown(
                markdown(f"{of}: {table['title']}"),
                markdown(table["note"], 600),
                [markdown(head) for head in table["heads"]],
                [[_shown(cell, table["unit"]) for cell in row] for row in table["rows"]],
            )


def _shown(cell: object, unit: str) -> str:
    match cell:
        case None:
            return "-"
        case dict():
            return figures.rate(cell) if unit == "fraction" else figures.number(cell)
        case float():
            return f"{cell:.1%}" if unit == "fraction" else f"{cell:g}"
        case _:
            return markdown(str(cell))
