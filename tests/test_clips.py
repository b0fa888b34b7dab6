"""Clips: recipes rendered, texts spoken once, bounds mapped to the rate of the wire."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from wav_bytes import tone

from voxmeter.client import audio, clips
from voxmeter.client.audio import Pcm
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.scoring.speech import Bounds
from voxmeter.suites.suite import Gap, Item, Part, Recording, Shot, Spoken

RATE = 24_000


class Voice:
    """Says a tone as long as the text, between two quiet ends."""

    def __init__(self, name: str = "voice", rate: int = RATE) -> None:
        self.name = name
        self.rate = rate
        self.said: list[str] = []

    def __call__(self, name: str) -> Voice:
        assert name == self.name
        return self

    def speak(self, text: str) -> Iterator[NDArray[np.float32]]:
        self.said.append(text)
        quiet = np.zeros(self.rate // 10, dtype=np.float32)
        if text != "…":
            yield quiet
            yield tone(0.05 * len(text), self.rate).astype(np.float32)
            yield quiet


def item(*recipe: Part) -> Item:
    return Item("s", "q", "number", recipe, reference=("1",))


def no_voice(name: str) -> Voice:
    raise AssertionError(f"nobody should speak, not even {name}")


def file(folder: Path, samples: NDArray[np.float64], rate: int = RATE) -> Recording:
    path = folder / f"{rate}-{len(samples)}.flac"
    audio.write_flac(path, samples.astype(np.float32), rate)
    return Recording(path)


def framed(seconds: float, rate: int = RATE) -> NDArray[np.float64]:
    """Return a tone between 200 ms of silence on either side."""
    quiet = np.zeros(rate // 5)
    return np.concatenate([quiet, tone(seconds, rate), quiet])


def test_a_recording_is_a_clip_with_its_bounds_and_hash(tmp_path: Path) -> None:
    clip = clips.render(item(file(tmp_path, framed(1.0))), no_voice, tmp_path)
    assert (clip.ms, clip.end_kind) == (1400, "speech")
    assert clip.onset_ms == pytest.approx(200, abs=0.2)
    assert clip.speech_end_ms == pytest.approx(1200, abs=0.2)
    assert clip.sha256 == audio.sha256(clip.pcm)
    assert clip.row() == {
        "sha256": clip.sha256,
        "ms": 1400,
        "speech_end_ms": round(clip.speech_end_ms, 3),
        "end_kind": "speech",
    }


def test_parts_follow_each_other_at_the_highest_rate(tmp_path: Path) -> None:
    low, high = file(tmp_path, framed(0.5, 16_000), 16_000), file(tmp_path, framed(0.4))
    clip = clips.render(item(low, Gap(1000), high, Gap(0.1)), no_voice, tmp_path)
    assert clip.pcm.rate == RATE
    assert len(clip.pcm.samples) == round(0.9 * RATE) + RATE + round(0.8 * RATE) + 2
    assert not clip.pcm.samples[RATE : RATE + RATE // 2].any()
    assert clip.speech_end_ms == pytest.approx(900 + 1000 + 600, abs=0.2)


def test_a_text_is_spoken_once_and_then_read(tmp_path: Path) -> None:
    voice = Voice()
    spoken = item(Spoken("How many?", "voice"))
    first = clips.render(spoken, voice, tmp_path / "new" / "folder")
    again = clips.render(spoken, no_voice, tmp_path / "new" / "folder")
    assert voice.said == ["How many?"]
    assert first.sha256 == again.sha256
    assert first.bounds == again.bounds
    assert np.array_equal(first.pcm.samples, again.pcm.samples)


def test_another_text_or_voice_is_spoken_anew(tmp_path: Path) -> None:
    for name, text in (("a", "One."), ("a", "Two."), ("b", "One.")):
        voice = Voice(name)
        clips.render(item(Spoken(text, name)), voice, tmp_path)
        assert voice.said == [text]


def test_a_damaged_entry_of_the_cache_is_spoken_again(tmp_path: Path) -> None:
    voice = Voice()
    spoken = item(Spoken("Again?", "voice"))
    whole = clips.render(spoken, voice, tmp_path)
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(b"torn")
    assert clips.render(spoken, voice, tmp_path).sha256 == whole.sha256
    assert voice.said == ["Again?", "Again?"]
    assert clips.render(spoken, no_voice, tmp_path).sha256 == whole.sha256


def test_threads_may_render_at_the_same_time(tmp_path: Path) -> None:
    voice = Voice()
    items = [item(Spoken("x" * (1 + number % 5) + "?", "voice")) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        hashes = list(pool.map(lambda one: clips.render(one, voice, tmp_path).sha256, items))
    assert hashes == hashes[:5] * 8
    assert len(set(hashes)) == 5
    assert len(list(tmp_path.iterdir())) == 5
    assert len(voice.said) == 5


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (np.zeros(RATE), "nothing audible in 1.00 s (all samples are 0)"),
        (tone(1.0) * 1e-4, "its peak is -8"),
    ],
)
def test_a_silent_clip_is_a_bad_clip(
    samples: NDArray[np.float64], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ClipError) as caught:
        clips.render(item(file(tmp_path, samples)), no_voice, tmp_path)
    assert said in caught.value.problem
    assert caught.value.path == "s/q"


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ((Recording(Path("absent.wav")),), "no such file"),
        ((Gap(100),), "no audio"),
        ((), "no audio"),
        ((Spoken("…", "voice"),), "voice 'voice' has nothing to say"),
    ],
)
def test_a_recipe_that_gives_no_sound_is_a_bad_clip(
    recipe: tuple[Part, ...], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ClipError, match=said):
        clips.render(item(*recipe), Voice(), tmp_path)


class FailingVoice(Voice):
    """Fails after its first words, as a synthesiser does on a number of forty digits."""

    error: Exception = IndexError("list index out of range")

    def speak(self, text: str) -> Iterator[NDArray[np.float32]]:
        yield from super().speak(text)
        raise self.error


def test_a_voice_that_fails_on_one_text_makes_one_bad_clip(tmp_path: Path) -> None:
    with pytest.raises(ClipError) as caught:
        clips.render(item(Spoken("1" * 40, "voice")), FailingVoice(), tmp_path)
    assert caught.value.path == "s/q"
    assert "voice 'voice' cannot say" in caught.value.problem
    assert "IndexError: list index out of range" in caught.value.problem
    assert not list(tmp_path.iterdir())


def test_a_voice_that_is_the_users_to_mend_stops_the_run(tmp_path: Path) -> None:
    voice = FailingVoice()
    voice.error = UserError("voice", "not installed", "install it")
    with pytest.raises(UserError, match="not installed"):
        clips.render(item(Spoken("Why?", "voice")), voice, tmp_path)


def test_an_empty_clip_is_a_bad_clip() -> None:
    with pytest.raises(ClipError, match="holds no samples"):
        clips.clip(Pcm(np.zeros(0, dtype=np.float32), RATE), "place")


def test_a_cache_that_cannot_be_made_is_the_users_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be made"):
        clips.render(item(Spoken("Why?", "voice")), Voice(), tmp_path / "file" / "cache")


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 48_000])
def test_bounds_move_with_the_rate_to_the_sample(rate: int, tmp_path: Path) -> None:
    clip = clips.render(item(file(tmp_path, framed(1.0))), no_voice, tmp_path)
    sent = clip.utterance(rate)
    assert sent.rate == rate
    assert sent.samples == round(1.4 * rate) == len(clip.at(rate).samples)
    assert abs(sent.end_sample / rate - clip.bounds.end_sample / RATE) <= 0.5 / rate
    assert abs(sent.onset_sample / rate - clip.bounds.onset_sample / RATE) <= 0.5 / rate
    assert sent.end_kind == "speech"


def test_the_source_rate_is_sent_untouched(tmp_path: Path) -> None:
    clip = clips.render(item(file(tmp_path, framed(0.3))), no_voice, tmp_path)
    sent = clip.utterance(RATE)
    assert sent.pcm == audio.to_pcm16(clip.pcm.samples)
    assert (sent.onset_sample, sent.end_sample) == (
        clip.bounds.onset_sample,
        clip.bounds.end_sample,
    )


@given(onset=st.integers(0, 30), length=st.integers(5, 30), old=st.sampled_from([8_000, 44_100]))
def test_mapped_bounds_stay_inside_even_very_short_audio(onset: int, length: int, old: int) -> None:
    end = onset + length
    bounds = Bounds(0.0, 0.0, onset, end, "speech", "level")
    source = Pcm(np.zeros(end, dtype=np.float32), old)
    sent = clips.utterance(audio.resample(source, 16_000), bounds, old)
    assert 0 <= sent.onset_sample < sent.end_sample <= sent.samples


def test_the_last_rates_are_kept_and_no_more(tmp_path: Path) -> None:
    clip = clips.render(item(file(tmp_path, framed(0.3))), no_voice, tmp_path)
    first = clip.utterance(16_000)
    assert clip.utterance(16_000) is first
    for rate in (8_000, 48_000):
        clip.utterance(rate)
    assert clip.utterance(16_000) is not first


def test_missing_files_and_needed_voices_are_told_without_reading_audio(tmp_path: Path) -> None:
    there = file(tmp_path, framed(0.3))
    gone = Recording(tmp_path / "gone.wav")
    both = item(there, gone, Spoken("b", "piper"))
    assert clips.missing(both) == (gone.path,)
    assert clips.speakers_of([both, item(Spoken("a", "hibari")), both]) == ("hibari", "piper")


def test_warnings_of_the_files_come_with_the_clip(tmp_path: Path) -> None:
    path = tmp_path / "stereo.flac"
    audio.write_flac(path, np.stack([framed(0.3)] * 2, axis=1).astype(np.float32), RATE)
    clip = clips.render(item(Recording(path), Recording(path)), no_voice, tmp_path)
    assert clip.pcm.warnings == ("2 channels mixed down to one",)


def test_examples_come_before_the_question_and_only_the_end_of_it_all_is_kept(
    tmp_path: Path,
) -> None:
    voice = Voice("a")
    parts = {name: (Spoken(name, "a"),) for name in ("two?", "two.", "three?")}
    asked = replace(
        item(*parts["three?"]),
        shots=(Shot(parts["two?"], parts["two."]),),
        shot_gap_ms=500,
    )
    alone = {name: clips.render(item(*one), voice, tmp_path).ms for name, one in parts.items()}
    whole = clips.render(asked, voice, tmp_path)
    assert whole.ms == sum(alone.values()) + 2 * 500
    assert whole.speech_end_ms > whole.ms - alone["three?"]
    kept = clips.render(replace(asked, keep_last_ms=700), voice, tmp_path)
    assert kept.ms == 700
    assert np.array_equal(kept.pcm.samples, whole.pcm.samples[-len(kept.pcm.samples) :])
    longer = clips.render(replace(asked, keep_last_ms=60_000), voice, tmp_path)
    assert longer.sha256 == whole.sha256
