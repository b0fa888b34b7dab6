"""Background music, composed and played here from the item's seed: nobody's recording.

Four chords in a major or minor key, a bass, held chords, a plucked figure and a soft beat: eight
bars that repeat, at a tempo and in a key of their own for every item.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from voxmeter.client.effects.levels import added
from voxmeter.client.effects.own import own_sound
from voxmeter.client.effects.sound import Random, Sound, Wave, number
from voxmeter.endpoints.codec import Json

_MAJOR = (0, 2, 4, 5, 7, 9, 11)
_MINOR = (0, 2, 3, 5, 7, 8, 10)
_PROGRESSIONS = ((0, 4, 5, 3), (0, 5, 3, 4), (5, 3, 0, 4), (0, 3, 0, 4))
_BARS = 8
_BEATS = 4
_PLUCK = (1.0, 0.5, 0.3, 0.2, 0.1)
_HELD = (1.0, 0.3, 0.12)
_BASS = (1.0, 0.6, 0.25, 0.1)


def background(
    sound: Sound, values: Mapping[str, Json], draw: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Add music, the user's own or ours, beginning anywhere in it."""
    sound = sound.longer(number(values, "tail_ms"))
    wave, found = own_sound(values, sound.rate, draw)
    if wave is None:
        beats_a_minute = round(float(draw.uniform(70, 130)), 1)
        wave, found = music(sound.rate, beats_a_minute, draw), {"beats_a_minute": beats_a_minute}
    return added(sound, somewhere(wave, len(sound.wave), draw), number(values, "snr_db")), found


def somewhere(wave: Wave, count: int, draw: Random) -> Wave:
    """Return `count` samples of a sound that goes on for ever, beginning at a place drawn."""
    start = int(draw.integers(len(wave)))
    return np.resize(np.roll(wave, -start), count)


def music(rate: int, beats_a_minute: float, draw: Random) -> Wave:
    """Return eight bars that can be repeated without a seam."""
    beat = round(rate * 60 / beats_a_minute)
    wave = np.zeros(_BARS * _BEATS * beat)
    root = int(draw.integers(45, 57))  # A2 to G#3, in semitones as MIDI counts them
    scale = _MAJOR if draw.random() < 0.5 else _MINOR
    chords = _PROGRESSIONS[int(draw.integers(len(_PROGRESSIONS)))]
    figure = draw.integers(0, 4, size=_BEATS * 2)
    for bar in range(_BARS):
        chord = chords[bar % len(chords)]
        notes = [root + _degree(scale, chord + third) for third in (0, 2, 4, 7)]
        begin = bar * _BEATS * beat
        for note in notes[:3]:
            _play(wave, begin, rate, note, _BEATS * beat, 0.12, _HELD, decay_s=3.0)
        for half in range(2):
            _play(wave, begin + 2 * half * beat, rate, notes[0] - 12, 2 * beat, 0.4, _BASS, 1.2)
        for place, which in enumerate(figure.tolist()):
            at = begin + place * beat // 2
            _play(wave, at, rate, notes[which] + 12, 2 * beat, 0.25, _PLUCK, decay_s=0.35)
        for place in range(_BEATS):
            _hit(wave, begin + place * beat, rate, low=place % 2 == 0, draw=draw)
    return wave


def _degree(scale: tuple[int, ...], degree: int) -> int:
    octave, place = divmod(degree, len(scale))
    return 12 * octave + scale[place]


def _play(
    wave: Wave,
    begin: int,
    rate: int,
    note: int,
    count: int,
    loudness: float,
    partials: tuple[float, ...],
    decay_s: float,
) -> None:
    hz = 440 * 2 ** ((note - 69) / 12)
    seconds = np.arange(count) / rate
    tone = np.zeros(count)
    for order, amplitude in enumerate(partials, start=1):
        if order * hz < 0.45 * rate:
            tone += amplitude * np.sin(2 * np.pi * order * hz * seconds)
    _mix(wave, begin, loudness * tone * np.exp(-seconds / decay_s) * _edges(count, rate))


def _hit(wave: Wave, begin: int, rate: int, *, low: bool, draw: Random) -> None:
    count = round(0.15 * rate)
    seconds = np.arange(count) / rate
    if low:
        hit = 0.6 * np.sin(2 * np.pi * (50 * seconds + 3 * (1 - np.exp(-seconds / 0.03))))
        hit *= np.exp(-seconds / 0.06)
    else:
        hit = 0.15 * draw.standard_normal(count) * np.exp(-seconds / 0.03)
    _mix(wave, begin, hit * _edges(count, rate))


def _edges(count: int, rate: int) -> Wave:
    """Return a shape without clicks: 5 ms up, 30 ms down."""
    up, down = round(0.005 * rate), round(0.03 * rate)
    shape = np.ones(count)
    shape[:up] = np.linspace(0, 1, up, endpoint=False)
    shape[-down:] = np.linspace(1, 0, down)
    return shape


def _mix(wave: Wave, begin: int, sound: Wave) -> None:
    """Add a sound; what reaches beyond the end goes on at the beginning."""
    places = (begin + np.arange(len(sound))) % len(wave)
    wave[places] += sound
