"""Tables of the benchmarks' papers, as they were printed, and what is known to be wrong in them."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.catalog import nearest

FOLDER = Path(__file__).parent / "published"
CLEAN = "clean"

_ABOUT_ROW = ("model", "size", "rank")
"""Columns of a file that hold no figures."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, and which of our figures stands under it.

    Attributes:
        name: As printed.
        path: The group, outermost first; None where we have no such figure. In a table that
            stands beside one of our own analyses: the head of its column there.
        condition: The condition that it is of.
    """

    name: str
    path: tuple[str, ...] | None
    condition: str = CLEAN


@dataclass(frozen=True, slots=True)
class System:
    """One row of a table.

    Attributes:
        name: Of the system.
        size: As printed; empty where none is.
        figures: As printed, one for each column; empty where there is none.
        notes: What is known to be wrong, by the name of the column.
    """

    name: str
    size: str
    figures: tuple[str, ...]
    notes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        title: What it shows.
        file: Name of its file.
        metric: Ours that stands beside it, without a judge's name.
        unit: `score`, `percent` or `fraction`.
        digits: Behind the point, as printed.
        judge: Who rated; empty where nobody did.
        order: `both`, `reference-first` or `response-first`, for ratings.
        analysis: Name of the table in the suite's own analysis that holds our figures; empty where
            its groups do.
        columns: Its columns.
        systems: Its rows.
    """

    title: str
    file: str
    metric: str
    unit: str
    digits: int
    judge: str
    order: str
    analysis: str
    columns: tuple[Column, ...]
    systems: tuple[System, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """What one benchmark has published.

    Attributes:
        name: As `--published` has it.
        suite: Kind of the suite whose figures stand beside.
        about: In one line.
        source: Where it was published.
        judge: Model that rated; empty where rules decide.
        items: Questions that were asked; None where that is not told exactly.
        options: Options of the suite that its figures are of, by name.
        defaults: What a suite has that does not name them.
        caveats: Where its figures are made otherwise than ours, one sentence each.
        tables: Its tables.
    """

    name: str
    suite: str
    about: str
    source: str
    judge: str
    items: int | None
    options: Mapping[str, str | int]
    defaults: Mapping[str, str | int]
    caveats: tuple[str, ...]
    tables: tuple[Table, ...]


def names() -> tuple[str, ...]:
    """Return the names that there are."""
    return tuple(_catalog())


def published(name: str) -> Published:
    """Return what a benchmark has published.

    Raises:
        UserError: If the name is unknown.
    """
    known = _catalog()
    if name not in known:
        raise UserError("--published", f"unknown name {name!r}", nearest(name, tuple(known)))
    row = known[name]
    judge = str(row.get("judge", ""))
    return Published(
        name,
        str(row["suite"]),
        str(row["about"]),
        str(row["source"]),
        judge,
        row.get("items"),
        row.get("options", {}),
        row.get("defaults", {}),
        tuple(row.get("caveats", ())),
        tuple(_table(one, judge) for one in row["tables"]),
    )


@cache
def _catalog() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((FOLDER / "catalog.toml").read_text(encoding="utf-8"))


def _table(row: Mapping[str, Any], judge: str) -> Table:
    with (FOLDER / row["file"]).open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    across = row.get("systems") == "columns"
    columns = tuple(_columns_of_rows(row, lines) if across else _columns(row, lines))
    by_judge = str(row["metric"]).startswith("judge_")
    return Table(
        title=row["title"],
        file=row["file"],
        metric=row["metric"],
        unit=row.get("unit", "score"),
        digits=row.get("digits", 1 if row.get("unit") == "percent" else 2),
        judge=row.get("judge", judge) if by_judge else "",
        order=row.get("order", "both") if by_judge else "",
        analysis=row.get("analysis", ""),
        columns=columns,
        systems=tuple(_systems_of_columns(row, lines) if across else _systems(row, lines, columns)),
    )


def _columns(row: Mapping[str, Any], lines: Sequence[Mapping[str, str]]) -> Iterator[Column]:
    named = row.get("columns")
    if named is not None:
        yield from (Column(name, _path(path)) for name, path in named.items())
        return
    for name in lines[0]:
        if name not in _ABOUT_ROW:
            yield Column(name, (*_path(row["within"]), name))


def _path(text: str) -> tuple[str, ...]:
    return tuple(text.split("/")) if text else ()


def _systems(
    row: Mapping[str, Any], lines: Sequence[Mapping[str, str]], columns: Sequence[Column]
) -> Iterator[System]:
    for line in lines:
        figures = tuple(line[column.name] for column in columns)
        if any(figures):
            size = line.get("size", "").strip("-")
            yield System(line["model"], size, figures, _notes(row, line["model"], size, columns))


def _notes(
    row: Mapping[str, Any], model: str, size: str, columns: Sequence[Column]
) -> Mapping[str, str]:
    system = f"{model} {size}".strip()
    return {
        name: mark["note"]
        for mark in row.get("marks", ())
        if mark["system"] == system
        for name in mark.get("columns", [column.name for column in columns])
    }


def _columns_of_rows(
    row: Mapping[str, Any], lines: Sequence[Mapping[str, str]]
) -> Iterator[Column]:
    """Yield the columns of a table whose file has a system in each column."""
    conditions = row.get("row_condition")
    for line in lines:
        name = line[row["row_name"]]
        if conditions is None:
            yield Column(name, tuple(part.format(**line) for part in row["row_path"].split("/")))
        else:
            condition = conditions.get(name)
            yield Column(name, () if condition else None, condition or "")


def _systems_of_columns(
    row: Mapping[str, Any], lines: Sequence[Mapping[str, str]]
) -> Iterator[System]:
    for name in lines[0]:
        if name not in {row["row_name"], "group"}:
            yield System(name, "", tuple(line[name] for line in lines), {})
