"""Websockets as a transport: no compression, no small limits, arrivals stamped before parsing."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidProxy,
    InvalidStatus,
    InvalidURI,
)
from websockets.frames import DATA_OPCODES, Frame
from websockets.protocol import Event, State

from voxmeter.client import http_words, invitation
from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.dialing import (
    bare,
    check_headers,
    connect_error,
    loopback,
    tls_context,
)
from voxmeter.client.transport import Arrival, TransportSettings
from voxmeter.endpoints import http_faults
from voxmeter.endpoints.codec import Address, Binary, Ended, Message, Text
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError

_QUEUE_FRAMES = 4096  # reading never pauses in a trial: a paused socket would make late stamps
_MOST_BYTES = 256 * 2**20  # in one session: more than an hour of any reply; a flood ends here
_REFUSAL_BYTES = 4 * 1024  # of a refused upgrade's body; nobody reads more
_CLOSE_TIMEOUT_S = 2.0
_LEAVE_TIMEOUT_S = 3.0  # the library's time-out begins only once the peer has read all we sent
_PING_TIMEOUT_S = 1.0
_PINGS = 3
_OUR_CLOSE = {
    1002: "it broke the websocket protocol",
    1007: "a text message was not UTF-8",
    1009: "a message was larger than max_message_mib",
}


class _StampedConnection(ClientConnection):
    """Notes when the data that completed each message reached this process."""

    def __init__(self, clock: Clock, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - library's
        super().__init__(*args, **kwargs)
        self.clock = clock
        self.stamps: deque[int] = deque()
        self._arrived = 0

    def data_received(self, data: bytes) -> None:
        self._arrived = self.clock.now()
        super().data_received(data)

    async def send_whole(self, data: str | bytes) -> None:
        """Do what `send` does with one message, at two thirds of its price.

        The library's own waits for other senders of fragments, which there are none of here, and
        enters a context for the closing handshake, which it keeps for a connection that closes.

        Raises:
            ConnectionClosed: If the connection has ended.
        """
        if self.protocol.state is not State.OPEN:
            await self.send(data)
            return
        if isinstance(data, str):
            self.protocol.send_text(data.encode())
        else:
            self.protocol.send_binary(data)
        try:
            self.send_data()
        except (OSError, RuntimeError) as error:  # the loops disagree on what a lost socket raises
            self.set_connection_exc(error)
            self.transport.abort()
            await asyncio.shield(self.connection_lost_waiter)
            raise self.close_exc from error
        if self.paused:
            await self.drain()

    def process_event(self, event: Event) -> None:
        if isinstance(event, Frame) and event.opcode in DATA_OPCODES and event.fin:
            self.stamps.append(self._arrived)
        super().process_event(event)


class _Dialing(connect):
    """Follows no redirect: the key would go along, and what is measured be another server."""

    def process_redirect(self, exc: Exception) -> Exception:
        """Take a redirect for the refusal that it is."""
        return exc


class WebSocketTransport:
    """One websocket connection; see `Transport`."""

    def __init__(self, settings: TransportSettings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._connection: _StampedConnection | None = None

    async def connect(self, address: Address) -> None:
        """Open the connection, asked for first where it must be; the caller sets the time-out.

        Raises:
            ConnectError: If there is none to be had.
            UserError: If `ca_file` is no file of certificates.
        """
        if address.invitation is None:
            await self._dial(address)
            return
        url = await invitation.ask(address, address.invitation, self._settings, self._clock)
        try:
            await self._dial(Address(url, subprotocols=address.subprotocols))
        except ConnectError as error:
            raise invitation.hidden(error, url) from None

    async def _dial(self, address: Address) -> None:
        check_headers(address)
        try:
            connection = await _Dialing(
                address.url,
                additional_headers=dict(address.headers),
                subprotocols=list(address.subprotocols) or None,  # type: ignore[arg-type]
                compression=None,
                max_size=self._settings.max_message_mib * 2**20,
                max_queue=_QUEUE_FRAMES,
                ping_interval=None,  # a queued server answers no pings; reply time-outs watch it
                open_timeout=None,
                close_timeout=_CLOSE_TIMEOUT_S,
                user_agent_header="voxmeter",
                proxy=True if self._settings.use_proxy and not loopback(address.url) else None,
                ssl=tls_context(address.url, self._settings),
                create_connection=partial(_StampedConnection, self._clock),  # type: ignore[arg-type]
            )
        except InvalidStatus as error:
            raise _rejected(error) from error
        except InvalidURI as error:
            raise ConnectError("refused", f"{bare(address.url)} is not a websocket URL") from error
        except InvalidProxy as error:  # its own words show the whole URL, password included
            raise ConnectError("refused", f"the proxy in the environment: {error.msg}") from error
        except (InvalidMessage, EOFError) as error:
            raise ConnectError("closed", "the peer does not answer as HTTP") from error
        except ConnectionClosed as error:  # before the upgrade was even sent
            raise ConnectError("closed", "the peer took the connection and dropped it") from error
        except InvalidHandshake as error:
            raise ConnectError("rejected", str(error)) from error
        except (OSError, ImportError, UnicodeError) as error:
            raise connect_error(error, address.url) from error
        except ValueError as error:  # our own URL was read before; the proxy's may hold a password
            raise ConnectError("refused", "the proxy in the environment is not a URL") from error
        assert isinstance(connection, _StampedConnection)  # noqa: S101 - create_connection above
        self._connection = connection

    async def send(self, message: Message) -> None:
        """Send one text or binary message."""
        if not isinstance(message, Text | Binary):
            raise TypeError(f"a websocket cannot carry {type(message).__name__}")
        try:
            await self._open().send_whole(message.data)
        except ConnectionClosed as error:
            raise ConnectionLostError(*_close_of(error)) from error

    async def receive(self) -> AsyncIterator[Arrival]:
        """Yield every message, then one `Ended`.

        Raises:
            ProtocolError: If the peer broke the websocket protocol, or floods this machine.
        """
        connection = self._open()
        received = 0
        while True:
            try:
                data = await connection.recv()
            except ConnectionClosed as error:
                code, reason = _close_of(error)
                if error.sent is not None and not error.rcvd_then_sent and code in _OUR_CLOSE:
                    raise ProtocolError(
                        "websocket", _OUR_CLOSE[code], Ended(code, reason)
                    ) from error
                yield Arrival(self._clock.now(), Ended(code, reason))
                return
            stamp = connection.stamps.popleft()
            message = Text(data) if isinstance(data, str) else Binary(data)
            received += len(data)
            if received > _MOST_BYTES:
                problem = f"more than {_MOST_BYTES // 2**20} MiB in one session"
                raise ProtocolError("websocket", problem, message)
            yield Arrival(stamp, message)

    async def rtt_ms(self) -> float | None:
        """Return the smallest of a few ping times, ms; None if the peer answers no pings."""
        best: float | None = None
        try:
            async with asyncio.timeout(_PING_TIMEOUT_S):
                for _ in range(_PINGS):
                    began = self._clock.now()  # the library has only the loop's coarse clock
                    await (await self._open().ping())
                    took = (self._clock.now() - began) / 1e6
                    best = took if best is None else min(best, took)
        except (TimeoutError, ConnectionClosed):
            pass
        return best

    async def close(self) -> None:
        """Close with 1000, or drop the connection when the peer does not answer or read."""
        if self._connection is None:
            return
        # A connection lost with data unsent makes the library's close fail on Python 3.11.
        with suppress(AttributeError, OSError):
            try:
                async with asyncio.timeout(_LEAVE_TIMEOUT_S):
                    await self._connection.close()
            except TimeoutError:
                self._connection.transport.abort()

    def _open(self) -> _StampedConnection:
        if self._connection is None:
            raise ConnectionLostError(None, "not connected")
        return self._connection


def _rejected(error: InvalidStatus) -> ConnectError:
    answer = error.response
    headers = {name.lower(): value for name, value in answer.headers.raw_items()}
    said = http_words.refusal("", headers, bytes(answer.body or b"")[:_REFUSAL_BYTES])
    found = http_faults.refusal(Ended(answer.status_code, said))
    words = f"HTTP {answer.status_code} on the upgrade"
    words += f": {said.removeprefix('; ')}" if said else ""
    return ConnectError(
        "rejected",
        words,
        answer.status_code,
        retryable=found.retryable,
        retry_after_s=found.retry_after_s,
    )


def _close_of(error: ConnectionClosed) -> tuple[int, str]:
    """Return the code and reason that ended a connection, whoever spoke first."""
    first = error.rcvd if error.rcvd_then_sent or error.sent is None else error.sent
    if first is None:
        return 1006, "the connection was dropped without a close frame"
    return int(first.code), first.reason
