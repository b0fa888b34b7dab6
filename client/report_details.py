"""One trial as the page shows it: what was heard when, what was said, how it was judged."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os.path import relpath
from pathlib import Path
from typing import Any
from urllib.parse import quote

from voxmeter.client.audio_peaks import peaks_of
from voxmeter.client.report_timeline import timeline
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.trial_lines import TrialLine
from voxmeter.scoring import log

Json = dict[str, Any]
Row = Mapping[str, Any]


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
    folder: RunFolder,
    line: TrialLine,
    scoring: Scoring | None,
    options: Sequence[str],
    page: Path | None,
) -> Json:
    """Return one trial's part of the page.

    Args:
        folder: Its run.
        line: The trial.
        scoring: Of `scorings`, None where nothing was scored.
        options: The choices that the question gave.
        page: The folder of the page: audio is linked from there. None puts it into the page.
    """
    trial = line.trial
    if scoring is None or scoring.attempt != trial["attempt"]:
        scoring = Scoring()
    audio, reply = sound_files(folder, trial)
    peaks = None if audio is None else peaks_of(audio)
    found: Json = {
        "question": line.question,
        "options": [str(one) for one in options] if isinstance(options, list) else [],
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
        "condition": _mapping(trial.get("condition_params")),
        "audit": _audit(trial),
        "audio": _sound(audio, page) if peaks else None,
        "reply": _sound(reply, page),
        "damaged": audio is not None and peaks is None,
        "timeline": timeline(line, _log(folder, trial)),
    }
    if peaks is not None:
        found["ms"], found["peaks"] = peaks.ms, list(peaks.channels)
    return found


def sound_files(folder: RunFolder, trial: Row) -> tuple[Path | None, Path | None]:
    """Return a trial's recording and its reply alone, None for what is not there.

    A name that a damaged or foreign row leads out of the run folder by is of no file.
    """
    paths = folder.attempt_paths(trial)
    return _inside(folder, paths.audio), _inside(folder, paths.reply)


def _inside(folder: RunFolder, path: Path) -> Path | None:
    return path if not folder.leads_out(path) and path.is_file() else None


def _sound(path: Path | None, page: Path | None) -> str | None:
    """Return where the page finds a file: from where it lies, or in itself."""
    if path is None:
        return None
    if page is not None:
        parts = Path(relpath(path.resolve(), page.resolve())).parts
        return "/".join(quote(part) for part in parts)
    data = path.read_bytes()
    if not data.startswith(b"fLaC"):
        return None
    return f"data:audio/flac;base64,{base64.b64encode(data).decode()}"


def _mapping(found: object) -> Row:
    return found if isinstance(found, Mapping) else {}


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


def _log(folder: RunFolder, trial: Row) -> Sequence[Row]:
    """Return a trial's raw log; nothing where it was not kept or is damaged."""
    path = _inside(folder, folder.attempt_paths(trial).events)
    try:
        return () if path is None else log.load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ()
