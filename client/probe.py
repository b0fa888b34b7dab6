"""Knocks at an endpoint: connects, waits until it takes audio, asks nothing, leaves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.endpoints.codec import Address, Codec, Step
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, EndpointError
from voxmeter.endpoints.events import Closed, Fault, Ready

if TYPE_CHECKING:
    from voxmeter.client.transport import Transport


@dataclass(frozen=True, slots=True)
class Knock:
    """What an endpoint said to a knock.

    Attributes:
        connect_ms: From the start of the connection until the session took audio.
        rtt_ms: Round-trip time, where the peer tells.
        note: What the peer said of the session.
    """

    connect_ms: float
    rtt_ms: float | None
    note: str


async def knock(
    codec: Codec,
    transport: Transport,
    address: Address,
    timeout_s: float,
    clock: Clock | None = None,
) -> Knock:
    """Open one session and close it.

    Args:
        codec: Fresh codec of the endpoint's protocol.
        transport: Unconnected transport that can carry its messages.
        address: Where to connect.
        timeout_s: For the connection and the protocol's handshake together.
        clock: Other than the machine's own, in tests.

    Raises:
        EndpointError: If no session could be opened, with the endpoint's own words.
    """
    clock = clock or SystemClock()
    began = clock.now()
    try:
        async with asyncio.timeout(timeout_s):
            await transport.connect(address)
            ready = await _ready(codec, transport)
            connect_ms = (clock.now() - began) / 1e6
            rtt_ms = await transport.rtt_ms()
    except TimeoutError:
        raise ConnectError("timeout", f"no session within {timeout_s:g} s") from None
    finally:
        with suppress(EndpointError, TimeoutError):
            async with asyncio.timeout(1):
                await _send(codec.close(), transport)
        await transport.close()
    return Knock(connect_ms, rtt_ms, ready.note)


async def _ready(codec: Codec, transport: Transport) -> Ready:
    step = codec.open()
    await _send(step, transport)
    found = _outcome(step)
    if found is not None:
        return found
    async for _, message in transport.receive():
        step = codec.receive(message)
        await _send(step, transport)
        found = _outcome(step)
        if found is not None:
            return found
    raise ConnectionLostError(None, "the endpoint ended the session before it was ready")


def _outcome(step: Step) -> Ready | None:
    for event in step.events:
        match event:
            case Ready():
                return event
            case Fault(kind, message=message, fatal=True):
                raise ConnectError("rejected", f"{kind}: {message}")
            case Closed(code, reason):
                raise ConnectionLostError(code, reason)
            case _:
                continue
    return None


async def _send(step: Step, transport: Transport) -> None:
    for message in step.messages:
        await transport.send(message)
