"""Stage 2: every reply that was heard gets a transcript, once for each model and setting."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from voxmeter.client.runfolder import RunFolder
from voxmeter.scoring.asr import Transcript
from voxmeter.scoring.metrics import WITH_REPLY
from voxmeter.scoring.types import Unscored

Row = Mapping[str, Any]

_AHEAD = 32
"""Replies handed to the transcriber before the first of them is back."""


class Transcribes(Protocol):
    """What stage 2 needs of `client.transcribe.TranscriberPool`."""

    def record(self) -> Mapping[str, object]:
        """Return `model`, `model_hash` and `settings`."""
        ...

    def submit(
        self, audio: Path, key: str = "", language: str | None = None
    ) -> Future[Transcript | Unscored]:
        """Queue one reply."""
        ...


@dataclass(frozen=True, slots=True)
class Heard:
    """What is known of one attempt's transcript.

    Attributes:
        attempt: Of which attempt.
        text: None where there is no transcript.
        untranscribed: Why there is none.
        made_with: Model and settings, as one text.
        model: The recogniser's name and the beginning of its hash, for people.
    """

    attempt: int
    text: str | None
    untranscribed: str | None = None
    made_with: str = ""
    model: str = ""


def is_spoken_reply(trial: Row) -> bool:
    """Return whether an attempt has something to transcribe; warm-up turns have not."""
    return (
        trial["status"] in WITH_REPLY
        and trial.get("reply_channel") != "text"
        and not trial.get("warmup")
    )


def known_transcripts(folder: RunFolder) -> dict[str, Heard]:
    """Return the newest transcript of each key."""
    known: dict[str, Heard] = {}
    for row in folder.rows("transcripts"):
        made_with = _made_with(row["model_hash"], row["settings"], row.get("asked"))
        model = f"{row.get('model') or '?'} (sha256 {str(row['model_hash'])[:12]})"
        known[row["key"]] = Heard(row["attempt"], row["text"], None, made_with, model)
    return known


def transcribe_missing(
    folder: RunFolder,
    languages: Callable[[Row], str | None],
    transcriber: Transcribes,
    progress: Callable[[int], None],
) -> dict[str, Heard]:
    """Transcribe what has no transcript by this model with these settings.

    Each transcript is appended as soon as it is there, so a killed run loses at most the ones
    under way.

    Args:
        folder: Open for writing.
        languages: The language of a trial's reply, None for the transcriber's own setting.
        transcriber: A pool; ends when the caller closes it.
        progress: Told the number of replies looked at so far.

    Returns:
        What is known of every spoken reply, by key.

    Raises:
        UserError: If the transcriber cannot work at all, or the disk is full.
    """
    known = known_transcripts(folder)
    record = transcriber.record()
    pending: deque[tuple[Row, str | None, Future[Transcript | Unscored]]] = deque()
    looked_at = 0
    for trial in _spoken(folder):
        asked = languages(trial)
        made_with = _made_with(record["model_hash"], record["settings"], asked)
        before = known.get(trial["key"])
        if before and (before.attempt, before.made_with) == (trial["attempt"], made_with):
            looked_at += 1
            progress(looked_at)
            continue
        reply = folder.attempt_paths(trial).reply
        if not reply.is_file():
            known[trial["key"]] = Heard(trial["attempt"], None, "the reply's audio is missing")
            looked_at += 1
            progress(looked_at)
            continue
        slim = {"key": trial["key"], "attempt": trial["attempt"]}
        pending.append((slim, asked, transcriber.submit(reply, trial["key"], asked)))
        while len(pending) >= _AHEAD:
            looked_at += 1
            _take(folder, known, record, *pending.popleft())
            progress(looked_at)
    while pending:
        looked_at += 1
        _take(folder, known, record, *pending.popleft())
        progress(looked_at)
    return known


def _spoken(folder: RunFolder) -> Iterator[Row]:
    return (trial for trial in folder.newest_trials() if is_spoken_reply(trial))


def _take(
    folder: RunFolder,
    known: dict[str, Heard],
    record: Mapping[str, object],
    trial: Row,
    asked: str | None,
    future: Future[Transcript | Unscored],
) -> None:
    outcome = future.result()
    if isinstance(outcome, Unscored):
        known[trial["key"]] = Heard(trial["attempt"], None, outcome.reason)
        return
    row = {
        **trial,
        "text": outcome.text,
        "language": outcome.language,
        **record,
        "asked": asked,
        "gated": outcome.gated,
        "detail": dict(outcome.detail),
    }
    folder.append("transcripts", row)
    made_with = _made_with(record["model_hash"], record["settings"], asked)
    known[trial["key"]] = Heard(trial["attempt"], outcome.text, None, made_with)


def _made_with(model_hash: object, settings: object, asked: object) -> str:
    return json.dumps([model_hash, settings, asked], sort_keys=True, ensure_ascii=False)
