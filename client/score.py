"""Stages 2 and 3: transcripts and scores of a run, from its files alone.

Nothing here talks to an endpoint; judges, where a bench has any, are asked in stage 3. Rows are
appended, and only where something changed: scoring a run twice adds nothing, scoring it after a
kill goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from voxmeter.client.latency import LATENCY_VERSION, latency_again
from voxmeter.client.transcripts import (
    Heard,
    Transcribes,
    is_spoken_reply,
    known_transcripts,
    transcribe_missing,
)
from voxmeter.scoring.metrics import Question, Reply, question, reply_metrics, version_of
from voxmeter.scoring.types import Outcome, Scored, Unscored

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.runfolder import RunFolder

Row = Mapping[str, Any]
Questions = Mapping[tuple[str, str], Question]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far scoring has come.

    Attributes:
        stage: `transcribe`, `score` or `judge`; `page` while a report is written.
        done: Trials of the stage that are done.
        total: Trials of the stage.
    """

    stage: str
    done: int
    total: int


Tell = Callable[[Progress], None]


def score_run(
    folder: RunFolder,
    bench: Bench,
    *,
    transcriber: Transcribes | None = None,
    transcribe: bool = True,
    judges: Collection[str] | None = None,
    prompts_anew: bool = False,
    progress: Tell = lambda _: None,
) -> dict[str, Any]:
    """Transcribe and score a run, and write its `summary.json`.

    Args:
        folder: Open for writing.
        bench: Says how to transcribe, and the gates.
        transcriber: Reads the replies; None starts the processes that `bench` asks for, where a
            reply has to be read.
        transcribe: Whether replies that were not read yet are read.
        judges: Names of the judges that are asked, each of which must have its key; None: all.
        prompts_anew: Whether the judges' prompts are read from their files as they are now, not
            as the run has them.
        progress: Told how far it has come; called from this thread.

    Returns:
        The content of `summary.json`.

    Raises:
        UserError: If a file of the folder or the transcription model is missing or damaged, or
            the disk is full. A trial whose own files are broken is `Unscored` instead.
    """
    from voxmeter.client.summary import write_summary

    questions = {(row["suite"], row["item"]): question(row) for row in folder.items()}
    if transcribe:
        heard = _transcripts(folder, bench, questions, transcriber, progress)
    else:
        heard = known_transcripts(folder)
    score_trials(folder, questions, heard, progress)
    if bench.judges:
        from voxmeter.client.access import redactor
        from voxmeter.client.judging import judge_run

        judge_run(
            folder,
            bench,
            heard,
            redactor(bench),
            only=judges,
            anew=prompts_anew,
            progress=progress,
        )
    return write_summary(folder, bench)


def _transcripts(
    folder: RunFolder,
    bench: Bench,
    questions: Questions,
    transcriber: Transcribes | None,
    progress: Tell,
) -> Mapping[str, Heard]:
    spoken = sum(is_spoken_reply(trial) for trial in folder.newest_trials())
    if not spoken:
        return known_transcripts(folder)
    fixed = bench.transcribe.language

    def language(trial: Row) -> str | None:
        asked = questions.get((trial["suite"], trial["item"]))
        return fixed or (asked.language if asked else None)

    def tell(done: int) -> None:
        progress(Progress("transcribe", done, spoken))

    with ExitStack() as stack:
        reader = transcriber or stack.enter_context(_pool(bench))
        return transcribe_missing(folder, language, reader, tell)


def _pool(bench: Bench) -> Any:  # noqa: ANN401 - a context manager that is a Transcribes
    from voxmeter.client.transcribe import TranscriberPool
    from voxmeter.scoring.asr import AsrSettings

    wanted = bench.transcribe
    settings = AsrSettings(
        language=wanted.language or "en",
        beam_size=wanted.beam_size,
        device=wanted.device,
        compute_type=wanted.compute_type,
    )
    return TranscriberPool(
        wanted.model, settings, workers=wanted.workers, allow_downloads=wanted.allow_downloads
    )


def score_trials(
    folder: RunFolder, questions: Questions, heard: Mapping[str, Heard], progress: Tell
) -> int:
    """Append a row to `scores.jsonl` for every metric of every trial that has changed.

    Args:
        folder: Open for writing.
        questions: By suite and item.
        heard: What is known of the transcripts, by key.
        progress: Told how far it has come.

    Returns:
        Number of rows appended.
    """
    keys = {key: number for number, key in enumerate(folder.newest())}
    written = Written.read(keys, folder.rows("scores"))
    appended = 0
    for done, trial in enumerate(folder.newest_trials(), start=1):
        for row in trial_rows(folder, trial, questions, heard.get(trial["key"])):
            if written.is_new(row):
                folder.append("scores", row)
                appended += 1
        progress(Progress("score", done, len(keys)))
    return appended


def trial_rows(
    folder: RunFolder, trial: Row, questions: Questions, heard: Heard | None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `scores.jsonl` for one attempt."""
    timed = latency_again(folder, trial)
    outcomes: dict[str, tuple[Outcome, str]] = {
        name: (outcome, LATENCY_VERSION) for name, outcome in timed.items()
    }
    asked = questions.get((trial["suite"], trial["item"]))
    if asked is not None and not trial.get("warmup"):
        found = reply_metrics(asked, reply_of(trial, heard, timed))
        outcomes |= {name: (one, version_of(name)) for name, one in found.items()}
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
