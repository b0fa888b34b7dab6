"""The audible rule, against sound whose first and last sample are known by construction."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import needs
import numpy as np
import pytest
import soundfile
import soxr
import spoken
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from spoken import Samples, Spoken

from voxmeter.scoring.speech import Bounds, speech_bounds

RATE = 24_000
VOICES = ("hibari", "piper", "espeak-ng@120", "espeak-ng@180", "espeak-ng@280")


def silence(seconds: float, rate: int = RATE) -> Samples:
    return np.zeros(round(seconds * rate), dtype=np.float32)


def tone(seconds: float, hertz: float = 300, size: float = 0.1, rate: int = RATE) -> Samples:
    phase = 2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate
    return np.asarray(size * np.cos(phase), dtype=np.float32)


def noise(seconds: float, dbfs: float, seed: int = 0) -> Samples:
    hiss = spoken.white(round(seconds * RATE), np.random.default_rng(seed))
    return np.asarray(hiss * 10 ** (dbfs / 20), dtype=np.float32)


def joined(*parts: Samples) -> Samples:
    return np.concatenate(parts)


def found(samples: NDArray[np.floating], rate: int = RATE) -> Bounds:
    bounds = speech_bounds(samples, rate)
    assert bounds is not None
    return bounds


# --- speech in silence and noise, through codecs ---


def errors(
    utterances: tuple[Spoken, ...], change: Callable[[Samples, Spoken], tuple[Samples, int]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how far onsets and ends are from the truth, ms."""
    rng = np.random.default_rng(7)
    onsets, ends = [], []
    for one in utterances:
        samples, onset, end = spoken.in_silence(one, rng.uniform(300, 900), rng.uniform(300, 900))
        bounds = found(*change(samples, one))
        onsets.append(bounds.onset_ms - onset)
        ends.append(bounds.end_ms - end)
    return np.abs(onsets), np.abs(ends)


def pcm16(samples: Samples, one: Spoken) -> tuple[Samples, int]:
    return np.asarray(np.round(samples * 32767) / 32768, dtype=np.float32), one.rate


def mu_law(samples: Samples, one: Spoken) -> tuple[Samples, int]:
    """Through 8 kHz and a table of the 256 levels of G.711 mu-law."""
    codes = np.arange(256)
    inverted = ~codes & 0xFF
    size = (((inverted & 0x0F) << 3) + 0x84 << ((inverted >> 4) & 7)) - 0x84
    table = np.sort(np.where(inverted & 0x80, -size, size)) / 32768
    narrow = soxr.resample(samples, one.rate, 8000)
    middle = (table[1:] + table[:-1]) / 2
    return np.asarray(table[np.searchsorted(middle, narrow)], dtype=np.float32), 8000


def ogg_opus(samples: Samples, one: Spoken) -> tuple[Samples, int]:
    """Through Ogg/Opus, whose reader takes off the encoder's own delay (its pre-skip)."""
    file = io.BytesIO()
    wide = soxr.resample(samples, one.rate, RATE)
    soundfile.write(file, wide, RATE, format="OGG", subtype="OPUS")
    file.seek(0)
    decoded, rate = soundfile.read(file, dtype="float32")
    assert abs(decoded.size - wide.size) <= 1
    return decoded, rate


def hissing(dbfs: float) -> Callable[[Samples, Spoken], tuple[Samples, int]]:
    def change(samples: Samples, one: Spoken) -> tuple[Samples, int]:
        hiss = spoken.white(samples.size, np.random.default_rng(samples.size))
        return samples + hiss * np.float32(10 ** (dbfs / 20)), one.rate

    return change


def noisy(
    make: Callable[[int, np.random.Generator], Samples], snr_db: float
) -> Callable[[Samples, Spoken], tuple[Samples, int]]:
    def change(samples: Samples, one: Spoken) -> tuple[Samples, int]:
        size = np.sqrt(np.mean(one.samples**2) / 10 ** (snr_db / 10))
        added = make(samples.size, np.random.default_rng(samples.size)) * size
        return np.asarray(samples + added, dtype=np.float32), one.rate

    return change


@pytest.mark.parametrize("voice", VOICES)
@pytest.mark.parametrize(
    ("change", "onset_ms", "end_ms", "median_ms"),
    [
        (pcm16, 0.5, 0.5, 0.1),
        # The limits of the worst leave room for piper, which never says a thing twice alike.
        (mu_law, 8, 8, 2),
        # Opus is audible some ms before and after a hard edge: that is in the sound itself.
        (ogg_opus, 12, 22, 6),
        (hissing(-70), 2, 2, 0.1),
        (hissing(-60), 6, 6, 0.1),
        (noisy(spoken.pink, 30), 10, 10, 0.5),
    ],
    ids=["pcm16", "mu-law", "opus", "hiss at -70", "hiss at -60", "pink at 30 dB"],
)
def test_speech_in_a_quiet_background_is_found_to_the_millisecond(
    voice: str,
    change: Callable[[Samples, Spoken], tuple[Samples, int]],
    onset_ms: float,
    end_ms: float,
    median_ms: float,
) -> None:
    onsets, ends = errors(spoken.utterances(voice), change)
    assert onsets.max() <= onset_ms
    assert ends.max() <= end_ms
    assert np.median(np.concatenate((onsets, ends))) <= median_ms


@pytest.mark.parametrize(
    ("change", "onset_ms", "end_ms"),
    [
        (noisy(spoken.white, 20), 10, 25),
        (noisy(spoken.pink, 20), 10, 25),
        (noisy(spoken.white, 10), 35, 60),
        (noisy(spoken.pink, 10), 20, 60),
    ],
    ids=["white 20 dB", "pink 20 dB", "white 10 dB", "pink 10 dB"],
)
def test_speech_in_noise_is_found_within_some_tens_of_milliseconds_at_the_median(
    change: Callable[[Samples, Spoken], tuple[Samples, int]], onset_ms: float, end_ms: float
) -> None:
    utterances = tuple(one for voice in VOICES for one in spoken.utterances(voice)[::2])
    assert len(utterances) >= 20
    onsets, ends = errors(utterances, change)
    assert np.median(onsets) <= onset_ms
    assert np.median(ends) <= end_ms
    assert max(onsets.max(), ends.max()) <= 400


@pytest.mark.parametrize("voice", VOICES)
def test_a_clip_cut_in_mid_speech_is_speech_from_its_first_sample_to_its_last(voice: str) -> None:
    for one in spoken.utterances(voice):
        bounds = found(one.samples, one.rate)
        assert bounds.onset_sample <= 1, one.name
        assert bounds.end_sample >= one.samples.size - 1, one.name


@pytest.mark.parametrize("voice", VOICES[:4])
@pytest.mark.parametrize("lead_ms", [0, 203])
def test_bounds_are_the_same_when_a_clip_is_cut_to_them(voice: str, lead_ms: float) -> None:
    for one in spoken.utterances(voice):
        # A soft beginning and end, as speech has them.
        fade = np.linspace(0, 1, one.rate // 10) ** 3
        shape = np.ones(one.samples.size)
        shape[: fade.size], shape[-fade.size :] = fade, fade[::-1]
        whole = found(np.asarray(one.samples * shape, dtype=np.float32), one.rate)
        cut = (one.samples * shape)[whole.onset_sample : whole.end_sample]
        again, onset, end = spoken.in_silence(
            Spoken(one.name, cut.astype(np.float32), one.rate), lead_ms, 500
        )
        bounds = found(*pcm16(again, one))
        assert bounds.onset_ms == pytest.approx(onset, abs=3)
        # Cut inside its last period, a voice may end a period earlier.
        assert bounds.end_ms == pytest.approx(end, abs=10)


def test_resampling_hardly_moves_the_bounds() -> None:
    moved = []
    for one in spoken.utterances("hibari"):
        samples, _, _ = spoken.in_silence(one, 300, 500)
        before = found(samples, one.rate)
        after = found(soxr.resample(samples, one.rate, 16_000), 16_000)
        moved += [after.onset_ms - before.onset_ms, after.end_ms - before.end_ms]
    assert np.median(np.abs(moved)) <= 1
    assert np.abs(moved).max() <= 5


def human(folder: Path, pattern: str, count: int) -> tuple[Spoken, ...]:
    paths = sorted(folder.glob(pattern))[:count]
    assert len(paths) == count
    read = [(path.stem, *soundfile.read(path, dtype="float32")) for path in paths]
    return tuple(Spoken(name, spoken.edges_cut(samples), rate) for name, samples, rate in read)


def test_human_recordings_are_found_as_exactly_as_synthetic_ones() -> None:
    letters = needs.needs("asterisk-core-sounds-en-wav") / "letters"
    desk = needs.needs("alsa-utils").parent
    people = human(letters, "*.wav", 30) + human(desk, "*_[CLR]*.wav", 6)
    onsets, ends = errors(people, pcm16)
    assert max(onsets.max(), ends.max()) <= 0.5
    onsets, ends = errors(people, hissing(-60))
    assert np.median(np.concatenate((onsets, ends))) <= 0.5
    assert max(onsets.max(), ends.max()) <= 5


def test_mp3_padding_does_not_move_the_end_of_speech() -> None:
    one = spoken.utterances("hibari")[0]
    samples, onset, end = spoken.in_silence(one, 400, 400)
    file = io.BytesIO()
    soundfile.write(file, samples, one.rate, format="MP3")
    file.seek(0)
    bounds = found(*soundfile.read(file, dtype="float32"))
    assert bounds.onset_ms == pytest.approx(onset, abs=10)
    assert bounds.end_ms == pytest.approx(end, abs=10)


# --- the rule on exact edges ---

VOICED = tone(1)
FADE = tone(510 / RATE, 1000, 1) * np.linspace(0.006, 0.0012, 510, dtype=np.float32)
"""Its last 30 samples are in a frame of their own, which is below -60 dBFS: no background yet."""


@pytest.mark.parametrize(
    ("samples", "onset_ms", "end_ms", "clicks"),
    [
        pytest.param(joined(silence(1), VOICED, silence(1)), 1000, 2000, 0, id="one tone"),
        pytest.param(joined(silence(0.6), VOICED), 600, 1600, 0, id="600 ms of zeros first"),
        pytest.param(joined(VOICED, silence(1)), 0, 1000, 0, id="no lead-in"),
        pytest.param(joined(silence(1.0031), VOICED), 1003.1, 2003.1, 0, id="off any grid"),
        pytest.param(
            joined(silence(1), tone(0.05), silence(0.4), VOICED), 1450, 2450, 1, id="a click first"
        ),
        pytest.param(
            joined(silence(1), VOICED, silence(0.4), tone(0.05), silence(1)),
            1000,
            2000,
            1,
            id="a click after",
        ),
        pytest.param(
            joined(silence(1), tone(0.04), silence(0.08), VOICED, silence(1)),
            1000,
            2120,
            0,
            id="a stop consonant first",
        ),
        pytest.param(
            joined(silence(1), VOICED, silence(0.08), tone(0.04), silence(1)),
            1000,
            2120,
            0,
            id="a stop consonant last",
        ),
        pytest.param(
            joined(silence(1), tone(0.04), silence(0.2), VOICED), 1240, 2240, 1, id="resumes late"
        ),
        pytest.param(
            joined(silence(1), tone(0.1), silence(0.4), VOICED), 1000, 2500, 0, id="100 ms count"
        ),
        pytest.param(
            joined(silence(1), VOICED, silence(1)) + np.float32(0.02), 1000, 2000, 0, id="offset"
        ),
        pytest.param(
            joined(silence(1), VOICED * 0.05, silence(1)), 1000, 2000, 0, id="soft, -46 dBFS"
        ),
        pytest.param(
            joined(silence(1), VOICED, FADE), 1000, 2000 + 510 / 24, 0, id="cut while it fades"
        ),
    ],
)
def test_bounds_are_those_of_the_rule(
    samples: Samples, onset_ms: float, end_ms: float, clicks: int
) -> None:
    bounds = found(samples)
    assert bounds.onset_ms == pytest.approx(onset_ms, abs=0.5)
    assert bounds.end_ms == pytest.approx(end_ms, abs=0.5)
    assert bounds.onset_sample == pytest.approx(onset_ms * RATE / 1000, abs=12)
    assert bounds.end_sample == pytest.approx(end_ms * RATE / 1000, abs=12)
    assert (bounds.kind, bounds.method, bounds.clicks) == ("speech", "level", clicks)


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param(silence(2), id="zeros"),
        pytest.param(noise(3, -70), id="hiss at -70 dBFS"),
        pytest.param(noise(3, -60), id="hiss at -60 dBFS"),
        pytest.param(noise(3, -55), id="hiss at -55 dBFS"),
        pytest.param(joined(silence(1), tone(0.05), silence(1)), id="a click alone"),
        pytest.param(joined(silence(0.5), tone(0.005), silence(0.1), tone(0.005)), id="two ticks"),
        pytest.param(silence(2) + np.float32(0.1), id="an offset"),
        pytest.param(joined(silence(1), silence(1) + np.float32(0.1)), id="a step"),
        pytest.param(np.full(RATE, 8 / 32768, np.float32), id="idle A-law"),
        pytest.param(np.array([0.5], np.float32), id="one sample"),
        pytest.param(tone(0.02), id="20 ms"),
    ],
)
def test_nothing_audible_gives_no_bounds(samples: Samples) -> None:
    assert speech_bounds(samples, RATE) is None


def test_hiss_is_not_speech_however_it_is_cut_into_chunks() -> None:
    hiss = noise(4, -70)
    assert all(speech_bounds(chunk, RATE) is None for chunk in np.split(hiss, 200))


def test_dithered_silence_is_silence() -> None:
    rng = np.random.default_rng(3)
    dither = rng.integers(-1, 2, 2 * RATE) / 32768
    assert speech_bounds(dither, RATE) is None


def test_loud_noise_without_speech_is_audible_but_not_speech() -> None:
    bounds = found(noise(3, -30))
    assert (bounds.kind, bounds.method) == ("audible", "silero")
    assert (bounds.onset_sample, bounds.end_sample) == (0, 3 * RATE)


def test_a_sound_that_stands_out_from_loud_noise_is_audible_where_it_does() -> None:
    bounds = found(joined(noise(1, -45), noise(1, -20, 1), noise(1, -45, 2)))
    assert (bounds.kind, bounds.method) == ("audible", "silero")
    assert bounds.onset_ms == pytest.approx(1000, abs=5)
    assert bounds.end_ms == pytest.approx(2000, abs=5)


@pytest.mark.parametrize("dbfs", [-75, -60, -50])
def test_a_stream_of_noise_has_the_bounds_of_what_rises_above_it(dbfs: float) -> None:
    bounds = found(joined(noise(4, dbfs), VOICED * 3 + noise(1, dbfs, 1), noise(2, dbfs, 2)))
    assert bounds.method == "level"
    assert bounds.onset_ms == pytest.approx(4000, abs=5)
    assert bounds.end_ms == pytest.approx(5000, abs=5)


def test_no_value_of_a_minute_of_sound_is_above_a_minute() -> None:
    bounds = found(np.tile(joined(silence(0.5), tone(0.5)), 60))
    assert 0 <= bounds.onset_ms < bounds.end_ms <= 60_000


def test_a_long_recording_is_exact_at_its_far_end() -> None:
    bounds = found(joined(silence(600), VOICED, silence(60)))
    assert bounds.onset_sample == 600 * RATE
    assert bounds.end_sample == pytest.approx(601 * RATE, abs=12)


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 22_050, 44_100, 48_000])
def test_every_usual_rate_gives_the_same_times(rate: int) -> None:
    samples = joined(silence(0.7, rate), tone(1.2, rate=rate), silence(0.5, rate))
    bounds = found(samples, rate)
    assert bounds.onset_ms == pytest.approx(700, abs=0.5)
    assert bounds.end_ms == pytest.approx(1900, abs=0.5)


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        ([], RATE, "empty"),
        (np.zeros((10, 2)), RATE, r"shape \(10, 2\)"),
        (np.array([0.0, np.nan, 0.1]), RATE, "sample 1 is nan"),
        (np.array([0.0, 0.1, np.inf]), RATE, "sample 2 is inf"),
        (np.full(10, np.nan), RATE, "sample 0 is nan"),
        (np.zeros(10, np.int16), RATE, "int16"),
        (np.full(1000, 12_000.0), RATE, r"12000.0; finite floats in \[-1, 1\]"),
        (np.zeros(10), 0, "rate is 0"),
        (np.zeros(10), 24, "rate is 24"),
    ],
)
def test_what_is_not_sound_is_refused_with_the_place(
    samples: object, rate: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        speech_bounds(np.asarray(samples), rate)


def test_a_quiet_background_loads_no_network() -> None:
    program = (
        "import sys, numpy as np\n"
        "from voxmeter.scoring.speech import speech_bounds\n"
        "sound = np.cos(np.arange(24_000) / 10) * 0.1\n"
        "assert speech_bounds(np.concatenate((np.zeros(24_000), sound)), 24_000)\n"
        "loud = {'onnxruntime', 'faster_whisper', 'soxr', 'scipy'} & set(sys.modules)\n"
        "assert not loud, loud\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- properties ---


def bursts() -> st.SearchStrategy[Samples]:
    """Tones of 5 to 600 ms and silences between them, each of any length in samples."""
    part = st.tuples(st.integers(120, 14_400), st.integers(1, 14_400), st.floats(0.05, 0.5))
    return st.lists(part, min_size=1, max_size=5).map(
        lambda parts: joined(
            *(
                joined(tone(sound / RATE, size=size), silence(quiet / RATE))
                for sound, quiet, size in parts
            ),
            silence(0.2),
        )
    )


@settings(max_examples=40, deadline=None)
@given(bursts(), st.integers(0, 30_000))
def test_silence_before_shifts_the_bounds_by_exactly_its_length(
    samples: Samples, lead: int
) -> None:
    before = speech_bounds(joined(silence(0.5), samples), RATE)
    after = speech_bounds(joined(silence(0.5), np.zeros(lead, np.float32), samples), RATE)
    if before is None:
        assert after is None
        return
    assert after is not None
    assert after.onset_sample == before.onset_sample + lead
    assert after.end_sample == before.end_sample + lead


@settings(max_examples=40, deadline=None)
@given(bursts(), st.floats(0.25, 2))
def test_gain_does_not_move_the_bounds(samples: Samples, gain: float) -> None:
    sound = joined(silence(0.5), samples)
    before = speech_bounds(sound, RATE)
    after = speech_bounds(np.asarray(sound * gain, dtype=np.float32), RATE)
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert after.onset_sample == pytest.approx(before.onset_sample, abs=24)
        assert after.end_sample == pytest.approx(before.end_sample, abs=24)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=3000))
def test_any_finite_signal_has_bounds_inside_it_or_none(values: list[float]) -> None:
    samples = np.array(values, dtype=np.float32)
    bounds = speech_bounds(samples, 8000)
    if bounds is not None:
        assert 0 <= bounds.onset_sample < bounds.end_sample <= samples.size
