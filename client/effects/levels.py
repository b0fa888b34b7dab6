"""Levels: sound added at a ratio to the speech, gain, distance, clipping, an offset."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from voxmeter.client.effects.sound import Random, Sound, Wave, number, power, speech_power
from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import ClipError

HEADROOM = 10 ** (-1 / 20)
"""Peak of what had to be made quieter: 1 dB is left, as resampling overshoots full scale."""


def added(sound: Sound, noise: Wave, snr_db: float) -> Sound:
    """Return the sound with noise of its length in it, at a level relative to the speech.

    Args:
        sound: As it is so far; what is already in it where the speech is counts as speech.
        noise: Shape (n,), any level.
        snr_db: Mean power of the speech over that of the noise, both where the speech is.

    Raises:
        ClipError: If there is no speech, or no noise where it is.
    """
    there = power(sound.speech(noise))
    if there <= 0:
        raise ClipError("condition", "the background is silent where the speech is")
    scale = math.sqrt(speech_power(sound) / there / 10 ** (snr_db / 10))
    return sound.with_wave(sound.wave + scale * noise)


def fitted(wave: Wave) -> tuple[Wave, float]:
    """Return samples that fit into full scale, and the gain that it took in dB; 0 where none."""
    peak = float(np.abs(wave).max(initial=0.0))
    if peak <= 1.0:
        return wave, 0.0
    gain = HEADROOM / peak
    return wave * gain, 20 * math.log10(gain)


def gain(sound: Sound, values: Mapping[str, Json], _: Random) -> tuple[Sound, Mapping[str, Json]]:
    """Make everything louder or quieter."""
    return sound.with_wave(sound.wave * 10 ** (number(values, "gain_db") / 20)), {}


def far_field(
    sound: Sound, values: Mapping[str, Json], _: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Make everything as quiet as a talker further away: 6 dB for each doubling of the distance."""
    gain_db = -20 * math.log10(number(values, "distance_m") / number(values, "near_m"))
    return sound.with_wave(sound.wave * 10 ** (gain_db / 20)), {"gain_db": round(gain_db, 4)}


def clipping(
    sound: Sound, values: Mapping[str, Json], _: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Cut off the given share of the speech's samples, half of it above and half below.

    The share is that of the speech: in a clip that is half silence, a share of all samples would
    cut the speech away.
    """
    share = number(values, "clipped_percent") / 2
    low, high = np.percentile(sound.speech(sound.wave), [share, 100 - share])
    return sound.with_wave(np.clip(sound.wave, low, high)), {}


def dc_offset(
    sound: Sound, values: Mapping[str, Json], _: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Shift every sample by a share of full scale."""
    return sound.with_wave(sound.wave + number(values, "offset_percent") / 100), {}
