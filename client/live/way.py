"""How what the user says reaches an endpoint: as a stream, as committed turns, as requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from voxmeter.client.capture import Outcome, Utterance
from voxmeter.client.clock import Clock
from voxmeter.client.connection import Connection
from voxmeter.client.encodings import encoder
from voxmeter.client.live.microphone import Frame
from voxmeter.client.live.tape import Tape
from voxmeter.client.live.turn import Turn
from voxmeter.client.session import Session
from voxmeter.client.speaking import Ask
from voxmeter.client.target import Target, new_tag
from voxmeter.endpoints.codec import Step
from voxmeter.endpoints.codec import Turn as Earlier
from voxmeter.endpoints.errors import ConnectionLostError
from voxmeter.endpoints.events import Event, Ready

LEAD_IN_MS = 500
"""Quiet before the speech that goes with it, where not everything is sent anyway."""
_MOST_WAITING = 500  # frames: a peer that takes none for so long takes none any more

Heard = Callable[[int, Event], None]
Ended = tuple[Outcome, str | None]


class Way(Protocol):
    """One connection, or one that is made for every turn."""

    rate: int
    """Samples a second of the frames that it takes; known once it is ready."""
    tag: str
    """Our name for the session."""

    async def run(self, ready: Callable[[], None]) -> Ended:
        """Connect, say when ready, and stay until the connection is lost; return how."""
        ...

    def frame(self, frame: Frame) -> None:
        """Take the next frame of the microphone."""
        ...

    def began(self, turn: Turn) -> None:
        """Take note that the user speaks."""
        ...

    def ended(self, turn: Turn) -> None:
        """Take note that the user's turn is over."""
        ...

    def sounded(self, start: int, pcm: bytes) -> None:
        """Note the decoded samples of reply audio that was just heard of."""
        ...

    def cancel(self, turn: Turn, heard_ms: int) -> None:
        """Stop the reply of a turn."""
        ...

    def played(self, reply: str) -> None:
        """Say that all of a reply has been played."""
        ...


class Streamed:
    """One connection on which frames leave as they come; with `commit`, those of turns alone."""

    def __init__(self, target: Target, clock: Clock, tape: Tape, heard: Heard) -> None:
        self.tag = new_tag()
        self._codec = target.codec(self.tag)
        self._target, self._clock, self._tape = target, clock, tape
        self._transport = target.transport()
        self._line = Connection(self._codec, self._transport, clock, tape, heard=heard)
        self.rate = self._codec.traits.input_rate
        self._commits = self._codec.traits.turn_end == "commit"
        self._open = not self._commits
        self._held: deque[Frame] = deque()
        self._jobs: asyncio.Queue[Frame | Step | None] = asyncio.Queue()

    @property
    def line(self) -> Connection:
        """The connection, for what is known of it."""
        return self._line

    async def run(self, ready: Callable[[], None]) -> Ended:
        """Connect, say when ready, and stay until the connection is lost; return how."""
        line, limit_s = self._line, self._target.patience.connect_timeout_s
        try:
            if await line.connect(self._target.address(self._codec, self.tag), limit_s):
                await self._stay(ready, limit_s)
        finally:
            await line.close()
        return line.failure or ("disconnected", None)

    async def _stay(self, ready: Callable[[], None], limit_s: float) -> None:
        line = self._line
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(line.receive(), name="receive")]
            if await line.handshake(limit_s):
                told = line.ready or Ready()
                self.rate = told.input_rate or self._codec.traits.input_rate
                tasks.append(group.create_task(self._send(told), name="send"))
                ready()
            try:
                while line.failure is None:
                    await line.change()
            finally:
                await line.leave()
                for task in tasks:
                    task.cancel()

    def frame(self, frame: Frame) -> None:
        """Send a frame, or hold it until the user speaks."""
        if self._open:
            self._put(frame)
            return
        self._held.append(frame)
        while frame.end - self._held[0].end > self.rate * 2 * LEAD_IN_MS // 1000:
            self._held.popleft()

    def began(self, turn: Turn) -> None:
        """Send what was held of this turn, and what follows."""
        if self._open:
            return
        self._open = True
        now = self._clock.now()  # nobody could know before that they would be wanted
        for frame in self._held:
            if frame.end > turn.first:
                self._put(replace(frame, came_ns=now))
        self._held.clear()

    def ended(self, turn: Turn) -> None:  # noqa: ARG002 - one turn at a time
        """Close the turn, where that is for us to do."""
        if self._commits:
            self._open = False
            self._jobs.put_nowait(None)

    def sounded(self, start: int, pcm: bytes) -> None:
        """Note decoded samples at once: their row is there."""
        self._tape.sounded(start, pcm)

    def cancel(self, turn: Turn, heard_ms: int) -> None:  # noqa: ARG002 - one reply at a time
        """Ask the endpoint to stop its reply."""
        self._jobs.put_nowait(self._codec.cancel(heard_ms))

    def played(self, reply: str) -> None:
        """Tell the endpoint, where the protocol has a word for it."""
        self._jobs.put_nowait(self._codec.played(reply))

    def _put(self, frame: Frame) -> None:
        self._jobs.put_nowait(frame)
        if self._jobs.qsize() > _MOST_WAITING:
            self._line.fail("disconnected", "the endpoint stopped taking the microphone")

    async def _send(self, told: Ready) -> None:
        wire = encoder(told.input_encoding or self._codec.traits.input_encoding, self.rate)
        try:
            while True:
                job = await self._jobs.get()
                if isinstance(job, Frame):
                    data = wire.encode(job.pcm)
                    messages = self._codec.audio(data).messages if data else ()
                    for message in messages:
                        await self._transport.send(message)
                    self._tape.took(job, self._clock.now(), messages)
                elif job is None:
                    await self._commit()
                else:
                    await self._line.send_step(job)
        except ConnectionLostError:
            return  # the receiver hears the same end, with its reason

    async def _commit(self) -> None:
        due_ns = self._clock.now()
        for message in self._codec.end_turn().messages:
            await self._transport.send(message)
            self._tape.sent(self._clock.now(), "commit", message, due_ns=due_ns)


class Gathered:
    """Every turn is gathered here and asked in a session of its own, by the driver of runs."""

    def __init__(self, target: Target, clock: Clock, tape: Tape, heard: Heard) -> None:
        self.tag = ""
        self._target, self._clock, self._tape, self._heard = target, clock, tape, heard
        self._traits = target.traits()
        self.rate = self._traits.input_rate
        self._frames: deque[Frame] = deque()
        self._speaking = False
        self._jobs: asyncio.Queue[Turn] = asyncio.Queue()
        self._pieces: list[tuple[int, bytes]] = []
        self._asking: asyncio.Task[None] | None = None
        self._said: list[Earlier] = []

    async def run(self, ready: Callable[[], None]) -> Ended:
        """Ask turn by turn; the connection is none that could be lost."""
        ready()
        while True:
            turn = await self._jobs.get()
            frames = [frame for frame in self._frames if frame.end > turn.first]
            async with asyncio.TaskGroup() as group:
                self._asking = group.create_task(self._ask(turn, frames), name="ask")
            self._asking = None

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
        """Ask the endpoint."""
        self._speaking = False
        self._jobs.put_nowait(turn)

    def sounded(self, start: int, pcm: bytes) -> None:
        """Keep decoded samples until the session's rows are there."""
        self._pieces.append((start, pcm))

    def cancel(self, turn: Turn, heard_ms: int) -> None:  # noqa: ARG002 - the session ends with it
        """Leave the session."""
        if self._asking is not None:
            self._asking.cancel()

    def played(self, reply: str) -> None:
        """Nothing waits for it: the session is over."""

    async def _ask(self, turn: Turn, frames: Sequence[Frame]) -> None:
        start = frames[0].start if frames else turn.first
        pcm = b"".join(frame.pcm for frame in frames)
        spoken = Utterance(pcm, self.rate, turn.onset - start, (turn.end or 0) - start)
        self.tag = new_tag()
        codec = self._target.codec(self.tag)
        history = tuple(self._said) if codec.traits.history else ()
        ask = Ask(lambda rate: _at(spoken, rate), history, patience=self._target.patience)
        clock = self._clock
        session = Session(
            codec,
            self._target.transport(),
            ask,
            clock,
            lambda event: self._heard(clock.now(), event),
        )
        self._pieces.clear()
        try:
            await session.run(self._target.address(codec, self.tag))
        finally:
            capture = session.capture()
            self._tape.add(capture.rows, capture.raw, turn.number)
            for piece in self._pieces:
                self._tape.sounded(*piece)
            if capture.reply_text:  # a question that nobody answered is no conversation
                said = Earlier("user", turn.transcript, pcm)
                self._said += [said, Earlier("assistant", capture.reply_text)]
            cut = turn.interrupted and capture.outcome == "disconnected"
            turn.outcome = ("ended", None) if cut else (capture.outcome, capture.fault)


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


def way_to(target: Target, clock: Clock, tape: Tape, heard: Heard) -> Way:
    """Return how to talk to an endpoint."""
    asks = target.traits().turn_end == "request"
    return (Gathered if asks else Streamed)(target, clock, tape, heard)
