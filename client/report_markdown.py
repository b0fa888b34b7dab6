"""`report.md`: figures with their definitions beside them, every trial, and how it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from voxmeter.client import (
    by_host,
    figures,
    report_analyses,
    report_instrument,
    report_judges,
    report_leaderboard,
    report_manifest,
    report_origins,
    report_published,
    report_tables,
)
from voxmeter.client.escape import markdown
from voxmeter.client.markdown_table import table
from voxmeter.client.table import cell_name
from voxmeter.client.trial_lines import TrialLine
from voxmeter.scoring.definitions import LATENCY

Summary = Mapping[str, Any]
Cells = Sequence[Mapping[str, Any]]

MOST_TRIALS = 300
"""Trials shown one by one; `--format csv` has them all."""

_ANSWERS = (
    "accuracy",
    "accuracy_parsed",
    "parse_rate",
    "accuracy_chance_imputed",
    "accuracy_strict",
    "text_accuracy",
    "speech_text_disagreement",
    "reply_rate",
)


def report(summary: Summary, run: Mapping[str, Any], lines: Iterable[TrialLine]) -> Iterator[str]:
    """Yield the lines of `report.md`, without line ends.

    Args:
        summary: Content of `summary.json`.
        run: Content of `run.json`.
        lines: Every trial; only the first are shown, the rest are counted for the manifest.
    """
    yield f"# voxmeter: {markdown(summary['run'])}"
    yield ""
    yield "A value in brackets is its 95 % interval; docs/scoring.md says how each is made."
    yield from _headline(summary)
    yield from report_leaderboard.lines([summary])
    yield from _latency(summary)
    yield from _answers(summary)
    yield from _judges(summary)
    yield from _groups(summary)
    yield from report_tables.lines(summary)
    yield from report_origins.lines(summary)
    yield from by_host.lines(summary)
    yield from _analyses(summary)
    yield from report_published.lines(summary)
    yield from _failures(summary)
    yield from _warnings(summary)
    yield from _gates(summary)
    clips = report_manifest.Clips()
    yield from _trials(clips.counted(lines))
    yield from report_instrument.lines(summary, run)
    yield from report_manifest.lines(summary, run, clips)


def _names(cell: Mapping[str, Any], cells: Cells) -> list[str]:
    control = " (control)" if cell.get("control") is not None else ""
    return [markdown(cell["endpoint"]) + control, markdown(cell_name(cell, cells))]


def _headline(summary: Summary) -> Iterator[str]:
    cells = summary["cells"]
    heads = ["endpoint", "suite", "ok / planned", "accuracy", "parsed"]
    judged = [report_judges.summary_of(cell["metrics"]) for cell in cells]
    heads += ["judged"] if any(judged) else []
    heads += ["first audible p50, ms", "p90", "first packet p50", "reply p50"]
    rows = [_headline_row(cell, cells) for cell in cells]
    if any(judged):
        rows = [
            [*row[:5], markdown(found) or "-", *row[5:]]
            for row, found in zip(rows, judged, strict=True)
        ]
    yield ""
    yield "## Results"
    yield from table(heads, rows)
    yield ""
    for name in ("accuracy", "parse_rate", "first_audible_ms", "first_packet_ms", "reply_ms"):
        yield f"- **{name}**: {figures.meaning(name).text}"


def _headline_row(cell: Mapping[str, Any], cells: Cells) -> list[str]:
    metrics, control = cell["metrics"], cell.get("control")
    row = [*_names(cell, cells), f"{cell['status'].get('ok', 0)} / {cell['planned']}"]
    channel = " (of its text)" if cell["reply_channel"] == "text" else ""
    row += (
        ["-", "-"]
        if control is not None
        else [
            figures.rate(metrics["accuracy"]) + channel,
            figures.rate(metrics["parse_rate"]),
        ]
    )
    told = (control or {}).get("expected", {})
    for name, at in (
        ("first_audible_ms", "p50"),
        ("first_audible_ms", "p90"),
        ("first_packet_ms", "p50"),
        ("reply_ms", "p50"),
    ):
        known = f" (told {told[name]:.0f})" if at == "p50" and name in told else ""
        row.append(figures.time(metrics[name], at) + known)
    return row


def _latency(summary: Summary) -> Iterator[str]:
    cells = summary["cells"]
    heads = ["endpoint", "suite", "kind", "metric", "p50", "p90", "p95", "p99", "mean"]
    heads += ["n", "missing", "invalid"]
    rows = [
        [
            *_names(cell, cells),
            markdown(str(cell["latency_kind"] or "-")),
            name,
            *(figures.time(cell["metrics"][name], at) for at in ("p50", "p90", "p95", "p99")),
            figures.time(cell["metrics"][name], "mean"),
            *(str(cell["metrics"][name][count]) for count in ("n", "missing", "invalid")),
        ]
        for cell in cells
        for name in LATENCY
        if cell["metrics"][name]["n"]
    ]
    if not rows:
        return
    yield ""
    yield "## Latency"
    yield ""
    yield "Kinds of latency are never compared with each other. Missing: no reply, or it did not "
    yield "happen. Invalid: this machine was late itself, so the trial's latency is left out. p95 "
    yield "needs 20 samples, p99 needs 100."
    yield from table(heads, rows)
    yield ""
    for name in dict.fromkeys(row[3] for row in rows):
        meant = LATENCY[name]
        yield f"- **{name}** ({meant.unit}): {meant.text}"


def _answers(summary: Summary) -> Iterator[str]:
    cells = [cell for cell in summary["cells"] if cell.get("control") is None]
    names = [
        name
        for name in dict.fromkeys(name for cell in cells for name in cell["metrics"])
        if name not in LATENCY and any(cell["metrics"].get(name, {}).get("n") for cell in cells)
    ]
    if not names:
        return
    heads = ["metric", *(" ".join(_names(cell, summary["cells"])) for cell in cells)]
    yield ""
    yield "## Answers and speech"
    yield from table(
        heads,
        (
            [markdown(name), *(_with_n(name, cell["metrics"].get(name)) for cell in cells)]
            for name in names
        ),
    )
    yield ""
    for name in names:
        yield f"- **{markdown(name)}**: {figures.meaning(name).text}"


def _with_n(name: str, entry: Mapping[str, Any] | None) -> str:
    if not entry:
        return "-"
    more = [f"n {entry['n']}"]
    more += [
        f"{entry[word]} {word.replace('_', ' ')}"
        for word in ("unscored", "left_out")
        if entry.get(word)
    ]
    lowest = entry.get("failures_lowest")
    if lowest and entry.get("unscored"):
        more.append(f"{lowest['value']:.3g} with failures at the lowest rating")
    return f"{figures.any_figure(name, entry)} ({', '.join(more)})"


def _judges(summary: Summary) -> Iterator[str]:
    if not summary.get("judges"):
        return
    yield ""
    yield "## Judges"
    for part in report_judges.tables(summary["judges"]):
        if isinstance(part, str):
            yield ""
            yield part
        else:
            yield from table(*part)


def _groups(summary: Summary) -> Iterator[str]:
    cells = [cell for cell in summary["cells"] if cell["groups"] and cell.get("control") is None]
    if not cells:
        return
    yield ""
    yield "## Groups"
    judged = any(
        report_judges.summary_of(group["metrics"]) for cell in cells for group in cell["groups"]
    )
    heads = ["endpoint", "suite", "group", "accuracy", "n", "first audible p50, ms"]
    heads += ["judged"] if judged else []
    rows = _group_rows(cells, summary["cells"])
    yield from table(heads, (row if judged else row[:-1] for row in rows))


def _group_rows(cells: Cells, every: Cells) -> Iterator[list[str]]:
    for cell in cells:
        for group in cell["groups"]:
            accuracy = group["metrics"].get("accuracy")
            audible = group["metrics"].get("first_audible_ms")
            yield [
                *_names(cell, every),
                " / ".join(markdown(name) for name in group["path"]),
                figures.rate(accuracy),
                str(accuracy["n"] if accuracy else 0),
                figures.time(audible, "p50") if audible else "n/a (0 timed)",
                markdown(report_judges.summary_of(group["metrics"])) or "-",
            ]


def _analyses(summary: Summary) -> Iterator[str]:
    for shown in report_analyses.tables(summary):
        yield from ("", f"## {shown.heading}")
        yield from ("", shown.note) if shown.note else ()
        yield from table(shown.heads, shown.rows)


def _failures(summary: Summary) -> Iterator[str]:
    cells = summary["cells"]
    names = sorted({name for cell in cells for name in cell["status"]} - {"ok"})
    if not names:
        return
    yield ""
    yield "## Failures"
    yield from table(
        ["endpoint", "suite", "planned", "ok", *map(markdown, names)],
        (
            [
                *_names(cell, cells),
                str(cell["planned"]),
                *(str(cell["status"].get(name, 0)) for name in ("ok", *names)),
            ]
            for cell in cells
        ),
    )


def _warnings(summary: Summary) -> Iterator[str]:
    if summary["warnings"]:
        yield ""
        yield "## Warnings"
        yield ""
    for warning in summary["warnings"]:
        yield (
            f"- **{markdown(warning['code'])}**: {markdown(warning['text'], 600)}. "
            f"*{markdown(warning['cure'])}*"
        )


def _gates(summary: Summary) -> Iterator[str]:
    if summary.get("gates"):
        yield from ("", "## Gates")
        heads = ["gate", "cell", "value", "verdict", "reason"]
        yield from table(
            heads,
            (
                [
                    markdown(gate["gate"]),
                    markdown(gate["cell"]),
                    "-" if gate["value"] is None else f"{gate['value']:g}",
                    gate["verdict"],
                    markdown(gate["reason"]),
                ]
                for gate in summary["gates"]
            ),
        )


def _trials(lines: Iterator[TrialLine]) -> Iterator[str]:
    yield ""
    yield "## Trials"
    heads = ["endpoint", "item", "question", "reply", "answer", "right answer", "right", "rule"]
    heads += ["first audible, ms", "status"]
    shown = list(islice(lines, MOST_TRIALS))
    judged = any(line.judged for line in shown)
    heads += ["judged"] if judged else []
    yield from table(heads, (_trial_row(line) + _judged(line, show=judged) for line in shown))
    rest = sum(1 for _ in lines)
    if rest:
        yield ""
        yield f"{rest} more trials are not shown here: `voxmeter report RUN --format csv` has all."


def _trial_row(line: TrialLine) -> list[str]:
    trial, audible = line.trial, line.latency["first_audible_ms"]
    number = f" #{markdown(str(trial['trial']))}" if trial["trial"] != 1 else ""
    right = {None: "-", True: "yes", False: "no"}[line.right]
    if line.unscored.startswith("no answer"):
        right = "no answer"
    warmup = bool(trial.get("warmup"))
    return [
        markdown(trial["endpoint"]),
        markdown(str(trial["item"])) + number,
        markdown(line.question),
        markdown(line.reply) or ("" if warmup else "*nothing*"),
        markdown(line.answer),
        markdown(line.reference),
        right,
        markdown(line.rule or line.unscored),
        "-" if audible is None else f"{audible:.0f}",
        "warm-up" if warmup else markdown(str(trial["status"])),
    ]


def _judged(line: TrialLine, *, show: bool) -> list[str]:
    told = [f"{judge} {verdict}" for judge, verdict in line.judged.items()]
    return [markdown(", ".join(told)) or "-"] if show else []
