"""A sound like speech, made by arithmetic: what the metronome says when it has no text."""

from __future__ import annotations

from functools import cache

import numpy as np

from voxmeter.client.audio import Samples

_SECONDS = 1.6
_PITCH = 118.0
_HARMONICS = 24
_FORMANTS = ((620.0, 130.0, 1.0), (1180.0, 160.0, 0.6), (2500.0, 240.0, 0.25))
_SYLLABLES = 4.2  # a second
_PEAK = 0.5


@cache
def babble(rate: int, seconds: float = _SECONDS) -> Samples:
    """Return vowel-like syllables, shape (n,), peak 0.5; the same every time.

    The first sample is the loudest of its glottal pulse, and no 5 ms of it are quieter than
    -45 dBFS: where it begins and ends is known to the sample.

    Args:
        rate: Samples a second.
        seconds: Length.

    Returns:
        An array that must not be changed: the next caller gets it too.
    """
    time = np.arange(round(seconds * rate)) / rate
    pitch = _PITCH * (1 + 0.12 * np.cos(2 * np.pi * 0.7 * time))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    phase -= phase[0] if len(phase) else 0.0
    sound = np.zeros_like(time)
    for number in range(1, _HARMONICS + 1):
        if number * _PITCH * 1.12 < rate / 2:
            sound += _gain(number * _PITCH) / number**0.5 * np.cos(number * phase)
    sound *= 0.65 + 0.35 * np.cos(2 * np.pi * _SYLLABLES * time)
    peak = float(np.abs(sound).max(initial=1e-9))
    made = np.asarray(sound / peak * _PEAK, dtype=np.float32)
    made.flags.writeable = False
    return made


def _gain(frequency: float) -> float:
    return 0.05 + sum(
        height / (1 + ((frequency - centre) / width) ** 2) for centre, width, height in _FORMANTS
    )
