"""Rooms: an impulse response from a room's size, its reverberation time and the distance.

The first 60 ms are the mirror images of a shoebox room (Allen and Berkley, 1979) whose walls
absorb what Eyring's formula asks for; behind them comes noise that decays at the same rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.effects.own import own_sound
from voxmeter.client.effects.sound import Random, Sound, Wave, number, power, speech_power
from voxmeter.endpoints.codec import Json

SPEED_M_S = 343.0
_EARLY_S = 0.06
_WALL_M = 0.3  # nobody and nothing is nearer to a wall


def reverberant(
    sound: Sound, values: Mapping[str, Json], draw: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Let the sound be heard in a room.

    The direct sound stays where it was, the time it takes to the microphone taken off again, and
    the level of the speech as well; the clip becomes longer by what echoes.
    """
    own, found = own_sound(values, sound.rate, draw)
    if own is None:
        response, direct = room(values, sound.rate, draw), 0
    else:
        response, direct = own, int(np.argmax(np.abs(own)))
    from scipy.signal import fftconvolve

    before = speech_power(sound)
    wave = np.asarray(fftconvolve(sound.wave, response), dtype=np.float64)[direct:]
    heard = sound.with_wave(wave)
    ratio_db = 10 * math.log10(
        response[direct] ** 2 / max(power(np.delete(response, direct)) * (len(response) - 1), 1e-12)
    )
    wave *= math.sqrt(before / speech_power(heard))
    return heard, {**found, "direct_to_reverberant_db": round(ratio_db, 2)}


def room(values: Mapping[str, Json], rate: int, draw: Random) -> Wave:
    """Return the impulse response of a room; its first sample is the direct sound, of size 1."""
    size = np.array([number(values, f"{one}_m") for one in ("length", "width", "height")])
    rt60_s = number(values, "rt60_s")
    ear, mouth = _places(size, number(values, "distance_m"), draw)
    volume, walls = float(size.prod()), 2 * float(size @ np.roll(size, 1))
    # Eyring: what of a sound's size each wall gives back.
    kept = math.sqrt(math.exp(-0.161 * volume / walls / rt60_s))
    distances, bounces = _images(size, mouth, ear)
    direct = float(np.linalg.norm(mouth - ear))
    places = np.rint((distances - direct) / SPEED_M_S * rate).astype(np.int64)
    early = round(_EARLY_S * rate)
    near = places < early
    response = np.zeros(max(early, round(rt60_s * rate)))
    sizes = kept**bounces * direct / distances
    np.add.at(response, places[near], sizes[near])
    tail = np.arange(early, len(response))
    level = math.sqrt(power(response[early * 2 // 3 : early]))
    fading = 10 ** (-3 * (tail - early * 5 / 6) / rate / rt60_s)
    response[early:] = draw.standard_normal(len(tail)) * level * fading
    response[0] = 1.0
    return response


def _places(size: Wave, distance_m: float, draw: Random) -> tuple[Wave, Wave]:
    """Return where microphone and talker are, as far apart as the room allows."""
    low, high = np.full(3, _WALL_M), size - _WALL_M
    ear = draw.uniform(low, high)
    for _ in range(100):
        way = draw.standard_normal(3)
        mouth = ear + way / np.linalg.norm(way) * distance_m
        if np.all((low <= mouth) & (mouth <= high)):
            return ear, mouth
        ear = draw.uniform(low, high)
    corner = low + (high - low) * 0.001  # larger than fits: from one corner towards the other
    across = high - corner
    return corner, corner + across * min(1.0, distance_m / float(np.linalg.norm(across)))


def _images(size: Wave, mouth: Wave, ear: Wave) -> tuple[Wave, NDArray[np.int64]]:
    """Return how far away each mirror image is, and how many walls it was reflected by."""
    reach = np.ceil((_EARLY_S * SPEED_M_S + np.linalg.norm(size)) / (2 * size)).astype(int)
    along, walls = [], []
    for axis in range(3):
        orders = np.arange(-reach[axis], reach[axis] + 1)
        same = 2 * orders * size[axis] + mouth[axis] - ear[axis]
        turned = 2 * orders * size[axis] - mouth[axis] - ear[axis]
        along.append(np.concatenate([same, turned]))
        walls.append(np.concatenate([np.abs(2 * orders), np.abs(2 * orders - 1)]))
    x, y, z = np.meshgrid(*along, indexing="ij")
    bounces = sum(np.meshgrid(*walls, indexing="ij"))
    return np.sqrt(x**2 + y**2 + z**2).ravel(), np.asarray(bounces).ravel()
