"""The seam between a session and the wire: whole messages out, stamped whole messages in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from voxmeter.endpoints.codec import Address, Json, Message, Settings


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


@dataclass(frozen=True, slots=True)
class Launch:
    """What is told, once for each endpoint, to a kind whose sessions share something.

    Attributes:
        place: Where the endpoint stands in bench.toml, for errors.
        folder: Where its program runs and its relative paths start.
        command: Program and arguments; empty where the kind takes none.
        options: The kind's own options.
        connect_timeout_s: How long a session waits until it is ready.
        wire: What each transport is told.
        settings: What every session is to be.
    """

    place: str
    folder: Path
    command: tuple[str, ...] = ()
    options: Mapping[str, Json] = field(default_factory=dict)
    connect_timeout_s: float = 10.0
    wire: TransportSettings = field(default_factory=TransportSettings)
    settings: Settings = field(default_factory=Settings)


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


Pool = AbstractContextManager[Callable[[], Transport]]
"""What the sessions of one endpoint share: gives a factory of transports, ends what it started."""
