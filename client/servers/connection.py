"""What a served session talks through: stamped messages in, messages out, whatever carries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from voxmeter.client.clock import Clock
from voxmeter.endpoints.codec import Message


class Connection(Protocol):
    """The server's end of one session."""

    @property
    def clock(self) -> Clock:
        """Where its stamps come from."""
        ...

    async def receive(self) -> tuple[int, Message]:
        """Return the next message with the moment (ns) at which it was complete.

        Raises:
            ConnectionLostError: If there will be none.
        """
        ...

    async def send_messages(self, messages: Sequence[Message]) -> int:
        """Send messages; return the moment (ns) at which the last one was with the system.

        Raises:
            ConnectionLostError: If the client has gone.
            TypeError: If this connection cannot carry one of them.
        """
        ...

    async def send_raw(self, data: str | bytes) -> None:
        """Send something past the protocol.

        Raises:
            ConnectionLostError: If the client has gone.
        """
        ...

    def answered(self) -> None:
        """Take note that a reply is over; where one request is a session, the session is."""
        ...

    def cut(self) -> None:
        """Drop the connection without a word."""
        ...

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """End the session; a websocket's code and reason say why, where there is one."""
        ...
