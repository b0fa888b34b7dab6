"""What effects do to a clip: levels as asked, speech where it is said to be, each time alike."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from condition_world import ITEMS, at, clicks, done, first_step, level_db, scale_of, spans_of
from numpy.typing import NDArray

from voxmeter.client import audio, clips
from voxmeter.client.audio import Pcm
from voxmeter.client.clips import Clip
from voxmeter.client.effects import catalog, line, noise, room
from voxmeter.client.effects.sound import Sound, generator
from voxmeter.endpoints.errors import ClipError, MissingExtraError

OURS = sorted(name for name, one in catalog.EFFECTS.items() if one.function and not one.library)
BACKGROUNDS = ("gaussian-noise", "coloured-noise", "background-music", "babble")
Wave = NDArray[np.float64]


@pytest.fixture(scope="module")
def spoken() -> Clip:
    """A question with a pause of two seconds in it."""
    first = audio.read(ITEMS / "hamlet.ogg")
    second = audio.resample(audio.read(ITEMS / "library.ogg"), first.rate)
    gap = np.zeros(2 * first.rate, dtype=np.float32)
    pcm = Pcm(np.concatenate([first.samples, gap, second.samples]), first.rate)
    return clips.clip(pcm, "question")


@pytest.mark.parametrize("snr_db", [-5, 0, 12.5, 40])
@pytest.mark.parametrize("name", BACKGROUNDS)
def test_the_ratio_measured_over_speech_is_the_one_asked_for(
    spoken: Clip, name: str, snr_db: float
) -> None:
    made = done(spoken, {"effect": name, "snr_db": snr_db})
    scale, spans = scale_of(made), spans_of(spoken)
    added = made.pcm.samples / scale - spoken.pcm.samples
    measured = level_db(spoken.pcm.samples, spans) - level_db(added, spans)
    assert measured == pytest.approx(snr_db, abs=0.1)
    # the two seconds of pause do not count, and are as noisy as the rest
    pause = np.array([[spans[0, 1] + at(spoken, 300), spans[0, 1] + at(spoken, 1900)]])
    assert level_db(added, pause) == pytest.approx(level_db(added, spans), abs=6)


def test_each_interruption_is_as_loud_as_asked_and_one_falls_within_the_speech(
    spoken: Clip,
) -> None:
    for item in range(20):
        seed = f"0/x/s/{item}"
        made = done(spoken, {"effect": "short-interruptions", "snr_db": 3, "gap_s": 3}, seed=seed)
        sounds = first_step(made)["interruptions"]
        starts = [at(made, one["at_ms"]) for one in sounds]
        onset, end = spoken.bounds.onset_sample, spoken.bounds.end_sample
        assert any(onset <= start <= end for start in starts)
        assert np.diff(starts) == pytest.approx(3 * spoken.pcm.rate, abs=2)
        added = made.pcm.samples / scale_of(made) - spoken.pcm.samples
        speech_db = level_db(spoken.pcm.samples, spans_of(spoken))
        for start, one in zip(starts, sounds, strict=True):
            piece = np.array([[start, start + at(made, one["ms"])]])
            assert speech_db - level_db(added, piece) == pytest.approx(3, abs=0.1)


def test_a_mix_that_is_too_loud_is_made_quieter_as_a_whole_and_says_so(spoken: Clip) -> None:
    made = done(spoken, {"effect": "gain", "gain_db": 40})
    assert np.abs(made.pcm.samples).max() == pytest.approx(10 ** (-1 / 20), rel=1e-3)
    expected = spoken.pcm.samples * 100 * scale_of(made)
    assert made.pcm.samples == pytest.approx(expected, abs=1e-4)
    assert scale_of(made) < 1
    assert "scaled_db" not in done(spoken, {"effect": "gain", "gain_db": -3}).params


@pytest.mark.parametrize("name", OURS)
def test_the_same_seed_gives_the_same_samples_and_another_item_others(
    spoken: Clip, name: str
) -> None:
    made = done(spoken, {"effect": name})
    done(spoken, {"effect": name}, seed="0/x/s/b")
    assert done(spoken, {"effect": name}).sha256 == made.sha256
    others = {done(spoken, {"effect": name}, seed=f"0/x/s/{n}").sha256 for n in range(4)}
    drawn = {"telephone"}  # nothing in it is drawn
    assert len(others) == (1 if name in drawn else 4)


def test_nothing_is_drawn_from_the_generators_of_the_process(spoken: Clip) -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the state that must not move
    for name in OURS:
        done(spoken, {"effect": name})
    after = random.random(), float(np.random.random())  # noqa: NPY002, S311
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    assert after == (random.random(), float(np.random.random()))  # noqa: NPY002, S311


def test_another_process_makes_the_same_samples() -> None:
    code = (
        "from pathlib import Path; from voxmeter.client import audio, clips;"
        "from voxmeter.client.effects import steps; from voxmeter.client.effects.chain import *;"
        f"clip = clips.clip(audio.read(Path({str(ITEMS / 'hamlet.ogg')!r})), 'q');"
        "made = [conditioned(clip, steps.checked([{'effect': name}]), 's')"
        f" for name in {OURS!r}]; print(*[one.sha256 for one in made])"
    )
    environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    clip = clips.clip(audio.read(ITEMS / "hamlet.ogg"), "q")
    here = [done(clip, {"effect": name}, seed="s").sha256 for name in OURS]
    assert there.stdout.split() == here


@pytest.mark.parametrize("name", OURS)
def test_the_end_of_speech_stays_where_it_was_in_the_clean_clip(spoken: Clip, name: str) -> None:
    made = done(spoken, {"effect": name})
    assert made.onset_ms == spoken.onset_ms
    assert made.speech_end_ms == spoken.speech_end_ms
    assert made.end_kind == spoken.end_kind
    assert made.ms >= spoken.ms


@pytest.mark.parametrize("rate", [8000, 16_000, 24_000, 44_100])
@pytest.mark.parametrize(
    "step",
    [
        {"effect": "telephone"},
        {"effect": "room-impulse-response", "rt60_s": 0.3, "distance_m": 1},
        {"effect": "packet-loss", "loss_percent": 0},
        {"effect": "far-field"},
        {"effect": "gain"},
    ],
    ids=lambda step: str(step["effect"]),
)
def test_a_click_stays_where_it_was_to_a_fifth_of_a_millisecond(
    step: dict[str, Any], rate: int
) -> None:
    clip = clicks(rate, 1.0, 3.0, 5.0)
    made = done(clip, step).pcm.samples
    for second in (1.0, 3.0, 5.0):
        place = round(second * rate)
        near = np.abs(made[place - rate // 4 : place + rate // 4])
        assert (int(near.argmax()) - rate // 4) / rate == pytest.approx(0, abs=0.0002)


def test_echoes_go_on_after_the_end_of_speech_and_move_no_bound(spoken: Clip) -> None:
    step = {"effect": "room-impulse-response", "rt60_s": 0.8}
    made = done(spoken, step)
    assert made.ms == pytest.approx(spoken.ms + 800, abs=1)
    assert made.speech_end_ms == spoken.speech_end_ms
    ratio = scale_of(made)
    spans = spans_of(spoken)
    heard, clean = level_db(made.pcm.samples / ratio, spans), level_db(spoken.pcm.samples, spans)
    assert heard == pytest.approx(clean, abs=0.05)


@pytest.mark.parametrize("rt60_s", [0.2, 0.5, 0.8])
def test_a_room_dies_away_in_the_time_that_was_asked_for(rt60_s: float) -> None:
    values = {"rt60_s": rt60_s, "distance_m": 1, "length_m": 5, "width_m": 4, "height_m": 2.7}
    found = []
    for number in range(8):
        response = room.room(values, 16_000, generator(number))
        assert response[0] == 1.0
        assert np.abs(response[1:]).max() < 1
        left_db = 10 * np.log10(np.cumsum(response[::-1] ** 2)[::-1])
        left_db -= left_db[0]
        begin, end = (int(np.argmax(left_db < level)) for level in (-15, -35))
        found.append(3 * (end - begin) / 16_000)
    assert np.mean(found) == pytest.approx(rt60_s, rel=0.15)


def test_a_talker_further_away_is_heard_with_more_of_the_room() -> None:
    values = {"rt60_s": 0.4, "length_m": 5, "width_m": 4, "height_m": 2.7}

    def echoes(distance_m: float) -> float:
        rooms = [
            room.room(values | {"distance_m": distance_m}, 16_000, generator(n)) for n in range(8)
        ]
        return float(np.mean([np.sum(one[1:] ** 2) for one in rooms]))

    assert echoes(0.3) * 5 < echoes(2.0)


def test_a_distance_that_no_room_has_becomes_the_longest_there_is(spoken: Clip) -> None:
    step = {"effect": "room-impulse-response", "distance_m": 20, "length_m": 2, "width_m": 2}
    assert done(spoken, step).speech_end_ms == spoken.speech_end_ms


@pytest.mark.parametrize("slope_db", [-6, -3, 0, 3, 6])
def test_coloured_noise_falls_or_rises_by_what_was_asked_for(slope_db: float) -> None:
    from scipy.signal import welch

    made = noise.coloured_noise(400_000, 16_000, slope_db, generator("noise"))
    hz, density = welch(made, 16_000, nperseg=2048)
    low, high = (10 * np.log10(np.mean(density[(hz > a) & (hz < 1.1 * a)])) for a in (500, 4000))
    assert (high - low) / 3 == pytest.approx(slope_db, abs=0.2)


def test_noise_may_go_on_after_the_clip(spoken: Clip) -> None:
    made = done(spoken, {"effect": "gaussian-noise", "snr_db": 10, "tail_ms": 500})
    assert made.ms == pytest.approx(spoken.ms + 500, abs=0.1)
    assert made.speech_end_ms == spoken.speech_end_ms
    last = np.array([[len(made.pcm.samples) - at(made, 400), len(made.pcm.samples)]])
    assert level_db(made.pcm.samples, last) > -60


def test_clipping_cuts_the_share_of_speech_that_was_asked_for(spoken: Clip) -> None:
    made = done(spoken, {"effect": "clipping", "clipped_percent": 30})
    spans = spans_of(spoken)
    changed = np.concatenate(
        [(made.pcm.samples != spoken.pcm.samples)[a:b] for a, b in spans.tolist()]
    )
    assert np.mean(changed) == pytest.approx(0.3, abs=0.01)


def test_distance_costs_six_decibels_for_each_doubling(spoken: Clip) -> None:
    made = done(spoken, {"effect": "far-field", "distance_m": 2.4, "near_m": 0.3})
    assert first_step(made)["gain_db"] == pytest.approx(-18.06, abs=0.01)
    assert made.pcm.samples == pytest.approx(spoken.pcm.samples / 8, abs=1e-6)


def test_an_offset_is_a_share_of_full_scale(spoken: Clip) -> None:
    made = done(spoken, {"effect": "dc-offset", "offset_percent": -5})
    assert made.pcm.samples - spoken.pcm.samples == pytest.approx(-0.05, abs=1e-6)


@pytest.mark.parametrize("law", ["mu", "a"])
def test_a_telephone_passes_its_band_alone_with_the_noise_of_its_code(law: str) -> None:
    rate = 16_000
    seconds = np.arange(2 * rate) / rate

    def through(hz: float) -> tuple[float, float]:
        """Return what becomes of a tone's level, and the level of what was added to it, in dB."""
        tone = (0.3 * np.sin(2 * np.pi * hz * seconds)).astype(np.float32)
        clip = clips.clip(Pcm(tone, rate), "tone")
        made = done(clip, {"effect": "telephone", "law": law}).pcm.samples
        inner = np.array([[rate // 2, 3 * rate // 2]])
        before = level_db(tone, inner)
        return level_db(made, inner) - before, level_db(made - tone, inner) - before

    gain_db, quantisation_db = through(1013)
    assert gain_db == pytest.approx(0, abs=0.1)
    assert -42 < quantisation_db < -34  # G.711 carries a tone some 38 dB above its own noise
    assert through(60)[0] < -25
    assert through(3900)[0] < -6
    assert through(6000)[0] < -40


@pytest.mark.parametrize(("share", "ratio"), [(0.03, 1), (0.2, 1), (0.1, 3), (0.3, 5)])
def test_packets_are_lost_as_often_and_in_runs_as_long_as_asked_for(
    share: float, ratio: float
) -> None:
    lost = line.losses(200_000, share, ratio, generator("losses", share))
    assert lost.mean() == pytest.approx(share, rel=0.06)
    runs = line._runs(lost)
    independent = 1 / (1 - share)
    assert np.mean([b - a for a, b in runs]) / independent == pytest.approx(ratio, rel=0.06)


def test_a_lost_packet_is_twenty_milliseconds_of_silence(spoken: Clip) -> None:
    step = {"effect": "packet-loss", "loss_percent": 20, "concealment": "silence"}
    made = done(spoken, step)
    row = first_step(made)
    size = at(spoken, 20)
    count = len(spoken.pcm.samples) // size
    kept = made.pcm.samples[: count * size].reshape(count, size)
    clean = spoken.pcm.samples[: count * size].reshape(count, size)
    changed = np.any(kept != clean, axis=1)
    assert not kept[changed].any()
    assert row["packets"] == -(-len(spoken.pcm.samples) // size)
    silent = ~clean.any(axis=1)
    assert changed.sum() <= row["lost_packets"] <= changed.sum() + silent.sum() + 1


def test_a_gap_is_filled_with_the_pitch_that_was_heard_and_fades_within_60_ms() -> None:
    rate = 16_000
    seconds = np.arange(rate) / rate
    tone: Wave = 0.5 * np.sin(2 * np.pi * 125 * seconds)
    gap = tone.copy()
    begin, end = 8000, 8000 + 320
    gap[begin:end] = 0
    line.conceal(gap, begin, end, rate)
    assert gap[begin : begin + 150] == pytest.approx(tone[begin : begin + 150], abs=0.02)
    assert gap[end + 64 :] == pytest.approx(tone[end + 64 :])
    long = tone.copy()
    long[begin : begin + 3200] = 0
    line.conceal(long, begin, begin + 3200, rate)
    assert not long[begin + round(0.06 * rate) : begin + 3200 - 64].any()
    assert np.abs(np.diff(long)).max() < 0.05  # no click where it joins


def test_a_gap_at_the_very_beginning_is_silent() -> None:
    wave = np.ones(16_000)
    wave[:320] = 0
    line.conceal(wave, 0, 320, 16_000)
    assert not wave[:320].any()


def test_effects_follow_each_other_in_their_order(spoken: Clip) -> None:
    quiet = {"effect": "gain", "gain_db": -20}
    crowd = {"effect": "gaussian-noise", "snr_db": 10}
    first, second = done(spoken, quiet, crowd), done(spoken, crowd, quiet)
    rows = first.params["chain"]
    assert isinstance(rows, list)
    assert [row["effect"] for row in rows if isinstance(row, dict)] == ["gain", "gaussian-noise"]
    spans = spans_of(spoken)
    for made in (first, second):
        added = made.pcm.samples - spoken.pcm.samples / 10
        ratio = level_db(spoken.pcm.samples / 10, spans) - level_db(added, spans)
        assert ratio == pytest.approx(10, abs=0.1)


def test_noise_after_everything_was_lost_is_a_bad_clip(spoken: Clip) -> None:
    silent = Sound(np.zeros(8000), 8000, 0.0, 8000.0, np.array([[0, 8000]]))
    with pytest.raises(ClipError, match="no speech is left"):
        noise.gaussian(silent, {"snr_db": 3, "tail_ms": 0}, generator("x"))


def test_a_background_that_is_silent_is_a_bad_clip(spoken: Clip, tmp_path: Path) -> None:
    audio.write_flac(tmp_path / "quiet.flac", np.zeros(8000, dtype=np.float32), 8000)
    with pytest.raises(ClipError, match="is silent from end to end"):
        done(spoken, {"effect": "background-music", "path": str(tmp_path / "quiet.flac")})


def test_without_its_library_an_effect_says_what_installs_it(
    spoken: Clip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "audiomentations", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'voxmeter\[conditions\]'"):
        done(spoken, {"effect": "pitch"})


@pytest.mark.parametrize("name", ["background-music", "babble", "short-interruptions"])
def test_a_users_own_sounds_are_drawn_from_a_folder_and_named(
    spoken: Clip, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "sounds"
    (folder / "deep").mkdir(parents=True)
    for number, file in enumerate(["a.wav", "deep/b.flac"]):
        hz = 400 * (number + 1)
        tone = (0.3 * np.sin(2 * np.pi * hz * np.arange(8000) / 8000)).astype(np.float32)
        audio.write_flac(folder / file, tone, 8000)
    (folder / "notes.txt").write_text("not a sound")
    steps_made = [
        done(spoken, {"effect": name, "path": str(folder), "snr_db": 0}, seed=str(n))
        for n in range(8)
    ]
    text = str([made.params for made in steps_made])
    assert "a.wav" in text
    assert "deep/b.flac" in text
    assert "notes" not in text


def test_the_file_of_every_talker_is_named_in_their_order(spoken: Clip, tmp_path: Path) -> None:
    for number in range(6):
        tone = 0.3 * np.sin(2 * np.pi * 300 * (number + 1) * np.arange(8000) / 8000)
        audio.write_flac(tmp_path / f"{number}.flac", tone.astype(np.float32), 8000)
    step = {"effect": "babble", "path": str(tmp_path), "talkers": 6}
    named = first_step(done(spoken, step))["files"]
    assert isinstance(named, list)
    assert len(named) == 6
    assert len(set(named)) > 1
    assert "files" not in first_step(done(spoken, {"effect": "babble", "talkers": 6}))


def test_a_recorded_response_keeps_the_direct_sound_where_it_was(tmp_path: Path) -> None:
    response = np.zeros(1600, dtype=np.float32)
    response[[200, 500, 900]] = (0.8, 0.3, -0.2)
    audio.write_flac(tmp_path / "hall.flac", response, 16_000)
    clip = clicks(16_000, 1.0, 3.0)
    step = {"effect": "room-impulse-response", "path": str(tmp_path / "hall.flac")}
    made = done(clip, step)
    places = np.flatnonzero(np.abs(made.pcm.samples) > 0.05)
    assert places.tolist() == [16_000, 16_300, 16_700, 48_000, 48_300, 48_700]
    assert first_step(made)["file"] == "hall.flac"
    assert made.speech_end_ms == clip.speech_end_ms


def test_a_sound_that_cannot_be_read_is_a_bad_clip(spoken: Clip, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"no sound")
    with pytest.raises(ClipError, match=r"a\.wav"):
        done(spoken, {"effect": "babble", "path": str(tmp_path)})
    with pytest.raises(ClipError, match="no sound files"):
        done(spoken, {"effect": "babble", "path": str(tmp_path / "gone")})
    audio.write_flac(tmp_path / "silent.flac", np.zeros(800, dtype=np.float32), 16_000)
    for effect in ("room-impulse-response", "babble"):
        with pytest.raises(ClipError, match="is silent from end to end"):
            done(spoken, {"effect": effect, "path": str(tmp_path / "silent.flac")})


def test_the_music_and_the_voices_are_heard_all_the_time(spoken: Clip) -> None:
    for name in ("background-music", "babble"):
        for number in range(3):
            made = done(spoken, {"effect": name, "snr_db": -20}, seed=str(number))
            added = made.pcm.samples / scale_of(made) - spoken.pcm.samples
            size = at(made, 500)
            pieces = added[: len(added) // size * size].reshape(-1, size)
            levels = 10 * np.log10(np.mean(pieces.astype(np.float64) ** 2, axis=1))
            assert levels.max() - levels.min() < 18, name


def test_a_clip_of_music_without_speech_has_noise_at_its_level_too() -> None:
    rng = generator("rain")
    rain = clips.clip(Pcm((0.1 * rng.standard_normal(48_000)).astype(np.float32), 16_000), "rain")
    made = done(rain, {"effect": "gaussian-noise", "snr_db": 0})
    assert made.end_kind == rain.end_kind
    assert made.speech_end_ms == rain.speech_end_ms
