"""One trial as the page shows it: what was heard when, what was said, how it was judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import relpath
from pathlib import Path
from typing import Any
from urllib.parse import quote

from voxmeter.client.audio_peaks import peaks_of
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.trial_lines import TrialLine
from voxmeter.scoring import log

Json = dict[str, Any]
Row = Mapping[str, Any]

MOST_DELTAS = 500
"""Text deltas marked on one timeline; a page of ticks tells no more."""

_NS_A_MS = 1e6
_AT_ONCE = frozenset({"request", "text"})
"""Kinds of latency whose t0 is the moment that the whole question was sent."""


@dataclass(slots=True)
class Scoring:
    """What `scores.jsonl` tells of one trial beyond its figures.

    Attributes:
        attempt: Of which attempt.
        span: Where the answer stands in what was read, None where there is none.
        channel: What was read: `speech` or `text`.
        judges: What each judge gave and wrote, by metric.
    """

    attempt: int = 0
    span: tuple[int, int] | None = None
    channel: str = ""
    judges: dict[str, Json] = field(default_factory=dict)


def scorings(folder: RunFolder) -> dict[str, Scoring]:
    """Return what is known of each trial's scoring, its newest rows.

    Raises:
        UserError: If `scores.jsonl` is damaged.
    """
    found: dict[str, Scoring] = {}
    for row in folder.rows("scores"):
        metric, _, judge = str(row["metric"]).partition(":")
        detail = row["detail"] if isinstance(row["detail"], Mapping) else {}
        if metric != "accuracy" and metric not in {"judge_score", "judge_accuracy"}:
            continue
        one = found.setdefault(row["key"], Scoring())
        if row["attempt"] != one.attempt:
            one = found[row["key"]] = Scoring(row["attempt"])
        if judge:
            one.judges[str(row["metric"])] = _judged(judge, metric, row, detail)
        else:
            one.span, one.channel = _span(detail.get("span")), str(detail.get("channel") or "")
    return found


def _span(found: object) -> tuple[int, int] | None:
    match found:
        case [int(start), int(end)] if 0 <= start < end:
            return start, end
        case _:
            return None


def _judged(judge: str, metric: str, row: Row, detail: Row) -> Json:
    orders = detail.get("orders")
    return {
        "judge": judge,
        "metric": metric,
        "value": row["value"],
        "unscored": row["unscored"],
        "orders": [_order(one) for one in orders] if isinstance(orders, list) else [],
    }


def _order(one: object) -> Json:
    found = one if isinstance(one, Mapping) else {}
    replies = found.get("replies")
    return {
        "order": str(found.get("order") or ""),
        "value": found.get("value"),
        "reason": found.get("reason"),
        "replies": [
            str(reply.get("raw") or "")
            for reply in (replies if isinstance(replies, list) else [])
            if isinstance(reply, Mapping)
        ],
    }


def detail(
    folder: RunFolder, line: TrialLine, scoring: Scoring | None, options: Sequence[str], page: Path
) -> Json:
    """Return one trial's part of the page.

    Args:
        folder: Its run.
        line: The trial.
        scoring: Of `scorings`, None where nothing was scored.
        options: The choices that the question gave.
        page: The folder of the page: audio is linked from there.
    """
    trial = line.trial
    if scoring is None or scoring.attempt != trial["attempt"]:
        scoring = Scoring()
    paths = folder.attempt_paths(trial)
    found: Json = {
        "question": line.question,
        "options": [str(one) for one in options],
        "reference": line.reference,
        "heard": "" if trial.get("reply_channel") == "text" else line.reply,
        "recogniser": line.recogniser,
        "wrote": str(trial.get("reply_text") or ""),
        "answer": line.answer,
        "rule": line.rule,
        "unscored": line.unscored,
        "read": marked(_read(line, scoring), scoring.span),
        "judges": list(scoring.judges.values()),
        "fault": str(trial.get("fault") or ""),
        "started_at": str(trial.get("started_at") or ""),
        "latency": dict(line.latency),
        "condition": trial.get("condition_params") or {},
        "audit": _audit(trial),
        "audio": _link(paths.audio, page),
        "reply": _link(paths.reply, page),
        "timeline": _timeline(line, _log(paths.events)),
    }
    peaks = peaks_of(paths.audio)
    if peaks is not None:
        found["ms"], found["peaks"] = peaks.ms, list(peaks.channels)
    return found


def _read(line: TrialLine, scoring: Scoring) -> str:
    if scoring.channel == "text":
        return str(line.trial.get("reply_text") or "")
    return line.reply


def marked(text: str, span: tuple[int, int] | None) -> list[str]:
    """Return a text in three parts, what stands before the answer, the answer, and the rest.

    Cut here and not on the page, where a place in a text counts otherwise (UTF-16).
    """
    if span is None or span[1] > len(text):
        return [text, "", ""]
    return [text[: span[0]], text[span[0] : span[1]], text[span[1] :]]


def _audit(trial: Row) -> Json:
    audit = trial.get("audit") or {}
    kept = ("send_lateness_ms", "loop_lag_ms", "late_frames", "latency_valid", "warnings")
    return {name: audit[name] for name in kept if audit.get(name) is not None}


def _link(path: Path, page: Path) -> str | None:
    """Return the address of a file as seen from the page, None where there is no such file."""
    if not path.is_file():
        return None
    parts = Path(relpath(path.resolve(), page.resolve())).parts
    return "/".join(quote(part) for part in parts)


def _log(path: Path) -> Sequence[Row]:
    """Return a trial's raw log; nothing where it was not kept or is damaged."""
    try:
        return log.load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()


def _timeline(line: TrialLine, rows: Sequence[Row]) -> Json:
    """Marks in milliseconds from the recording's first sample; empty where t0 is not known."""
    t0_ms = _t0_ms(line.trial, rows)
    if t0_ms is None:
        return {}
    after = {
        "packet": line.latency.get("first_packet_ms"),
        "audible": line.latency.get("first_audible_ms"),
        "text": line.latency.get("first_text_ms"),
        "endpointing": line.latency.get("endpointing_ms"),
        "end": line.latency.get("reply_end_ms"),
    }
    marks = {name: round(t0_ms + ms, 3) for name, ms in after.items() if ms is not None}
    return {
        "marks": {"speech_end": round(t0_ms, 3)} | marks,
        "sent": line.trial.get("latency_kind") in _AT_ONCE,
        "stalls": _spans(line.trial.get("stall_spans"), t0_ms),
        "deltas": _deltas(rows),
    }


def _t0_ms(trial: Row, rows: Sequence[Row]) -> float | None:
    if rows and rows[0].get("kind") == "start" and isinstance(trial.get("t0_ns"), int):
        began = rows[0].get("t_ns")
        return (trial["t0_ns"] - began) / _NS_A_MS if isinstance(began, int) else None
    end = (trial.get("clip") or {}).get("speech_end_ms")
    return float(end) if isinstance(end, int | float) else None


def _spans(found: object, t0_ms: float) -> list[list[float]]:
    spans = []
    for span in found if isinstance(found, list) else []:
        match span:
            case {"start_ms": int() | float() as start, "ms": int() | float() as length}:
                spans.append([round(t0_ms + start, 3), round(t0_ms + start + length, 3)])
    return spans


def _deltas(rows: Sequence[Row]) -> list[float]:
    if not rows or not isinstance(rows[0].get("t_ns"), int):
        return []
    began = rows[0]["t_ns"]
    times: Iterable[float] = (
        (row["t_ns"] - began) / _NS_A_MS
        for row in rows
        if row.get("kind") == "reply_text" and isinstance(row.get("t_ns"), int)
    )
    return [round(ms, 1) for ms in times if ms >= 0][:MOST_DELTAS]
