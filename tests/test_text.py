"""Normalised words, error rates, lengths and loops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.scoring.text import length, normal_words, repetition, word_error_rate
from voxmeter.scoring.types import Scored, Unscored

SAME = [
    ("It's one hundred.", "it is 100", "en"),
    ("about a thousand apples", "About 1,000 apples!", "en"),
    ("two thousand", "2 thousand", "en"),
    ("forty-two", "Forty two", "en"),
    ("the year nineteen eighty-four", "The year 1984.", "en"),
    ("three point five percent", "3.5%", "en"),
    ("minus five degrees", "-5\u00b0", "en"),
    ("I can't, I won't, I don't", "i can\u2019t i will not i do not", "en"),
    ("five dollars", "$5", "en"),
    ("the twenty-first of May", "The 21st of May", "en"),
    ("point five", "0.5", "en"),
    ("Zweiundvierzig \u00c4pfel", "42 \u00e4pfel", "de"),
    ("quarante-deux pommes", "42 pommes.", "fr"),
    ("\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u4f60\u597d \u4e16\u754c", "zh"),
    ("\uff21\uff22\uff23", "abc", "en"),
]
DIFFERENT = [
    ("one hundred", "one hundred and one", "en"),
    ("3.4", "3 4", "en"),
    ("John's car", "John car", "en"),
    ("it is", "it was", "en"),
    ("1,5", "15", "de"),
]


@pytest.mark.parametrize(("one", "other", "language"), SAME)
def test_two_writings_of_the_same_speech_are_equal(one: str, other: str, language: str) -> None:
    assert normal_words(one, language) == normal_words(other, language)
    assert word_error_rate(one, other, language) == word_error_rate(one, one, language)


@pytest.mark.parametrize(("one", "other", "language"), DIFFERENT)
def test_what_was_said_differently_stays_different(one: str, other: str, language: str) -> None:
    assert normal_words(one, language) != normal_words(other, language)


def test_errors_are_counted_per_word_of_the_reference() -> None:
    scored = word_error_rate("the cat sat on the mat", "the cat sit on mat mat now")
    counts = {"substitutions": 2, "deletions": 0, "insertions": 1, "reference_words": 6}
    assert scored == Scored(0.5, counts)


def test_silence_is_all_words_missed_and_insertions_can_pass_one() -> None:
    silent = word_error_rate("two words", "")
    assert isinstance(silent, Scored)
    assert silent.value == 1.0
    chatty = word_error_rate("yes", "yes that is right")
    assert isinstance(chatty, Scored)
    assert chatty.value == 3.0


@pytest.mark.parametrize("reference", ["", "  ", "...", "?!"])
def test_an_empty_reference_has_no_rate(reference: str) -> None:
    assert word_error_rate(reference, "anything") == Unscored("empty reference")


def test_chinese_is_counted_in_characters() -> None:
    scored = word_error_rate("\u4eca\u5929\u5f88\u597d", "\u4eca\u5929\u5f88\u574f", "zh")
    assert isinstance(scored, Scored)
    assert scored.value == 0.25
    assert length("\u4eca\u5929\u5f88\u597d\u3002").words is None
    assert length("\u4eca\u5929\u5f88\u597d\u3002").characters == 4


def test_length_counts_words_and_not_punctuation() -> None:
    assert length("It\u2019s 3.5, isn't it?").words == 4
    assert length("- - ... -").words == 0
    assert length("").characters == 0


def test_a_loop_of_twenty_kilobytes_is_flagged_and_does_not_crash() -> None:
    text = "The answer is B. " * 1200
    found = repetition(text)
    assert found.looped
    assert found.phrase == "the answer is b"
    assert found.times == 1200
    assert found.compression > 2.4
    assert isinstance(word_error_rate("The answer is B.", text), Scored)


@pytest.mark.parametrize(
    "text",
    [
        "The answer is B. The answer is B.",
        "No, no, no, no.",
        "Ha ha ha ha. That is a good one, but the capital of France is Paris, not London.",
        "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve.",
        "",
        "Yes",
    ],
)
def test_ordinary_repetition_is_not_a_loop(text: str) -> None:
    assert not repetition(text).looped


def test_a_loop_after_a_good_start_is_found() -> None:
    found = repetition("I think that it is Paris. " + "Thank you very much. " * 8)
    assert found.looped
    assert found.times == 8


@given(st.text(max_size=200), st.sampled_from(["en", "de", "zh", "xx"]))
def test_any_text_has_words_without_spaces_or_punctuation(text: str, language: str) -> None:
    for word in normal_words(text, language):
        assert word
        assert not any(character.isspace() for character in word)
    assert (length(text).words or 0) <= length(text).characters
    assert repetition(text).times >= 1
