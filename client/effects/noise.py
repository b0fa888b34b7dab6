"""Noise: white, and falling or rising with frequency."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from voxmeter.client.effects.levels import added
from voxmeter.client.effects.sound import Random, Sound, Wave, number
from voxmeter.endpoints.codec import Json

_LOWEST_HZ = 50.0
"""Below this the spectrum is level: falling noise would else be all rumble that nobody hears."""


def gaussian(
    sound: Sound, values: Mapping[str, Json], draw: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Add white Gaussian noise."""
    sound = sound.longer(number(values, "tail_ms"))
    return added(sound, draw.standard_normal(len(sound.wave)), number(values, "snr_db")), {}


def coloured(
    sound: Sound, values: Mapping[str, Json], draw: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Add noise whose power falls or rises by so many decibels an octave."""
    sound = sound.longer(number(values, "tail_ms"))
    noise = coloured_noise(len(sound.wave), sound.rate, number(values, "slope_db_per_octave"), draw)
    return added(sound, noise, number(values, "snr_db")), {}


def coloured_noise(count: int, rate: int, slope_db: float, draw: Random) -> Wave:
    """Return noise with a sloping spectrum, shape (count,), of no particular level.

    Args:
        count: Samples wanted.
        rate: Samples a second.
        slope_db: What the power gains with each octave: -3 is pink, -6 is brown.
        draw: Where it is drawn from.
    """
    from scipy.fft import irfft, next_fast_len, rfft, rfftfreq

    length = next_fast_len(count, real=True)
    spectrum = rfft(draw.standard_normal(length))
    octaves = np.log2(np.maximum(rfftfreq(length, 1 / rate), _LOWEST_HZ) / 1000)
    spectrum *= 10 ** (slope_db * octaves / 20)
    spectrum[0] = 0  # an offset is not noise
    return np.asarray(irfft(spectrum, length)[:count], dtype=np.float64)
