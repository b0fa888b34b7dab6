"""`summary.json`: every figure of a run, from its trials, scores and items alone.

`cell_metrics.py` has the rules of the figures; warm-up turns are in none but "cold".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from voxmeter.client.advice import warnings_of
from voxmeter.client.aggregates import declared, tables
from voxmeter.client.analyses import analyses_of
from voxmeter.client.by_host import by_host
from voxmeter.client.cell_metrics import answer_values, latency_of, metrics_of
from voxmeter.client.columns import (
    Columns,
    Floats,
    Row,
    read_columns,
    read_items,
)
from voxmeter.client.course import course
from voxmeter.client.gates import judge
from voxmeter.client.judge_summary import judges_block
from voxmeter.client.origins import origins
from voxmeter.client.planned import computes_here, endpoint_config, expected_latency, planned_cells
from voxmeter.client.publish_note import noted
from voxmeter.client.runfolder import RunFolder
from voxmeter.scoring.stats import Indices

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Gate

SCHEMA = 1

Json = dict[str, Any]


def summarise(folder: RunFolder) -> Json:
    """Return the content of `summary.json` for a run folder, without its gates.

    Reads `run.json` (for what was planned), `items.jsonl`, `trials.jsonl` and `scores.jsonl`;
    never audio, events or a running process. No number in it is NaN or infinite: what is not
    known is null.

    Raises:
        UserError: If a file of the folder is damaged.
    """
    return noted(summary_of(read_run(folder), folder.run), folder)


def write_summary(folder: RunFolder, bench: Bench) -> Json:
    """Summarise a run, judge the gates of its bench, and write `summary.json`.

    Args:
        folder: Open for writing.
        bench: Its gates are judged; results stand under `gates`.

    Returns:
        What was written.

    Raises:
        UserError: If a file of the folder is damaged, or the disk is full.
    """
    summary = noted(summary_of(read_run(folder), folder.run, bench.gates), folder)
    folder.replace("summary.json", json.dumps(summary, allow_nan=False, indent=1) + "\n")
    return summary


def read_run(folder: RunFolder) -> Columns:
    """Return all trials and scores of a run as columns.

    Raises:
        UserError: If a file of the folder is damaged.
    """
    items = read_items(folder.items())
    return read_columns(items, folder.newest_trials(), folder.rows("scores"))


def exit_status(summary: Json) -> int:
    """Return what a command ends with: 3 without success, 1 with a failed gate, else 0.

    Without success: some endpoint has trials and not one of them is `ok`.
    """
    ok: Counter[str] = Counter()
    for cell in summary["cells"]:
        if cell["planned"]:
            ok[cell["endpoint"]] += cell["status"].get("ok", 0)
    if not ok or min(ok.values()) == 0:
        return 3
    failed = any(gate["verdict"] == "failed" for gate in summary.get("gates", []))
    return 1 if failed else 0


def summary_of(columns: Columns, run: Row, gates: Sequence[Gate] = ()) -> Json:
    """Return the content of `summary.json`.

    Args:
        columns: Of `read_run`.
        run: Content of `run.json`.
        gates: Limits to be judged.
    """
    planned = planned_cells(run, columns.suite_sizes)
    known = dict.fromkeys([*planned, *sorted(columns.cells)])
    index = {cell: number for number, cell in enumerate(columns.cells)}
    seed = int((run.get("config") or {}).get("run", {}).get("seed", 0))
    cells = [
        _cell(columns, cell, index.get(cell, -1), planned.get(cell), run, seed) for cell in known
    ]
    summary = {
        "schema": SCHEMA,
        "run": str(run.get("run", "")),
        "cells": cells,
        "audit": _audit(columns, seed),
        "calibration": _calibration(columns, run),
    }
    analyses = analyses_of(columns, run, _accuracies, seed)
    if analyses:
        summary["analyses"] = analyses
    judged = judges_block(columns, seed)
    if judged is not None:
        summary["judges"] = judged
    summary["warnings"] = warnings_of(summary, columns, run)
    summary["gates"] = [asdict(result) for result in judge(gates, summary)]
    return summary


def _calibration(columns: Columns, run: Row) -> Json | None:
    """What is known of this timing: the run's own record, else this machine's, if it ran here."""
    from voxmeter.client.calibration import last

    found = run.get("calibration")
    if not isinstance(found, Mapping):
        mine = last() or {}
        found = mine if (mine.get("machine") or {}).get("host") in columns.hosts.codes else {}
    kept = {name: found[name] for name in ("measured_at", "good", "errors") if name in found}
    return kept or None


def _cell(
    columns: Columns,
    names: tuple[str, str, str],
    code: int,
    planned: int | None,
    run: Row,
    seed: int,
) -> Json:
    inside = columns.cell == code
    counted = np.flatnonzero(inside & ~columns.warmup)
    cold = np.flatnonzero(inside & columns.warmup)
    kinds = {columns.latency_kinds.texts[kind] for kind in set(columns.latency_kind[inside])}
    kinds -= {""}  # a trial that never came to its question is of no kind
    expected = expected_latency(run, names[0])
    cell: Json = {
        "endpoint": names[0],
        "suite": names[1],
        "condition": names[2],
        "latency_kind": kinds.pop() if len(kinds) == 1 else ("mixed" if kinds else None),
        "reply_channel": _channel(columns, code),
        "planned": len(counted) if planned is None else planned,
        "status": _statuses(columns, counted),
        "early": _early(columns, counted),
        "metrics": metrics_of(columns, counted, seed),
        "groups": _groups(columns, counted, seed),
        "cold": _cold(columns, cold),
        "course": course(columns, counted, cold),
    }
    cell["size"] = str(endpoint_config(run, names[0]).get("size") or "")
    scheme = declared(run, names[1])
    answers = {name: found[:2] for name, found in answer_values(columns, counted).items()}
    cell["origins"] = origins(columns, counted, answers["accuracy"], seed)
    if scheme is not None:
        cell["tables"] = tables(columns, counted, scheme, answers, seed)
    if computes_here(run, names[0]):
        cell["computes_here"] = True
    if expected is not None:
        cell["control"] = {"expected": expected}
    return cell


def _channel(columns: Columns, code: int) -> str | None:
    channels = columns.channels.get(code, set()) - {""}
    return channels.pop() if len(channels) == 1 else ("mixed" if channels else None)


def _statuses(columns: Columns, rows: Indices) -> dict[str, int]:
    counts = np.bincount(columns.status[rows], minlength=len(columns.statuses.texts))
    named = zip(columns.statuses.texts, counts.tolist(), strict=True)
    return {name: count for name, count in named if count}


def _early(columns: Columns, rows: Indices) -> dict[str, int]:
    """What the endpoint said before the user's end of speech: counted, and in no other figure."""
    return {
        "replies": int(columns.early[rows].sum()),
        "trials": int(np.count_nonzero(columns.early[rows])),
        "talked_over": int(np.count_nonzero(columns.talked_over[rows])),
    }


def _accuracies(columns: Columns, rows: Indices) -> tuple[Indices, Floats]:
    return answer_values(columns, rows)["accuracy"][:2]


def _groups(columns: Columns, rows: Indices, seed: int) -> list[Json]:
    """Figures of each group of the cell, outer groups before the groups inside them."""
    members: dict[tuple[str, ...], list[int]] = {}
    for code in np.unique(columns.item[rows]).tolist():
        path = columns.items[code].path
        for depth in range(1, len(path) + 1):
            members.setdefault(path[:depth], []).append(code)
    groups = []
    for path in sorted(members):
        chosen = rows[np.isin(columns.item[rows], members[path])]
        figures = metrics_of(columns, chosen, seed, every=False)
        groups.append({"path": list(path), "metrics": figures})
    return groups


def _cold(columns: Columns, rows: Indices) -> Json:
    """Latency of the warm-up turns, in order; in no other figure."""
    cold: Json = {"n": len(rows)}
    for name in ("first_packet_ms", "first_audible_ms", "first_text_ms"):
        values = columns.column(name).value[rows]
        cold[name] = [round(value, 3) for value in values[np.isfinite(values)].tolist()]
    return cold


def _audit(columns: Columns, seed: int) -> Json:
    """The client's own lateness over all trials but warm-ups.

    `p50` is the median of the trials' medians, `p99` the 99th percentile of the trials' 99th
    percentiles, `max` the largest of all.
    """
    counted = ~columns.warmup
    audit: Json = {}
    for name in ("send_lateness_ms", "loop_lag_ms"):
        audit[name] = {
            part: _quantile(columns.audit[f"{name}.{part}"][counted], fraction)
            for part, fraction in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
        }
    audit["latency_invalid"] = int(np.count_nonzero(counted & ~columns.latency_valid))
    audit["hosts"] = [host for host in columns.hosts.texts if host]
    audit["by_host"] = by_host(columns, latency_of, seed)
    return audit


def _quantile(values: Floats, fraction: float) -> float | None:
    finite = values[np.isfinite(values)]
    return round(float(np.quantile(finite, fraction)), 3) if len(finite) else None
