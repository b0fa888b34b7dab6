"""The three voices, as they are installed."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from needs import needs

from voxmeter.client.sentences import SentenceSplitter, sentences
from voxmeter.client.speakers import SPEAKERS, Speaker, speaker
from voxmeter.endpoints.errors import UserError

TEXT = "The correct answer is B. It is Mars!"


_loaded = functools.cache(speaker)


def _speaker(name: str) -> Speaker:
    if name.startswith("espeak-ng"):
        needs("espeak-ng")
    return _loaded(name)


@pytest.mark.parametrize("name", [*SPEAKERS, "espeak-ng:de"])
def test_a_voice_yields_one_sentence_at_a_time(name: str) -> None:
    voice = _speaker(name)
    parts = list(voice.speak(TEXT))
    assert len(parts) == 2
    for samples in parts:
        assert samples.dtype == np.float32
        assert samples.ndim == 1
        assert 0.1 < np.max(np.abs(samples)) <= 1.0
        assert 0.5 < len(samples) / voice.rate < 4
    assert voice.rate == (24_000 if name == "hibari" else 22_050)
    assert voice.name == name


@pytest.mark.parametrize("name", SPEAKERS)
@pytest.mark.parametrize("text", ["", "  \n ", "...", "-?!"])
def test_nothing_to_say_is_no_sound(name: str, text: str) -> None:
    assert list(_speaker(name).speak(text)) == []


@pytest.mark.parametrize("name", ["hibari", "espeak-ng"])
def test_the_same_text_sounds_the_same(name: str) -> None:
    first, second = (
        np.concatenate([*voice.speak(TEXT)]) for voice in (_speaker(name), speaker(name))
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", SPEAKERS)
def test_pace_makes_speech_shorter(name: str) -> None:
    usual = sum(len(part) for part in _speaker(name).speak(TEXT))
    fast = sum(len(part) for part in speaker(name, pace=1.5).speak(TEXT))
    assert fast < 0.85 * usual


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("alloy", "use one of hibari, piper, espeak-ng"),
        ("hibari:emma", "no such voice"),
        ("piper:/no/such/voice.onnx", "no such file"),
    ],
)
def test_a_voice_that_does_not_exist_is_one_line(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        speaker(name)


def test_a_language_espeak_does_not_have_is_one_line() -> None:
    needs("espeak-ng")
    with pytest.raises(UserError, match="espeak-ng --voices"):
        speaker("espeak-ng:xx-nowhere")


def test_a_missing_espeak_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install espeak-ng"):
        speaker("espeak-ng")


def test_an_impossible_pace_is_one_line() -> None:
    with pytest.raises(UserError, match="use a pace from"):
        speaker("hibari", pace=0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two? Three!", ["One.", "Two?", "Three!"]),
        ("The answer is no. It is 3.5.", ["The answer is no.", "It is 3.5."]),
        ("Dr. Brown met Mrs. Grey. They spoke.", ["Dr. Brown met Mrs. Grey.", "They spoke."]),
        ("3. Mars. 4. Venus.", ["3. Mars.", "4. Venus."]),
        ('She said "stop." Then left', ['She said "stop."', "Then left"]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("是的。答案是乙。", ["是的。", "答案是乙。"]),
        (" ... ", []),
    ],
)
def test_sentences_end_where_a_voice_may_pause(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_text_in_pieces_gives_the_same_sentences(size: int) -> None:
    text = "The answer is B. It is 3.5, says Dr. Brown! Right?"
    splitter = SentenceSplitter()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    found = [sentence for piece in pieces for sentence in splitter.feed(piece)]
    assert [*found, *splitter.flush()] == sentences(text)
