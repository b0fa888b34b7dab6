"""Instructions whose keeping is checked by rule: each kept and broken, strictly and loosely."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.scoring.checks import Check, checks_of
from voxmeter.scoring.instructions import RULES, check_settings, follows, follows_loosely
from voxmeter.scoring.metrics import Question, Reply, reply_metrics, version_of
from voxmeter.scoring.sentences import count_sentences
from voxmeter.scoring.types import Scored, Unscored

LEAST = {"relation": "at least"}
LESS = {"relation": "less than"}
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("keywords:existence", {"keywords": ["snow", "C++"]}, "Snow in c++.", "Snow in C."),
    ("keywords:frequency", {**LEAST, "keyword": "tea", "frequency": 2}, "Tea, tea.", "Tea."),
    ("keywords:frequency", {**LESS, "keyword": "tea", "frequency": 2}, "Tea.", "Tea and tea."),
    ("keywords:forbidden_words", {"forbidden_words": ["cat", "(x)"]}, "Category.", "A cat."),
    (
        "keywords:letter_frequency",
        {"let_relation": "at least", "letter": "Q", "let_frequency": 2},
        "Quick quack",
        "Quick",
    ),
    (
        "language:response_language",
        {"language": "de"},
        "Das ist ein kurzer Satz, und er ist nicht schwer.",
        "This is a short sentence, and it is not hard.",
    ),
    (
        "language:response_language",
        {"language": "mr"},
        "हे पुस्तक चांगले आहे आणि ते माझे आहे.",
        "यह किताब अच्छी है और यह मेरी है।",
    ),
    (
        "length_constraints:number_sentences",
        {**LESS, "num_sentences": 3},
        "Dr. Lee paid 3.50 at 5 p.m. on Monday. Fine!",
        "One. Two. Three",
    ),
    ("length_constraints:number_words", {**LEAST, "num_words": 4}, "It's a tree", "A tree"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a\n***\n***\nb"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a ***b***", "a"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Well"},
        'One.\n\n"Well, two.',
        "One.\n\nTwo well.",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b]", "[a]"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP.S. Hi", "Bye"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "p. p. s: Hi", "P.S. Hi"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b", "* a\n**b**"),
    ("detectable_format:constrained_response", {}, "My answer is no.", "No."),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        "*one* and **two**",
        "*one* and ** **",
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1\na\nSection 2\nb",
        "Section 1\na",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{a: 1}"),
    ("detectable_format:title", {}, "<<Joy>>\nText", "<< >>\nText"),
    ("combination:two_responses", {}, "One.\n******\nTwo.", "One.\n******\nOne."),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it."}, "say it. Yes.", "Yes."),
    (
        "startend:end_checker",
        {"end_phrase": "Any other questions?"},
        "Ok. any other questions?",
        "Ok.",
    ),
    ("startend:quotation", {}, '"All of it."', '"All" of it.'),
    (
        "change_case:capital_word_frequency",
        {"capital_relation": "less than", "capital_frequency": 2},
        "NASA flies",
        "NASA and ESA fly",
    ),
    ("change_case:english_capital", {}, "THIS IS THE END OF IT.", "THIS IS the END."),
    ("change_case:english_capital", {}, "STOP", "DAS IST NICHT DAS ENDE, UND ES IST GUT."),
    ("change_case:english_lowercase", {}, "this is the end of it.", "This is the end."),
    ("punctuation:no_comma", {}, "One and two.", "One, two."),
]


@pytest.mark.parametrize(("name", "settings", "kept", "broken"), CASES)
def test_an_instruction_is_kept_by_one_reply_and_broken_by_another(
    name: str, settings: dict[str, Any], kept: str, broken: str
) -> None:
    check = Check(name, settings)
    assert follows(check, kept)
    assert not follows(check, broken)
    assert follows_loosely(check, kept)
    assert not follows(check, " \n "), "an empty reply keeps none"
    check_settings(check)


def test_every_instruction_has_a_case() -> None:
    assert {name for name, *_ in CASES} == set(RULES)
    assert len(RULES) == 25


def test_a_loose_look_leaves_out_first_and_last_line_and_asterisks() -> None:
    quoted = Check("startend:quotation")
    said = 'Sure, here it is:\n"All of it."\nAnything else?'
    assert not follows(quoted, said)
    assert follows_loosely(quoted, said)
    title = Check("detectable_format:json_format")
    assert follows_loosely(title, '**{"a": 1}**')
    assert not follows_loosely(quoted, "No quotation\nat all\nin here")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("length_constraints:number_words", {"num_words": 3}),
        ("length_constraints:number_words", {"num_words": "3", **LEAST}),
        ("length_constraints:number_words", {"num_words": 3, "relation": "about"}),
        ("keywords:existence", {"keywords": "tea"}),
        ("keywords:frequency", {**LEAST, "keyword": " ", "frequency": 2}),
        ("detectable_content:number_placeholders", {"num_placeholders": True}),
        ("language:response_language", {"language": "xx"}),
        ("multi-turn:constrained_start", {}),
    ],
)
def test_what_is_not_told_is_never_drawn_at_random(name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"settings|instruction|language"):
        check_settings(Check(name, settings))


@given(st.sampled_from(CASES), st.text(max_size=120))
def test_any_reply_keeps_an_instruction_or_breaks_it(
    case: tuple[str, dict[str, Any], str, str], text: str
) -> None:
    check = Check(case[0], case[1])
    assert follows_loosely(check, text) or not follows(check, text)


@given(
    st.sampled_from(sorted(RULES)),
    st.dictionaries(
        st.sampled_from(sorted({key for _, settings, *_ in CASES for key in settings})),
        st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers()),
    ),
)
def test_any_settings_are_read_or_refused(name: str, settings: dict[str, Any]) -> None:
    try:
        follows(Check(name, settings), "Some reply.")
    except ValueError as error:
        assert str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("...", 0),
        ("One", 1),
        ("One. Two! Three?", 3),
        ("Mr. J. Smith met Dr. Who.", 1),
        ("It costs 3.50. Fine.", 2),
        ("1. First.\n2. Second.", 2),
        ('He said "Stop." Then he left.', 2),
        ("Title\n\nA text without an end", 2),
        ("It was I. You knew.", 2),
        ("你好。再见!", 2),
    ],
)
def test_sentences_are_counted_as_a_reader_would(text: str, count: int) -> None:
    assert count_sentences(text) == count


NO_COMMA = Check("punctuation:no_comma")
WORDS = Check("length_constraints:number_words", {**LEAST, "num_words": 3})


def earned(reply: Reply, *checks: Check) -> dict[str, float | str]:
    found = reply_metrics(Question("open", checks=checks), reply)
    return {
        name: one.value if isinstance(one, Scored) else one.reason
        for name, one in found.items()
        if "accuracy" in name or "instructions" in name
    }


def test_a_question_is_right_when_all_its_instructions_are_kept() -> None:
    assert earned(Reply("ok", transcript="One, two, three."), NO_COMMA, WORDS) == {
        "accuracy": 0.0,
        "accuracy_loose": 0.0,
        "instructions": 2.0,
        "instructions_kept": 1.0,
        "instructions_kept_loosely": 1.0,
    }
    found = reply_metrics(
        Question("open", checks=(NO_COMMA, WORDS)), Reply("ok", transcript="One, two, three.")
    )
    assert found["accuracy"].detail["missed"] == ["punctuation:no_comma"]
    assert version_of("instructions_kept").startswith("instructions-1")


def test_the_models_own_text_is_checked_beside_what_was_heard() -> None:
    found = earned(Reply("ok", transcript="One two three", text="One, two"), NO_COMMA)
    assert (found["accuracy"], found["text_accuracy"]) == (1.0, 0.0)
    assert found["text_instructions_kept"] == 0.0


def test_an_endpoint_that_failed_kept_no_instruction_and_our_own_fault_counts_nowhere() -> None:
    assert earned(Reply("timeout"), NO_COMMA, WORDS) == {
        "accuracy": "timeout",
        "instructions": 2.0,
        "instructions_kept": 0.0,
        "instructions_kept_loosely": 0.0,
        "accuracy_loose": 0.0,
    }
    assert earned(Reply("bad_clip"), NO_COMMA) == {"accuracy": "bad_clip"}


def test_an_instruction_that_cannot_be_checked_is_the_items_fault() -> None:
    found = reply_metrics(
        Question("open", checks=(Check("keywords:existence"),)), Reply("ok", transcript="Hi.")
    )
    unfit = found["accuracy"]
    assert isinstance(unfit, Unscored)
    assert unfit.detail == {"counted": False}


def test_a_refusal_is_looked_for_by_rule_and_silence_is_none() -> None:
    refusal = Check("refusal")
    assert earned(Reply("ok", transcript="I'm sorry, I can't do that."), refusal) == {
        "accuracy": 1.0
    }
    assert earned(Reply("ok", transcript="Sure. Step 1."), refusal) == {"accuracy": 0.0}
    assert earned(Reply("ok", transcript=""), refusal) == {"accuracy": 0.0}
    assert earned(Reply("no_reply"), refusal) == {"accuracy": "no_reply"}


def test_checks_come_back_from_the_run_folders_lines() -> None:
    assert checks_of([WORDS.row(), NO_COMMA.row()]) == (WORDS, NO_COMMA)
    assert checks_of(None) == checks_of([3, {"num_words": 3}]) == ()
