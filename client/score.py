"""Stages 2 and 3: transcripts and scores of a run, from its files alone.

Nothing here talks to an endpoint; judges, where a bench has any, are asked in stage 3. A reply that
has been read is scored and judged while others are still being read, so that no core and no judge
waits for a stage to end. All rows are appended by this one thread, and only where something
changed: scoring a run twice adds nothing, scoring it after a kill goes on where it stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from voxmeter.client.cores import cores
from voxmeter.client.groups import first_of
from voxmeter.client.rule_scoring import RuleScoring
from voxmeter.client.streaming import refuse_inside_a_loop
from voxmeter.client.transcripts import (
    Heard,
    Transcribes,
    heard_trials,
    is_spoken_reply,
    known_transcripts,
    transcriber_pool,
)
from voxmeter.client.trial_scores import Questions, Unrated
from voxmeter.scoring.metrics import question

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.judging import Judging
    from voxmeter.client.runfolder import RunFolder

Row = Mapping[str, Any]
Replies = AsyncIterator[tuple[Row, Heard | None]]

_MOST_SCORERS = 8


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
        UserError: If a file of the folder or the transcription model is missing or damaged, the
            disk is full, or this is called inside a running event loop. A trial whose own files
            are broken is `Unscored` instead.
    """
    from voxmeter.client.summary import write_summary

    refuse_inside_a_loop()
    questions = {(row["suite"], row["item"]): question(row) for row in folder.items()}
    judging = _judging(folder, bench, judges, anew=prompts_anew, progress=progress)
    with ExitStack() as stack:
        replies = _replies(folder, bench, questions, transcriber, progress, stack, read=transcribe)
        try:
            asyncio.run(_scored(folder, questions, replies, judging, progress))
        except BaseExceptionGroup as group:
            raise first_of(group) from group
    return write_summary(folder, bench)


def _judging(
    folder: RunFolder,
    bench: Bench,
    only: Collection[str] | None,
    *,
    anew: bool,
    progress: Tell,
) -> Judging | None:
    if not bench.judges:
        return None
    from voxmeter.client.access import redactor
    from voxmeter.client.judging import judging

    return judging(folder, bench, redactor(bench), only=only, anew=anew, progress=progress)


def _replies(
    folder: RunFolder,
    bench: Bench,
    questions: Questions,
    transcriber: Transcribes | None,
    progress: Tell,
    stack: ExitStack,
    *,
    read: bool,
) -> Callable[[], Replies]:
    """Return what yields every trial with its transcript; the processes are the stack's."""
    spoken = sum(is_spoken_reply(trial) for trial in folder.newest_trials()) if read else 0
    if not spoken:
        return lambda: _known(folder)
    fixed = bench.transcribe.language

    def language(trial: Row) -> str | None:
        asked = questions.get((trial["suite"], trial["item"]))
        return fixed or (asked.language if asked else None)

    def tell(done: int) -> None:
        progress(Progress("transcribe", done, spoken))

    reader = transcriber or stack.enter_context(transcriber_pool(bench.transcribe))
    return lambda: heard_trials(folder, language, reader, tell)


async def _known(folder: RunFolder) -> Replies:
    heard = known_transcripts(folder)
    for trial in folder.newest_trials():
        yield trial, heard.get(trial["key"])


async def _scored(
    folder: RunFolder,
    questions: Questions,
    replies: Callable[[], Replies],
    judging: Judging | None,
    progress: Tell,
) -> None:
    """Hand every trial to the rules and the judges as soon as it has been read."""
    scoring = RuleScoring(
        folder,
        min(cores(), _MOST_SCORERS),
        lambda done, total: progress(Progress("score", done, total)),
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(scoring.run(), name="rules")
        if judging is not None:
            group.create_task(judging.run(), name="judges")
        async for trial, heard in replies():
            if judging is not None:
                judging.put(trial, heard)
            asked = questions.get((trial["suite"], trial["item"]))
            await scoring.put(Unrated(trial, asked, heard))
            await asyncio.sleep(0)  # the judges' calls go on meanwhile
        if judging is not None:
            judging.end()
        await scoring.end()
