"""Conditions done to a microphone as it runs: each effect block by block, its state kept.

What needs the whole clip (another speed, another voice, an echo that was measured) cannot be done
to somebody who is still speaking; such steps are left out, by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.effects.draws import Drawn, drawn
from voxmeter.client.effects.sound import Random, generator, number
from voxmeter.client.effects.steps import Step
from voxmeter.endpoints.codec import Json

Samples = NDArray[np.float32]
Process = Callable[[Samples], Samples]
Values = Mapping[str, Json]

SPEECH_DBFS = -26.0
"""Level that speech is taken to have until some has been heard (ITU-T P.56's usual one)."""

_LOUD_DBFS = -45.0  # quieter blocks are no speech
_LEARNT = 0.02  # of each loud block, for the level of the speech
_NOISE_S = 8
_G711_RATE = 8000


@dataclass(slots=True)
class Condition:
    """A chain as far as it can be done to a stream.

    Attributes:
        name: As in the bench.
        params: What was drawn, as in the line of a trial.
        left_out: Effects that a stream cannot have, in words.
    """

    name: str
    steps: tuple[Drawn, ...]
    seed: str
    params: dict[str, object]
    left_out: tuple[str, ...] = ()
    _made: list[Process] = field(default_factory=list)
    _rate: int = 0

    def __call__(self, samples: Samples, rate: int) -> Samples:
        """Return a block with everything done to it, shape (n,)."""
        if rate != self._rate:
            self._rate = rate
            self._made = [
                _PROCESSES[step.effect](step.values, rate, generator(self.seed, place, step.effect))
                for place, step in enumerate(self.steps)
            ]
        for process in self._made:
            samples = process(samples)
        return np.clip(samples, -1.0, 1.0).astype(np.float32)


def condition(name: str, chain: Sequence[Step], seed: str) -> Condition:
    """Return a condition of a bench for a microphone.

    Args:
        name: Its name.
        chain: As it was checked.
        seed: What its draws depend on.
    """
    every = drawn(chain, seed)
    done = tuple(step for step in every if not _refused(step))
    left_out = tuple(_refused(step) for step in every if _refused(step))
    params: dict[str, object] = {"chain": [step.row() for step in done]}
    if left_out:
        params["left_out"] = list(left_out)
    return Condition(name, done, seed, params, left_out)


def _refused(step: Drawn) -> str:
    """Return what cannot be done, in words; "" where it can."""
    if step.effect not in _PROCESSES:
        return step.effect
    if step.effect == "packet-loss" and step.values.get("concealment") != "silence":
        return 'packet-loss with concealment = "repeat"'
    return ""


def _gain(values: Values, rate: int, draw: Random) -> Process:  # noqa: ARG001 - as every effect
    scale = 10 ** (number(values, "gain_db") / 20)
    return lambda samples: samples * np.float32(scale)


def _far_field(values: Values, rate: int, draw: Random) -> Process:  # noqa: ARG001
    scale = number(values, "near_m") / number(values, "distance_m")
    return lambda samples: samples * np.float32(scale)


def _dc_offset(values: Values, rate: int, draw: Random) -> Process:  # noqa: ARG001
    offset = number(values, "offset_percent") / 100
    return lambda samples: samples + np.float32(offset)


def _bit_crush(values: Values, rate: int, draw: Random) -> Process:  # noqa: ARG001
    levels = 2.0 ** (number(values, "bits") - 1)
    return lambda samples: np.asarray(np.round(samples * levels) / levels, dtype=np.float32)


def _gaussian(values: Values, rate: int, draw: Random) -> Process:
    return _noisy(draw.standard_normal(_NOISE_S * rate), number(values, "snr_db"))


def _coloured(values: Values, rate: int, draw: Random) -> Process:
    from voxmeter.client.effects.noise import coloured_noise

    slope = number(values, "slope_db_per_octave")
    noise = coloured_noise(_NOISE_S * rate, rate, slope, draw)
    return _noisy(noise, number(values, "snr_db"))


def _noisy(noise: NDArray[np.float64], snr_db: float) -> Process:
    """Add noise at a ratio to the speech heard so far; it goes round after some seconds."""
    noise = noise / math.sqrt(float(np.mean(np.square(noise))))
    speech = 10 ** (SPEECH_DBFS / 10)
    place = 0

    def process(samples: Samples) -> Samples:
        nonlocal speech, place
        power = float(np.mean(np.square(samples))) if samples.size else 0.0
        if power > 10 ** (_LOUD_DBFS / 10):
            speech += _LEARNT * (power - speech)
        scale = math.sqrt(speech / 10 ** (snr_db / 10))
        around = np.take(noise, range(place, place + samples.size), mode="wrap")
        place = (place + samples.size) % noise.size
        return np.asarray(samples + scale * around, dtype=np.float32)

    return process


def _low_pass(values: Values, rate: int, draw: Random) -> Process:  # noqa: ARG001
    order = int(number(values, "rolloff_db_per_octave")) // 6
    return _filter(order, number(values, "cutoff_hz"), "lowpass", rate)


def _high_pass(values: Values, rate: int, draw: Random) -> Process:  # noqa: ARG001
    order = int(number(values, "rolloff_db_per_octave")) // 6
    return _filter(order, number(values, "cutoff_hz"), "highpass", rate)


def _band_pass(values: Values, rate: int, draw: Random) -> Process:  # noqa: ARG001
    centre = number(values, "centre_hz")
    half = centre * number(values, "bandwidth_of_centre") / 2
    order = int(number(values, "rolloff_db_per_octave")) // 12
    return _filter(order, (centre - half, min(centre + half, 0.49 * rate)), "bandpass", rate)


def _filter(order: int, edge: float | tuple[float, float], kind: str, rate: int) -> Process:
    from scipy.signal import butter, sosfilt

    if isinstance(edge, float | int):
        edge = min(edge, 0.49 * rate)
    sections = butter(order, edge, btype=kind, fs=rate, output="sos")  # type: ignore[call-overload]
    state = np.zeros((sections.shape[0], 2))

    def process(samples: Samples) -> Samples:
        nonlocal state
        made, state = sosfilt(sections, samples, zi=state)
        return np.asarray(made, dtype=np.float32)

    return process


def _telephone(values: Values, rate: int, draw: Random) -> Process:  # noqa: ARG001
    """Take the sound through 8 kHz, a telephone's band, and the code words of G.711."""
    from voxmeter.client.audio import from_pcm16, to_pcm16
    from voxmeter.endpoints import g711

    band = _filter(2, (number(values, "low_hz"), number(values, "high_hz")), "bandpass", rate)
    before, after = (_filter(8, 3700.0, "lowpass", rate) for _ in range(2))
    every = max(1, round(rate / _G711_RATE))
    place = 0
    mu = values["law"] == "mu"

    def process(samples: Samples) -> Samples:
        nonlocal place
        samples = before(band(samples))
        kept = np.zeros_like(samples)
        first = -place % every
        pcm = to_pcm16(np.clip(samples[first::every], -1, 1))
        if mu:
            coded = g711.decode_ulaw(g711.encode_ulaw(pcm))
        else:
            coded = g711.decode_alaw(g711.encode_alaw(pcm))
        kept[first::every] = from_pcm16(coded) * every
        place += samples.size
        return after(kept)

    return process


def _packet_loss(values: Values, rate: int, draw: Random) -> Process:
    """Lose packets of 20 ms by Gilbert's two states, as `effects.line` does to a clip."""
    size = rate * 20 // 1000
    share, burst = number(values, "loss_percent") / 100, number(values, "burst_ratio")
    lost, left = False, 0

    def process(samples: Samples) -> Samples:
        nonlocal lost, left
        made, place = samples.copy(), 0
        while place < samples.size:
            if left == 0:
                chance = share / burst if not lost else 1 - (1 - share) / burst
                lost, left = bool(draw.random() < chance), size
            count = min(left, samples.size - place)
            if lost:
                made[place : place + count] = 0
            place, left = place + count, left - count
        return made

    return process


_PROCESSES: Mapping[str, Callable[[Values, int, Random], Process]] = {
    "gain": _gain,
    "far-field": _far_field,
    "dc-offset": _dc_offset,
    "bit-crush": _bit_crush,
    "gaussian-noise": _gaussian,
    "coloured-noise": _coloured,
    "low-pass": _low_pass,
    "high-pass": _high_pass,
    "band-pass": _band_pass,
    "telephone": _telephone,
    "packet-loss": _packet_loss,
}
