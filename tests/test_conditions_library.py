"""Effects of audiomentations: its sound for parameters of ours, and nothing drawn by it."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from condition_world import ITEMS, clicks, done, first_step, level_db, scale_of, spans_of
from needs import needs_extra
from scipy.signal import sosfreqz

from voxmeter.client import audio, clips
from voxmeter.client.audio import Pcm
from voxmeter.client.clips import Clip
from voxmeter.client.effects import catalog
from voxmeter.client.effects.library import low_pass
from voxmeter.client.effects.sound import Sound, generator
from voxmeter.endpoints.errors import ClipError

library = needs_extra("audiomentations", "conditions")

NAMES = sorted(name for name, effect in catalog.EFFECTS.items() if effect.library)
FACTORS = (0.5, 0.62, 0.8, 1.0, 1.25, 1.6, 2.0)


@pytest.fixture(scope="module")
def spoken() -> Clip:
    return clips.clip(audio.read(ITEMS / "hamlet.ogg"), "question")


def by_the_library(name: str, clip: Clip, values: Mapping[str, float], **made_with: Any) -> Any:
    """Return what audiomentations makes of a clip with these parameters."""
    transform = getattr(library, name)(p=1.0, **made_with)
    transform.parameters = {"should_apply": True, **values}
    transform.freeze_parameters()
    return transform(clip.pcm.samples, clip.pcm.rate)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_samples_and_another_item_others(
    spoken: Clip, name: str
) -> None:
    made = done(spoken, {"effect": name})
    done(spoken, {"effect": name}, seed="0/x/s/b")
    assert done(spoken, {"effect": name}).sha256 == made.sha256
    others = {done(spoken, {"effect": name}, seed=f"0/x/s/{n}").sha256 for n in range(4)}
    assert len(others) == (4 if name != "bit-crush" else len(others))


def test_another_process_makes_the_same_samples(spoken: Clip) -> None:
    code = (
        "from pathlib import Path; from voxmeter.client import audio, clips;"
        "from voxmeter.client.effects import steps; from voxmeter.client.effects.chain import *;"
        f"clip = clips.clip(audio.read(Path({str(ITEMS / 'hamlet.ogg')!r})), 'q');"
        "made = [conditioned(clip, steps.checked([{'effect': name}]), 's')"
        f" for name in {NAMES!r}]; print(*[one.sha256 for one in made])"
    )
    environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.split() == [
        done(spoken, {"effect": name}, seed="s").sha256 for name in NAMES
    ]


def test_nothing_is_drawn_from_the_generators_of_the_process(spoken: Clip) -> None:
    before = random.getstate(), np.random.get_state()[1].tobytes()  # type: ignore[index] # noqa: NPY002
    for name in NAMES:
        done(spoken, {"effect": name})
    assert before == (random.getstate(), np.random.get_state()[1].tobytes())  # type: ignore[index] # noqa: NPY002


@pytest.mark.parametrize("rate", [16_000, 24_000, 44_100])
@pytest.mark.parametrize("factor", FACTORS)
def test_a_change_of_tempo_moves_every_click_by_its_factor_to_within_a_millisecond(
    factor: float, rate: int
) -> None:
    clip = clicks(rate, 0.5, 1.0, 2.7, 5.0, 5.9)
    made = done(clip, {"effect": "tempo", "factor": factor})
    assert made.ms == pytest.approx(clip.ms / factor, abs=0.1)
    assert made.onset_ms == pytest.approx(500 / factor, abs=0.1)
    assert made.speech_end_ms == pytest.approx(5900 / factor, abs=0.2)
    for second in (0.5, 1.0, 2.7, 5.0, 5.9):
        place = round(second * rate / factor)
        first = max(0, place - rate // 8)
        near = np.abs(made.pcm.samples[first : place + rate // 8])
        assert (int(near.argmax()) + first - place) / rate == pytest.approx(0, abs=0.001)


@pytest.mark.parametrize("factor", FACTORS)
def test_the_end_of_speech_moves_with_the_tempo_and_with_what_is_heard(factor: float) -> None:
    """A tone with hard edges: where it is half as loud is where it is said to begin and end."""
    rate = 24_000
    samples = np.zeros(4 * rate, dtype=np.float32)
    tone = 0.3 * np.sin(2 * np.pi * 300 * np.arange(2 * rate) / rate)
    samples[rate : 3 * rate] = tone.astype(np.float32)
    clip = clips.clip(Pcm(samples, rate), "tone")
    made = done(clip, {"effect": "tempo", "factor": factor})
    width = rate // 150
    mean = np.convolve(made.pcm.samples.astype(np.float64) ** 2, np.ones(width) / width, "same")
    loud = np.flatnonzero(mean > 0.25 * 0.3**2 / 2)
    assert loud[0] * 1000 / rate == pytest.approx(made.onset_ms, abs=5)
    assert loud[-1] * 1000 / rate == pytest.approx(made.speech_end_ms, abs=5)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_speech_up_to_the_last_sample_is_not_cut(factor: float) -> None:
    rate = 16_000
    tone = (0.3 * np.sin(2 * np.pi * 300 * np.arange(2 * rate) / rate)).astype(np.float32)
    clip = clips.clip(Pcm(tone, rate), "tone")
    made = done(clip, {"effect": "tempo", "factor": factor})
    assert made.speech_end_ms == pytest.approx(2000 / factor, abs=1)
    count = len(made.pcm.samples)
    last = np.array([[count - rate // 50, count - rate // 100]])
    assert level_db(made.pcm.samples, last) > -18


@pytest.mark.parametrize("semitones", [-5, -2, 0, 3, 5])
def test_pitch_moves_no_click_and_every_tone(semitones: float) -> None:
    rate = 16_000
    clip = clicks(rate, 1.0, 3.0, 5.0)
    made = done(clip, {"effect": "pitch", "semitones": semitones})
    assert (made.ms, made.onset_ms, made.speech_end_ms) == (
        clip.ms,
        clip.onset_ms,
        clip.speech_end_ms,
    )
    for second in (1.0, 3.0, 5.0):
        place = round(second * rate)
        near = np.abs(made.pcm.samples[place - rate // 8 : place + rate // 8])
        assert (int(near.argmax()) - rate // 8) / rate == pytest.approx(0, abs=0.001)
    tone = (0.3 * np.sin(2 * np.pi * 440 * np.arange(3 * rate) / rate)).astype(np.float32)
    heard = done(clips.clip(Pcm(tone, rate), "tone"), {"effect": "pitch", "semitones": semitones})
    spectrum = np.abs(np.fft.rfft(heard.pcm.samples[rate : 2 * rate] * np.hanning(rate)))
    assert int(spectrum.argmax()) == pytest.approx(440 * 2 ** (semitones / 12), abs=2)


@pytest.mark.parametrize(
    "step",
    [
        {"effect": "low-pass", "cutoff_hz": 1000},
        {"effect": "low-pass", "cutoff_hz": 3000, "rolloff_db_per_octave": 24},
        {"effect": "high-pass", "cutoff_hz": 300},
        {"effect": "band-pass", "centre_hz": 1000, "bandwidth_of_centre": 1},
        {"effect": "aliasing", "rate_hz": 8000},
        {"effect": "bit-crush", "bits": 8},
        {"effect": "seven-band-eq", "gain_db": 6},
        {"effect": "seven-band-eq", "gain_db": [-12, 12]},
    ],
    ids=str,
)
def test_filters_delay_nothing(step: dict[str, Any]) -> None:
    rate = 16_000
    clip = clicks(rate, 1.0, 3.0, 5.0)
    made = done(clip, step)
    assert (made.onset_ms, made.speech_end_ms) == (clip.onset_ms, clip.speech_end_ms)
    for second in (1.0, 3.0, 5.0):
        place = round(second * rate)
        near = np.abs(made.pcm.samples[place - rate // 8 : place + rate // 8])
        assert (int(near.argmax()) - rate // 8) / rate == pytest.approx(0, abs=0.0002)


@pytest.mark.parametrize(
    ("step", "name", "values"),
    [
        ({"effect": "aliasing", "rate_hz": 9000}, "Aliasing", {"new_sample_rate": 9000.0}),
        ({"effect": "bit-crush", "bits": 6}, "BitCrush", {"bit_depth": 6}),
        ({"effect": "gain", "gain_db": -4}, "Gain", {"amplitude_ratio": 10 ** (-4 / 20)}),
    ],
    ids=str,
)
def test_what_comes_out_is_what_the_library_makes_of_the_same_parameters(
    spoken: Clip, step: dict[str, Any], name: str, values: dict[str, float]
) -> None:
    made = done(spoken, step).pcm.samples
    assert made == pytest.approx(by_the_library(name, spoken, values), abs=1e-6)


@pytest.mark.parametrize(
    ("step", "name", "values"),
    [
        (
            {"effect": "low-pass", "cutoff_hz": 900, "rolloff_db_per_octave": 24},
            "LowPassFilter",
            {"cutoff_freq": 900, "rolloff": 24},
        ),
        (
            {"effect": "high-pass", "cutoff_hz": 900, "rolloff_db_per_octave": 12},
            "HighPassFilter",
            {"cutoff_freq": 900, "rolloff": 12},
        ),
        (
            {
                "effect": "band-pass",
                "centre_hz": 1000,
                "bandwidth_of_centre": 0.5,
                "rolloff_db_per_octave": 12,
            },
            "BandPassFilter",
            {"center_freq": 1000, "bandwidth": 500, "rolloff": 12},
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_filters_are_the_librarys_without_their_delay(
    spoken: Clip, step: dict[str, Any], name: str, values: dict[str, float]
) -> None:
    made = done(spoken, step).pcm.samples
    assert made == pytest.approx(by_the_library(name, spoken, values, zero_phase=True), abs=1e-6)


def test_clipping_is_the_librarys_where_all_of_a_clip_is_speech(spoken: Clip) -> None:
    begin, end = spans_of(spoken)[0].tolist()
    piece = clips.clip(Pcm(spoken.pcm.samples[begin:end], spoken.pcm.rate), "piece")
    assert spans_of(piece).tolist() == [[0, end - begin]]
    made = done(piece, {"effect": "clipping", "clipped_percent": 20}).pcm.samples
    library_made = by_the_library("ClippingDistortion", piece, {"percentile_threshold": 20})
    assert made == pytest.approx(library_made, abs=1e-6)


def test_each_band_is_as_loud_as_the_librarys_filters_make_it() -> None:
    rate = 48_000
    clip = clicks(rate, 3.0)
    made = done(clip, {"effect": "seven-band-eq"})
    row = first_step(made)
    hz = np.geomspace(50, 15_000, 40)
    expected_db = np.zeros(len(hz))
    names = ["LowShelfFilter", *["PeakingFilter"] * 5, "HighShelfFilter"]
    for name, gain_db, centre, q in zip(
        names, row["gain_db"], row["centre_hz"], row["q"], strict=True
    ):
        made_by = getattr(library, name)()
        sections = made_by._get_biquad_coefficients_from_input_parameters(
            centre, gain_db / 2, q, rate
        )
        response = sosfreqz(sections, hz, fs=rate)[1]
        expected_db += 2 * 20 * np.log10(np.abs(response))
    wave = made.pcm.samples / scale_of(made) / 0.9
    seconds = np.arange(len(wave)) / rate
    heard = np.array([abs(np.sum(wave * np.exp(-2j * np.pi * one * seconds))) for one in hz])
    assert 20 * np.log10(heard) == pytest.approx(expected_db, abs=0.1)
    assert expected_db.max() - expected_db.min() > 3


def test_a_band_above_what_a_clip_can_hold_is_left_out() -> None:
    clip = clicks(8000, 3.0)
    made = done(clip, {"effect": "seven-band-eq", "gain_db": 12})
    assert max(first_step(made)["centre_hz"]) > 4000
    assert np.isfinite(made.pcm.samples).all()
    assert int(np.abs(made.pcm.samples).argmax()) == pytest.approx(3 * 8000, abs=1)


def test_bands_of_no_gain_change_nothing(spoken: Clip) -> None:
    made = done(spoken, {"effect": "seven-band-eq", "gain_db": 0})
    assert made.pcm.samples == pytest.approx(spoken.pcm.samples, abs=1e-5)


def test_noise_after_a_change_of_tempo_is_measured_over_the_speech_where_it_now_is(
    spoken: Clip,
) -> None:
    tempo = {"effect": "tempo", "factor": 0.7}
    slower = done(spoken, tempo)
    noisy = done(spoken, tempo, {"effect": "gaussian-noise", "snr_db": 8})
    assert noisy.speech_end_ms == slower.speech_end_ms
    spans = np.rint(spans_of(spoken) / 0.7).astype(np.int64)
    added = noisy.pcm.samples / scale_of(noisy) - slower.pcm.samples
    ratio = level_db(slower.pcm.samples, spans) - level_db(added, spans)
    assert ratio == pytest.approx(8, abs=0.1)


@pytest.mark.parametrize(
    "step",
    [
        {"effect": "high-pass", "cutoff_hz": 5000},
        {"effect": "band-pass", "centre_hz": 9000, "bandwidth_of_centre": 0.5},
    ],
    ids=lambda step: str(step["effect"]),
)
def test_a_filter_that_would_leave_nothing_of_a_clip_is_a_bad_clip(step: dict[str, Any]) -> None:
    with pytest.raises(ClipError, match="Hz on, a clip of 8000 Hz has not"):
        done(clicks(8000, 1.0), step)


def test_what_the_library_cannot_do_with_a_clip_is_a_bad_clip() -> None:
    few = Sound(np.ones(3), 8000, 0.0, 3.0, np.array([[0, 3]]))
    values = {"cutoff_hz": 500, "rolloff_db_per_octave": 12}
    with pytest.raises(ClipError, match=r"LowPassFilter: 3 samples at 8000 Hz with .*: "):
        low_pass(few, values, generator("x"))


def test_no_chain_makes_a_clip_longer_than_clips_may_be() -> None:
    long = clicks(4000, 1.0, 460.0, length_s=470)
    with pytest.raises(
        ClipError, match=r"tempo would make it 94\d s long; a clip has at most 900 s"
    ):
        done(long, {"effect": "tempo", "factor": 0.5})
    with pytest.raises(ClipError, match="at most 900 s"):
        done(clicks(4000, 1.0), *[{"effect": "tempo", "factor": 0.5}] * 8)


def test_every_environment_that_voxeval_names_can_be_drawn(spoken: Clip) -> None:
    from voxmeter.client.effects.chain import conditioned
    from voxmeter.client.effects.steps import checked, ready

    chain = checked(ready("env_acoustics"))
    drawn = set()
    for number in range(60):
        made = conditioned(spoken, chain, f"0/env/s/{number}")
        drawn.add(first_step(made)["effect"])
        assert np.abs(made.pcm.samples).max() <= 1
        assert made.speech_end_ms == spoken.speech_end_ms
    assert drawn == set(catalog.READY["environment"])


def test_a_very_short_clip_comes_through() -> None:
    rate = 16_000
    tone = (0.3 * np.sin(2 * np.pi * 300 * np.arange(rate // 8) / rate)).astype(np.float32)
    clip = clips.clip(Pcm(tone, rate), "short")
    for name in NAMES:
        assert done(clip, {"effect": name}).bounds.end_sample > 0
