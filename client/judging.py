"""Stage 3, by judges: what rules cannot score is put to chat models, each reply once.

Every verdict is appended as soon as it is there, so a run that is stopped goes on where it was.
What is known is not asked again: neither what this run's `scores.jsonl` holds, nor what the
user's cache holds of earlier runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from voxmeter.client.groups import first_of
from voxmeter.client.judge_cache import JudgementCache, read_replies
from voxmeter.client.judge_call import JudgeError, Service, Sleep, asked_hash
from voxmeter.client.judge_prompts import Prompts, case_of, prompts
from voxmeter.client.model_files import user_cache
from voxmeter.client.score import Progress, Tell, Written, reply_of
from voxmeter.client.terminal import warn
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.judge_messages import Case, Message, Order, lacking, messages, orders_of
from voxmeter.scoring.judging import (
    JUDGE_VERSION,
    MOST_ASKS,
    SCORE,
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
from voxmeter.scoring.metrics import Question, answer_outcome, no_reply, question
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


@dataclass(frozen=True, slots=True)
class Job:
    """One trial whose item has a rubric.

    Attributes:
        key: The trial's.
        attempt: Its newest.
        item: Row of items.jsonl.
        asked: The same, for the rules.
        nothing: Why there is no reply to judge; None where there is one.
        response: The reply in words.
        channel: `speech` or `text`.
    """

    key: str
    attempt: int
    item: Row
    asked: Question
    nothing: Unscored | None
    response: str
    channel: str


def judge_run(
    folder: RunFolder,
    bench: Bench,
    heard: Mapping[str, Heard],
    redactor: Redactor,
    *,
    only: Collection[str] | None = None,
    anew: bool = False,
    progress: Tell = lambda _: None,
    sleep: Sleep = asyncio.sleep,
) -> int:
    """Put every reply that has a rubric to the bench's judges; append a row for each metric.

    Args:
        folder: Open for writing.
        bench: Its judges.
        heard: What is known of the transcripts, by key.
        redactor: Knows the judges' keys.
        only: Names of the judges to ask; None: all of them, and a key that is missing here only
            leaves what is not known yet unscored.
        anew: Whether prompts are read from their files as they are now, not as the run has them.
        progress: Told how far it has come.
        sleep: How to wait before a service is asked again.

    Returns:
        Number of rows appended.

    Raises:
        UserError: If a prompt or a key is missing, or the disk is full.
    """
    judges = [one for one in bench.judges if only is None or one.name in only]
    if not judges:
        return 0
    rubrics = {suite.label: suite.rubric for suite in bench.suites if suite.rubric}
    jobs = list(_jobs(folder, heard, rubrics))
    if not jobs and only is not None:
        cure = 'add rubric = "adu" to its [[suite]] in a bench.toml and give --bench FILE'
        raise UserError(str(folder.path), "none of its items has a rubric", cure)
    if not jobs:
        return 0
    used = ((str(job.item["suite"]), str(job.item["rubric"])) for job in jobs)
    found = prompts(bench, used, None if anew else folder.run.get("prompts"))
    stage = _Stage(folder, found, progress, jobs)
    try:
        asyncio.run(stage.run(judges, bench.source, redactor, sleep, must=only is not None))
    except BaseExceptionGroup as group:
        raise first_of(group) from group
    return stage.appended


def _jobs(
    folder: RunFolder, heard: Mapping[str, Heard], rubrics: Mapping[str, str]
) -> Iterator[Job]:
    """Yield the trials to be judged; open questions without a rubric have their suite's."""
    items = {}
    for row in folder.items():
        open_one = row.get("kind") == "open"
        rubric = row.get("rubric") or (rubrics.get(row["suite"]) if open_one else None)
        if rubric:
            items[row["suite"], row["item"]] = {**row, "rubric": rubric}
    if not items:
        return
    for trial in folder.newest_trials():
        item = items.get((trial["suite"], trial["item"]))
        if item is None or trial.get("warmup"):
            continue
        reply = reply_of(trial, heard.get(trial["key"]), {})
        words = (reply.transcript or "") if reply.spoken else reply.text
        nothing = no_reply(reply)
        if nothing is None and not words.strip():
            nothing = Unscored("nothing was said")
        channel = "speech" if reply.spoken else "text"
        asked = question(item)
        yield Job(trial["key"], trial["attempt"], item, asked, nothing, words, channel)


class _Stage:
    """All judges of one scoring, side by side."""

    def __init__(
        self, folder: RunFolder, found: Prompts, progress: Tell, jobs: Sequence[Job]
    ) -> None:
        keys = {job.key: number for number, job in enumerate(jobs)}
        self.folder = folder
        self.prompts = found
        self.jobs = jobs
        self.appended = 0
        self._progress = progress
        self._written = Written.read(keys, folder.rows("scores"))
        self._done = self._total = 0

    async def run(
        self, judges: Sequence[Judge], source: str, redactor: Redactor, sleep: Sleep, *, must: bool
    ) -> None:
        """Ask all of them.

        Raises:
            UserError: If a key is missing and `must` is true, or the disk is full.
        """
        self._total = len(judges) * len(self.jobs)
        async with AsyncExitStack() as stack:
            asked = []
            for judge in judges:
                one = _Asking(self, judge, _Past.read(judge.name, self.folder.rows("scores")))
                try:
                    service = Service(judge, source, redactor, sleep=sleep)
                except UserError:
                    if must:
                        raise
                    one.stopped = _NO_KEY
                else:
                    one.service = await stack.enter_async_context(service)
                asked.append(one)
            async with asyncio.TaskGroup() as group:
                for one in asked:
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
        self._progress(Progress("judge", self._done, self._total))


@dataclass(slots=True)
class _Past:
    """What `scores.jsonl` holds of one judge.

    Attributes:
        whole: By key, what was asked of trials about which nothing is left to ask.
        replies: By key and hash of what was asked, the replies of all other trials.
    """

    whole: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    replies: dict[str, dict[str, Verdict]] = field(default_factory=dict)

    @classmethod
    def read(cls, judge: str, rows: Iterator[Row]) -> _Past:
        past = cls()
        metrics = {f"{SCORE}:{judge}", f"{VERDICT}:{judge}"}
        for row in rows:
            orders = (row.get("detail") or {}).get("orders")
            if row["metric"] in metrics and isinstance(orders, list):
                past._take(row, [one for one in orders if isinstance(one, dict)])
        return past

    def _take(self, row: Row, orders: Sequence[Row]) -> None:
        key = row["key"]
        verdicts = {str(one.get("asked")): _known(one) for one in orders}
        self.whole.pop(key, None)
        self.replies.pop(key, None)
        done = all(_is_done(one) for one in verdicts.values())
        if done and row["version"] == JUDGE_VERSION:
            self.whole[key] = row["attempt"], tuple(verdicts)
        else:
            self.replies[key] = {asked: one for asked, one in verdicts.items() if one.replies}


def _known(row: Row) -> Verdict:
    reason = row.get("reason")
    reading = Reading(0.0) if reason is None else Reading(None, str(reason))
    replies = read_replies(row.get("replies"))
    return Verdict("one", reading, replies, cached=row.get("cached") is True)


def _is_done(verdict: Verdict) -> bool:
    readable = verdict.reading.reason is None and bool(verdict.replies)
    return readable or len(verdict.replies) >= MOST_ASKS


class _Asking:
    """One judge and all trials.

    Attributes:
        service: Where it is asked; None where it cannot be.
        stopped: Why it is asked no more; empty while it is.
    """

    def __init__(self, stage: _Stage, judge: Judge, past: _Past) -> None:
        self.judge = judge
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
        jobs = iter(self._stage.jobs)
        async with asyncio.TaskGroup() as group:
            for number in range(self.judge.concurrency):
                group.create_task(self._work(jobs), name=f"{self.judge.name} {number}")

    async def _work(self, jobs: Iterator[Job]) -> None:
        for job in jobs:  # one iterator for all: each trial goes to whoever is free
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
