"""Stage 1 of a run: asks every question that is still to be asked, and writes down what came.

Endpoints come one after another, `concurrency` sessions each, frames staggered so that sessions do
not send in step. Whatever can delay a frame happens elsewhere: clips are made in threads, attempts
are finished in a process beside this one. The sessions of an endpoint keep its rate limits
together, and one that is dead is left while the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from voxmeter.client.breaker import Breaker, Leave
from voxmeter.client.clock import Clock, SystemClock, utc_now
from voxmeter.client.event_loop import new_loop, undisturbed
from voxmeter.client.finish import Attempt, Lateness
from voxmeter.client.finisher import Finisher
from voxmeter.client.groups import first_of
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.pacing import Spacing
from voxmeter.client.rate_limit import Pass, RateLimit
from voxmeter.client.retries import Retries
from voxmeter.client.runfolder import Newest, RunFolder
from voxmeter.client.shots import NO_EXAMPLES, Examples, examples
from voxmeter.client.target import Target, attempt, new_tag
from voxmeter.client.terminal import warn
from voxmeter.client.trial_fields import attempt_fields, never_asked
from voxmeter.endpoints import events
from voxmeter.endpoints.codec import Asked
from voxmeter.endpoints.errors import ClipError, UserError

if TYPE_CHECKING:
    from voxmeter.client.capture import Capture
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
        retries: When a refused attempt is made again, and when an endpoint is asked no more.
        clock: For the waits before that.
        begun: Told of every attempt, once no limit holds it back; called by the event loop.
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
    begun: Callable[[Trial], None] = lambda _: None

    def run(self) -> None:
        """Ask all that is left; blocks until it is done.

        Raises:
            UserError: If a server of ours does not start, or the disk is full, or if this is
                called inside a running event loop, as in a notebook.
        """
        refuse_inside_a_loop()
        with asyncio.Runner(loop_factory=new_loop) as runner:
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
            sessions = min(sessions, target.traits().most_sessions or sessions)
            self.show.endpoint(name, left)
            one = self._asking(target, sessions, finisher, monitor)
            trials = self.plan.remaining(name, newest)
            first = await one.warm_up(trials)
            queue = iter(trials) if first is None else _after(first, trials)
            frame_ns = target.traits().frame_ms * _MS
            async with asyncio.TaskGroup() as group:
                for number in range(min(sessions, left)):
                    lane = _Lane(number, number * frame_ns // sessions)
                    group.create_task(one.ask_all(queue, lane), name=f"{name} {number}")
        if one.breaker.why:
            left = self.plan.count_remaining(name, self.folder.newest())
            cure = f"see that it answers, then: voxmeter run --resume {self.folder.path}"
            told = f"{left} trials are to be asked again"
            warn(f"{name} is asked no more: {one.breaker.why}; {told}; {cure}")

    def _asking(
        self, target: Target, sessions: int, finisher: Finisher, monitor: LoopMonitor
    ) -> _Asking:
        return _Asking(
            self,
            target,
            finisher,
            monitor,
            Spacing(sessions if _in_real_time(target) else 1),
            asyncio.Lock(),
            RateLimit(sessions, self.clock, self.retries.wait_limit_s),
            Breaker(
                self.retries.give_up_after,
                self.clock,
                tell=lambda words: warn(f"{target.name}: {words}"),
            ),
        )


class _Lane(NamedTuple):
    """One of the sessions side by side."""

    number: int = 0
    stagger_ns: int = 0
    """By how much its frames leave later than those of the first."""


@dataclass(frozen=True, slots=True)
class _Asking:
    """One endpoint being asked."""

    stage: Streaming
    target: Target
    finisher: Finisher
    monitor: LoopMonitor
    spacing: Spacing
    writing: asyncio.Lock
    limit: RateLimit
    breaker: Breaker

    async def warm_up(self, trials: Iterator[Trial]) -> Trial | None:
        """Ask the warm-up turns one by one; return the first trial that is not one."""
        for trial in trials:
            if not trial.warmup:
                return trial
            if not await self.ask(trial, _Lane()):
                break
        return None

    async def ask_all(self, trials: Iterator[Trial], lane: _Lane) -> None:
        """Ask what is left until nothing is; several of these share one iterator."""
        for trial in trials:
            if not await self.ask(trial, lane):
                return

    async def ask(self, trial: Trial, lane: _Lane) -> bool:
        """Put one question, again where its refusal allows it; every attempt is written down.

        Returns:
            Whether the endpoint is still asked; if not, the question was not put.
        """
        leave = await self.breaker.admit()
        if leave == "stop":
            return False
        stage, not_before_ns, made = self.stage, 0, 1
        while True:
            row, beside_others = await self._attempt(trial, lane, not_before_ns)
            wait_s = stage.retries.wait_s(row, made)
            if wait_s is None:
                self._note_end(row, leave)
            else:
                not_before_ns = stage.clock.now() + int(wait_s * _NS)
            async with self.writing:
                await asyncio.to_thread(stage.folder.append, "trials", row)
                if wait_s is None:
                    await asyncio.to_thread(stage.show.trial, trial, row)
                    break
                await asyncio.to_thread(stage.show.again, trial, row, wait_s)
            trial = replace(trial, attempt=trial.attempt + 1)
            # Refused for what was asked beside it: that was no try of its own.
            made += not (beside_others and row.get("refusal") == "busy")
        return True

    def _note_end(self, row: dict[str, Any], leave: Leave) -> None:
        """Tell the breaker how a trial's last attempt went; a row that ends the asking says so."""
        before, limit_s = self.breaker.why, self.stage.retries.wait_limit_s
        if row["status"] == "bad_clip":
            self.breaker.ended(leave)
        elif not _not_taken(row):
            self.breaker.succeeded(leave)
        else:
            self.breaker.failed(leave, str(row["fault"]))
            if self.stage.retries.too_long(row):
                wait = f"it asks for a wait of {row['retry_after_s']:.0f} s"
                self.breaker.stop(f"{wait}, longer than run.retry_wait_limit_s ({limit_s:g})")
        if self.breaker.why != before:
            row["gave_up"] = self.breaker.why

    async def _attempt(
        self, trial: Trial, lane: _Lane, not_before_ns: int
    ) -> tuple[dict[str, Any], bool]:
        """Make one attempt; return its line, and whether others were under way beside it."""
        fields, beside_others = attempt_fields(trial), False
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
            one = await self._turn(not_before_ns)
            capture = await self._converse(trial, fields, clip, earlier, lane, one)
            beside_others = self.limit.beside_others(one)
            row = await self._row(capture, fields)
        clean = cast("dict[str, Any]", self.stage.redactor.json(row))  # it is shown as well
        return clean, beside_others

    async def _converse(
        self,
        trial: Trial,
        fields: dict[str, Any],
        clip: Clip,
        earlier: Examples,
        lane: _Lane,
        one: Pass,
    ) -> Capture:
        """Hold one session within the endpoint's limits, and learn from it about them."""
        try:
            capture = await self._held(trial, fields, clip, earlier, lane)
        finally:
            self.limit.leave()
        fields |= {"waited_s": round(one.waited_s, 3)}
        self._note_limits(capture, one)
        return capture

    async def _row(self, capture: Capture, fields: dict[str, Any]) -> dict[str, Any]:
        paths = self.stage.folder.attempt_paths(fields)
        made = Attempt(fields, paths, self.stage.redactor, self.stage.lateness)
        row = await self.finisher.finish(capture, made)
        return row | ({"refusal": capture.refusal} if capture.outcome == "refused" else {})

    async def _turn(self, not_before_ns: int) -> Pass:
        """Wait until this session may begin; a limit may be met while it waits for its turn."""
        one = await self.limit.enter(not_before_ns)
        await self.spacing.turn()
        while waited_s := await self.limit.opened():
            one = replace(one, waited_s=one.waited_s + waited_s)
            await self.spacing.turn()
        return one

    async def _held(
        self,
        trial: Trial,
        fields: dict[str, Any],
        clip: Clip,
        earlier: Examples,
        lane: _Lane,
    ) -> Capture:
        tag = new_tag()
        fields |= {
            "started_at": utc_now().isoformat(timespec="milliseconds"),
            "session_tag": tag,
            "clip": clip.row(),
            "condition_params": dict(clip.params),
            "reply_channel": self.target.traits().reply_channel,
        }
        self.stage.begun(trial)
        return await attempt(
            self.target,
            clip.utterance,
            tag=tag,
            text=trial.item.text,
            history=earlier.turns,
            asked=Asked(trial.item.suite, trial.item.item, trial.condition, trial.trial),
            stagger_ns=lane.stagger_ns,
            lane=lane.number,
            monitor=self.monitor,
            listen=self._hear,
        )

    def _hear(self, event: events.Event) -> None:
        """Keep a limit that an endpoint says is used up."""
        match event:
            case events.RateLimit(_, float() | int() as left, float() | int() as reset_s):
                if left <= 0:
                    self.limit.spent(reset_s)
            case _:
                return

    def _note_limits(self, capture: Capture, one: Pass) -> None:
        """Let every session keep the wait that one was told of; ask fewer or more at a time."""
        if capture.outcome != "refused":
            if capture.outcome != "disconnected":
                self.limit.answered()
            return
        named = capture.retry_after_s
        if capture.retryable and named is not None and named <= self.stage.retries.wait_limit_s:
            self.limit.wait(named)
        if capture.retryable and (capture.refusal == "busy" or named is not None):
            self.limit.refused(one)


def refuse_inside_a_loop() -> None:
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


def _not_taken(row: Mapping[str, Any]) -> bool:
    """Return whether an endpoint did not take a question, whatever the question was."""
    if row["status"] == "refused":
        return row.get("refusal") not in {"policy", "request"}
    return bool(row["status"] == "disconnected")


def _after(first: Trial, rest: Iterator[Trial]) -> Iterator[Trial]:
    yield first
    yield from rest
