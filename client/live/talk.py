"""A live talk: a microphone and a loudspeaker on the session driver, turn after turn.

It connects again when the endpoint leaves, writes every turn down when it is over, and is what a
front end shows and controls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.groups import first_of
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.live.aloud import NOT_HEARD, Aloud, Asked
from voxmeter.client.live.exchange import Exchange, Spoken
from voxmeter.client.live.playback import JITTER_BUFFER_MS, Playback
from voxmeter.client.live.saving import Finished, Keeping, Row
from voxmeter.client.live.sound import Block, Played, Sound, SoundFacts, Trouble
from voxmeter.client.live.stream_effects import Condition, condition
from voxmeter.client.live.turn import LIVE, Question, Turn, own_question
from voxmeter.client.live.updates import Notice, PhaseChanged, Running, Saved, Show, TurnOver
from voxmeter.client.live.way import Ended
from voxmeter.endpoints.errors import ClipError, UserError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.redaction import Redactor
    from voxmeter.client.target import Target

CLEAN = "clean"
HEADSET = (
    "Wear a headset: from a loudspeaker the reply goes back into the microphone, and is taken for "
    "you."
)
_NS = 1_000_000_000
_TICK_NS = 20_000_000
_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0)  # before the next attempt to connect; then it is given up
_SILENCE_MS = 20
_LEFT_TO_PLAY_S = 3.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What a talk needs to know besides its devices.

    Attributes:
        bench: As loaded.
        target: Whom to talk to.
        parent: Where its run folder is made.
        redactor: Knows every secret of the bench.
        questions: Asked aloud one after another, in place of a user who speaks.
        jitter_buffer_ms: What a reply waits before it is played, at first.
    """

    bench: Bench
    target: Target
    parent: Path
    redactor: Redactor
    questions: Sequence[Asked] = ()
    jitter_buffer_ms: int = JITTER_BUFFER_MS


Begin = Callable[[Show], "Talk"]
BeginWith = Callable[[Sound, Show], "Talk"]


class Talk:
    """One talk; implements `updates.Controls`.

    Args:
        setup: Whom to talk to, and where it is kept.
        sound: The devices; whoever opened them closes them.
        show: Who is told what happens.
        clock: The clock for everything.

    Attributes:
        fault: Why it ended, where that was not the user's wish.
        answered: Whether any turn was answered.
    """

    def __init__(
        self, setup: Setup, sound: Sound, show: Show, *, clock: Clock | None = None
    ) -> None:
        self.fault: str | None = None
        self.answered = False
        self._setup, self._sound, self._show = setup, sound, show
        self._clock = clock or SystemClock()
        self._monitor = LoopMonitor(self._clock)
        seed = setup.bench.run.seed
        self._conditions: list[Condition] = [
            condition(one.name, one.chain, f"{seed}/{one.name}/live")
            for one in setup.bench.conditions
        ]
        self._wanted = self._now = 0  # 0 is clean
        self._muted = False
        self._lost_ns: int | None = None
        self._playback = Playback(sound, setup.jitter_buffer_ms)
        self._exchange: Exchange | None = None
        self._number = 0
        self._question: Question | None = None
        self._stopped = asyncio.Event()
        self._woken = asyncio.Event()
        self._keeping = Keeping(
            setup.bench, setup.target.name, setup.parent, setup.redactor, self.facts
        )
        self._group: asyncio.TaskGroup | None = None
        self._writing: set[asyncio.Task[None]] = set()

    @property
    def endpoint(self) -> str:
        """Name of the endpoint."""
        return self._setup.target.name

    @property
    def facts(self) -> SoundFacts:
        """What is known of the devices, and of how replies are played on them."""
        facts, wait_ms = self._sound.facts, self._setup.jitter_buffer_ms
        note = f"jitter buffer: a reply waits {wait_ms} ms before it is played, more after a hole"
        return replace(facts, notes=(*facts.notes, note)) if wait_ms else facts

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names of the conditions that `next_condition` goes through."""
        return (CLEAN, *(one.name for one in self._conditions))

    @property
    def advice(self) -> tuple[str, ...]:
        """What a user should read before the talk."""
        canceller = any("echo" in note for note in self.facts.notes)
        return () if self._setup.questions or canceller else (HEADSET,)

    @property
    def folder(self) -> Path | None:
        """Where it is kept; None before anything was said."""
        return None if self._keeping.folder is None else self._keeping.folder.path

    # What a front end may ask

    def mute(self, *, muted: bool) -> None:
        """Send silence in place of the microphone, or no longer."""
        self._muted = muted

    def interrupt(self) -> None:
        """Cut the reply that is being played, here and at the endpoint."""
        if self._exchange is not None and not self._exchange.interrupt():
            self._show(Notice("There is no reply to interrupt."))

    def next_condition(self) -> str:
        """Speak in the next condition from the next turn on; return its name."""
        self._wanted = (self._wanted + 1) % (len(self._conditions) + 1)
        if self._wanted:
            wanted = self._conditions[self._wanted - 1]
            if wanted.left_out:
                left_out = ", ".join(wanted.left_out)
                self._show(Notice(f'"{wanted.name}" without {left_out}: not possible live.'))
        return self.conditions[self._wanted]

    async def save(self) -> Path:
        """Write what was said so far as a run folder; return its path.

        Raises:
            UserError: If the disk is full.
        """
        if self._group is not None:
            await asyncio.wait({*self._writing, self._later(self._keeping.make())})
        path = self.folder
        if path is None:  # the disk is full: the talk ends, and says so
            raise UserError(str(self._setup.parent), "could not be written to", "free some space")
        self._show(Saved(path, self._keeping.turns, self._keeping.figures()))
        return path

    def stop(self) -> None:
        """End the talk; what was said is saved."""
        self._stopped.set()

    # The talk

    async def run(self) -> None:
        """Talk until `stop`, the end of the questions, or the endpoint is gone for good.

        Raises:
            UserError: If the disk is full.
        """
        self._keeping.warm()
        try:
            async with self._monitor.watching(), asyncio.TaskGroup() as group:
                self._group = group
                tasks = [
                    group.create_task(self._hear_sound(), name="sound"),
                    group.create_task(self._tick(), name="tick"),
                    group.create_task(self._stay_connected(), name="connection"),
                ]
                if self._setup.questions:
                    tasks.append(group.create_task(self._ask_aloud(), name="questions"))
                try:
                    await self._stopped.wait()
                finally:
                    await self._wind_up(tasks)
                    self._group = None
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        finally:
            await self._finish()

    async def _wind_up(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if self._exchange is not None:
            self._exchange.close()
        if self._writing:
            await asyncio.wait(set(self._writing))

    async def _finish(self) -> None:
        """Close the folder; with its summary and report, if there is anything in it."""
        try:
            folder = self._keeping.folder
            if folder is not None and self._keeping.turns:
                from voxmeter.client.live.reporting import report

                await asyncio.to_thread(report, folder, self._setup.bench)
                self._show(Saved(folder.path, self._keeping.turns, self._keeping.figures()))
        finally:
            await asyncio.to_thread(self._keeping.close)
            self._show(PhaseChanged("ended", self.fault or ""))

    async def _hear_sound(self) -> None:
        async for event in self._sound.events():
            match event:
                case Block():
                    self._block(event)
                case Played() if self._exchange is not None:
                    self._exchange.played(event)
                case Played():
                    self._playback.played(event)
                case Trouble():
                    self._trouble(event)
            self._wake()
        self.stop()  # whoever listened is gone

    def _block(self, block: Block) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        if not exchange.turns.speaking:
            self._now = self._wanted
        effect = self._conditions[self._now - 1] if self._now else None
        exchange.block(block, effect, muted=self._muted)

    def _trouble(self, trouble: Trouble) -> None:
        self._show(Notice(trouble.text, serious=trouble.problem in {"lost", "dropped"}))
        if trouble.problem == "lost":
            self._lost_ns = self._clock.now()
        elif trouble.problem == "back":
            self._lost_ns = None
        if self._exchange is not None:
            self._exchange.trouble(trouble)

    async def _tick(self) -> None:
        """Look every 20 ms whether something is over; with no device, send silence meanwhile."""
        due = self._clock.now()
        while True:
            due = max(due + _TICK_NS, self._clock.now())
            await self._clock.sleep_until(due)
            if self._lost_ns is not None:
                silence = bytes(2 * (self.facts.rate * _SILENCE_MS // 1000))
                now = self._clock.now()
                self._block(Block(silence, now - _TICK_NS, now))
            if self._exchange is not None:
                self._exchange.tick()
            self._wake()

    async def _stay_connected(self) -> None:
        waits = iter(_WAITS_S)
        while True:
            self._show(PhaseChanged("connecting"))
            self._exchange = exchange = Exchange(
                self._setup.target,
                self._sound,
                self._playback,
                self._clock,
                self._show,
                spoken=self._spoken,
                over=self._over,
                number=self._number,
            )
            ended = await exchange.run()
            waits = iter(_WAITS_S) if exchange.ready else waits
            await self._drain(exchange, ended)
            self._number = exchange.turns.number
            wait_s = next(waits, None)
            self._tell_lost(ended, wait_s)
            if wait_s is None:
                self.stop()
                return
            await self._clock.sleep_until(self._clock.now() + int(wait_s * _NS))

    async def _drain(self, exchange: Exchange, ended: Ended) -> None:
        """Let what came of a reply be heard out."""
        exchange.lost(ended)
        limit_ns = self._clock.now() + int(_LEFT_TO_PLAY_S * _NS)
        await self._until(lambda: not exchange.turns.open or self._clock.now() >= limit_ns)
        exchange.close()
        self._playback.clear()

    def _tell_lost(self, ended: Ended, wait_s: float | None) -> None:
        outcome, fault = ended
        said = f"{self.endpoint}: {fault or outcome}"
        if wait_s is None or outcome == "refused":
            self.fault = said
            self._show(Notice(said, serious=True))
            if outcome == "refused":
                self.stop()
        else:
            self._show(Notice(f"{said}; connecting again in {wait_s:g} s", serious=True))
        self._show(PhaseChanged("lost", said))

    # Turns

    def _spoken(self, number: int) -> Spoken:
        params = {} if not self._now else dict(self._conditions[self._now - 1].params)
        return Spoken(self._question or own_question(number), self.conditions[self._now], params)

    def _over(self, turn: Turn, made: Finished) -> None:
        made.capture.ended_ns = self._clock.now()
        made.capture.lags = self._monitor.between(turn.since_ns, made.capture.ended_ns)
        self._later(self._write(turn, made))

    def _later(self, writing: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Do what writes to the folder, and let nobody but a fault end it before it is done."""
        assert self._group is not None  # noqa: S101 - turns end while it runs
        task = self._group.create_task(writing, name="write")
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return task

    async def _write(self, turn: Turn, made: Finished) -> None:
        if turn.question.suite == LIVE:
            turn.question.row["question"] = turn.transcript.strip()
        made.fields.update(self._keeping.key(turn.question, turn.condition))
        row = await self._keeping.keep(made)
        self.answered = self.answered or row["status"] == "ok"
        self._show(TurnOver(turn.number, _status(turn, row), row["latency"], turn.condition))
        self._show(Running(self._keeping.figures()))
        if row["fault"]:
            self._show(Notice(str(row["fault"])))

    # Questions that are asked aloud

    async def _ask_aloud(self) -> None:
        asking = Aloud(self._playback, lambda: self._exchange, self._until, self._clock)
        for asked in self._setup.questions:
            self._question = asked.question
            try:
                fault = "" if await asking.ask(asked) else NOT_HEARD
            except ClipError as error:
                fault = str(error)
            if fault:
                self._show(Notice(f"{asked.question.item}: {fault}", serious=True))
                name = self.conditions[self._now]
                row = self._keeping.never_heard(asked.question, name, fault)
                await asyncio.wait({self._later(row)})
        self.stop()

    def _wake(self) -> None:
        self._woken.set()

    async def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self._woken.clear()
            await self._woken.wait()


def _status(turn: Turn, row: Row) -> str:
    return (
        "interrupted"
        if (turn.interrupted or turn.cut) and row["status"] == "ok"
        else str(row["status"])
    )
