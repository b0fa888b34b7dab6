"""Voices that speak questions: the same each time, their pitch, rate, volume and pauses."""

from __future__ import annotations

import numpy as np
import pytest
from attempt_logs import joined, silence, voice
from needs import needs
from numpy.typing import NDArray

from voxmeter.client import audio, speech_voices
from voxmeter.client.speech_voices import ADU, Manner, speak

ESPEAK = "espeak-ng:en-us"


@pytest.mark.parametrize("name", ["hibari", "piper", "espeak-ng"])
def test_local_voices_make_the_same_sound_of_the_same_text(name: str) -> None:
    if name == "espeak-ng":
        needs(name)
    manner = Manner(name, rate=10, pitch=-10)
    first = speak(manner, "The answer is B.")
    speech_voices._model.cache_clear()
    np.testing.assert_array_equal(first.samples, speak(manner, "The answer is B.").samples)


def _height(pcm: audio.Pcm) -> float:
    """Median pitch of the voiced parts, Hz, by their autocorrelation."""
    size, found = int(pcm.rate * 0.05), []
    for start in range(0, len(pcm.samples) - size, size // 2):
        frame = pcm.samples[start : start + size].astype(np.float64)
        if np.sqrt(np.mean(frame**2)) < 0.02:
            continue
        same = np.correlate(frame - frame.mean(), frame - frame.mean(), "full")[size - 1 :]
        low, high = pcm.rate // 400, pcm.rate // 60
        lag = low + int(same[low:high].argmax())
        if same[lag] > 0.6 * same[0]:
            found.append(pcm.rate / lag)
    return float(np.median(found))


TEXT = "How many legs does a spider have, and what do they call the animal in the house?"


@pytest.mark.parametrize("name", ["espeak-ng:en-us", "espeak-ng:en-us+f3", "hibari"])
@pytest.mark.parametrize("percent", [-10, 10])
def test_the_pitch_moves_and_the_length_stays(name: str, percent: int) -> None:
    if name.startswith("espeak"):
        needs("espeak-ng")
    usual, moved = speak(Manner(name), TEXT), speak(Manner(name, pitch=percent), TEXT)
    assert _height(moved) / _height(usual) == pytest.approx(1 + percent / 100, abs=0.045)
    assert moved.ms / usual.ms == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("name", ["espeak-ng", "hibari", "piper"])
@pytest.mark.parametrize("percent", [-10, 10])
def test_the_rate_moves_and_the_pitch_stays(name: str, percent: int) -> None:
    if name.startswith("espeak"):
        needs("espeak-ng")
    usual, moved = speak(Manner(name), TEXT), speak(Manner(name, rate=percent), TEXT)
    assert usual.ms / moved.ms == pytest.approx(1 + percent / 100, abs=0.04)
    assert _height(moved) / _height(usual) == pytest.approx(1, abs=0.06)


def test_the_volume_is_a_factor() -> None:
    needs("espeak-ng")
    usual = speak(Manner(ESPEAK), "One two.")
    soft = speak(Manner(ESPEAK, volume=-10), "One two.")
    np.testing.assert_allclose(soft.samples, usual.samples * np.float32(0.9), rtol=1e-6)
    assert usual.warnings == soft.warnings == ()
    assert speak(Manner("piper"), "One two.").warnings == (), "its peak is full scale by itself"


def test_a_pause_is_silence_where_the_mark_is() -> None:
    needs("espeak-ng")
    without = speak(Manner(ESPEAK, pause_ms=0), "Let's eat, | Grandma.")
    paused = speak(Manner(ESPEAK, pause_ms=700), "Let's eat, | Grandma.")
    assert paused.ms - without.ms == pytest.approx(700, abs=1)
    quiet = _longest_silence(paused.samples)
    assert quiet >= 0.7 * paused.rate


def _longest_silence(samples: NDArray[np.float32]) -> int:
    loud = np.flatnonzero(samples)
    return int(np.diff(loud).max())


SENTENCES = "Which one is it? Choose the right answer. A. Venus. B. Mars."


@pytest.mark.parametrize("name", ["espeak-ng", "hibari", "piper"])
def test_no_pause_of_a_voice_is_long_enough_to_end_the_question(name: str) -> None:
    if name == "espeak-ng":
        needs(name)
    usual = speak(Manner(name, longest_pause_ms=None), SENTENCES)
    short = speak(Manner(name, longest_pause_ms=140), SENTENCES)
    assert _longest_quiet_ms(usual) > 250, "nothing to shorten"
    assert _longest_quiet_ms(short) <= 180
    assert usual.ms > short.ms > usual.ms - 4000


def test_short_pauses_and_the_ends_of_a_clip_are_left() -> None:
    sound = joined(silence(900), voice(300), silence(200), voice(300), silence(900))
    pcm = audio.Pcm(np.asarray(sound, np.float32), 24_000)
    assert speech_voices.shortened(pcm, 300).ms == pcm.ms
    cut = speech_voices.shortened(pcm, 100)
    assert cut.ms == pytest.approx(pcm.ms - 100, abs=6)
    np.testing.assert_array_equal(cut.samples[: 24 * 1200], pcm.samples[: 24 * 1200])
    still = audio.Pcm(np.zeros(1000, np.float32), 24_000)
    assert speech_voices.shortened(still, 100) is still


def _longest_quiet_ms(pcm: audio.Pcm) -> float:
    loud = np.flatnonzero(np.abs(pcm.samples) > 0.02 * np.abs(pcm.samples).max())
    return float(np.diff(loud).max()) / pcm.rate * 1000


def test_adu_is_four_women_and_four_men() -> None:
    needs("espeak-ng")
    assert speech_voices.named(("adu", "piper")) == ADU
    heights = {name: _height(speak(Manner(name), TEXT)) for name in ADU}
    assert sum(height > 150 for height in heights.values()) == 4, heights
    assert len(set(heights.values())) == 8
