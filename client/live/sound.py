"""The seam between a live session and a sound device: what comes from it, and what it is given.

A sound card (`card.py`) and a page in a browser (`page_sound.py`) both stand behind it. Samples are
16-bit little-endian mono at `SoundFacts.rate`; every moment is on the session's clock, in ns.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

Problem = Literal[
    "input-overflow",  # the device says that samples of the microphone were lost
    "output-underflow",  # the device says that the speaker had nothing to play
    "time-step",  # the device's own stamps jump against the samples that it handed over
    "late-callback",  # a block came much later than it was taken
    "dropped",  # our queue was full: blocks of the microphone were thrown away
    "starved",  # a reply was under way, and nothing of it was there when it was due
    "clock-step",  # the device's clock was set while we read it
    "lost",  # the device is gone: unplugged, taken by another program, closed
    "back",  # there is one again
]


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the microphone.

    Attributes:
        pcm: Its samples.
        taken_ns: When its first sample was at the converter, by the device's own stamp.
        came_ns: When it was handed to us, before anything was done with it.
    """

    pcm: bytes
    taken_ns: int
    came_ns: int


@dataclass(frozen=True, slots=True)
class Played:
    """A stretch of what `Sound.play` was given has been put out without a gap.

    Attributes:
        position: Its first sample, counted from the first sample ever given to `play`; what `clear`
            threw away is counted and never played.
        samples: How many.
        heard_ns: When its first sample is at the converter, by the device's own stamp.
    """

    position: int
    samples: int
    heard_ns: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that a user should know of, or that spoils a latency.

    Attributes:
        problem: What kind of thing it is.
        text: The same in plain words, with what to do about it where there is something.
        t_ns: When it was seen; of several at once, the first.
        count: How many samples, blocks or ms, whichever `text` speaks of.
        until_ns: When the last of several at once was seen; None where it was one.
    """

    problem: Problem
    text: str
    t_ns: int
    count: int = 1
    until_ns: int | None = None

    @property
    def last_ns(self) -> int:
        """When it was last seen."""
        return self.t_ns if self.until_ns is None else self.until_ns


SoundEvent = Block | Played | Trouble


@dataclass(frozen=True, slots=True)
class SoundFacts:
    """What is known of an open device; stands beside every latency that was measured through it.

    Attributes:
        rate: Samples a second of both directions, as seen on this side of the seam.
        microphone: Name of the input device.
        speaker: Name of the output device.
        host: Which system it is reached through, such as `ALSA` or `browser`.
        stamps: Whose stamps `taken_ns` and `heard_ns` are: `device` (ADC and DAC) or `page`.
        input_latency_ms: What the device says of itself.
        output_latency_ms: Likewise.
        notes: What else belongs beside a figure, in words: a fallback of the rate, an echo
            canceller.
    """

    rate: int
    microphone: str
    speaker: str
    host: str
    stamps: Literal["device", "page"]
    input_latency_ms: float | None = None
    output_latency_ms: float | None = None
    notes: tuple[str, ...] = ()


class Sound(Protocol):
    """An open microphone and speaker. Made by a function that raises `UserError` if there is none.

    A device that goes away is no error: `events` says `lost`, looks for one, and says `back`.
    """

    @property
    def facts(self) -> SoundFacts:
        """What is known of the devices; may change at any moment, the rate with `back` only."""
        ...

    def events(self) -> AsyncIterator[SoundEvent]:
        """Yield what the device hands over, in order, until `close`. One reader at a time."""
        ...

    def play(self, pcm: bytes) -> None:
        """Queue samples behind what is still to be played; never blocks."""
        ...

    def clear(self) -> int:
        """Throw away what was queued and is not played yet; return how many samples that was."""
        ...

    async def close(self) -> None:
        """Give the devices back; never raises."""
        ...
