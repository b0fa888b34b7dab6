"""Every trial of a run as one flat line: what was asked, said, understood, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from voxmeter.client.columns import SCORED, Columns
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.transcripts import Heard, known_transcripts
from voxmeter.scoring.definitions import LATENCY

Row = Mapping[str, Any]

IDENTITY = ("endpoint", "suite", "condition", "item", "trial", "turn", "attempt", "warmup")


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One trial, its newest attempt.

    Attributes:
        trial: Its row of `trials.jsonl`.
        question: The item's question, empty where unknown.
        reference: The right answer, aliases joined by ` / `.
        reply: What was heard; for text-only replies the text.
        recogniser: What heard it, empty where nothing was transcribed.
        answer: What the extractor understood, empty when it found nothing.
        rule: The rule that decided.
        right: None when there is no score.
        unscored: Why there is none.
        latency: Every latency of the contract, None where it did not happen.
        judged: What each judge gave, in words: its rating, `right` or `wrong`, or why neither.
    """

    trial: Row
    question: str
    reference: str
    reply: str
    recogniser: str
    answer: str
    rule: str
    right: bool | None
    unscored: str
    latency: Mapping[str, float | None]
    judged: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Verdict:
    attempt: int
    value: float | None
    unscored: str
    answer: str
    rule: str


def trial_lines(folder: RunFolder, columns: Columns) -> Iterator[TrialLine]:
    """Yield every trial in the order of the run, warm-up turns included.

    Args:
        folder: The run.
        columns: The same run, as `read_columns` read it.
    """
    items = {(row["suite"], row["item"]): row for row in folder.items()}
    heard = known_transcripts(folder)
    verdicts = _verdicts(folder)
    timed = {name: columns.column(name) for name in LATENCY}
    for trial in folder.newest_trials():
        index = columns.keys[trial["key"]]
        latency = {
            name: float(column.value[index]) if column.state[index] == SCORED else None
            for name, column in timed.items()
        }
        item = items.get((trial["suite"], trial["item"]), {})
        line = _line(trial, item, heard.get(trial["key"]), verdicts.get(trial["key"]), latency)
        judged = _judged(columns, index)
        yield replace(line, judged=judged) if judged else line


def _judged(columns: Columns, index: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for judge in sorted(columns.judged):
        for metric in ("judge_score", "judge_accuracy"):
            column = columns.column(f"{metric}:{judge}")
            if column.state[index] == SCORED:
                value = float(column.value[index])
                right = {1.0: "right", 0.0: "wrong"}.get(value, f"{value:g}")
                found[judge] = f"{value:.3g}" if metric == "judge_score" else right
                break
            if column.reason[index] >= 0:
                found.setdefault(judge, columns.reasons.texts[column.reason[index]])
    return found


def _verdicts(folder: RunFolder) -> dict[str, _Verdict]:
    found: dict[str, _Verdict] = {}
    for row in folder.rows("scores"):
        if row["metric"] == "accuracy":
            detail = row.get("detail") or {}
            found[row["key"]] = _Verdict(
                row["attempt"],
                row.get("value"),
                str(row.get("unscored") or ""),
                str(detail.get("answer") or ""),
                str(detail.get("rule") or ""),
            )
    return found


def _line(
    trial: Row,
    item: Row,
    heard: Heard | None,
    verdict: _Verdict | None,
    latency: Mapping[str, float | None],
) -> TrialLine:
    attempt = trial["attempt"]
    if heard is not None and heard.attempt != attempt:
        heard = None
    if verdict is None or verdict.attempt != attempt:
        verdict = _Verdict(attempt, None, "", "", "")
    text = str(trial.get("reply_text") or "")
    reference = item.get("reference")
    aliases = reference if isinstance(reference, list) else [reference]
    return TrialLine(
        trial=trial,
        question=str(item.get("question") or ""),
        reference=" / ".join(str(one) for one in aliases if one is not None),
        reply=text if trial.get("reply_channel") == "text" else (heard and heard.text) or "",
        recogniser=heard.model if heard else "",
        answer=verdict.answer,
        rule=verdict.rule,
        right=None if verdict.value is None else verdict.value >= 1.0,
        unscored=verdict.unscored,
        latency=latency,
    )
