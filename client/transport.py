"""The seam between a session and the wire: whole messages out, stamped whole messages in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from voxmeter.endpoints.codec import Address, Message


class Arrival(NamedTuple):
    """One received message and the moment it was complete, before anything of it was parsed."""

    t_ns: int
    message: Message


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """What a transport may be told by bench.toml.

    Attributes:
        insecure: Accept any TLS certificate; shown in reports.
        ca_file: PEM file of an extra certificate authority, "" for none.
        max_message_mib: Largest message taken from the peer, MiB.
        use_proxy: Honour the proxy variables of the environment, loopback addresses excepted.
    """

    insecure: bool = False
    ca_file: str = ""
    max_message_mib: int = 64
    use_proxy: bool = True


class Transport(Protocol):
    """Moves the messages of one session. Made by a factory that takes `TransportSettings`."""

    async def connect(self, address: Address) -> None:
        """Open the connection.

        Raises:
            ConnectError: If there is none to be had.
        """
        ...

    async def send(self, message: Message) -> None:
        """Send one whole message; return when it has been handed to the system.

        Raises:
            ConnectionLostError: If the connection has ended.
        """
        ...

    def receive(self) -> AsyncIterator[Arrival]:
        """Yield what arrives; the last arrival is an `Ended`.

        Raises:
            ProtocolError: If the peer broke the rules of the transport itself.
        """
        ...

    async def rtt_ms(self) -> float | None:
        """Return the connection's round-trip time, ms; None where the peer does not tell."""
        ...

    async def close(self) -> None:
        """End the connection; never raises, never waits long."""
        ...
