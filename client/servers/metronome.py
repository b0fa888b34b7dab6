"""Replies after known delays, with known faults: the control that any client can be checked by."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from voxmeter.client.audio import Pcm, Samples, resample
from voxmeter.client.servers import query as read
from voxmeter.client.servers.brain import (
    Drop,
    Raw,
    RefusedError,
    Speech,
    Spoken,
    Terms,
    UserTurn,
)
from voxmeter.client.servers.voice import babble
from voxmeter.scoring.speech import speech_bounds

if TYPE_CHECKING:
    from voxmeter.client.speakers import Speaker

Fault = Literal["", "drop", "silent", "garbage", "slow", "never", "refuse"]
Pacing = Literal["realtime", "burst"]

KEYS = (
    "delay_ms",
    "jitter_ms",
    "lead_ms",
    "pacing",
    "chunk_ms",
    "endpoint_ms",
    "text",
    "tag",
    "fault",
    "seed",
)
_FAULTS: tuple[Fault, ...] = ("drop", "silent", "garbage", "slow", "never", "refuse")
_SLOW = 2
_GARBAGE = ('{"type": "response.output_audio.delta", "delta": ', bytes(range(64)), '[["?"]]')
_TEXTS = 64
_RATES = (24_000, 16_000, 8_000)
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Beat:
    """What one session asked for; every length in ms."""

    delay_ms: float
    jitter_ms: float
    lead_ms: float
    pacing: Pacing
    chunk_ms: float
    endpoint_ms: int
    text: str
    fault: Fault
    seed: int

    def delay_ns(self, turn: UserTurn) -> int:
        """Return this turn's delay: `delay_ms` and up to `jitter_ms` more, ns.

        The draw depends on the seed, the session (its tag, else its number) and the turn alone.
        """
        draw = random.Random(f"{self.seed}/{turn.tag or turn.session}/{turn.number}")  # noqa: S311
        return round((self.delay_ms + draw.uniform(0, self.jitter_ms)) * _NS_PER_MS)


def beat(query: Mapping[str, str]) -> Beat:
    """Read a session's query.

    Raises:
        RefusedError: With one line about the first thing that is wrong in it.
    """
    read.refuse_unknown(query, KEYS)
    endpoint_ms = round(read.number(query, "endpoint_ms", 200, 20, 10_000))
    read.text(query, "tag", 200)
    return Beat(
        delay_ms=read.number(query, "delay_ms", endpoint_ms + 100, 0, 600_000),
        jitter_ms=read.number(query, "jitter_ms", 0, 0, 600_000),
        lead_ms=read.number(query, "lead_ms", 0, 0, 60_000),
        pacing=read.word(query, "pacing", "realtime", ("realtime", "burst")),
        chunk_ms=read.number(query, "chunk_ms", 20, 1, 1000),
        endpoint_ms=endpoint_ms,
        text=read.text(query, "text", 1000),
        fault=read.word(query, "fault", "", _FAULTS) if "fault" in query else "",
        seed=round(read.number(query, "seed", 0, 0, 2**53)),
    )


class Metronome:
    """The brain of `voxmeter serve metronome`.

    Args:
        speak: Says a text: returns samples, shape (n,), and their rate; None where no voice is
            installed, so that `text=` is refused. Called in a thread of its own.
        defaults: The query that a session without one gets; its text is spoken by `load`.
    """

    def __init__(
        self, speak: Callable[[str], Pcm] | None = None, defaults: Mapping[str, str] | None = None
    ) -> None:
        self._speak = speak
        self._defaults = defaults or {}
        self._spoken: dict[str, Future[Pcm]] = {}
        self._throat = ThreadPoolExecutor(1, "metronome voice")

    def load(self) -> None:
        """Warm up what the first turn would otherwise pay for.

        Raises:
            UserError: If the text of the defaults cannot be spoken.
            RefusedError: If the defaults make no sense.
        """
        for rate in _RATES:
            speech_bounds(babble(rate), rate)
        text = beat(self._defaults).text
        if text:
            self._saying(text).result()

    def admit(self, query: Mapping[str, str]) -> Terms:
        """Accept a session whose query makes sense; begin to speak its text."""
        wanted = beat(query)
        if wanted.fault == "refuse":
            raise RefusedError(503, "fault=refuse: this session is refused on purpose")
        if wanted.text:
            self._saying(wanted.text)
        return Terms(wanted.endpoint_ms, endpoint_fixed=True, least_delay_ms=wanted.delay_ms)

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        """Yield the reply, each packet with the moment at which it is to leave."""
        wanted = beat(turn.query)
        start_ns = turn.end_ns + wanted.delay_ns(turn)
        if wanted.fault == "never":
            await asyncio.get_running_loop().create_future()
        if wanted.fault == "garbage":
            for message in _GARBAGE:
                yield Raw(message, start_ns)
            return
        sound = await self._sound(wanted.text, turn.output_rate)
        for piece in _packets(wanted, sound, turn.output_rate, start_ns):
            yield piece

    async def _sound(self, text: str, rate: int) -> Samples:
        if not text:
            return babble(rate)
        pcm = await asyncio.wrap_future(self._saying(text))
        return resample(pcm, rate).samples

    def _saying(self, text: str) -> Future[Pcm]:
        if self._speak is None:
            raise RefusedError(400, "text= needs a voice: pip install 'voxmeter[local]'")
        if text not in self._spoken:
            while len(self._spoken) >= _TEXTS:
                del self._spoken[next(iter(self._spoken))]
            self._spoken[text] = self._throat.submit(_cut_to_sound, self._speak, text)
        return self._spoken[text]


def voice(name: str) -> Callable[[str], Pcm]:
    """Return what says a text with a voice of `voxmeter.client.speakers`, loaded when first used.

    Raises:
        UserError: From the first text on, if there is no such voice or its package is missing.
    """
    loaded: list[Speaker] = []

    def speak(text: str) -> Pcm:
        from voxmeter.client.speakers import speaker

        if not loaded:
            loaded.append(speaker(name))
        pieces = list(loaded[0].speak(text))
        return Pcm(np.concatenate([np.zeros(0, np.float32), *pieces]), loaded[0].rate)

    return speak


def _cut_to_sound(speak: Callable[[str], Pcm], text: str) -> Pcm:
    """Say a text and cut what is inaudible before and after it: a lead is exact only then."""
    pcm = speak(text)
    if not len(pcm.samples):
        return pcm
    bounds = speech_bounds(pcm.samples, pcm.rate)
    if bounds is None:
        return pcm
    return Pcm(pcm.samples[bounds.onset_sample : bounds.end_sample], pcm.rate)


def _packets(wanted: Beat, sound: Samples, rate: int, start_ns: int) -> Iterator[Speech | Drop]:
    lead = round(wanted.lead_ms * rate / 1000)
    reply = np.concatenate((np.zeros(lead, np.float32), sound))
    if wanted.fault == "silent":
        reply[:] = 0
    size = max(1, round(wanted.chunk_ms * rate / 1000))
    pace = _SLOW if wanted.fault == "slow" else int(wanted.pacing == "realtime")
    for start in range(0, len(reply), size):
        if wanted.fault == "drop" and start >= len(reply) / 2:
            yield Drop()
            return
        onset = lead - start if start <= lead < start + size and wanted.fault != "silent" else None
        at_ns = start_ns + pace * start * 1_000_000_000 // rate
        yield Speech(reply[start : start + size], at_ns, onset)
