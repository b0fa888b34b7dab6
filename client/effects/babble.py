"""Babble: several voices at once that say nothing, spoken here from the item's seed.

Each voice is a train of syllables: a consonant's noise now and then, then a vowel made of the
harmonics of a pitch that wanders, weighted by the vowel's three formants (Peterson and Barney,
1952, scaled by the speaker); pauses fall where a speaker would breathe. No recording is used.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from voxmeter.client.effects.levels import added
from voxmeter.client.effects.music import somewhere
from voxmeter.client.effects.own import own_sound
from voxmeter.client.effects.sound import Random, Sound, Wave, number
from voxmeter.endpoints.codec import Json

_LOOP_S = 12.0
_HIGHEST_HZ = 5000.0
_VOWELS = (  # formants of men's vowels, Hz
    (270, 2290, 3010),
    (390, 1990, 2550),
    (530, 1840, 2480),
    (660, 1720, 2410),
    (730, 1090, 2440),
    (570, 840, 2410),
    (440, 1020, 2240),
    (300, 870, 2240),
    (640, 1190, 2390),
    (490, 1350, 1690),
)
_WIDTHS = (80.0, 100.0, 150.0)


def background(
    sound: Sound, values: Mapping[str, Json], draw: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Add voices, the user's recordings or ours, each beginning anywhere in what it says."""
    sound = sound.longer(number(values, "tail_ms"))
    noise = np.zeros(len(sound.wave))
    files: list[Json] = []
    for _ in range(int(number(values, "talkers"))):
        wave, found = own_sound(values, sound.rate, draw)
        files += found.values()
        one = somewhere(talker(sound.rate, draw) if wave is None else wave, len(noise), draw)
        noise += one / (np.sqrt(np.mean(one**2)) + 1e-9)
    return added(sound, noise, number(values, "snr_db")), {"files": files} if files else {}


def talker(rate: int, draw: Random) -> Wave:
    """Return one voice, twelve seconds of it, that can be repeated."""
    wave = np.zeros(round(_LOOP_S * rate))
    pitch_hz = float(draw.uniform(90, 230))
    size = 0.95 + 0.25 * (pitch_hz - 90) / 140  # who speaks higher has shorter tubes
    place, left = 0, int(draw.integers(4, 12))
    while place < len(wave):
        if not left:
            place += round(float(draw.uniform(0.2, 0.6)) * rate)
            left = int(draw.integers(4, 12))
        said = _syllable(rate, pitch_hz * float(draw.uniform(0.85, 1.2)), size, draw)
        said = said[: max(0, len(wave) - place)]
        wave[place : place + len(said)] += said
        place += max(1, len(said))
        left -= 1
    return wave


def _syllable(rate: int, pitch_hz: float, size: float, draw: Random) -> Wave:
    count = round(float(draw.uniform(0.09, 0.24)) * rate)
    pitch = pitch_hz * np.linspace(1.05, float(draw.uniform(0.88, 1.02)), count)
    turn = np.exp(2j * np.pi * np.cumsum(pitch) / rate)
    formants = [size * hz for hz in _VOWELS[int(draw.integers(len(_VOWELS)))]]
    vowel, harmonic = np.zeros(count), np.ones(count, dtype=np.complex128)
    for order in range(1, int(min(_HIGHEST_HZ, 0.45 * rate) / pitch_hz) + 1):
        harmonic *= turn
        hz = order * pitch_hz
        resonance = sum(
            weight / (1 + ((hz - formant) / width) ** 2) ** 0.5
            for formant, width, weight in zip(formants, _WIDTHS, (1.0, 0.6, 0.3), strict=True)
        )
        vowel += resonance * harmonic.imag / order**0.5
    vowel *= np.hanning(count) ** 0.5
    if draw.random() < 0.6:
        burst = np.diff(draw.standard_normal(round(float(draw.uniform(0.03, 0.09)) * rate) + 1))
        return np.concatenate([0.25 * burst * np.hanning(len(burst)), vowel])
    return vowel
