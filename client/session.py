"""The session driver: one question, one reply, any protocol, every moment on one clock.

Frame k leaves when its last sample would exist, at start + (k + 1) frames; deadlines are absolute
and never move, overdue frames leave at once and are marked. What arrives is stamped before it is
parsed. Silence follows the question until the reply has ended, or the turn is closed explicitly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from math import isfinite

from voxmeter.client.capture import Capture, Outcome, Recorder, Utterance, size_of
from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.ear import ear_for
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.speaking import Ask, Question
from voxmeter.client.transport import Transport
from voxmeter.endpoints.codec import Address, Codec, Message, Step
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    Interrupted,
    RateLimit,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    Usage,
)
from voxmeter.endpoints.waits import named_wait_s

_ROW_BYTES = 512  # that a message takes here beside its payload
_FLOOD = "sent more than {} MiB in one session"
_NS = 1_000_000_000
_MS = 1_000_000
_TRY_LATER = 1013
_REFUSING_CODES = {1008, _TRY_LATER, 3000, 3003}


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
        self._changed = asyncio.Event()
        self._ready: Ready | None = None
        self._failure: tuple[Outcome, str] | None = None
        self._outcome: Outcome = "disconnected"
        self._note: str | None = None
        self._connect_began = 0
        self._connect_ms: float | None = None
        self._rtt_ms: float | None = None
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
        self._usage: dict[str, float] = {}
        self._retryable = False
        self._retry_after_s: float | None = None
        self._spent_s: float | None = None  # until limits that are used up are whole again

    def capture(self) -> Capture:
        """Return what the session left behind."""
        outcome, fault = self._failure or (self._outcome, self._note)
        return Capture(
            outcome=outcome,
            fault=fault,
            rows=self._record.rows,
            audio=self._record.audio,
            raw=self._record.raw,
            utterance=self._utterance,
            connect_ms=self._connect_ms,
            rtt_ms=self._rtt_ms,
            reply_text=self._ear.text(),
            usage=self._usage,
            ended_ns=self.clock.now(),
            retryable=outcome == "refused" and self._retryable,
            retry_after_s=self._retry_after_s,
        )

    async def run(self, address: Address) -> None:
        """Connect, ask, listen until the reply is over, leave."""
        try:
            if await self._connect(address):
                await self._converse()
        finally:
            await self._transport.close()

    async def _connect(self, address: Address) -> bool:
        began = self.clock.now()
        limit = self._ask.patience.connect_timeout_s
        try:
            async with asyncio.timeout(limit):
                await self._transport.connect(address)
        except TimeoutError:
            self._fail("disconnected", f"no connection within {limit:g} s")
        except ConnectError as error:
            if error.failure == "rejected":
                self._refuse(str(error), error.retryable, error.retry_after_s)
            else:
                self._fail("disconnected", str(error))
        self._connect_began = began
        return self._failure is None

    async def _converse(self) -> None:
        async with asyncio.TaskGroup() as group:
            receiver = group.create_task(self._receive(), name="receive")
            sender = None
            if await self._handshake():
                self._rtt_ms = await self._transport.rtt_ms()
                sender = group.create_task(self._speak(), name="speak")
                await self._until_over()
            if sender is not None:
                sender.cancel()
            await self._leave()
            receiver.cancel()

    async def _handshake(self) -> bool:
        limit = self._ask.patience.connect_timeout_s
        left_s = limit - (self.clock.now() - self._connect_began) / _NS
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                with suppress(ConnectionLostError):  # the receiver hears the end, with its reason
                    await self._send_step(self._codec.open())
                while self._ready is None and self._failure is None:
                    await self._change()
        except TimeoutError:
            self._fail("disconnected", f"connected, but no session within {limit:g} s: busy?")
        if self._failure is None:
            self._connect_ms = (self.clock.now() - self._connect_began) / _MS
        return self._failure is None

    async def _leave(self) -> None:
        with suppress(TimeoutError, ConnectionLostError):  # it is over either way
            async with asyncio.timeout(1.0):
                await self._send_step(self._codec.close())

    async def _speak(self) -> None:
        traits, ready = self._codec.traits, self._ready or Ready()
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
            self._changed.set()
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
        self._changed.set()

    async def _receive(self) -> None:
        taken = 0
        try:
            async for t_ns, message in self._transport.receive():
                taken += size_of(message) + _ROW_BYTES
                if taken > self._ask.patience.most_mib * 2**20:
                    self._fail("protocol_error", _FLOOD.format(self._ask.patience.most_mib))
                    return
                step = self._codec.receive(message)
                self._record.received(t_ns, message, tuple(step.events))
                for event in step.events:
                    self._hear(t_ns, event)
                with suppress(ConnectionLostError):  # what came before the end is still to be heard
                    await self._send_step(Step((), step.messages))
        except ProtocolError as error:
            self._fail("protocol_error", str(error))
        except ConnectionLostError as error:
            self._fail("disconnected", str(error))

    def _hear(self, t_ns: int, event: Event) -> None:
        self._listen(event)
        match event:
            case Ready():
                self._ready = event
            case ReplyStarted() | ReplyAudio() | ReplyText() | ReplyEnded() | Interrupted():
                self._ear.hear(t_ns, event)
                if isinstance(event, ReplyEnded) and event.reason == "incomplete":
                    self._note = (
                        self._note
                        or f"a reply was cut short: {event.detail or 'it is not told why'}"
                    )
            case Usage(counts):
                for name, count in counts.items():
                    total = self._usage.get(name, 0) + count
                    if isfinite(total):  # whatever a server claims, the row has to be JSON
                        self._usage[name] = total
            case RateLimit(remaining=remaining, reset_s=reset_s):
                if remaining is not None and remaining <= 0 and reset_s is not None:
                    self._spent_s = max(self._spent_s or 0.0, reset_s)
                return
            case Fault(kind, retryable, message, True, wait_s):
                if wait_s is None and kind == "busy":
                    wait_s = self._spent_s
                self._refuse(f"{kind}: {message}", retryable, wait_s)
            case Fault():
                self._note = f"{event.kind}: {event.message}"
            case Closed(code, reason):
                self._closed(code, reason)
            case _:
                return
        self._changed.set()

    def _closed(self, code: int | None, reason: str) -> None:
        if self._t0_ns is not None and self._ear.over_at() is not None:
            self._over = True  # it said all it had to say, then left
            return
        said = f"closed with code {code}: {reason or 'no reason given'}"
        vendor = code is not None and 4000 <= code < 5000
        if (code in _REFUSING_CODES or vendor) and not self._ear.heard:
            self._refuse(said, code == _TRY_LATER, named_wait_s(reason))
        else:
            self._fail("disconnected", said)

    async def _until_over(self) -> None:
        while True:
            verdict, deadline = self._verdict(self.clock.now())
            if verdict is not None:
                self._outcome = verdict
                return
            left_s = None if deadline is None else max(0.0, (deadline - self.clock.now()) / _NS)
            try:
                async with asyncio.timeout(left_s):
                    await self._change()
            except TimeoutError:
                continue

    def _verdict(self, now: int) -> tuple[Outcome | None, int | None]:
        """Return how the session ended, or when to look again (ns; None: when something comes)."""
        if self._failure is not None:
            return self._failure[0], None
        if self._over:
            return "ended", None
        if self._t0_ns is None:
            if self._spoken_by_ns is not None and now >= self._spoken_by_ns:
                self._fail("disconnected", "the endpoint stopped taking the question")
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

    async def _change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    async def _send_step(self, step: Step) -> None:
        for event in step.events:
            self._hear(self.clock.now(), event)
        for message in step.messages:
            await self._send(message)

    async def _send(self, message: Message) -> None:
        await self._transport.send(message)
        self._record.sent(self.clock.now(), "message", message)

    def _refuse(self, fault: str, retryable: bool, retry_after_s: float | None) -> None:  # noqa: FBT001 - the endpoint's own words and what they mean
        if self._failure is None:
            self._retryable, self._retry_after_s = retryable, retry_after_s
        self._fail("refused", fault)

    def _fail(self, outcome: Outcome, fault: str) -> None:
        if self._failure is None:
            self._failure = (outcome, fault)
        self._changed.set()
