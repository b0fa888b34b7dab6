"""Stage 2: every reply that was heard gets a transcript, once for each model and setting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from voxmeter.client.runfolder import RunFolder
from voxmeter.scoring.asr import Transcript
from voxmeter.scoring.metrics import WITH_REPLY
from voxmeter.scoring.types import Unscored

if TYPE_CHECKING:
    from voxmeter.client.bench import Transcribe
    from voxmeter.client.transcribe import TranscriberPool

Row = Mapping[str, Any]

_AHEAD = 32
"""Replies handed to the transcriber before the first of them is back, at least."""


class Transcribes(Protocol):
    """What stage 2 needs of `client.transcribe.TranscriberPool`."""

    @property
    def at_a_time(self) -> int:
        """How many replies it reads side by side."""
        ...

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
        made = made_with(row, row.get("asked"))
        model = f"{row.get('model') or '?'} (sha256 {str(row['model_hash'])[:12]})"
        known[row["key"]] = Heard(row["attempt"], row["text"], None, made, model)
    return known


async def heard_trials(
    folder: RunFolder,
    languages: Callable[[Row], str | None],
    transcriber: Transcribes,
    progress: Callable[[int], None],
) -> AsyncIterator[tuple[Row, Heard | None]]:
    """Yield every trial once what it said is known; transcribe what has no transcript.

    "No transcript" means none by this model with these settings. Each transcript is appended as
    soon as it is there, so a killed run loses at most the ones under way. Trials come in the order
    of the file, but for those that others overtake.

    Args:
        folder: Open for writing.
        languages: The language of a trial's reply, None for the transcriber's own setting.
        transcriber: A pool; ends when the caller closes it.
        progress: Told the number of spoken replies looked at so far.

    Yields:
        Each key's newest row of `trials.jsonl`, and its transcript where it has one.

    Raises:
        UserError: If the transcriber cannot work at all, or the disk is full.
    """
    known = known_transcripts(folder)
    reading = _Reading(folder, transcriber)
    ahead = max(_AHEAD, 2 * transcriber.at_a_time)  # each has the next one waiting
    looked_at = 0
    for trial in folder.newest_trials():
        if not is_spoken_reply(trial):
            yield trial, known.get(trial["key"])
            continue
        heard = reading.settled(trial, languages(trial), known.get(trial["key"]))
        if heard is not None:
            looked_at += 1
            progress(looked_at)
            yield trial, heard
        while len(reading.pending) >= ahead:
            async for one in reading.next():
                looked_at += 1
                progress(looked_at)
                yield one
    while reading.pending:
        async for one in reading.next():
            looked_at += 1
            progress(looked_at)
            yield one


@dataclass(frozen=True, slots=True)
class _Pending:
    """One reply that is being read."""

    trial: Row
    asked: str | None
    made_with: str
    future: Future[Transcript | Unscored]


class _Reading:
    """The replies that the transcriber has, and their rows once they are back.

    Attributes:
        pending: In the order in which they were handed over.
    """

    def __init__(self, folder: RunFolder, transcriber: Transcribes) -> None:
        self.pending: list[_Pending] = []
        self._folder = folder
        self._transcriber = transcriber
        self._record = transcriber.record()
        self._back = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def settled(self, trial: Row, asked: str | None, before: Heard | None) -> Heard | None:
        """Return what is known of a reply; None when it has to be read, which begins here."""
        made = made_with(self._record, asked)
        if before and (before.attempt, before.made_with) == (trial["attempt"], made):
            return before
        reply = self._folder.attempt_paths(trial).reply
        if not reply.is_file():
            return Heard(trial["attempt"], None, "the reply's audio is missing")
        future = self._transcriber.submit(reply, trial["key"], asked)
        self.pending.append(_Pending(trial, asked, made, future))
        future.add_done_callback(self._wake)
        return None

    async def next(self) -> AsyncIterator[tuple[Row, Heard]]:
        """Wait until some are back; append and yield them."""
        await self._back.wait()
        self._back.clear()
        done = [one for one in self.pending if one.future.done()]
        for one in done:
            heard = self._heard(one)
            self.pending.remove(one)
            yield one.trial, heard

    def _wake(self, _: object) -> None:
        with suppress(RuntimeError):  # a loop that has ended needs to know no more
            self._loop.call_soon_threadsafe(self._back.set)

    def _heard(self, one: _Pending) -> Heard:
        """Append one transcript.

        Raises:
            UserError: As `heard_trials`.
        """
        outcome, trial = one.future.result(), one.trial
        if isinstance(outcome, Unscored):
            return Heard(trial["attempt"], None, outcome.reason)
        row = {
            "key": trial["key"],
            "attempt": trial["attempt"],
            "text": outcome.text,
            "language": outcome.language,
            **self._record,
            "asked": one.asked,
            "gated": outcome.gated,
            "detail": dict(outcome.detail),
        }
        self._folder.append("transcripts", row)
        return Heard(trial["attempt"], outcome.text, None, one.made_with)


def made_with(record: Row, asked: object) -> str:
    """Return model, settings and the language that was asked for, as one text to compare.

    Args:
        record: A row of `transcripts.jsonl`, or what a `Transcribes` records.
        asked: The language; None for the settings' own.
    """
    whole = [record["model_hash"], record["settings"], asked]
    return json.dumps(whole, sort_keys=True, ensure_ascii=False)


def transcriber_pool(table: Transcribe) -> TranscriberPool:
    """Return the processes that a `[transcribe]` asks for, not started yet.

    Raises:
        UserError: If the model is missing.
    """
    from voxmeter.client.transcribe import TranscriberPool
    from voxmeter.client.transcribe_settings import asr_settings

    return TranscriberPool(
        table.model,
        asr_settings(table),
        workers=table.workers,
        allow_downloads=table.allow_downloads,
    )
