"""Writing put into words: labelled cases for every rule, and what holds for any text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.errors import MissingExtraError
from voxmeter.suites.spoken import numbers
from voxmeter.suites.spoken.text import RULES, spoken
from voxmeter.suites.spoken.units import _NAMES
from voxmeter.suites.spoken.wordings import NONE, WORDINGS, reworded

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "spoken_text.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}: {case['written']}")
def test_what_is_written_is_said_as_labelled(case: Mapping[str, str]) -> None:
    found = spoken(case["written"])
    assert found.text == case["spoken"]
    assert case["written"] == case["spoken"] or case["rule"] in found.rules


def test_every_rule_has_labelled_cases() -> None:
    assert [rule.name for rule in RULES] == list(dict.fromkeys(rule.name for rule in RULES))
    assert {case["rule"] for case in CASES} == {rule.name for rule in RULES}


@pytest.mark.parametrize(
    "text",
    [
        "Which planet is closest to the sun?",
        "I think, therefore I am. Who said it?",
        "A well-known author wrote it; which one?",
        "Can the court's decision stand?",
    ],
)
def test_a_plain_sentence_is_left_alone(text: str) -> None:
    assert spoken(text) == (text, ())


@given(st.text(max_size=80))
def test_of_any_text_no_digit_is_left(text: str) -> None:
    said = spoken(text).text
    assert not re.search(r"[0-9]", said)
    assert said == said.strip()
    assert "\n" not in said


_SIGNS = st.text(
    alphabet="0123456789abxyzABIVX .,:;-+*/^_()[]{}<>=|$%€°'\"&~!?√π→±", min_size=1, max_size=40
)


@given(_SIGNS)
def test_of_any_formula_no_digit_and_no_operator_is_left(text: str) -> None:
    said = spoken(text).text
    assert not re.search(r"[0-9^_{}<>=*\\~|√→±]", said)


@pytest.mark.parametrize("text", [" ", "(", "1/2 ", "_ ", "a - ", "5 kg/", "|x", "H2O", "\v"])
def test_a_long_text_of_anything_comes_to_an_end(text: str) -> None:
    assert len(spoken(text * 5000).text) < 50 * 5000 * len(text)


@given(st.integers(min_value=0, max_value=10**15 - 1))
def test_grouped_and_plain_numbers_are_the_same_words(number: int) -> None:
    assert spoken(f"{number:,}").text == spoken(str(number)).text


@pytest.mark.parametrize(
    ("year", "words"),
    [
        (1066, "ten sixty-six"),
        (1900, "nineteen hundred"),
        (1905, "nineteen oh five"),
        (2000, "two thousand"),
        (2009, "two thousand nine"),
        (2024, "twenty twenty-four"),
        (476, "four hundred seventy-six"),
    ],
)
def test_years_are_said_as_years(year: int, words: str) -> None:
    assert numbers.year(year) == words


def test_an_option_is_a_year_where_the_question_asks_for_one() -> None:
    assert spoken("1547", about="In which year did he die?").text == "fifteen forty-seven"
    assert spoken("1547", about="How many are there?").text.startswith("one thousand")
    assert spoken("15470", about="In which year?").text.startswith("fifteen thousand")


@pytest.mark.parametrize(
    ("text", "language", "said"),
    [
        ("Es sind 21 Tage.", "de", "Es sind einundzwanzig Tage."),
        ("Il y a 80 jours", "fr", "Il y a quatre-vingts jours"),
        ("Son 3,5 metros", "es", "Son tres punto cinco metros"),
        ("H2O bleibt H2O", "de", "H2O bleibt H2O"),
        ("Tá 5 lá ann", "ga", "Tá 5 lá ann"),
    ],
)
def test_of_other_languages_numbers_alone_are_put_into_words(
    text: str, language: str, said: str
) -> None:
    assert spoken(text, language).text == said


def test_without_num2words_the_cure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "num2words", None)
    numbers._num2words.cache_clear()
    numbers.cardinal.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=r"pip install 'voxmeter\[build\]'"):
            spoken("7 times")
    finally:
        numbers._num2words.cache_clear()


@pytest.mark.parametrize("unit", sorted(_NAMES))
def test_no_unit_keeps_its_sign_behind_a_number(unit: str) -> None:
    said = spoken(f"It is 7 {unit} here").text
    assert said in {f"It is seven {_NAMES[unit][1]} here", f"It is seven {_NAMES[unit][0]} here"}


QUESTION = "Which of the following is not a reason that the three rivers of France were never dry?"


@pytest.mark.parametrize("wording", WORDINGS)
@pytest.mark.parametrize("seed", range(20))
def test_a_wording_keeps_what_decides_the_answer(wording: str, seed: int) -> None:
    said = reworded(QUESTION, wording, str(seed))
    assert said != QUESTION
    for word in ("not", "three", "France", "never"):
        assert re.search(rf"\b{word}\b", said), said


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_wording_is_the_same_for_the_same_seed(wording: str) -> None:
    drawn = {reworded(QUESTION, wording, "7") for _ in range(3)}
    assert len(drawn) == 1
    assert len({reworded(QUESTION, wording, str(seed)) for seed in range(30)}) > 1


@given(st.text(max_size=60), st.sampled_from([NONE, *WORDINGS]), st.integers())
def test_any_question_can_be_said_otherwise(text: str, wording: str, seed: int) -> None:
    said = reworded(text, wording, str(seed))
    assert wording != NONE or said == text
    assert bool(text.split()) <= bool(said.split())


def test_fillers_add_words_and_take_none() -> None:
    said = [word.strip(".,").lower() for word in reworded(QUESTION, "fillers", "1").split()]
    rest = iter([word.rstrip("?") for word in said])
    assert all(word in rest for word in QUESTION.lower().rstrip("?").split()), said
    assert len(said) > len(QUESTION.split())


def test_a_new_start_ends_with_the_whole_question() -> None:
    found = [reworded(QUESTION, "false-starts", str(seed)) for seed in range(20)]
    assert any(said.endswith(QUESTION) for said in found)
    assert any("I mean" in said or "sorry," in said for said in found)


def test_a_learner_leaves_articles_out() -> None:
    said = reworded("The man has a dog and the woman has a cat.", "proficiency", "3")
    assert len(re.findall(r"\b(?:a|the)\b", said.lower())) < 4
    assert "have" in said
