"""Figures of groups drawn together by a benchmark's rules, as the tables of its paper are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from voxmeter.client import figures
from voxmeter.client.aggregates import LOWEST
from voxmeter.client.escape import markdown
from voxmeter.client.markdown_table import table

Row = Mapping[str, Any]
Path = tuple[str, ...]

_RULES = {
    "micro": "every item counts alike",
    "macro": "every group counts alike",
    "weights": "groups count by declared weights",
}


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the section on groups by the rules of their benchmark; nothing where none has any.

    Args:
        summary: Content of `summary.json`.
    """
    cells = [one for one in summary["cells"] if one.get("tables") and one.get("control") is None]
    heads = [
        (cell["suite"], cell["condition"], row["metric"])
        for cell in cells
        for row in cell["tables"]["figures"]
    ]
    if heads:
        yield ""
        yield "## Tables by each benchmark's own rules"
    for suite, condition, metric in dict.fromkeys(heads):
        chosen = [one for one in cells if (one["suite"], one["condition"]) == (suite, condition)]
        found = [(cell, _by_path(cell, metric)) for cell in chosen]
        yield from _of_metric(suite, condition, metric, [one for one in found if one[1]])


def _by_path(cell: Row, metric: str) -> dict[Path, Row]:
    rows = cell["tables"]["figures"]
    return {tuple(row["path"]): row for row in rows if row["metric"] == metric}


def _of_metric(
    suite: str, condition: str, metric: str, cells: Sequence[tuple[Row, Mapping[Path, Row]]]
) -> Iterator[str]:
    paths = list(dict.fromkeys(path for _, rows in cells for path in rows))
    name = f"{suite} ({condition}): {metric}"
    for path in paths:
        parts = [one for one in paths if len(one) == len(path) + 1 and one[: len(path)] == path]
        if not parts or (not path and len(parts) == 1):
            continue
        yield ""
        yield f"### {markdown(name, 200)}, {markdown(' / '.join(path)) if path else 'overall'}"
        yield ""
        own = next(rows[path] for _, rows in cells if path in rows)
        yield f"{_sentence(path, own)}{_meaning(metric)}"
        heads = ["endpoint", "size", *(markdown(one[-1]) for one in parts)]
        heads += [markdown(path[-1]) if path else "overall", "n"]
        yield from table(heads, list(_rows(cells, [*parts, path], metric)))
        yield from _otherwise(path, cells, metric)


def _rows(
    cells: Sequence[tuple[Row, Mapping[Path, Row]]], paths: Sequence[Path], metric: str
) -> Iterator[list[str]]:
    """Yield a row an endpoint: the figures of some groups, and how many items the last one has."""
    for cell, rows in cells:
        shown = [shown_figure(rows.get(one), metric) for one in paths]
        count = str(rows[paths[-1]]["items"]) if paths[-1] in rows else "0"
        yield [markdown(cell["endpoint"]), markdown(cell["size"]) or "-", *shown, count]


def _sentence(path: Path, own: Row) -> str:
    of = markdown(path[-1]) if path else "The overall figure"
    return f"{of}: {_RULES[own['rule']]}."


def _meaning(metric: str) -> str:
    if metric.endswith(f":{LOWEST}"):
        return " Each failure of the endpoint has the lowest rating here."
    return f" {figures.meaning(metric).text}"


def _otherwise(
    path: Path, cells: Sequence[tuple[Row, Mapping[Path, Row]]], metric: str
) -> Iterator[str]:
    """Yield what other rules or another rounding would have printed, where that is not the same."""
    told = []
    for cell, rows in cells:
        row = rows.get(path)
        if row is None:
            continue
        other = {
            "every item alike": row["micro"],
            "every group alike": row["macro"],
            "from unrounded figures": row["from_raw"],
            "from rounded figures": row["from_rounded"],
        }
        apart = [
            f"{how} {text}" for how, text in other.items() if text not in {None, row["printed"]}
        ]
        if row["groups"] < row["of"]:
            apart.append(f"only {row['groups']} of {row['of']} groups have a figure")
        if apart:
            told.append(
                f"- {markdown(cell['endpoint'])} ({_text(row, metric)}): {', '.join(apart)}"
            )
    if told:
        yield ""
        yield from told


def shown_figure(row: Row | None, metric: str) -> str:
    """Return a figure with its interval: `6.45 [6.1-6.8]`; `-` where there is none."""
    if row is None or row["value"] is None:
        return "-"
    scale = 100 if _is_rate(metric) else 1
    ends = [None if row[end] is None else f"{row[end] * scale:.3g}" for end in ("low", "high")]
    if ends == [None, None]:
        return _text(row, metric)
    joint = " to " if any((end or "").startswith("-") for end in ends) else "-"
    return f"{_text(row, metric)} [{joint.join(end or '?' for end in ends)}]"


def _text(row: Row, metric: str) -> str:
    return f"{row['printed']}%" if _is_rate(metric) else str(row["printed"])


def _is_rate(metric: str) -> bool:
    return figures.meaning(metric).kind == "rate"
