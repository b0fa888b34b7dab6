"""What the files of one attempt say by rules: its latency and what its words are worth.

Pure in what it reads, so that several processes may do it side by side; the rows come back to the
one process that writes the run folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from voxmeter.client.latency import LATENCY_VERSION, latency_again
from voxmeter.client.runfolder import RunFolder
from voxmeter.scoring.metrics import Question, Reply, reply_metrics, version_of
from voxmeter.scoring.types import Outcome, Scored, Unscored

if TYPE_CHECKING:
    from voxmeter.client.transcripts import Heard

Row = Mapping[str, Any]
Questions = Mapping[tuple[str, str], Question]


@dataclass(frozen=True, slots=True)
class Unrated:
    """One attempt whose scores are to be found.

    Attributes:
        trial: Its row of `trials.jsonl`.
        asked: What was asked; None where the items do not say.
        heard: What is known of its transcript.
    """

    trial: Row
    asked: Question | None
    heard: Heard | None


def rows_of_batch(path: Path, batch: Sequence[Unrated]) -> list[dict[str, Any]]:
    """Return the rows of `scores.jsonl` for some attempts; runs in a process of its own.

    Args:
        path: The run folder.
        batch: The attempts.
    """
    with RunFolder.open(path) as folder:
        return [row for one in batch for row in trial_rows(folder, one)]


def trial_rows(folder: RunFolder, one: Unrated) -> Iterator[dict[str, Any]]:
    """Yield the rows of `scores.jsonl` for one attempt."""
    trial = one.trial
    timed = latency_again(folder, trial)
    outcomes: dict[str, tuple[Outcome, str]] = {
        name: (outcome, LATENCY_VERSION) for name, outcome in timed.items()
    }
    if one.asked is not None and not trial.get("warmup"):
        found = reply_metrics(one.asked, reply_of(trial, one.heard, timed))
        outcomes |= {name: (outcome, version_of(name)) for name, outcome in found.items()}
    for metric, (outcome, version) in outcomes.items():
        yield {
            "key": trial["key"],
            "attempt": trial["attempt"],
            "metric": metric,
            "version": version,
            "value": outcome.value if isinstance(outcome, Scored) else None,
            "unscored": outcome.reason if isinstance(outcome, Unscored) else None,
            "detail": dict(outcome.detail),
        }


def reply_of(trial: Row, heard: Heard | None, timed: Mapping[str, Outcome]) -> Reply:
    """Return what scoring has to know of one attempt, with the transcript of this very one."""
    if heard is not None and heard.attempt != trial["attempt"]:
        heard = None
    audible = timed.get("reply_ms")
    recorded = (trial.get("latency") or {}).get("reply_ms")
    return Reply(
        status=trial["status"],
        channel="text" if trial.get("reply_channel") == "text" else "speech",
        transcript=heard.text if heard else None,
        untranscribed=heard.untranscribed if heard else None,
        text=trial.get("reply_text") or "",
        audible_ms=audible.value if isinstance(audible, Scored) else recorded,
    )


@dataclass(slots=True)
class Written:
    """What `scores.jsonl` says so far, as one hash a trial and metric."""

    keys: Mapping[str, int]
    hashes: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = field(default_factory=dict)

    @classmethod
    def read(cls, keys: Mapping[str, int], rows: Iterator[Row]) -> Written:
        """Return what rows say, the newest of each trial and metric."""
        written = cls(keys)
        for row in rows:
            if row["key"] in keys:
                written.is_new(row)
        return written

    def is_new(self, row: Row) -> bool:
        """Return whether the row says something new, and remember it."""
        column = self.hashes.get(row["metric"])
        if column is None:
            column = self.hashes[row["metric"]] = np.zeros(len(self.keys), np.int64)
        index = self.keys[row["key"]]
        new = _hash(row)
        if column[index] == new:
            return False
        column[index] = new
        return True


def _hash(row: Row) -> int:
    said = [row["attempt"], row["version"], row["value"], row["unscored"], row["detail"]]
    return hash(json.dumps(said, sort_keys=True, ensure_ascii=False)) or 1
