"""How far a device's stamps are from the air: a chirp is played and looked for in the microphone.

Stamps of the converters leave out what comes behind them: Bluetooth, a sound card's own filters,
the way through the room. Hold the microphone to the speaker, and what is left is that.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.live.sound import Block, Played, Sound
from voxmeter.endpoints.errors import UserError

_CHIRPS = 5
_CHIRP_S = 0.2
_QUIET_S = 0.5
_LIMIT_S = 20.0
_LEAST_LIKENESS = 0.3


@dataclass(frozen=True, slots=True)
class SoundCheck:
    """What the chirps told.

    Attributes:
        beyond_ms: From the speaker's stamp to the microphone's, of each chirp that was found.
        played: How many were played.
    """

    beyond_ms: tuple[float, ...]
    played: int = _CHIRPS

    @property
    def words(self) -> str:
        """The result in one sentence."""
        if not self.beyond_ms:
            return (
                f"none of {self.played} chirps was heard: hold the microphone to the speaker, "
                "turn it up, and choose the devices by --microphone and --speaker"
            )
        middle = float(np.median(self.beyond_ms))
        spread = max(self.beyond_ms) - min(self.beyond_ms)
        heard = f"{len(self.beyond_ms)} of {self.played} chirps heard"
        way = f"{middle:.1f} ms (spread {spread:.1f} ms) from the speaker to the microphone"
        return (
            f"{heard}: beyond the converters' stamps it takes {way}; no latency here has that in it"
        )


def check_devices(microphone: str | None, speaker: str | None) -> str:
    """Open devices, check them, and return the result in one sentence.

    Args:
        microphone: As `open_card` takes it.
        speaker: Likewise.

    Raises:
        UserError: If they do not open, or the microphone does not hear the speaker.
    """
    from voxmeter.client.clock import SystemClock
    from voxmeter.client.live.card import open_card

    async def check() -> SoundCheck:
        async with open_card(microphone, speaker, clock=SystemClock()) as sound:
            return await check_sound(sound)

    found = asyncio.run(check())
    if not found.beyond_ms:
        raise UserError("--check-sound", *found.words.split(": ", 1))
    return found.words


async def check_sound(sound: Sound) -> SoundCheck:
    """Play chirps and look for them in what the microphone takes up meanwhile.

    Args:
        sound: Open devices; nobody else may read its events.
    """
    rate = sound.facts.rate
    chirp = _chirp(rate)
    quiet = np.zeros(round(_QUIET_S * rate), np.int16)
    sound.play(np.concatenate([quiet, *([chirp, quiet] * _CHIRPS)]).tobytes())
    total = len(quiet) + _CHIRPS * (len(chirp) + len(quiet))
    blocks, stretches = await _gather(sound, total)
    if not blocks or not stretches:
        return SoundCheck(())
    starts = [len(quiet) + n * (len(chirp) + len(quiet)) for n in range(_CHIRPS)]
    found = [_beyond_ms(blocks, stretches, start, chirp, rate) for start in starts]
    return SoundCheck(tuple(ms for ms in found if ms is not None))


async def _gather(sound: Sound, total: int) -> tuple[list[Block], list[Played]]:
    blocks: list[Block] = []
    stretches: list[Played] = []
    end_ns: int | None = None
    try:
        async with asyncio.timeout(_LIMIT_S):
            async for event in sound.events():
                if isinstance(event, Block):
                    blocks.append(event)
                elif isinstance(event, Played):
                    stretches.append(event)
                    if event.position + event.samples >= total:
                        end_ns = event.heard_ns + round(_QUIET_S * 1e9)
                if end_ns is not None and blocks and blocks[-1].taken_ns > end_ns:
                    break
    except TimeoutError:
        pass
    return blocks, stretches


def _beyond_ms(
    blocks: list[Block], stretches: list[Played], start: int, chirp: NDArray[np.int16], rate: int
) -> float | None:
    """Return how much later than by its stamps a chirp was heard; None: it was not."""
    stretch = next((x for x in stretches if x.position <= start < x.position + x.samples), None)
    if stretch is None:
        return None
    due_ns = stretch.heard_ns + round((start - stretch.position) * 1e9 / rate)
    window_ns = round((_CHIRP_S + _QUIET_S) * 1e9)
    near = [b for b in blocks if due_ns - window_ns // 4 <= b.taken_ns <= due_ns + window_ns]
    if not near:
        return None
    heard = np.frombuffer(b"".join(block.pcm for block in near), np.int16).astype(float)
    at = _place(heard, chirp.astype(float))
    return None if at is None else (near[0].taken_ns + at * 1e9 / rate - due_ns) / 1e6


def _place(heard: NDArray[np.float64], chirp: NDArray[np.float64]) -> int | None:
    from scipy.signal import correlate

    if len(heard) < len(chirp):
        return None
    alike = np.abs(correlate(heard, chirp, "valid", "fft"))
    at = int(np.argmax(alike))
    power = np.linalg.norm(heard[at : at + len(chirp)]) * np.linalg.norm(chirp)
    return at if power > 0 and alike[at] / power >= _LEAST_LIKENESS else None


def _chirp(rate: int) -> NDArray[np.int16]:
    """Return a tone that rises from 500 Hz to 6 kHz, faded in and out."""
    t = np.arange(round(_CHIRP_S * rate)) / rate
    phase = 2 * np.pi * (500 * t + (6_000 - 500) * t**2 / (2 * _CHIRP_S))
    samples: NDArray[np.int16] = (12_000 * np.sin(phase) * np.hanning(len(t))).astype(np.int16)
    return samples
