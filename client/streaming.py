"""Stage 1 of a run: asks every question that is still to be asked, and writes down what came.

Endpoints come one after another, `concurrency` sessions each, frames staggered so that sessions do
not send in step. Whatever can delay a frame happens elsewhere: clips are made in threads, attempts
are finished in a process beside this one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from voxmeter.client.clock import Clock, SystemClock, utc_now
from voxmeter.client.event_loop import loop_factory, undisturbed
from voxmeter.client.finish import Attempt, Lateness
from voxmeter.client.finisher import Finisher
from voxmeter.client.groups import first_of
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.pacing import Spacing
from voxmeter.client.retries import Retries
from voxmeter.client.runfolder import Newest, RunFolder
from voxmeter.client.shots import NO_EXAMPLES, Examples, examples
from voxmeter.client.target import Target, attempt, new_tag
from voxmeter.endpoints.codec import Asked
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.scoring.definitions import LATENCY

if TYPE_CHECKING:
    from voxmeter.client.clips import Clip
    from voxmeter.client.plan import Plan, Trial
    from voxmeter.client.redaction import Redactor
    from voxmeter.suites.suite import Item

_MS = 1_000_000
_NS = 1_000_000_000


class Show(Protocol):
    """Who is told how a run goes; `trial` is called from a thread, one call at a time."""

    def endpoint(self, name: str, trials: int) -> None:
        """Say which endpoint is asked next, and how many counted trials it has left."""
        ...

    def trial(self, trial: Trial, row: Mapping[str, Any]) -> None:
        """Say how a trial went."""
        ...

    def again(self, trial: Trial, row: Mapping[str, Any], wait_s: float) -> None:
        """Say that an attempt was refused, and that the next one follows after a wait."""
        ...


@dataclass(frozen=True, slots=True)
class Streaming:
    """What stage 1 works with.

    Attributes:
        plan: Every trial of the run.
        folder: Open for writing.
        clip_of: Renders the clip of an item in a condition; blocking; raises `ClipError`.
        start: Starts an endpoint's own server if it needs one; returns the target and how many
            sessions at a time. What it pushed on the stack is undone when the endpoint is done.
        show: Who is told.
        redactor: Takes secrets out of what is written.
        lateness: How late this client may be before it spoils a trial's latency.
        retries: When a refused attempt is made again.
        clock: For the waits before that.
    """

    plan: Plan
    folder: RunFolder
    clip_of: Callable[[Item, str], Clip]
    start: Callable[[str, ExitStack], tuple[Target, int]]
    show: Show
    redactor: Redactor
    lateness: Lateness = field(default_factory=Lateness)
    retries: Retries = field(default_factory=Retries)
    clock: Clock = field(default_factory=SystemClock)

    def run(self) -> None:
        """Ask all that is left; blocks until it is done.

        Raises:
            UserError: If a server of ours does not start, or the disk is full, or if this is
                called inside a running event loop, as in a notebook.
        """
        _refuse_inside_a_loop()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            try:
                runner.run(self._run())
            except BaseExceptionGroup as group:
                raise first_of(group) from None

    async def _run(self) -> None:
        newest = self.folder.newest()
        with undisturbed():
            async with LoopMonitor().watching() as monitor:
                with Finisher() as finisher:
                    for name in self.plan.endpoints:
                        await self._ask_endpoint(name, newest, finisher, monitor)

    async def _ask_endpoint(
        self, name: str, newest: Mapping[str, Newest], finisher: Finisher, monitor: LoopMonitor
    ) -> None:
        left = self.plan.count_remaining(name, newest)
        if not left:
            return
        with ExitStack() as stack:
            target, sessions = self.start(name, stack)
            self.show.endpoint(name, left)
            spacing = Spacing(sessions if _in_real_time(target) else 1)
            one = _Asking(self, target, finisher, monitor, spacing, asyncio.Lock())
            trials = self.plan.remaining(name, newest)
            first = await one.warm_up(trials)
            queue = iter(trials) if first is None else _after(first, trials)
            frame_ns = target.traits().frame_ms * _MS
            async with asyncio.TaskGroup() as group:
                for number in range(min(sessions, left)):
                    stagger = number * frame_ns // sessions
                    group.create_task(one.ask_all(queue, stagger), name=f"{name} {number}")


@dataclass(frozen=True, slots=True)
class _Asking:
    """One endpoint being asked."""

    stage: Streaming
    target: Target
    finisher: Finisher
    monitor: LoopMonitor
    spacing: Spacing
    writing: asyncio.Lock

    async def warm_up(self, trials: Iterator[Trial]) -> Trial | None:
        """Ask the warm-up turns one by one; return the first trial that is not one."""
        for trial in trials:
            if not trial.warmup:
                return trial
            await self.ask(trial, 0)
        return None

    async def ask_all(self, trials: Iterator[Trial], stagger_ns: int) -> None:
        """Ask what is left until nothing is; several of these share one iterator."""
        for trial in trials:
            await self.ask(trial, stagger_ns)

    async def ask(self, trial: Trial, stagger_ns: int) -> None:
        """Put one question, again where its refusal allows it; every attempt is written down."""
        stage, waited_s = self.stage, 0.0
        for made in itertools.count(1):
            row = await self._attempt(trial, stagger_ns, waited_s)
            wait_s = stage.retries.wait_s(row, made)
            async with self.writing:
                await asyncio.to_thread(stage.folder.append, "trials", row)
                if wait_s is None:
                    await asyncio.to_thread(stage.show.trial, trial, row)
                    return
                await asyncio.to_thread(stage.show.again, trial, row, wait_s)
            await stage.clock.sleep_until(stage.clock.now() + int(wait_s * _NS))
            waited_s = wait_s
            trial = replace(trial, attempt=trial.attempt + 1)

    async def _attempt(self, trial: Trial, stagger_ns: int, waited_s: float) -> dict[str, Any]:
        """Make one attempt; return its line."""
        fields = {**_fields(trial), "waited_s": round(waited_s, 3)}
        try:
            clip = await asyncio.to_thread(self.stage.clip_of, trial.item, trial.condition)
            earlier = NO_EXAMPLES
            if trial.item.shots_via == "history":
                earlier = await asyncio.to_thread(
                    examples, trial.item, trial.condition, self.stage.clip_of
                )
        except ClipError as error:
            row = never_asked(fields, str(error))
        else:
            row = await self._converse(trial, fields, clip, earlier, stagger_ns)
        return cast("dict[str, Any]", self.stage.redactor.json(row))  # it is shown as well

    async def _converse(
        self,
        trial: Trial,
        fields: dict[str, Any],
        clip: Clip,
        earlier: Examples,
        stagger_ns: int,
    ) -> dict[str, Any]:
        await self.spacing.turn()
        tag = new_tag()
        fields |= {
            "started_at": utc_now().isoformat(timespec="milliseconds"),
            "session_tag": tag,
            "clip": clip.row(),
            "condition_params": dict(clip.params),
            "reply_channel": self.target.traits().reply_channel,
        }
        capture = await attempt(
            self.target,
            clip.utterance,
            tag=tag,
            text=trial.item.text,
            history=earlier.turns,
            asked=Asked(trial.item.suite, trial.item.item, trial.condition, trial.trial),
            stagger_ns=stagger_ns,
            monitor=self.monitor,
        )
        paths = self.stage.folder.attempt_paths(fields)
        made = Attempt(fields, paths, self.stage.redactor, self.stage.lateness)
        return await self.finisher.finish(capture, made)


def _refuse_inside_a_loop() -> None:
    """Say what to do where this thread has a loop already: it would stand still for the run."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    cure = "call it in a thread: await asyncio.to_thread(voxmeter.converse, ...)"
    raise UserError("voxmeter", "was called inside a running event loop", cure)


def _in_real_time(target: Target) -> bool:
    """Return whether an endpoint is sent frames that must leave in time."""
    return target.pacing == "real-time" and target.traits().turn_end != "request"


def _fields(trial: Trial) -> dict[str, Any]:
    """Return what is known of an attempt before it is made."""
    return {
        "key": trial.key,
        "endpoint": trial.endpoint,
        "suite": trial.item.suite,
        "item": trial.item.item,
        "condition": trial.condition,
        "trial": trial.trial,
        "turn": None,
        "attempt": trial.attempt,
        "warmup": trial.warmup,
        "started_at": utc_now().isoformat(timespec="milliseconds"),
        "condition_params": {},
    }


def never_asked(fields: Mapping[str, Any], fault: str) -> dict[str, Any]:
    """Return the line of a trial whose clip is bad: as long as any other, with nothing in it."""
    nothing = ("t0_ns", "session_tag", "connect_ms", "rtt_ms", "clip", "latency_kind", "audit")
    return {
        **fields,
        "status": "bad_clip",
        "fault": fault,
        "retryable": False,
        "retry_after_s": None,
        **dict.fromkeys(nothing),
        "latency": dict.fromkeys(LATENCY),
        "segments": [],
        "stall_spans": [],
        "usage": {},
        "reply_channel": None,
        "reply_text": "",
    }


def _after(first: Trial, rest: Iterator[Trial]) -> Iterator[Trial]:
    yield first
    yield from rest
