"""The server side of the seam: what a served session hears from its client, and how it answers.

A server codec is the mirror of a `Codec`: it serves `voxmeter serve`, joins a client codec in a
test with no network, and lets a stranger build a fake server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from voxmeter.endpoints.codec import Message, TurnEnd
from voxmeter.endpoints.events import Encoding, FaultKind


@dataclass(frozen=True, slots=True)
class SessionSet:
    """The client set up or changed its session; what it left out is None.

    Attributes:
        instructions: System prompt; empty text clears it.
        voice: The client's word for the voice.
        temperature: Sampling temperature.
        turn_end: How turns are closed from now on.
        silence_ms: Quiet that ends a turn, ms.
        tag: The client's own name for this session.
        auto_reply: Whether the end of a turn found by voice activity asks for a reply.
        interruptible: Whether speech during a reply stops the reply.
    """

    instructions: str | None = None
    voice: str | None = None
    temperature: float | None = None
    turn_end: TurnEnd | None = None
    silence_ms: int | None = None
    tag: str | None = None
    auto_reply: bool | None = None
    interruptible: bool | None = None


@dataclass(frozen=True, slots=True)
class UserAudio:
    """A piece of the user's speech; pieces need not end on a whole sample."""

    data: bytes
    encoding: Encoding
    rate: int


@dataclass(frozen=True, slots=True)
class UserCleared:
    """The client threw away the audio of this turn that no commit has closed."""


@dataclass(frozen=True, slots=True)
class TurnCommitted:
    """The client closed its turn explicitly."""


@dataclass(frozen=True, slots=True)
class ReplyRequested:
    """The client asks for a reply now."""

    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class ReplyCancelled:
    """The client stops the present reply."""


@dataclass(frozen=True, slots=True)
class ReplyTruncated:
    """The client says how much of a reply was heard, ms."""

    heard_ms: int


@dataclass(frozen=True, slots=True)
class HistoryAdded:
    """One turn put into the conversation whole; its audio, if any, is still encoded.

    A question may come this way too: a user's turn, then `ReplyRequested`.
    """

    role: Literal["user", "assistant", "system"]
    text: str = ""
    audio: UserAudio | None = None
    item: str = ""


@dataclass(frozen=True, slots=True)
class HistoryRemoved:
    """The client took a turn out of the conversation again, by the name `HistoryAdded` had."""

    item: str


@dataclass(frozen=True, slots=True)
class ClientLeft:
    """The client ended the session."""


ClientEvent = (
    SessionSet
    | UserAudio
    | UserCleared
    | TurnCommitted
    | ReplyRequested
    | ReplyCancelled
    | ReplyTruncated
    | HistoryAdded
    | HistoryRemoved
    | ClientLeft
)


@dataclass(frozen=True, slots=True)
class ServerStep:
    """What one client message leads to: events for the host, messages for the client."""

    events: Sequence[ClientEvent] = ()
    messages: Sequence[Message] = ()


class ServerCodec(Protocol):
    """The server's half of one session. Same rules as `Codec`: no socket, no clock, no log.

    Messages that a client only sends, such as a `Request`, are only received here, and the other
    way round. An `Ended` that is sent ends the answer to a request: without a code as it should,
    with an HTTP status as refused, or broken off where its body has begun. On a websocket it is
    the close, with its code and reason.
    """

    @property
    def input_rate(self) -> int:
        """Samples a second that the client sends, as agreed so far."""
        ...

    @property
    def output_rate(self) -> int:
        """Samples a second that `reply_audio` takes, as agreed so far."""
        ...

    @property
    def turn_end(self) -> TurnEnd:
        """How this session's turns are closed, as agreed so far."""
        ...

    def open(self) -> ServerStep:
        """Return what a server says first."""
        ...

    def receive(self, message: Message) -> ServerStep:
        """Return what one client message stands for; an error the protocol can tell is told."""
        ...

    def speech_started(self, audio_ms: int) -> Sequence[Message]:
        """Say that the user began to speak, at this position of the session's audio, ms."""
        ...

    def speech_stopped(self, audio_ms: int) -> Sequence[Message]:
        """Say that the user stopped, and that the turn is closed."""
        ...

    def input_transcript(self, text: str) -> Sequence[Message]:
        """Say what the user was heard to say."""
        ...

    def reply_started(self) -> Sequence[Message]:
        """Open a reply."""
        ...

    def reply_audio(self, pcm: bytes) -> Sequence[Message]:
        """Send 16-bit little-endian mono samples of the reply at `output_rate`."""
        ...

    def reply_text(self, text: str) -> Sequence[Message]:
        """Send a piece of the reply's own text."""
        ...

    def reply_ended(
        self, reason: Literal["completed", "cancelled", "incomplete"]
    ) -> Sequence[Message]:
        """Close the reply."""
        ...

    def fault(self, kind: FaultKind, code: str, message: str) -> Sequence[Message]:
        """Tell the client of a failure; a reply under way ends with it."""
        ...


@runtime_checkable
class FullDuplexCodec(ServerCodec, Protocol):
    """The server's half where output flows all the time: a frame is said for each that is heard."""

    @property
    def output_encoding(self) -> Encoding:
        """What `reply_audio` takes here; the host encodes Opus."""
        ...

    @property
    def frame_ms(self) -> int:
        """Length of one frame, heard or said, ms."""
        ...

    @property
    def held_back(self) -> int:
        """How many frames are heard before the first one is said, beside its own."""
        ...
