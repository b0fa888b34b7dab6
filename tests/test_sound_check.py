"""The check of a device by chirps, in a room that is made of numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest

from voxmeter.client.live.device_rate import BLOCK, RATE
from voxmeter.client.live.sound import Block, Played, SoundEvent, SoundFacts
from voxmeter.client.live.sound_check import check_sound

BLOCK_NS = 20_000_000
START_NS = 9_000_000_000


class Room:
    """What is played comes back later and softer, in noise; at a gain of 0 it does not."""

    facts = SoundFacts(RATE, "m", "s", "ALSA", "device")

    def __init__(self, beyond_ms: float, gain: float) -> None:
        self._late = round(beyond_ms * RATE / 1000)
        self._gain = gain
        self._given = np.zeros(0, np.int16)

    def play(self, pcm: bytes) -> None:
        self._given = np.frombuffer(pcm, np.int16)

    def clear(self) -> int:
        return 0

    async def close(self) -> None:
        return

    async def events(self) -> AsyncIterator[SoundEvent]:
        rng = np.random.default_rng(1)
        after = np.zeros(RATE, np.int16)
        air = self._gain * np.concatenate([np.zeros(self._late), self._given, after])
        heard = (air + 50 * rng.standard_normal(len(air))).astype(np.int16)
        for n in range(len(heard) // BLOCK):
            at_ns = START_NS + n * BLOCK_NS
            if n * BLOCK < len(self._given):
                size = min(BLOCK, len(self._given) - n * BLOCK)
                yield Played(n * BLOCK, size, at_ns)
            yield Block(heard[n * BLOCK : (n + 1) * BLOCK].tobytes(), at_ns, at_ns + BLOCK_NS)


@pytest.mark.parametrize("beyond_ms", [0.0, 12.5, 180.0])
async def test_the_way_beyond_the_stamps_is_found(beyond_ms: float) -> None:
    found = await check_sound(Room(beyond_ms, 0.1))
    assert len(found.beyond_ms) == found.played
    assert found.beyond_ms == pytest.approx([beyond_ms] * found.played, abs=0.1)
    assert f"takes {beyond_ms:.1f} ms" in found.words


async def test_a_microphone_that_hears_nothing_is_told_what_to_do() -> None:
    found = await check_sound(Room(10.0, 0.0))
    assert found.beyond_ms == ()
    assert "hold the microphone to the speaker" in found.words
