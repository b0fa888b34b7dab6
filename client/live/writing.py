"""Writes turns down while the talk goes on, and tells what was found in each."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from voxmeter.client.clock import Clock
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.live.saving import Finished, Keeping, Row
from voxmeter.client.live.turn import LIVE, Question, Turn
from voxmeter.client.live.updates import Notice, Running, Show, TurnOver

_NOT_COUNTED = "its latency is in no figure, as this machine or its sound was late"


class Writing:
    """What is being written to the folder of a talk.

    Args:
        keeping: The folder.
        monitor: Knows how late the event loop was.
        clock: The clock for everything.
        show: Who is told.
        group: Where the writing runs; ends when all is written.

    Attributes:
        answered: Whether any turn was answered.
    """

    def __init__(
        self,
        keeping: Keeping,
        monitor: LoopMonitor,
        clock: Clock,
        show: Show,
        group: asyncio.TaskGroup,
    ) -> None:
        self.answered = False
        self._keeping, self._monitor, self._clock = keeping, monitor, clock
        self._show, self._group = show, group
        self._tasks: set[asyncio.Task[None]] = set()

    def turn_over(self, turn: Turn, made: Finished) -> None:
        """Write down a turn."""
        made.capture.ended_ns = self._clock.now()
        made.capture.lags = self._monitor.between(turn.since_ns, made.capture.ended_ns)
        self._begin(self._write(turn, made))

    async def never_heard(self, question: Question, condition: str, fault: str) -> None:
        """Write down a question that the microphone did not hear; return when that is done."""
        await asyncio.wait({self._begin(self._keeping.never_heard(question, condition, fault))})

    async def make_folder(self) -> None:
        """Make the folder, if it is not there, and return when all so far is written."""
        self._begin(self._keeping.make())
        await self.wait()

    async def wait(self) -> None:
        """Return when all so far is written, or could not be."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    def _begin(self, writing: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Do what writes to the folder, and let nobody but a fault end it before it is done."""
        task = self._group.create_task(writing, name="write")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _write(self, turn: Turn, made: Finished) -> None:
        if turn.question.suite == LIVE:
            turn.question.row["question"] = turn.transcript.strip()
        made.fields.update(self._keeping.key(turn.question, turn.condition))
        row = await self._keeping.keep(made)
        self.answered = self.answered or row["status"] == "ok"
        valid = bool(row["audit"].get("latency_valid", True))
        self._show(TurnOver(turn.number, _status(turn, row), row["latency"], turn.condition, valid))
        self._show(Running(self._keeping.figures()))
        if not valid:
            self._show(Notice(f"turn {turn.number}: {_NOT_COUNTED}"))
        if row["fault"]:
            self._show(Notice(str(row["fault"])))


def _status(turn: Turn, row: Row) -> str:
    if (turn.interrupted or turn.cut) and row["status"] == "ok":
        return "interrupted"
    return str(row["status"])
