"""Published tables in `report.md`: the paper's rows as printed, the run's own in bold below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voxmeter.client.escape import markdown
from voxmeter.client.markdown_table import table

Row = Mapping[str, Any]


def lines(summary: Row) -> Iterator[str]:
    """Yield the section of published figures; nothing where none were asked for.

    Args:
        summary: Content of `summary.json`, with `published` where `beside` put it.
    """
    found = summary.get("published")
    if not found:
        return
    yield ""
    yield f"## Beside published figures: {markdown(found['about'])}"
    yield ""
    yield f"Source: {markdown(found['source'], 400)}. Rows in bold are of this run; `*` marks what "
    yield "does not follow from the paper's own figures."
    yield ""
    yield from (f"- **warning**: {markdown(text, 600)}" for text in found["warnings"])
    yield from (f"- {markdown(text, 600)}" for text in found["caveats"])
    if not found["tables"]:
        yield ""
        yield "This run has no figure that stands in one of its tables."
    for one in found["tables"]:
        yield from _table(one)


def _table(found: Row) -> Iterator[str]:
    judge = f", rated by {markdown(found['judge'])}" if found["judge"] else ""
    yield ""
    yield f"### {markdown(found['title'], 200)}{judge}"
    heads = ["system", "size", *(markdown(name) for name in found["columns"])]
    yield from table(heads, [*_printed_rows(found), *_own_rows(found)])
    yield from _notes(found)


def _printed_rows(found: Row) -> Iterator[list[str]]:
    for system in found["systems"]:
        figures = [
            f"{figure or '-'}{' *' if name in system['notes'] else ''}"
            for name, figure in zip(found["columns"], system["figures"], strict=True)
        ]
        yield [markdown(system["system"]), markdown(system["size"]) or "-", *figures]


def _own_rows(found: Row) -> Iterator[list[str]]:
    scale = 100 if found["unit"] == "percent" else 1
    for own in found["yours"]:
        name = own["endpoint"] + (f" ({own['judge']})" if own["judge"] else "")
        cells = [_own(figure, scale) for figure in own["figures"]]
        yield [f"**{markdown(name)}**", markdown(own["size"]) or "-", *cells]


def _own(figure: Row | None, scale: int) -> str:
    if figure is None:
        return "-"
    notes = [] if figure["items"] is None else [f"n {figure['items']}"]
    if figure.get("without"):
        notes.append(f"without {', '.join(figure['without'])}")
    count = f" ({markdown('; '.join(notes))})" if notes else ""
    if figure["low"] is None or figure["high"] is None:
        return f"**{figure['text']}**{count}"
    low, high = figure["low"] * scale, figure["high"] * scale
    return f"**{figure['text']}** [{low:.3g} to {high:.3g}]{count}"


def _notes(table: Row) -> Iterator[str]:
    notes: dict[tuple[str, str], list[str]] = {}
    for system in table["systems"]:
        whose = f"{system['system']} {system['size']}".strip()
        for column, note in system["notes"].items():
            notes.setdefault((whose, note), []).append(column)
    if notes:
        yield ""
    for (whose, note), columns in notes.items():
        of = "" if len(columns) == len(table["columns"]) else f", {', '.join(columns)}"
        yield f"- `*` {markdown(whose)}{markdown(of)}: {markdown(note, 400)}"
