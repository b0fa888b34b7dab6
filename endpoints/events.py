"""What an endpoint can say, as one union of frozen events.

Vendor extras that fit none of these stay in the raw log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Encoding = Literal["pcm16", "pcmu", "pcma", "opus", "aac"]
"""`pcm16` is little-endian mono; `pcmu`/`pcma` are G.711 at 8 kHz; `opus` is Ogg pages; `aac` is
ADTS frames."""

FaultKind = Literal["auth", "quota", "policy", "busy", "request", "server"]


@dataclass(frozen=True, slots=True)
class Ready:
    """The session takes audio from now on.

    Attributes:
        input_rate: The rate (samples a second) that the peer says it wants, when it says so.
        input_encoding: The encoding that the peer says it wants, when it says so. Both go before
            the codec's traits, which are only what was known before the peer spoke.
        note: What the peer said of the session, for the log.
    """

    input_rate: int | None = None
    note: str = ""
    input_encoding: Encoding | None = None


@dataclass(frozen=True, slots=True)
class ReplyAudio:
    """One piece of the spoken reply, still encoded; pieces need not end on a whole sample."""

    data: bytes
    encoding: Encoding
    rate: int
    reply: str = ""


@dataclass(frozen=True, slots=True)
class ReplyText:
    """Text the model claims to be saying; never scored as speech."""

    text: str
    reply: str = ""


@dataclass(frozen=True, slots=True)
class InputTranscript:
    """What the endpoint believes the user said."""

    text: str


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The *server* believes that the user began to speak.

    Attributes:
        audio_ms: Position on the server's own audio clock, when it names one.
    """

    audio_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The *server* believes that the user stopped; never the user's end of speech itself."""

    audio_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ReplyStarted:
    """The endpoint began a reply; nothing of it need be audible yet."""

    reply: str = ""


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The endpoint will send nothing more of this reply.

    Attributes:
        reason: `completed`; `cancelled` (by either side); `incomplete` (a limit cut it).
        reply: The reply's id, where replies have one.
        detail: The endpoint's own word for it.
    """

    reason: Literal["completed", "cancelled", "incomplete"] = "completed"
    reply: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The endpoint stopped its own reply; what is queued for playback is to be thrown away."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens or seconds that the endpoint says it counted."""

    counts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of an endpoint took, told by whoever ran it; stages may overlap.

    Attributes:
        name: The stage's name (`asr`, `llm`).
        began_ms: When it began, from the moment on at which the question was handed over.
        ms: How long it took.
    """

    name: str
    began_ms: float
    ms: float


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What the endpoint says is left of a limit.

    Attributes:
        name: The limit's name (`requests`, `tokens`).
        remaining: What is left, in the limit's unit.
        reset_s: Seconds until it is whole again.
    """

    name: str
    remaining: float | None
    reset_s: float | None


@dataclass(frozen=True, slots=True)
class Fault:
    """The endpoint said that something failed.

    Attributes:
        kind: Whose rule was met; `auth`, `quota`, `policy`, `busy` and `server` refuse a trial.
        retryable: Whether asking again later can help.
        message: The endpoint's words, with its code.
        fatal: Whether the turn is over; many errors leave a session usable.
        retry_after_s: How long the endpoint asks us to wait before we ask again; None where it
            names no time.
    """

    kind: FaultKind
    retryable: bool
    message: str
    fatal: bool = True
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """What fits nothing else here, for the log alone; binary protocols have no text to keep there.

    Attributes:
        name: The endpoint's own name for it.
        text: What it said, shortened.
    """

    name: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """The peer ended the session.

    Attributes:
        code: Websocket close code (1006: without a close frame), None where there is no such thing.
        reason: The peer's words.
    """

    code: int | None = None
    reason: str = ""


Event = (
    Ready
    | ReplyAudio
    | ReplyText
    | InputTranscript
    | SpeechStarted
    | SpeechStopped
    | ReplyStarted
    | ReplyEnded
    | Interrupted
    | Usage
    | Stage
    | RateLimit
    | Fault
    | Note
    | Closed
)
