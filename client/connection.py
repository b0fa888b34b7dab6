"""One connection to an endpoint: opened, shaken hands on, heard, written down, left.

What is said over it is another's business: `session.py` puts one question, `live/` lets people
talk for as long as they like.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import isfinite

from voxmeter.client.capture import Outcome, Recorder
from voxmeter.client.clock import Clock
from voxmeter.client.transport import Transport
from voxmeter.endpoints.codec import Address, Codec, Message, Step
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError
from voxmeter.endpoints.events import Closed, Event, Fault, FaultKind, RateLimit, Ready, Usage
from voxmeter.endpoints.waits import named_wait_s

_NS = 1_000_000_000
_MS = 1_000_000
_TRY_LATER = 1013
_REFUSING_CODES = {1008, _TRY_LATER, 3000, 3003}
_REFUSING_STATUSES: Mapping[int, FaultKind] = {
    401: "auth",
    403: "auth",
    429: "busy",
    503: "busy",
    _TRY_LATER: "busy",
}


class Connection:
    """The wire of one session, with what the endpoint says of itself on it.

    Args:
        codec: Fresh codec of the endpoint's protocol.
        transport: Unconnected transport that can carry its messages.
        clock: The clock for everything.
        record: Where every message is noted.
        heard: Called with the moment and every event as it comes, before anything follows from it;
            must be quick.
        closed: Called with code and reason when the peer has left; by default that is a fault.

    Attributes:
        ready: What the peer said when it was ready; None before.
        failure: How the session failed, and why; None while it has not.
        note: What the peer complained of without ending the session.
        connect_ms: From the first packet to `Ready`, ms.
        rtt_ms: Round-trip time of the open connection, ms, where the peer tells.
        usage: What the endpoint counted, summed.
        retryable: Whether asking again later can help, of a session that was refused.
        retry_after_s: How long the endpoint asks us to wait before.
        refusal: Whose rule a refused session met; None where that is not known.
    """

    def __init__(
        self,
        codec: Codec,
        transport: Transport,
        clock: Clock,
        record: Recorder,
        *,
        heard: Callable[[int, Event], None],
        closed: Callable[[int | None, str], None] | None = None,
    ) -> None:
        self.codec, self.transport, self.clock, self.record = codec, transport, clock, record
        self._heard, self._closed = heard, closed
        self._changed = asyncio.Event()
        self._began = 0
        self._spent_s: float | None = None  # until limits that are used up are whole again
        self.ready: Ready | None = None
        self.failure: tuple[Outcome, str] | None = None
        self.note: str | None = None
        self.connect_ms: float | None = None
        self.rtt_ms: float | None = None
        self.usage: dict[str, float] = {}
        self.retryable = False
        self.retry_after_s: float | None = None
        self.refusal: FaultKind | None = None

    async def connect(self, address: Address, limit_s: float) -> bool:
        """Open the connection; return whether there is one."""
        self._began = self.clock.now()
        address = replace(address, subscriptions=self.codec.traits.subscriptions)
        try:
            async with asyncio.timeout(limit_s):
                await self.transport.connect(address)
        except TimeoutError:
            self.fail("disconnected", f"no connection within {limit_s:g} s")
        except ConnectError as error:
            if error.failure == "rejected":
                self.refuse(
                    str(error),
                    retryable=error.retryable,
                    retry_after_s=error.retry_after_s,
                    kind=_REFUSING_STATUSES.get(error.status or 0),
                )
            else:
                self.fail("disconnected", str(error))
        return self.failure is None

    async def handshake(self, limit_s: float) -> bool:
        """Open the session while `receive` runs beside; return whether it takes audio.

        Args:
            limit_s: For this and `connect` together.
        """
        left_s = limit_s - (self.clock.now() - self._began) / _NS
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                with suppress(ConnectionLostError):  # the receiver hears the end, with its reason
                    await self.send_step(self.codec.open())
                while self.ready is None and self.failure is None:
                    await self.change()
        except TimeoutError:
            self.fail("disconnected", f"connected, but no session within {limit_s:g} s: busy?")
        if self.failure is None:
            self.connect_ms = (self.clock.now() - self._began) / _MS
            self.rtt_ms = await self.transport.rtt_ms()
        return self.failure is None

    async def receive(self) -> None:
        """Take what arrives until the peer leaves."""
        try:
            async for t_ns, message in self.transport.receive():
                step = self.codec.receive(message)
                self.record.received(t_ns, message, tuple(step.events))
                for event in step.events:
                    self.hear(t_ns, event)
                with suppress(ConnectionLostError):  # what came before the end is still to be heard
                    await self.send_step(Step((), step.messages))
        except ProtocolError as error:
            self.fail("protocol_error", str(error))
        except ConnectionLostError as error:
            self.fail("disconnected", str(error))

    async def leave(self) -> None:
        """Say goodbye, where the protocol has a word for it."""
        with suppress(TimeoutError, ConnectionLostError):  # it is over either way
            async with asyncio.timeout(1.0):
                await self.send_step(self.codec.close())

    async def close(self) -> None:
        """End the connection; never raises. Nobody is told of anything afterwards."""
        await self.transport.close()
        # Whoever listens holds this: as a cycle, thousands of rows would wait for the collector,
        # which then stops every session while it frees them.
        self._heard, self._closed = _unheard, None

    async def send_step(self, step: Step) -> None:
        """Take the events of a step and send its messages.

        Raises:
            ConnectionLostError: If the connection has ended.
        """
        for event in step.events:
            self.hear(self.clock.now(), event)
        for message in step.messages:
            await self._send(message)

    async def _send(self, message: Message) -> None:
        await self.transport.send(message)
        self.record.sent(self.clock.now(), "message", message)

    def hear(self, t_ns: int, event: Event) -> None:
        """Take one event."""
        self._heard(t_ns, event)
        match event:
            case Ready():
                self.ready = event
            case Usage(counts):
                for name, count in counts.items():
                    total = self.usage.get(name, 0) + count
                    if isfinite(total):  # whatever a server claims, the row has to be JSON
                        self.usage[name] = total
            case RateLimit(remaining=remaining, reset_s=reset_s):
                if remaining is not None and remaining <= 0 and reset_s is not None:
                    self._spent_s = max(self._spent_s or 0.0, reset_s)
                return
            case Fault(kind, retryable, message, True, wait_s):
                if wait_s is None and kind == "busy":
                    wait_s = self._spent_s
                self.refuse(
                    f"{kind}: {message}", retryable=retryable, retry_after_s=wait_s, kind=kind
                )
            case Fault():
                self.note = f"{event.kind}: {event.message}"
            case Closed(code, reason) if self._closed is not None:
                self._closed(code, reason)
            case Closed(code, reason):
                self.lose(code, reason, answered=True)
            case _:
                pass
        self.woken()

    def lose(self, code: int | None, reason: str, *, answered: bool) -> None:
        """Fail because the peer left.

        Args:
            code: Of the websocket, where there is one.
            reason: The peer's words.
            answered: Whether anything of a reply had come: then it did not refuse to talk.
        """
        how = "closed" if code is None else f"closed with code {code}"
        said = f"{how}: {reason or 'no reason given'}"
        vendor = code is not None and 4000 <= code < 5000
        if (code in _REFUSING_CODES or vendor) and not answered:
            later = code == _TRY_LATER
            kind: FaultKind | None = "busy" if later else None
            self.refuse(said, retryable=later, retry_after_s=named_wait_s(reason), kind=kind)
        else:
            self.fail("disconnected", said)

    def refuse(
        self,
        fault: str,
        *,
        retryable: bool,
        retry_after_s: float | None,
        kind: FaultKind | None,
    ) -> None:
        """Fail because the endpoint said no; only the first failure counts."""
        if self.failure is None:
            self.retryable, self.retry_after_s, self.refusal = retryable, retry_after_s, kind
        self.fail("refused", fault)

    def fail(self, outcome: Outcome, fault: str) -> None:
        """Note how the session failed; only the first failure counts."""
        if self.failure is None:
            self.failure = (outcome, fault)
        self.woken()

    def woken(self) -> None:
        """Wake whoever waits for a change."""
        self._changed.set()

    async def change(self) -> None:
        """Wait until something has come or failed."""
        await self._changed.wait()
        self._changed.clear()


def _unheard(_t_ns: int, _event: Event) -> None:
    pass
