"""A stage of streaming whose sessions end as a test wants, on a clock that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from captures import capture_of
from fakes import FrozenClock
from test_streaming import InPlace, Row, Show, clip_of, plan

from voxmeter.client.capture import Capture
from voxmeter.client.finish import Attempt
from voxmeter.client.plan import Trial
from voxmeter.client.redaction import Redactor
from voxmeter.client.retries import Retries
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.streaming import Streaming
from voxmeter.client.target import Target
from voxmeter.endpoints import events


class Clock(FrozenClock):
    """Notes to when somebody slept."""

    def __init__(self) -> None:
        super().__init__()
        self.began_ns = self.t_ns
        self.until_s: list[float] = []

    def s(self) -> float:
        return (self.t_ns - self.began_ns) / 1e9

    async def sleep_until(self, t_ns: int) -> None:
        self.until_s.append((t_ns - self.began_ns) / 1e9)
        await super().sleep_until(t_ns)


@dataclass
class Peer:
    """Stands for all sessions: each ends as the next capture says; notes when, and how many.

    Of `together`, each number is how many sessions have to be there before these go on.
    """

    clock: Clock
    captures: list[Capture] = field(default_factory=list)
    told: dict[int, events.Event] = field(default_factory=dict)
    dead: str = ""
    together: list[int] = field(default_factory=list)
    gathered: asyncio.Event = field(default_factory=asyncio.Event)
    here: int = 0
    began_s: list[float] = field(default_factory=list)
    now: int = 0
    at_a_time: list[int] = field(default_factory=list)

    async def attempt(self, target: Target, question: object, **how: Any) -> Capture:
        self.began_s.append(round(self.clock.s(), 3))
        number = len(self.began_s)
        self.now += 1
        self.at_a_time.append(self.now)
        await self._gather()
        if number in self.told:
            how["listen"](self.told[number])
        self.now -= 1
        if target.name == self.dead:
            return gone()
        return self.captures.pop(0) if self.captures else capture_of()

    async def _gather(self) -> None:
        if not self.together:
            await asyncio.sleep(0)
            return
        self.here += 1
        gathered = self.gathered
        if self.here == self.together[0]:
            self.together.pop(0)
            self.here, self.gathered = 0, asyncio.Event()
            gathered.set()
        async with asyncio.timeout(20):
            await gathered.wait()


class Statuses(InPlace):
    """Finishes attempts here and now, with the status of their capture."""

    async def finish(self, capture: Capture, attempt: Attempt) -> Row:
        ended = capture.outcome == "ended"
        return {
            **attempt.fields,
            "status": "ok" if ended else capture.outcome,
            "fault": capture.fault,
            "retryable": capture.retryable,
            "retry_after_s": capture.retry_after_s,
            "latency": {},
        }


class Patient(Show):
    def again(self, trial: Trial, row: Any, wait_s: float) -> None:
        self.told.append((f"again {trial.key}", row["status"]))


def gone() -> Capture:
    return capture_of(outcome="disconnected", fault="connection refused")


def busy(named: float | None = None, kind: events.FaultKind = "busy") -> Capture:
    return capture_of(
        outcome="refused", fault="busy", retryable=True, retry_after_s=named, refusal=kind
    )


def run(
    folder: RunFolder,
    clock: Clock,
    trials: int = 0,
    sessions: int = 1,
    endpoints: Sequence[str] = ("m",),
    retries: Retries | None = None,
    names: Sequence[str] = (),
) -> list[Row]:
    def start(name: str, stack: ExitStack) -> tuple[Target, int]:
        return Target(name, "openai-realtime", "ws://127.0.0.1:1", pacing="fast"), sessions

    names = names or [f"q{number}" for number in range(trials)]
    made = plan(*names, endpoints=endpoints)
    Streaming(
        plan=made,
        folder=folder,
        clip_of=clip_of,
        start=start,
        show=Patient(),
        redactor=Redactor(),
        retries=retries or Retries(),
        clock=clock,
    ).run()
    return list(folder.rows("trials"))
