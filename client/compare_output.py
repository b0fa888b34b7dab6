"""A comparison in the forms that people and machines read: a table, Markdown, JUnit, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any
from xml.etree import ElementTree as ET

from voxmeter.client.compare_cells import endpoints
from voxmeter.client.escape import markdown, plain
from voxmeter.client.figures import meaning
from voxmeter.client.markdown_table import table
from voxmeter.client.terminal import printable
from voxmeter.scoring.definitions import ANSWERS, ERRORS, JUDGES

Json = Mapping[str, Any]

_SHOWN = (
    *("first_audible_ms", "first_packet_ms", "stream_first_audible_ms", "first_text_ms"),
    *("endpointing_ms", "reply_ms", "stall_ms", "yield_ms"),
    *ERRORS,
    *ANSWERS,
)
"""Metrics of the tables, in their order; the JSON has all."""

_MOST_ROWS, _NAME, _WIDEST = 100, 60, 1000
_LARGEST = 60_000
"""Characters of the Markdown: a comment on a pull request may have 65,536."""

_HEADS = ("cell", "metric", "base", "new", "median of differences", "mean of differences", "n")


def show(document: Json, stream: IO[str] | None = None) -> None:
    """Print the comparison: figures, warnings, gates and the verdict.

    Args:
        document: Of `Comparison`.
        stream: Where to; standard output by default.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream or sys.stdout, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDEST
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, head in enumerate(_HEADS):
        shown.add_column(head, justify="left" if index < 2 else "right", overflow="fold")
    for row in _rows(document):
        shown.add_row(*(printable(one) for one in row))
    console.print(shown)
    for line in _lines(document):
        console.print(printable(line), soft_wrap=True)


def json_text(document: Json) -> str:
    """Return the whole comparison as JSON."""
    return json.dumps(document, allow_nan=False, indent=1) + "\n"


def markdown_text(document: Json) -> str:
    """Return the comparison as a comment on a pull request, never longer than one may be."""
    rows = [f"| {' | '.join(markdown(one, _NAME) for one in row)} |" for row in _rows(document)]
    gates = [_gate_row(gate) for gate in _by_verdict(document["gates"])]
    notes = [f"- {markdown(line, 400)}" for line in _notes(document)]
    head = [f"**voxmeter: {markdown(document['said'], 400)}** {_sides(document)}"]
    room = _LARGEST - len(head[0])
    lines = head
    for title, body in (
        (("gate", "cell", "difference", "verdict"), gates),
        (_HEADS, rows),
        ((), notes),
    ):
        part = _fitting(title, body, room)
        room -= sum(len(line) + 1 for line in part)
        lines += part
    return "\n".join(lines) + "\n"


def junit_text(document: Json) -> str:
    """Return the gates as a JUnit file: one test case for each gate in each cell."""
    gates = document["gates"]
    failed = [gate for gate in gates if gate["verdict"] == "failed"]
    skipped = [gate for gate in gates if gate["verdict"] == "not applicable"]
    counts = {"tests": len(gates), "failures": len(failed), "skipped": len(skipped)}
    numbers = {name: str(count) for name, count in counts.items()} | {"errors": "0"}
    root = ET.Element("testsuites", {"name": "voxmeter compare", **numbers})
    suite = ET.SubElement(root, "testsuite", {"name": "voxmeter compare", **numbers})
    for gate in gates:
        names = {"classname": _xml(gate["cell"] or "all"), "name": _xml(gate["gate"])}
        case = ET.SubElement(suite, "testcase", names)
        if gate["verdict"] == "passed":
            if gate["reason"]:
                ET.SubElement(case, "system-out").text = _xml(gate["reason"])
            continue
        tag = "failure" if gate["verdict"] == "failed" else "skipped"
        ET.SubElement(case, tag, {"message": _xml(gate["reason"])})
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _xml(text: str) -> str:
    """Return text without what XML has no place for; the writer escapes the rest."""
    return "".join(one for one in plain(text) if ord(one) & 0xFFFE != 0xFFFE)


def _rows(document: Json) -> Iterator[tuple[str, ...]]:
    """One row for each cell and metric of the tables, as many as anyone reads."""
    rows = [
        (_cell(cell), name, cell["metrics"][name])
        for cell in document["cells"]
        for name in shown_metrics(cell["metrics"])
    ]
    for cell, name, figure in rows[:_MOST_ROWS]:
        yield (
            cell,
            name,
            _value(name, figure["base"]),
            _value(name, figure["new"]),
            _difference(name, figure["median"]),
            _difference(name, figure["mean"]) + _ratio(figure),
            str(figure["n"]),
        )


def shown_metrics(metrics: Json) -> list[str]:
    """Return which metrics of a cell are worth a row, the most telling first."""
    judged = [name for name in metrics if name.partition(":")[0] in JUDGES]
    return [name for name in (*_SHOWN, *judged) if name in metrics]


def _cell(cell: Json) -> str:
    return "/".join(
        (endpoints(cell["base_endpoint"], cell["endpoint"]), cell["suite"], cell["condition"])
    )


def _value(name: str, value: float) -> str:
    unit = meaning(name).unit
    if unit == "fraction":
        return f"{value:.1%}"
    if name in ERRORS:
        return f"{value:.2f} ms"
    return f"{value:.0f} ms" if unit == "ms" else f"{value:.3g}"


def _difference(name: str, found: Json) -> str:
    unit = meaning(name).unit
    scale, form = (100, "+.1f") if unit == "fraction" else (1, "+.0f" if unit == "ms" else "+.3g")
    form = "+.2f" if name in ERRORS else form
    value = f"{found['value'] * scale:{form}}"
    if found["low"] is None:
        return f"{value} [no interval]"
    return f"{value} [{found['low'] * scale:{form}} to {found['high'] * scale:{form}}]"


def _ratio(figure: Json) -> str:
    return "" if figure["ratio"] is None else f" x{figure['ratio']:.2f}"


def _lines(document: Json) -> Iterator[str]:
    yield ""
    yield (
        "differences are new less base, item by item, with 95 % intervals; of shares in "
        "percentage points; docs/scoring.md and docs/metrics.md say what each metric is"
    )
    yield from _notes(document)
    for gate in document["gates"]:
        why = f": {gate['reason']}" if gate["reason"] else ""
        yield f"gate {gate['verdict']}: {gate['gate']} ({gate['cell']}){why}"
    yield f"verdict: {document['said']}"


def _notes(document: Json) -> Iterator[str]:
    for cell in document["cells"]:
        for what, reasons in cell["refused"].items():
            yield f"not compared: {what} of {_cell(cell)}: {'; '.join(reasons)}"
    for cell in document["missing"]:
        names = "/".join((cell["endpoint"], cell["suite"], cell["condition"]))
        yield f"warning: the {cell['in']} run has no {names}"
    yield from (f"warning: {one}" for one in document["warnings"])
    out = _left_out(document["cells"])
    if out:
        yield f"left out: {out}"
    hidden = sum(len(shown_metrics(cell["metrics"])) for cell in document["cells"]) - _MOST_ROWS
    if hidden > 0:
        yield f"{hidden} more rows are in the JSON"


def _left_out(cells: Sequence[Json]) -> str:
    """Say how many trials and items are in no latency."""
    words = []
    for what, text in (
        ("warmup", "warm-up turns"),
        ("latency_invalid", "trials that this machine made late"),
    ):
        counts = [sum(cell["left_out"][side][what] for cell in cells) for side in ("base", "new")]
        words += [f"{counts[0]} and {counts[1]} {text}"] if any(counts) else []
    one_sided = [0, 0]
    for cell in cells:
        for name in ("first_audible_ms", "accuracy"):
            if name in cell["metrics"]:
                left = cell["metrics"][name]["left_out"]
                one_sided = [one_sided[0] + left["base_only"], one_sided[1] + left["new_only"]]
                break
    words += (
        [f"{one_sided[0]} and {one_sided[1]} items on one side alone"] if any(one_sided) else []
    )
    return "; ".join(words)


def _sides(document: Json) -> str:
    base, new = (markdown(document[side]["run"], 80) for side in ("base", "new"))
    return f"(base {base}, new {new})"


def _by_verdict(gates: Sequence[Json]) -> list[Json]:
    order = {"failed": 0, "not applicable": 1, "passed": 2}
    return sorted(gates, key=lambda gate: order[gate["verdict"]])


def _gate_row(gate: Json) -> str:
    found = gate["difference"]
    difference = "-"
    if found is not None:
        ends = ["?" if one is None else f"{one:+.4g}" for one in found]
        difference = f"{ends[0]} [{ends[1]} to {ends[2]}]"
    verdict = gate["verdict"] + (f": {gate['reason']}" if gate["reason"] else "")
    cells = (gate["gate"], gate["cell"], difference, verdict)
    return f"| {' | '.join(markdown(one, 200) for one in cells)} |"


def _fitting(heads: Sequence[str], body: Sequence[str], room: int) -> list[str]:
    """Return a table or list with as many lines as there is room for, and how many are not."""
    if not body:
        return []
    lines = list(table(heads, ())) if heads else [""]
    left = room - sum(map(len, lines)) - 200
    for number, line in enumerate(body):
        left -= len(line) + 1
        if left < 0:
            lines += ["", f"{len(body) - number} more are in the JSON."]
            break
        lines.append(line)
    return lines
