"""Turns of a protocol of requests: each is asked whole, in a session of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.clock import Clock
from voxmeter.client.connection import Connection
from voxmeter.client.live.microphone import Frame
from voxmeter.client.live.tape import Tape
from voxmeter.client.live.turn import Turn
from voxmeter.client.live.turn_protocol import LEAD_IN_MS, Ended, OnEvent
from voxmeter.client.session import Session
from voxmeter.client.speaking import Ask
from voxmeter.client.target import Target, new_tag
from voxmeter.endpoints.codec import Turn as Earlier


class RequestedTurns:
    """Gathers every turn and asks it by the driver of runs, one after another.

    How a turn ended is for its session to say, which has its own limits of time: a turn is not over
    before its session is.
    """

    ends_turns = True

    def __init__(self, target: Target, clock: Clock, tape: Tape, on_event: OnEvent) -> None:
        self.tag = ""
        self._target, self._clock, self._tape, self._on_event = target, clock, tape, on_event
        self._traits = target.traits()
        self.rate = self._traits.input_rate
        self._frames: deque[Frame] = deque()
        self._speaking = False
        self._waiting: asyncio.Queue[tuple[Turn, list[Frame]]] = asyncio.Queue()
        self._pieces: list[tuple[int, bytes]] = []
        self._asked: Turn | None = None
        self._asking: asyncio.Task[None] | None = None
        self._said: list[Earlier] = []

    @property
    def line(self) -> Connection | None:
        """None: no connection outlives a turn."""
        return None

    async def run(self, ready: Callable[[], None]) -> Ended:
        """Ask turn by turn; the connection is none that could be lost."""
        ready()
        while True:
            turn, frames = await self._waiting.get()
            if turn.outcome is not None:
                continue  # cut before it was its time
            async with asyncio.TaskGroup() as group:
                self._asking = group.create_task(self._ask(turn, frames), name="ask")
                self._asked = turn
            self._asked = self._asking = None

    def frame(self, frame: Frame) -> None:
        """Keep a frame while the user speaks, and the last ones before."""
        self._frames.append(frame)
        self._tape.took(frame, frame.came_ns, ())
        while not self._speaking and (
            frame.end - self._frames[0].end > self.rate * 2 * LEAD_IN_MS // 1000
        ):
            self._frames.popleft()

    def began(self, turn: Turn) -> None:  # noqa: ARG002 - frames are kept already
        """Keep everything from now on."""
        self._speaking = True

    def ended(self, turn: Turn) -> None:
        """Ask the endpoint, once the session before it has ended; the turn has its frames now."""
        self._speaking = False
        frames = [frame for frame in self._frames if frame.end > turn.first]
        self._waiting.put_nowait((turn, frames))

    def sounded(self, start: int, pcm: bytes) -> None:
        """Keep decoded samples until the session's rows are there."""
        self._pieces.append((start, pcm))

    def sounded_more(self, pcm: bytes) -> None:
        """Keep the rest of a reply likewise."""
        if self._pieces:
            start, before = self._pieces.pop()
            self._pieces.append((start, before + pcm))

    def cancel(self, turn: Turn, played_ms: int) -> None:  # noqa: ARG002 - the session ends with it
        """Leave the session of a turn, or never begin it."""
        if turn is self._asked and self._asking is not None:
            self._asking.cancel()
        elif turn is not self._asked and turn.outcome is None:
            turn.outcome = "ended", None

    def played(self, reply: str) -> None:
        """Nothing waits for it: the session is over."""

    async def _ask(self, turn: Turn, frames: Sequence[Frame]) -> None:
        self.tag = new_tag()
        codec, clock = self._target.codec(self.tag), self._clock
        spoken = self._utterance(turn, frames)
        history = tuple(self._said) if codec.traits.history else ()
        ask = Ask(lambda rate: _at(spoken, rate), history, patience=self._target.patience)
        session = Session(
            codec,
            self._target.transport(),
            ask,
            clock,
            lambda event: self._on_event(clock.now(), event),
        )
        self._pieces.clear()
        try:
            await session.run(self._target.address(codec, self.tag))
        except asyncio.CancelledError:
            # Cut by the user; or the talk ends, which says itself what becomes of its turns.
            turn.outcome = ("ended", None) if turn.interrupted else None
            raise
        else:
            capture = session.capture()
            turn.outcome = capture.outcome, capture.fault
        finally:
            self._note(turn, spoken, session.capture())

    def _utterance(self, turn: Turn, frames: Sequence[Frame]) -> Utterance:
        start = frames[0].start if frames else turn.first
        pcm = b"".join(frame.pcm for frame in frames)
        return Utterance(pcm, self.rate, turn.onset - start, (turn.end or 0) - start)

    def _note(self, turn: Turn, spoken: Utterance, capture: Capture) -> None:
        self._tape.add(capture.rows, capture.raw, turn.number)
        for piece in self._pieces:
            self._tape.sounded(*piece)
        if capture.reply_text:  # a question that nobody answered is no conversation
            said = Earlier("user", turn.transcript, spoken.pcm)
            self._said += [said, Earlier("assistant", capture.reply_text)]


def _at(spoken: Utterance, rate: int) -> Utterance:
    """Return an utterance at the rate that the peer takes."""
    if rate == spoken.rate:
        return spoken
    import soxr

    from voxmeter.client.audio import from_pcm16, to_pcm16

    samples = soxr.resample(from_pcm16(spoken.pcm), spoken.rate, rate)
    scale = rate / spoken.rate
    onset, end = round(spoken.onset_sample * scale), round(spoken.end_sample * scale)
    return Utterance(to_pcm16(samples), rate, onset, min(end, len(samples)), spoken.end_kind)
