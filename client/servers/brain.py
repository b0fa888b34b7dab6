"""The seam between the host of our own servers and what answers in them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from voxmeter.client.audio import Samples
from voxmeter.endpoints.codec import Turn


@dataclass(frozen=True, slots=True)
class UserTurn:
    """One closed turn of the user.

    Attributes:
        samples: Shape (n,), in [-1, 1], at `rate`: the turn with a little quiet on both sides;
            empty when a reply was asked for without new audio (history alone).
        rate: Samples a second of `samples`.
        output_rate: Samples a second at which `Speech` is to be yielded.
        end_ns: The user's end of speech, `perf_counter_ns`: arrival of the message that holds the
            last voiced sample, minus the audio after it in that message.
        session: Number of the session within this server, from 1.
        number: Number of the turn within its session, from 1.
        tag: The client's name for its session; empty when it gave none.
        committed: Whether the client closed the turn itself.
        instructions: System prompt of the session.
        voice: Voice that the client asked for; empty leaves the server's own.
        temperature: Sampling temperature that the client asked for.
        history: Earlier turns of this session, oldest first, with text as far as it is known.
        query: The session's query, with the server's defaults filled in.
    """

    samples: Samples
    rate: int
    output_rate: int
    end_ns: int
    session: int = 1
    number: int = 1
    tag: str = ""
    committed: bool = False
    instructions: str = ""
    voice: str = ""
    temperature: float | None = None
    history: tuple[Turn, ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user was understood to say; kept as the turn's text in the history.

    Attributes:
        at_ns: Not sent before this moment (`perf_counter_ns`); None sends it at once. The same
            holds for every class below.
    """

    text: str
    at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """A piece of the reply's own text."""

    text: str
    at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Speech:
    """A piece of the spoken reply, sent as one packet unless it is longer than a second.

    Attributes:
        samples: Shape (n,), in [-1, 1], at the turn's `output_rate`.
        onset: Index of the first audible sample, when the brain knows it by construction; it
            spares the truth log the search.
    """

    samples: Samples
    at_ns: int | None = None
    onset: int | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """A message sent as it stands, past the protocol: for servers that misbehave on purpose."""

    data: str | bytes
    at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection is cut here, without a closing handshake."""

    at_ns: int | None = None


Spoken = Heard | Words | Speech | Raw | Drop


@dataclass(frozen=True, slots=True)
class Terms:
    """What a brain wants of one session.

    Attributes:
        endpoint_ms: Quiet that closes a turn, ms.
        endpoint_fixed: Whether the client's own wish for that quiet is set aside.
        least_delay_ms: Replies are to begin this long after the user's end of speech; where that
            is less than the quiet that closes a turn, only committed turns can keep it, and others
            are refused. None makes no such promise.
    """

    endpoint_ms: int = 500
    endpoint_fixed: bool = False
    least_delay_ms: float | None = None


class RefusedError(Exception):
    """A brain will not take this session; the client is told on the upgrade.

    Attributes:
        status: HTTP status of the answer.
        reason: One line for the client.
    """

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"{status}: {reason}")


class Brain(Protocol):
    """What answers in a server; one object serves all of its sessions."""

    def load(self) -> None:
        """Get everything ready to answer; blocking, called once before the server is `ready`."""
        ...

    def admit(self, query: Mapping[str, str]) -> Terms:
        """Return the terms of a session that was opened with this query.

        Raises:
            RefusedError: If it asks for something that is not there.
        """
        ...

    def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        """Yield the reply, piece by piece; cancelled when the user or the client breaks in.

        Must not block the event loop: 50 sessions share it. An exception ends the reply with a
        fault of kind `server`; the session and the others live on.
        """
        ...
