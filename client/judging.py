"""Stage 3, by judges: what rules cannot score is put to chat models, each reply once.

Every verdict is appended as soon as it is there, so a run that is stopped goes on where it was.
What is known is not asked again: neither what this run's `scores.jsonl` holds, nor what the
user's cache holds of earlier runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from voxmeter.client.groups import first_of
from voxmeter.client.judge_cache import JudgementCache
from voxmeter.client.judge_call import JudgeError, Service, Sleep, asked_hash
from voxmeter.client.judge_jobs import Items, Job, job_of, rated_items, rated_trials
from voxmeter.client.judge_past import Past
from voxmeter.client.judge_prompts import Prompts, case_of, prompts
from voxmeter.client.model_files import user_cache
from voxmeter.client.score import Progress, Tell
from voxmeter.client.terminal import warn
from voxmeter.client.trial_scores import Written
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.judge_messages import Case, Message, Order, lacking, messages, orders_of
from voxmeter.scoring.judging import (
    JUDGE_VERSION,
    VERDICT,
    Judged,
    Price,
    Reading,
    Said,
    Verdict,
    judge_order,
    metric_names,
    outcomes,
    read_again,
)
from voxmeter.scoring.metrics import answer_outcome
from voxmeter.scoring.rubrics import Rubric
from voxmeter.scoring.types import Outcome, Scored, Unscored

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Judge
    from voxmeter.client.redaction import Redactor
    from voxmeter.client.runfolder import RunFolder
    from voxmeter.client.transcripts import Heard

Row = Mapping[str, Any]

MOST_FAILURES = 10
"""Questions in a row that a judge may fail to answer before it is left in peace."""

_NO_KEY = "the judge's key is not set"


def judge_run(
    folder: RunFolder,
    bench: Bench,
    heard: Mapping[str, Heard],
    redactor: Redactor,
    *,
    sleep: Sleep = asyncio.sleep,
) -> int:
    """Put every reply that has a rubric to all of a bench's judges; append a row for each metric.

    Args:
        folder: Open for writing.
        bench: Its judges.
        heard: What is known of the transcripts, by key.
        redactor: Knows the judges' keys.
        sleep: How to wait before a service is asked again.

    Returns:
        Number of rows appended.

    Raises:
        UserError: If a prompt is missing, or the disk is full.
    """
    found = judging(folder, bench, redactor, sleep=sleep)
    if found is None:
        return 0
    for trial in folder.newest_trials():
        found.put(trial, heard.get(trial["key"]))
    found.end()
    try:
        asyncio.run(found.run())
    except BaseExceptionGroup as group:
        raise first_of(group) from group
    return found.appended


def judging(
    folder: RunFolder,
    bench: Bench,
    redactor: Redactor,
    *,
    only: Collection[str] | None = None,
    anew: bool = False,
    progress: Tell = lambda _: None,
    sleep: Sleep = asyncio.sleep,
) -> Judging | None:
    """Return the judges of a run, to be given its replies one by one; None if none is asked.

    Args:
        folder: Open for writing.
        bench: Its judges.
        redactor: Knows the judges' keys.
        only: Names of the judges to ask; None: all of them, and a key that is missing here only
            leaves what is not known yet unscored.
        anew: Whether prompts are read from their files as they are now, not as the run has them.
        progress: Told how far it has come.
        sleep: How to wait before a service is asked again.

    Raises:
        UserError: If a prompt is missing.
    """
    judges = [one for one in bench.judges if only is None or one.name in only]
    if not judges:
        return None
    rubrics = {suite.label: suite.rubric for suite in bench.suites if suite.rubric}
    items = rated_items(folder, rubrics)
    keys: dict[str, int] = {}
    used: set[tuple[str, str]] = set()
    for trial, item in rated_trials(folder, items):
        keys[trial["key"]] = len(keys)
        used.add((str(item["suite"]), str(item["rubric"])))
    if not keys and only is not None:
        cure = 'add rubric = "adu" to its [[suite]] in a bench.toml and give --bench FILE'
        raise UserError(str(folder.path), "none of its items has a rubric", cure)
    if not keys:
        return None
    found = prompts(bench, sorted(used), None if anew else folder.run.get("prompts"))
    asked = _Asked(judges, bench.source, redactor, sleep, must=only is not None)
    return Judging(folder, found, progress, items, keys, asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The judges of one scoring, and how they are reached.

    Attributes:
        judges: Their tables of bench.toml.
        source: The file these stand in, for errors.
        redactor: Knows their keys.
        sleep: How to wait before a service is asked again.
        must: Whether a missing key ends the scoring.
    """

    judges: Sequence[Judge]
    source: str
    redactor: Redactor
    sleep: Sleep
    must: bool


class Judging:
    """All judges of one scoring, side by side; each is given every reply as soon as it is put in.

    Attributes:
        appended: Number of rows appended.
    """

    def __init__(
        self,
        folder: RunFolder,
        found: Prompts,
        progress: Tell,
        items: Items,
        keys: Mapping[str, int],
        asked: _Asked,
    ) -> None:
        self.folder = folder
        self.prompts = found
        self.appended = 0
        self._progress = progress
        self._items = items
        self._keys = keys
        self._asked = asked
        self._written = Written.read(keys, folder.rows("scores"))
        self._done = 0
        self._asking = [
            _Asking(self, judge, Past.read(judge.name, folder.rows("scores")))
            for judge in asked.judges
        ]

    def put(self, trial: Row, heard: Heard | None) -> None:
        """Take one trial, with its transcript; one without a rubric is left alone."""
        if trial["key"] in self._keys:
            job = job_of(trial, self._items[trial["suite"], trial["item"]], heard)
            for one in self._asking:
                one.jobs.put_nowait(job)

    def end(self) -> None:
        """Let `run` end when all that was put in is judged."""
        for one in self._asking:
            for _ in range(one.judge.concurrency):
                one.jobs.put_nowait(None)

    async def run(self) -> None:
        """Ask all of them, until `end`.

        Raises:
            UserError: If a key is missing that must be there, or the disk is full.
        """
        asked = self._asked
        async with AsyncExitStack() as stack:
            for one in self._asking:
                try:
                    service = Service(one.judge, asked.source, asked.redactor, sleep=asked.sleep)
                except UserError:
                    if asked.must:
                        raise
                    one.stopped = _NO_KEY
                else:
                    one.service = await stack.enter_async_context(service)
            async with asyncio.TaskGroup() as group:
                for one in self._asking:
                    group.create_task(one.run(), name=f"judge {one.judge.name}")

    def append(self, judge: str, job: Job, found: Mapping[str, Outcome]) -> None:
        """Append what is new of one trial.

        The row that holds what was asked comes last: where it stands, the others do.
        """
        for metric, outcome in sorted(found.items(), key=lambda one: "orders" in one[1].detail):
            row = {
                "key": job.key,
                "attempt": job.attempt,
                "metric": f"{metric}:{judge}",
                "version": JUDGE_VERSION,
                "value": outcome.value if isinstance(outcome, Scored) else None,
                "unscored": outcome.reason if isinstance(outcome, Unscored) else None,
                "detail": dict(outcome.detail),
            }
            if self._written.is_new(row):
                self.folder.append("scores", row)
                self.appended += 1

    def tell(self) -> None:
        """Count one trial of one judge as done."""
        self._done += 1
        total = len(self._asking) * len(self._keys)
        self._progress(Progress("judge", self._done, total))


class _Asking:
    """One judge and all trials.

    Attributes:
        jobs: The trials it is asked about; None once for each task, at the end.
        service: Where it is asked; None where it cannot be.
        stopped: Why it is asked no more; empty while it is.
    """

    def __init__(self, stage: Judging, judge: Judge, past: Past) -> None:
        self.judge = judge
        self.jobs: asyncio.Queue[Job | None] = asyncio.Queue()
        self.service: Service | None = None
        self.stopped = ""
        self._problem = ""
        self._stage = stage
        self._past = past
        self._failures = 0
        self._price = Price(judge.price_in, judge.price_out)
        self._cache = JudgementCache(user_cache() / "judgements") if judge.cache else None

    async def run(self) -> None:
        """Judge every trial, several at a time."""
        async with asyncio.TaskGroup() as group:
            for number in range(self.judge.concurrency):
                group.create_task(self._work(), name=f"{self.judge.name} {number}")

    async def _work(self) -> None:
        while (job := await self.jobs.get()) is not None:
            rubric = self._stage.prompts.of(
                self.judge.name, str(job.item["suite"]), str(job.item["rubric"])
            )
            if rubric is not None:
                found = await self._judged(job, rubric)
                self._stage.append(self.judge.name, job, found)
            self._stage.tell()

    async def _judged(self, job: Job, rubric: Rubric) -> Mapping[str, Outcome]:
        """Return a trial's metrics; none where all is known."""
        case, orders = case_of(job.item, job.response), orders_of(rubric, self.judge.orders)
        unfit = lacking(rubric, case)
        nothing = job.nothing or (Unscored(unfit, {"counted": False}) if unfit else None)
        if nothing is not None:
            about = {"rubric": rubric.name, **nothing.detail}
            return dict.fromkeys(metric_names(rubric, orders), replace(nothing, detail=about))
        if rubric.protocol == "label":
            by_rule = answer_outcome(job.asked, job.response, job.channel)
            if isinstance(by_rule, Scored) or by_rule.detail.get("counted") is False:
                return {VERDICT: replace(by_rule, detail={**by_rule.detail, "by": "rule"})}
        asked = {
            order: asked_hash(self.judge, rubric, messages(rubric, case, order)) for order in orders
        }
        if self._past.whole.get(job.key) == (job.attempt, tuple(asked.values())):
            return {}
        verdicts = [await self._verdict(job, rubric, case, order, asked[order]) for order in orders]
        about = {"model": self.judge.model, "currency": self.judge.currency}
        return outcomes(Judged(rubric, verdicts, self._price, about), case)

    async def _verdict(
        self, job: Job, rubric: Rubric, case: Case, order: Order, asked: str
    ) -> Verdict:
        known = self._past.replies.get(job.key, {}).get(asked)
        replies, cached = (known.replies, known.cached) if known else ((), False)
        found = read_again(rubric, case, order, replies)
        if found is None and self._cache is not None:
            cached = True
            found = read_again(rubric, case, order, self._cache.get(asked))
        if found is not None:
            return replace(found, asked=asked, cached=cached)
        if self.stopped or self.service is None:
            problem = self._problem or self.stopped
            return Verdict(order, Reading(None, self.stopped), replies, asked, problem=problem)
        return await self._ask(rubric, case, order, asked, replies)

    async def _ask(
        self, rubric: Rubric, case: Case, order: Order, asked: str, known: Sequence[Said]
    ) -> Verdict:
        service, replies = self.service, list(known)
        assert service is not None  # noqa: S101 - seen to above

        async def ask(sent: Sequence[Message]) -> Said:
            said = await service.ask(sent)
            replies.append(said)
            return said

        try:
            found = await judge_order(rubric, case, order, ask, known)
        except JudgeError as error:
            self._failed(error)
            problem = error.fault.message
            return Verdict(
                order, Reading(None, error.reason), tuple(replies), asked, problem=problem
            )
        self._failures = 0
        if self._cache is not None:
            await asyncio.to_thread(self._cache.put, asked, found.replies)
        return replace(found, asked=asked)

    def _failed(self, error: JudgeError) -> None:
        """Stop asking a judge that has no key, no money or no server."""
        self._failures += error.fault.kind != "policy"
        if not self.stopped and (error.hopeless or self._failures >= MOST_FAILURES):
            self.stopped = error.reason
            self._problem = error.fault.message
            warn(f"judge {self.judge.name} is asked no more: {error}")
