"""Short interruptions: knocks, beeps, rings, claps, keys and coughs, made here from the seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from voxmeter.client.effects.own import own_sound
from voxmeter.client.effects.sound import Random, Sound, Wave, number, power, speech_power
from voxmeter.endpoints.codec import Json

_LONGEST_S = 2.0  # of a sound of the user's own


def interrupted(
    sound: Sound, values: Mapping[str, Json], draw: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Add short sounds, one of them within the speech, the others `gap_s` apart on both sides.

    The level of each is its own mean power against that of the speech.
    """
    loud = speech_power(sound) / 10 ** (number(values, "snr_db") / 10)
    wave = sound.wave.copy()
    made: list[Json] = []
    for begin in _places(sound, number(values, "gap_s"), draw):
        name, one = _one(values, sound.rate, draw)
        one = one[: len(wave) - begin]
        wave[begin : begin + len(one)] += one * math.sqrt(loud / max(power(one), 1e-12))
        ms = 1000 / sound.rate
        made.append({"sound": name, "at_ms": round(begin * ms, 3), "ms": round(len(one) * ms, 3)})
    return sound.with_wave(wave), {"interruptions": made}


def _places(sound: Sound, gap_s: float, draw: Random) -> list[int]:
    """Return where sounds begin, in order."""
    gap = gap_s * sound.rate
    first = float(draw.uniform(sound.onset, sound.end))
    first -= gap * int(first / gap)
    return [
        int(first + gap * place) for place in range(int((len(sound.wave) - 1 - first) / gap) + 1)
    ]


def _one(values: Mapping[str, Json], rate: int, draw: Random) -> tuple[str, Wave]:
    own, found = own_sound(values, rate, draw)
    if own is not None:
        return str(found["file"]), own[: round(_LONGEST_S * rate)]
    names = list(SOUNDS)
    name = names[int(draw.integers(len(names)))]
    return name, SOUNDS[name](rate, draw)


def _seconds(length_s: float, rate: int) -> Wave:
    return np.arange(round(length_s * rate)) / rate


def _knock(rate: int, draw: Random) -> Wave:
    t = _seconds(0.5, rate)
    hz, wave = float(draw.uniform(120, 260)), np.zeros(len(t))
    for begin in (0.0, 0.18, 0.36):
        since = np.maximum(t - begin, 0)
        wave += (t >= begin) * np.sin(2 * np.pi * hz * since) * np.exp(-since / 0.025)
    return wave


def _beep(rate: int, draw: Random) -> Wave:
    t = _seconds(0.25, rate)
    tone: Wave = np.sin(2 * np.pi * float(draw.uniform(700, 1500)) * t)
    return tone * np.minimum(1, np.minimum(t, t[::-1]) / 0.01)


def _ring(rate: int, draw: Random) -> Wave:
    t = _seconds(0.8, rate)
    low, high = float(draw.uniform(400, 500)), float(draw.uniform(520, 650))
    tone = np.where(
        np.floor(t / 0.05) % 2 == 0, np.sin(2 * np.pi * low * t), np.sin(2 * np.pi * high * t)
    )
    return np.asarray(tone * np.minimum(1, np.minimum(t, t[::-1]) / 0.02), dtype=np.float64)


def _clap(rate: int, draw: Random) -> Wave:
    t = _seconds(0.12, rate)
    return draw.standard_normal(len(t)) * np.exp(-t / 0.02)


def _keys(rate: int, draw: Random) -> Wave:
    t = _seconds(0.7, rate)
    wave = np.zeros(len(t))
    for begin in np.cumsum(draw.uniform(0.07, 0.16, size=5)).tolist():
        since = np.maximum(t - begin, 0)
        wave += (t >= begin) * draw.standard_normal(len(t)) * np.exp(-since / 0.006)
    return wave


def _cough(rate: int, draw: Random) -> Wave:
    t = _seconds(0.35, rate)
    noise = draw.standard_normal(len(t))
    # What is left of noise after a mouth: a mean of neighbours takes away what is high.
    width = max(1, round(rate / 3000))
    return (
        np.convolve(noise, np.ones(width) / width, "same")
        * np.minimum(1, t / 0.01)
        * np.exp(-t / 0.1)
    )


SOUNDS: dict[str, Callable[[int, Random], Wave]] = {
    "knock": _knock,
    "beep": _beep,
    "ring": _ring,
    "clap": _clap,
    "keys": _keys,
    "cough": _cough,
}
