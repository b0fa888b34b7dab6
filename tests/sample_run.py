"""Builds run folders by hand: rows as a run writes them, without running anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from voxmeter.client import keys
from voxmeter.client.runfolder import RunFolder
from voxmeter.scoring.definitions import LATENCY

Row = dict[str, Any]


def item(name: str, **fields: object) -> Row:
    """A line of items.jsonl: a choice with four options whose right answer is B."""
    return {
        "suite": "demo",
        "item": name,
        "cluster": name,
        "groups": ["science"],
        "kind": "choice",
        "question": f"Question {name}?",
        "reference": "B",
        "options": ["Venus", "Mars", "Jupiter", "Saturn"],
        "language": "en",
        "question_via": None,
    } | fields


def trial(name: str, status: str = "ok", number: int = 1, **fields: object) -> Row:
    """A line of trials.jsonl; `first_audible_ms` and other latencies may be given by name."""
    row: Row = {
        "endpoint": "bot",
        "suite": "demo",
        "item": name,
        "condition": "clean",
        "trial": number,
        "turn": None,
        "attempt": 1,
        "warmup": number < 1,
        "status": status,
        "fault": None if status == "ok" else f"it was {status}",
        "started_at": "2026-01-02T03:04:05+00:00",
        "t0_ns": 1_000_000_000,
        "clip": {"sha256": "ab" * 32, "ms": 2000, "speech_end_ms": 1800, "end_kind": "speech"},
        "latency_kind": "server-vad",
        "latency": dict.fromkeys(LATENCY),
        "audit": {
            "send_lateness_ms": {"p50": 0.3, "p99": 1.5, "max": 2.0},
            "loop_lag_ms": {"p50": 0.2, "p99": 1.0, "max": 3.0},
            "latency_valid": True,
            "host": "here",
        },
        "reply_channel": "speech",
        "reply_text": "",
    }
    for field, value in fields.items():
        if field in LATENCY:
            row["latency"][field] = value
        elif field in ("latency_valid", "host"):
            row["audit"][field] = value
        else:
            row[field] = value
    row["key"] = keys.key(row["endpoint"], row["suite"], name, row["condition"], number)
    return row


def score(of: Row, metric: str = "accuracy", value: float | None = 1.0, **fields: object) -> Row:
    """A line of scores.jsonl for a trial."""
    return {
        "key": of["key"],
        "attempt": of["attempt"],
        "metric": metric,
        "version": "test-1",
        "value": value,
        "unscored": None if value is not None else "no answer: test",
        "detail": {},
    } | fields


def build(
    parent: Path,
    items: Iterable[Row],
    trials: Iterable[Row],
    scores: Iterable[Row] = (),
    transcripts: Iterable[Row] = (),
    run: Mapping[str, Any] | None = None,
) -> RunFolder:
    """A run folder with these rows, open for writing."""
    folder = RunFolder.create(parent, "sample", run or {})
    folder.write_items(items)
    for row in trials:
        folder.append("trials", row)
    for row in scores:
        folder.append("scores", row)
    for row in transcripts:
        folder.append("transcripts", row)
    return folder
