"""A server's websocket connection that knows when each of its messages was complete."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import DATA_OPCODES, Frame
from websockets.protocol import Event

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.endpoints.codec import Binary, Ended, Message, Text
from voxmeter.endpoints.errors import ConnectionLostError

_NORMAL_CLOSE = 1000


class Gone(asyncio.Transport):
    """Stands where a transport was that has lost its connection.

    The library aborts a transport whether or not it is there still; asyncio's own, closed while
    data was waiting to be written, fails at that (Python 3.11 to 3.13).
    """

    def abort(self) -> None:
        """Do nothing: there is no connection."""

    def is_closing(self) -> bool:
        """Return True."""
        return True


class StampedServerConnection(ServerConnection):
    """Notes when the data that completed each message reached this process, before any parsing.

    Attributes:
        clock: Where the stamps come from.
        admission: What the upgrade decided about this session; set by the host.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the library's own
        super().__init__(*args, **kwargs)
        self.clock: Clock = SystemClock()
        self.admission: object = None
        self._stamps: deque[int] = deque()
        self._arrived = 0

    def data_received(self, data: bytes) -> None:
        """Stamp the data, then let the library parse it."""
        self._arrived = self.clock.now()
        super().data_received(data)

    def process_event(self, event: Event) -> None:
        """Keep the stamp of every message's last frame, in order."""
        if isinstance(event, Frame) and event.opcode in DATA_OPCODES and event.fin:
            self._stamps.append(self._arrived)
        super().process_event(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the library clean up, then put the transport out of its reach."""
        super().connection_lost(exc)
        self.transport = Gone()

    async def receive(self) -> tuple[int, Message]:
        """Return the next message with the moment (ns) at which it was complete.

        Raises:
            ConnectionLostError: If there will be none.
        """
        try:
            data = await self.recv()
        except ConnectionClosed as closed:
            raise _lost(closed) from closed
        return self._stamps.popleft(), Text(data) if isinstance(data, str) else Binary(data)

    async def send_messages(self, messages: Sequence[Message]) -> int:
        """Send messages; return the moment (ns) at which the last one was with the system.

        An `Ended` among them closes the connection.

        Raises:
            ConnectionLostError: If the connection has ended.
            TypeError: If a websocket cannot carry one of them.
        """
        for message in messages:
            if isinstance(message, Ended):
                await self.close(message.code or _NORMAL_CLOSE, message.reason)
                continue
            if not isinstance(message, Text | Binary):
                raise TypeError(f"a websocket cannot carry {type(message).__name__}")
            await self.send_raw(message.data)
        return self.clock.now()

    async def send_raw(self, data: str | bytes) -> None:
        """Send a message, whatever it holds.

        Raises:
            ConnectionLostError: If the connection has ended.
        """
        try:
            await self.send(data)
        except ConnectionClosed as closed:
            raise _lost(closed) from closed

    def answered(self) -> None:
        """Go on: the next turn may come."""

    def cut(self) -> None:
        """Drop the connection without a closing handshake."""
        self.transport.abort()


def _lost(closed: ConnectionClosed) -> ConnectionLostError:
    frame = closed.rcvd or closed.sent
    if frame is None:
        return ConnectionLostError(None, "")
    return ConnectionLostError(frame.code, frame.reason)
