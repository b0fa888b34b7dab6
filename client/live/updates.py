"""What a live session tells whoever shows it (terminal, plain text, browser, MQTT), and is told.

All latencies in here are provisional: they are read again from the log when the session is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from voxmeter.client.live.sound import Sound, SoundFacts

Side = Literal["user", "reply"]
MarkName = Literal["speech_end", "first_packet", "first_audible", "reply_end"]
Phase = Literal[
    "connecting",
    "listening",
    "user",  # the user speaks
    "waiting",  # for the reply
    "reply",  # it is played
    "disconnected",  # the endpoint is gone
    "no-device",  # the microphone or the speaker is gone
    "ended",
]


@dataclass(frozen=True, slots=True)
class Level:
    """How loud one side is, over the last block: root mean square, dB below full scale."""

    side: Side
    dbfs: float


@dataclass(frozen=True, slots=True)
class Words:
    """Text of one side.

    Attributes:
        side: Who says it.
        turn: 1 for the first turn.
        text: A further piece of it, or all of it when `whole`.
        whole: Whether it stands in place of what came before for this side and turn.
    """

    side: Side
    turn: int
    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of a turn; `ms` counts from the end of the user's speech (0 for `speech_end`)."""

    turn: int
    name: MarkName
    ms: float


@dataclass(frozen=True, slots=True)
class TurnOver:
    """A turn is over.

    Attributes:
        turn: Its number.
        status: `ok`, `no_reply`, `interrupted` or a status of the contract.
        latency: By name of the contract, ms; None where there is none.
        condition: Name of the condition it was spoken in.
        latency_valid: Whether its latency counts: neither this machine nor its sound was late.
    """

    turn: int
    status: str
    latency: Mapping[str, float | None]
    condition: str = "clean"
    latency_valid: bool = True


@dataclass(frozen=True, slots=True)
class Running:
    """Figures over the turns so far, by metric: n and percentiles in ms."""

    figures: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)
    """metric -> (n, p50, p90)"""


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    """What is going on now."""

    phase: Phase
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence that the user should read: a trouble of the device, a fault, an advice."""

    text: str
    serious: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """The session so far is a run folder now; these are its latencies, read from the log."""

    folder: Path
    turns: int
    figures: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)


Update = Level | Words | Mark | TurnOver | Running | PhaseChanged | Notice | Saved
Show = Callable[[Update], None]
"""Is called on the event loop with everything there is to show; must be quick."""


class Controls(Protocol):
    """What a front end may ask of a live session; all but `save` return at once."""

    def mute(self, *, muted: bool) -> None:
        """Send silence in place of the microphone, or no longer."""
        ...

    def interrupt(self) -> None:
        """Cut the reply that is being played, here and at the endpoint."""
        ...

    def next_condition(self) -> str:
        """Speak in the next condition of the bench from the next turn on; return its name."""
        ...

    async def save(self) -> Path:
        """Write what was said so far as a run folder; return its path."""
        ...

    def stop(self) -> None:
        """End the session; what was said is saved."""
        ...


class LiveTalk(Controls, Protocol):
    """A live session as a front end sees it."""

    @property
    def endpoint(self) -> str:
        """Name of whom one talks to."""
        ...

    @property
    def facts(self) -> SoundFacts:
        """What is known of the devices."""
        ...

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names of the conditions that one can speak in, the one it begins with first."""
        ...

    @property
    def advice(self) -> tuple[str, ...]:
        """What a user should read before the first word."""
        ...

    async def run(self) -> None:
        """Talk until the sound's events end or `stop`; save."""
        ...


Begin = Callable[[Show], LiveTalk]
"""Makes a session that shows what happens."""
BeginWith = Callable[[Sound, Show], LiveTalk]
"""Likewise, on a sound."""
