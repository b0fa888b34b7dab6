"""The session driver: one question, one reply, any protocol, every moment on one clock.

Frame k leaves when its last sample would exist, at start + (k + 1) frames; deadlines are absolute
and never move, overdue frames leave at once and are marked. What arrives is stamped before it is
parsed. Silence follows the question until the reply has ended, or the turn is closed explicitly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from voxmeter.client.capture import Capture, Outcome, Recorder, Utterance
from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.connection import Connection
from voxmeter.client.ear import ear_for
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.playing import Playout
from voxmeter.client.speaking import Ask, Question
from voxmeter.client.transport import Transport
from voxmeter.endpoints.codec import Address, Codec
from voxmeter.endpoints.errors import ConnectionLostError
from voxmeter.endpoints.events import (
    Event,
    Interrupted,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)

_NS = 1_000_000_000
_MS = 1_000_000


async def converse(
    codec: Codec,
    transport: Transport,
    address: Address,
    ask: Ask,
    *,
    clock: Clock | None = None,
    monitor: LoopMonitor | None = None,
    listen: Callable[[Event], None] = lambda _: None,
) -> Capture:
    """Hold one session and return what it left behind; an endpoint's faults are in the result.

    Args:
        codec: Fresh codec of the endpoint's protocol.
        transport: Unconnected transport that can carry its messages.
        address: Where to connect.
        ask: The question and how to put it.
        clock: The clock for everything; the machine's own by default.
        monitor: A running loop monitor, whose findings for this attempt go into the result.
        listen: Called with every event as it comes; must be quick.
    """
    session = Session(codec, transport, ask, clock or SystemClock(), listen)
    began = session.clock.now()
    await session.run(address)
    capture = session.capture()
    if monitor is not None:
        capture.lags = monitor.between(began, capture.ended_ns)
    return capture


class Session:
    """One attempt under way. Use `converse`."""

    def __init__(
        self,
        codec: Codec,
        transport: Transport,
        ask: Ask,
        clock: Clock,
        listen: Callable[[Event], None],
    ) -> None:
        self.clock = clock
        self._codec, self._transport, self._ask, self._listen = codec, transport, ask, listen
        self._record = Recorder()
        self._line = Connection(
            codec, transport, clock, self._record, heard=self._hear, closed=self._closed
        )
        self._outcome: Outcome = "disconnected"
        self._utterance: Utterance | None = None
        self._t0_ns: int | None = None
        self._spoken_by_ns: int | None = None
        self._over = False
        self._ear = ear_for(
            codec.traits,
            drain_ms=ask.patience.drain_ms,
            quiet_ms=ask.patience.quiet_ms,
            fast=ask.pacing == "fast",
        )
        self._playout = Playout()

    def capture(self) -> Capture:
        """Return what the session left behind."""
        line = self._line
        outcome, fault = line.failure or (self._outcome, line.note)
        return Capture(
            outcome=outcome,
            fault=fault,
            rows=self._record.rows,
            audio=self._record.audio,
            raw=self._record.raw,
            utterance=self._utterance,
            connect_ms=line.connect_ms,
            rtt_ms=line.rtt_ms,
            reply_text=self._ear.text(),
            usage=line.usage,
            ended_ns=self.clock.now(),
            retryable=outcome == "refused" and line.retryable,
            retry_after_s=line.retry_after_s,
            refusal=line.refusal,
        )

    async def run(self, address: Address) -> None:
        """Connect, ask, listen until the reply is over, leave."""
        try:
            if await self._line.connect(address, self._ask.patience.connect_timeout_s):
                await self._converse()
        finally:
            await self._line.close()

    async def _converse(self) -> None:
        line = self._line
        async with asyncio.TaskGroup() as group:
            receiver = group.create_task(line.receive(), name="receive")
            player = group.create_task(self._play_out(), name="play out")
            sender = None
            if await line.handshake(self._ask.patience.connect_timeout_s):
                sender = group.create_task(self._speak(), name="speak")
                await self._until_over()
            if sender is not None:
                sender.cancel()
            player.cancel()
            await line.leave()
            receiver.cancel()

    async def _speak(self) -> None:
        traits, ready = self._codec.traits, self._line.ready or Ready()
        rate = ready.input_rate or traits.input_rate
        # A local: as an attribute it would hold this session in a cycle, and thousands of rows
        # would wait for the collector, which then stops every session while it frees them.
        question = Question(
            self._codec,
            self._transport,
            self._ask,
            self._record,
            self.clock,
            greeted=self._greeted,
            begun=self._ear.question_began,
            spoken=self._spoken,
        )
        try:
            self._utterance = await asyncio.to_thread(self._ask.question, rate)
            history = await asyncio.to_thread(self._ask.turns, rate)
            self._spoken_by_ns = self.clock.now() + self._most_ns(self._utterance)
            self._line.woken()
            encoding = ready.input_encoding or traits.input_encoding
            await question.put(self._utterance, encoding, history)
        except ConnectionLostError:
            return  # the receiver hears the same end, with its reason

    def _greeted(self) -> bool:
        over_ns = self._ear.over_at()  # where no end is told
        return self._ear.greeted or (over_ns is not None and self.clock.now() >= over_ns)

    def _most_ns(self, utterance: Utterance) -> int:
        """Return how long a question may take to leave; a peer may stop reading without a word."""
        traits, patience = self._codec.traits, self._ask.patience
        limit_s = patience.connect_timeout_s + patience.first_reply_timeout_s
        if traits.first_speaker == "endpoint":
            limit_s += patience.greeting_timeout_s
        silence_ns = (traits.lead_in_ms + traits.min_turn_ms) * _MS + self._ask.stagger_ns
        return int(limit_s * _NS) + silence_ns + utterance.samples * _NS // utterance.rate

    def _spoken(self, t0_ns: int, place_s: float) -> None:
        self._t0_ns = t0_ns
        self._ear.question_ended(t0_ns, place_s)
        self._line.woken()

    async def _play_out(self) -> None:
        """Tell a peer that waits for it whenever all that has come would have been played."""
        while self._codec.traits.awaits_played:
            reply = await self._playout.over(self.clock)
            with suppress(ConnectionLostError):  # the receiver hears the end, with its reason
                await self._line.send_step(self._codec.played(reply))

    def _hear(self, t_ns: int, event: Event) -> None:
        self._listen(event)
        match event:
            case ReplyStarted() | ReplyAudio() | ReplyText() | ReplyEnded() | Interrupted():
                self._ear.hear(t_ns, event)
                self._playout.hear(t_ns, event)
                if isinstance(event, ReplyEnded) and event.reason == "incomplete":
                    self._line.note = (
                        self._line.note
                        or f"a reply was cut short: {event.detail or 'it is not told why'}"
                    )
            case _:
                pass

    def _closed(self, code: int | None, reason: str) -> None:
        if self._t0_ns is not None and self._ear.over_at() is not None:
            self._over = True  # it said all it had to say, then left
            return
        self._line.lose(code, reason, answered=self._ear.heard)

    async def _until_over(self) -> None:
        while True:
            verdict, deadline = self._verdict(self.clock.now())
            if verdict is not None:
                self._outcome = verdict
                return
            left_s = None if deadline is None else max(0.0, (deadline - self.clock.now()) / _NS)
            try:
                async with asyncio.timeout(left_s):
                    await self._line.change()
            except TimeoutError:
                continue

    def _verdict(self, now: int) -> tuple[Outcome | None, int | None]:
        """Return how the session ended, or when to look again (ns; None: when something comes)."""
        if self._line.failure is not None:
            return self._line.failure[0], None
        if self._over:
            return "ended", None
        if self._t0_ns is None:
            if self._spoken_by_ns is not None and now >= self._spoken_by_ns:
                self._line.fail("disconnected", "the endpoint stopped taking the question")
                return "disconnected", None
            return None, self._spoken_by_ns
        patience = self._ask.patience
        limit = self._t0_ns + int(patience.reply_limit_s * _NS)
        first = self._t0_ns + int(patience.first_reply_timeout_s * _NS)
        ended = self._ear.over_at()
        answering = self._ear.answering
        if ended is not None and now >= ended:
            return "ended", None
        if not answering and now >= min(first, limit):
            # A full-duplex stream that stayed silent did come; nothing in it was audible.
            silent = self._codec.traits.full_duplex and self._ear.heard
            return "ended" if silent else "timeout", None
        if now >= limit:
            return "truncated", None
        return None, min(t for t in (limit, None if answering else first, ended) if t is not None)
