"""Effects of audiomentations, with nothing drawn by it: its parameters are set and frozen.

It draws from the global generators of `random` and numpy; ours are seeded by item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from voxmeter.client.audio import LIMIT_S
from voxmeter.client.effects.sound import Random, Sound, Wave, number
from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import ClipError, MissingExtraError

_Set = Mapping[str, float]
_Result = tuple[Sound, Mapping[str, Json]]
_MARGIN_MS = 100  # of silence around a sound while it is stretched, so that its edges are whole
_BANDS = (  # lowest and highest centre of each band in audiomentations' SevenBandParametricEQ, Hz
    (42, 95),
    (91, 204),
    (196, 441),
    (421, 948),
    (909, 2045),
    (1957, 4404),
    (4216, 9486),
)
_SHELF_Q = (0.1, 0.999)
_PEAK_Q = (0.5, 5.0)


def audiomentations() -> Any:  # noqa: ANN401 - untyped library
    """Return the library.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import audiomentations
    except ImportError as error:
        raise MissingExtraError("this condition", str(error), "conditions") from None
    return audiomentations


def pitch(sound: Sound, values: Mapping[str, Json], _: Random) -> _Result:
    """Shift the pitch; the speech stays where it is."""
    transform = audiomentations().PitchShift(-24, 24, p=1.0)
    wave = _around(sound, transform, 1.0, {"num_semitones": number(values, "semitones")})
    return sound.with_wave(wave), {}


def tempo(sound: Sound, values: Mapping[str, Json], _: Random) -> _Result:
    """Make the speech faster or slower; all of it comes so much earlier or later.

    Raises:
        ClipError: If that makes it longer than any clip may be, as several of them in a row do.
    """
    factor = number(values, "factor")
    seconds = len(sound.wave) / sound.rate / factor
    if seconds > LIMIT_S:
        limit = f"a clip has at most {LIMIT_S:g} s"
        raise ClipError("condition", f"tempo would make it {seconds:.0f} s long; {limit}")
    transform = audiomentations().TimeStretch(0.1, 10, leave_length_unchanged=False, p=1.0)
    return sound.faster(_around(sound, transform, factor, {"rate": factor}), factor), {}


def aliasing(sound: Sound, values: Mapping[str, Json], _: Random) -> _Result:
    """Sample the sound more coarsely, so that high sounds come back as others."""
    rate = number(values, "rate_hz")
    transform = audiomentations().Aliasing(p=1.0)
    return sound.with_wave(
        _applied(transform, sound.wave, sound.rate, {"new_sample_rate": rate})
    ), {}


def bit_crush(sound: Sound, values: Mapping[str, Json], _: Random) -> _Result:
    """Round every sample to fewer bits."""
    bits = int(number(values, "bits"))
    transform = audiomentations().BitCrush(p=1.0)
    return sound.with_wave(_applied(transform, sound.wave, sound.rate, {"bit_depth": bits})), {}


def low_pass(sound: Sound, values: Mapping[str, Json], _: Random) -> _Result:
    """Take high sounds away."""
    return _filtered(sound, "LowPassFilter", values, {"cutoff_freq": number(values, "cutoff_hz")})


def high_pass(sound: Sound, values: Mapping[str, Json], _: Random) -> _Result:
    """Take low sounds away."""
    cutoff = number(values, "cutoff_hz")
    _check_audible(sound, "high-pass", cutoff)
    return _filtered(sound, "HighPassFilter", values, {"cutoff_freq": cutoff})


def band_pass(sound: Sound, values: Mapping[str, Json], _: Random) -> _Result:
    """Take away what is higher or lower than a band."""
    centre = number(values, "centre_hz")
    width = centre * number(values, "bandwidth_of_centre")
    _check_audible(sound, "band-pass", centre - width / 2)
    return _filtered(sound, "BandPassFilter", values, {"center_freq": centre, "bandwidth": width})


def seven_band_eq(sound: Sound, values: Mapping[str, Json], draw: Random) -> _Result:
    """Make each of seven bands louder or quieter.

    Every band's filter runs forwards and backwards with half the gain, so that it delays nothing.
    """
    library = audiomentations()
    names = ["LowShelfFilter", *["PeakingFilter"] * 5, "HighShelfFilter"]
    gains = values["gain_db"]
    if not isinstance(gains, list):
        raise TypeError("gain_db is no list")
    centres = [round(float(draw.uniform(*ends)), 2) for ends in _BANDS]
    ranges = [_SHELF_Q, *[_PEAK_Q] * 5, _SHELF_Q]
    widths = [round(float(draw.uniform(*ends)), 4) for ends in ranges]
    wave = sound.wave
    for name, gain, centre, q in zip(names, gains, centres, widths, strict=True):
        if centre >= 0.45 * sound.rate:  # it lies above what the clip can hold
            continue
        set_to = {"center_freq": centre, "gain_db": number({"": gain}, "") / 2, "q_factor": q}
        transform = getattr(library, name)(p=1.0)
        once = _applied(transform, wave, sound.rate, set_to)
        wave = _applied(transform, once[::-1], sound.rate, set_to)[::-1]
    return sound.with_wave(wave), {"centre_hz": [*centres], "q": [*widths]}


def _filtered(sound: Sound, name: str, values: Mapping[str, Json], set_to: _Set) -> _Result:
    """Filter forwards and backwards: what comes out is not delayed."""
    rolloff = int(number(values, "rolloff_db_per_octave"))
    transform = getattr(audiomentations(), name)(zero_phase=True, p=1.0)
    wave = _applied(transform, sound.wave, sound.rate, {"rolloff": rolloff, **set_to})
    return sound.with_wave(wave), {}


def _check_audible(sound: Sound, name: str, lowest_hz: float) -> None:
    """Refuse a filter that would leave nothing of the clip."""
    if lowest_hz >= 0.49 * sound.rate:
        found = (
            f"what {name} lets through, from {lowest_hz:g} Hz on, a clip of {sound.rate} Hz has not"
        )
        raise ClipError("condition", found)


def _around(sound: Sound, transform: Any, factor: float, set_to: _Set) -> Wave:  # noqa: ANN401
    """Stretch a sound within silence, and take the silence off again."""
    margin = round(_MARGIN_MS * sound.rate / 1000)
    wave = _applied(transform, np.pad(sound.wave, margin), sound.rate, set_to)
    begin = round(margin / factor)
    wanted = round(len(sound.wave) / factor)
    return np.pad(wave[begin : begin + wanted], (0, max(0, wanted - len(wave) + begin)))


def _applied(transform: Any, wave: Wave, rate: int, set_to: _Set) -> Wave:  # noqa: ANN401 - untyped library
    transform.parameters = {"should_apply": True, **set_to}
    transform.freeze_parameters()
    try:
        made = transform(np.ascontiguousarray(wave, dtype=np.float32), rate)
    except Exception as error:  # foreign code, and this is one clip of many
        found = f"{len(wave)} samples at {rate} Hz with {dict(set_to)}: {error}"
        raise ClipError(type(transform).__name__, found) from error
    return np.asarray(made, dtype=np.float64)
