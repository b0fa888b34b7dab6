"""What messages say: of a trial, of a turn that is asked again, of a whole run.

Figures and names go out, words do not: neither questions nor replies are published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxmeter.client.publish_topics import dumped
from voxmeter.client.terminal import printable

Row = Mapping[str, Any]

MARKS = (
    "first_packet_ms",
    "first_audible_ms",
    "first_text_ms",
    "endpointing_ms",
    "reply_ms",
    "reply_end_ms",
    "stall_ms",
)
"""Latencies that stand in an event, where there are any, ms.

`reply_ms` and `stall_ms` are lengths; all others count from t0, the end of the user's speech.
"""

LARGEST = 100_000
"""Letters of a summary: hosted brokers take no more than 128 kB."""

_HEADLINES = ("accuracy", "first_audible_ms", "first_packet_ms")
_FAULT = 200


def trial_event(row: Row, stage: str, **more: object) -> dict[str, Any]:
    """Return the event of one attempt.

    Args:
        row: Of `trials.jsonl`.
        stage: `answered`, or `again` where it was refused and is asked once more.
        **more: Further fields.
    """
    latency = row.get("latency") or {}
    fault = row.get("fault")
    return {
        "endpoint": row["endpoint"],
        "suite": row["suite"],
        "item": row["item"],
        "condition": row["condition"],
        "trial": row["trial"],
        "attempt": row["attempt"],
        "warmup": bool(row.get("warmup")),
        "stage": stage,
        "status": row["status"],
        "fault": None if not fault else printable(str(fault), _FAULT),
        "latency_kind": row.get("latency_kind"),
        "latency_valid": (row.get("audit") or {}).get("latency_valid"),
        "marks": {name: latency[name] for name in MARKS if latency.get(name) is not None},
        **more,
    }


def run_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a `summary.json` that is published.

    Tables of groups stay in the run folder; of a run with very many cells only the headlines go
    out, and of one with too many for these, the counts (`shortened` says so).
    """
    cells = [
        {name: value for name, value in cell.items() if name in _CELL} for cell in summary["cells"]
    ]
    content = {
        "schema": summary.get("schema"),
        "run": summary.get("run"),
        "shortened": False,
        "cells": cells,
        "audit": summary.get("audit"),
        "warnings": summary.get("warnings", []),
        "gates": summary.get("gates", []),
    }
    for kept in (_HEADLINES, ()):
        if len(dumped(content)) <= LARGEST:
            return content
        cells = [{**cell, "metrics": _only(cell["metrics"], kept)} for cell in cells]
        content |= {"shortened": True, "cells": cells, "warnings": content["warnings"][:20]}
    if len(dumped(content)) > LARGEST:
        content |= {"cells": [], "warnings": [], "gates": content["gates"][:20]}
    return content


_CELL = frozenset(
    {"endpoint", "suite", "condition", "latency_kind", "planned", "status", "metrics"}
)


def _only(metrics: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if name in names}
