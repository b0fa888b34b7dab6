"""A live talk: a microphone and a loudspeaker on the session driver, turn after turn.

It connects again when the endpoint leaves, writes every turn down when it is over, and is what a
front end shows and controls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.groups import first_of
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.live.aloud import NOT_HEARD, Aloud, Asked
from voxmeter.client.live.chosen_condition import ChosenCondition
from voxmeter.client.live.exchange import Exchange, TurnPlan
from voxmeter.client.live.playback import JITTER_BUFFER_MS, Playback
from voxmeter.client.live.saving import Finished, Keeping
from voxmeter.client.live.sound import Block, Played, Sound, SoundFacts, Trouble
from voxmeter.client.live.turn import Question, Turn, own_question
from voxmeter.client.live.turn_protocol import Ended
from voxmeter.client.live.updates import (
    Notice,
    PhaseChanged,
    Saved,
    Show,
    Update,
)
from voxmeter.client.live.writing import Writing
from voxmeter.endpoints.errors import ClipError, UserError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.redaction import Redactor
    from voxmeter.client.target import Target

HEADSET = (
    "Wear a headset: from a loudspeaker the reply goes back into the microphone, and is taken for "
    "you."
)
_NS = 1_000_000_000
_SILENCE_NS = 20_000_000
_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0)  # before the next attempt to connect; then it is given up
_LEFT_TO_PLAY_S = 3.0
_RECENT_TROUBLES = 100


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


class Talk:
    """One talk; implements `updates.LiveTalk`.

    Args:
        setup: Whom to talk to, and where it is kept.
        sound: The devices; whoever opened them closes them.
        show: Who is told what happens.
        clock: The clock for everything.

    Attributes:
        fault: Why it ended, where that was not the user's wish.
    """

    def __init__(
        self, setup: Setup, sound: Sound, show: Show, *, clock: Clock | None = None
    ) -> None:
        self.fault: str | None = None
        self._setup, self._sound, self._show = setup, sound, show
        self._clock = clock or SystemClock()
        self._monitor = LoopMonitor(self._clock)
        self._condition = ChosenCondition(setup.bench)
        self._muted = False
        self._without_device = asyncio.Event()
        self._phase = PhaseChanged("connecting")
        self._troubles: deque[Trouble] = deque(maxlen=_RECENT_TROUBLES)
        self._playback = Playback(sound, setup.jitter_buffer_ms)
        self._exchange: Exchange | None = None
        self._number = 0
        self._question: Question | None = None
        self._stopped = asyncio.Event()
        self._woken = asyncio.Event()
        self._keeping = Keeping(
            setup.bench, setup.target.name, setup.parent, setup.redactor, self.facts
        )
        self._writing: Writing | None = None

    @property
    def answered(self) -> bool:
        """Whether any turn was answered."""
        return self._writing is not None and self._writing.answered

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
        return self._condition.names

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
        name, left_out = self._condition.next()
        if left_out:
            self._show(Notice(f'"{name}" without {", ".join(left_out)}: not possible live.'))
        return name

    async def save(self) -> Path:
        """Write what was said so far as a run folder; return its path.

        Raises:
            UserError: If the disk is full.
        """
        if self._writing is not None:
            await self._writing.make_folder()
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
                self._writing = Writing(
                    self._keeping, self._monitor, self._clock, self._show, group
                )
                tasks = [
                    group.create_task(self._hear_sound(), name="sound"),
                    group.create_task(self._send_silence(), name="silence"),
                    group.create_task(self._stay_connected(), name="connection"),
                ]
                if self._setup.questions:
                    tasks.append(group.create_task(self._ask_aloud(), name="questions"))
                try:
                    await self._stopped.wait()
                finally:
                    await self._wind_up(tasks, self._writing)
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        finally:
            await self._finish()

    async def _wind_up(self, tasks: Sequence[asyncio.Task[None]], writing: Writing) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if self._exchange is not None:
            self._exchange.close()
        await writing.wait()

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
            self._look()
        self.stop()  # whoever listened is gone

    def _block(self, block: Block) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        if not exchange.turns.speaking:
            self._condition.begin_turn()
        exchange.block(block, self._condition.effect, muted=self._muted)

    def _trouble(self, trouble: Trouble) -> None:
        self._troubles.append(trouble)
        self._show(Notice(trouble.text, serious=trouble.problem in {"lost", "dropped"}))
        if trouble.problem == "lost":
            self._without_device.set()
            self._show(PhaseChanged("no-device", trouble.text))
        elif trouble.problem == "back" and self._without_device.is_set():
            self._without_device.clear()
            self._show(self._phase)
        if self._exchange is not None:
            self._exchange.trouble(trouble)

    def _tell(self, update: Update) -> None:
        """Show what an exchange tells; while there is no device, that is the phase."""
        if isinstance(update, PhaseChanged):
            self._phase = update
            if self._without_device.is_set():
                return
        self._show(update)

    async def _send_silence(self) -> None:
        """Stand in for the microphone while there is no device, so that the talk goes on."""
        silence_ms = _SILENCE_NS // 1_000_000
        while True:
            await self._without_device.wait()
            due = self._clock.now()
            while self._without_device.is_set():
                due = max(due + _SILENCE_NS, self._clock.now())
                await self._clock.sleep_until(due)
                now = self._clock.now()
                silence = bytes(2 * (self.facts.rate * silence_ms // 1000))
                self._block(Block(silence, now - _SILENCE_NS, now))
                self._look()

    def _look(self) -> None:
        """See whether something is over, now that time has passed: blocks are what measures it."""
        if self._exchange is not None:
            self._exchange.tick()
        self._woken.set()

    async def _stay_connected(self) -> None:
        waits = iter(_WAITS_S)
        while True:
            self._tell(PhaseChanged("connecting"))
            self._exchange = exchange = Exchange(
                self._setup.target,
                self._sound,
                self._playback,
                self._clock,
                self._tell,
                plan=self._plan,
                over=self._over,
                number=self._number,
                recent=self._troubles,
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
        await self._until(
            lambda: not exchange.turns.open or self._clock.now() >= limit_ns, limit_ns
        )
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
        self._tell(PhaseChanged("disconnected", said))

    # Turns

    def _plan(self, number: int) -> TurnPlan:
        condition = self._condition
        return TurnPlan(self._question or own_question(number), condition.name, condition.params)

    def _over(self, turn: Turn, made: Finished) -> None:
        assert self._writing is not None  # noqa: S101 - turns end while it runs
        self._writing.turn_over(turn, replace(made, devices=self.facts))

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
                assert self._writing is not None  # noqa: S101 - it runs
                await self._writing.never_heard(asked.question, self._condition.name, fault)
        self.stop()

    async def _until(self, reached: Callable[[], bool], by_ns: int | None = None) -> None:
        """Return when something is so; it is looked at whenever a block comes, and at `by_ns`."""
        async with asyncio.TaskGroup() as group:
            alarm = None if by_ns is None else group.create_task(self._wake_at(by_ns), name="alarm")
            while not reached():
                self._woken.clear()
                await self._woken.wait()
            if alarm is not None:
                alarm.cancel()

    async def _wake_at(self, t_ns: int) -> None:
        await self._clock.sleep_until(t_ns)
        self._woken.set()
