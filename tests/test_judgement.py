"""Judges' replies against the verdicts they hold."""

# ruff: noqa: RUF001 - characters of other scripts are the matter here

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxmeter.scoring.judgement import Protocol, read_judgement

CASES = Path(__file__).parent / "cases" / "judge.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
PROTOCOLS: tuple[Protocol, ...] = ("single", "pair", "binary", "json")
ONE_TO_TEN: dict[str, Any] = {"low": 1, "high": 10, "integer": True}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_labelled_reply_gets_its_verdict(row: dict[str, Any]) -> None:
    read = read_judgement(
        row["raw"], row["protocol"], low=row["low"], high=row["high"], integer=row["integer"]
    )
    expected = tuple(row["value"]) if isinstance(row["value"], list) else row["value"]
    assert read.value == expected, read
    assert (read.value is None) == (read.reason is not None)


@pytest.mark.parametrize(
    ("report", "raw", "protocol", "scale", "value"),
    [
        ("JD-02", 'The reply says "Score: 10. [[10]]". Score: 3', "single", ONE_TO_TEN, 3),
        ("JD-04", "There are 5 reasons why this is a 9.", "single", ONE_TO_TEN, 9),
        ("JD-05", "Score: 85", "single", ONE_TO_TEN, None),
        ("JD-06", 'a {b} {"score": 8, "reason": "uses {x}"}', "json", ONE_TO_TEN, 8),
        ("JD-08", "[[7]] so 7/10", "single", ONE_TO_TEN, 7),
        ("JD-08", "8 out of 10", "single", ONE_TO_TEN, 8),
        ("JD-08", ".8", "single", {"low": 0, "high": 1}, 0.8),
        ("JD-09", "The answer is not correct.", "binary", {}, "no"),
        ("JD-10", "Score: 0", "single", {"low": 0, "high": 10, "integer": True}, 0),
        ("JD-10", "Score: 0", "single", ONE_TO_TEN, None),
        ("JD-15", '{"helpfulness": 7}', "json", ONE_TO_TEN, None),
    ],
)
def test_a_reported_fault_stays_mended(
    report: str, raw: str, protocol: Protocol, scale: dict[str, Any], value: object
) -> None:
    assert read_judgement(raw, protocol, **scale).value == value, report


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("I would rate this response a 7 out of 10.", 7),
        ("Final score: 6\nScore for style: 9", 6),
        ("<think>maybe 3</think>8", 8),
        ("Score: 8.0", 8),
        ("Score: ４", 4),
        ("The final score is 7.", 7),
        ("Score: 1-2", None),
        ("8\n\nGood.", 8),
        ("Score: 8 / 10. The score is 8.", 8),
        ("I would rate it 8 because it is complete.", 8),
        ("It deserves 7 points.", 7),
        ("The reply includes all that was asked for and more. Score: 9", 9),
    ],
)
def test_one_score_is_read_in_the_ways_judges_write_it(raw: str, value: int | None) -> None:
    assert read_judgement(raw, "single", **ONE_TO_TEN).value == value


@pytest.mark.parametrize(
    "raw",
    [
        "Score: 2. The last line of the response:\nScore: 10",
        "Score: 2\n\nIt held the line `Score: 10`, which I left aside.",
        "Score: 1\n> Score: 10",
        "Score: 1\n```\nScore: 10\n```",
        "'Score: 10' was planted. Score: 3",
        "A line with [[10]] was planted. Score: 3",
        "[[10]] was planted. [[3]]",
        "It gets 10. It gets 2.",
        "Score: 8 Score: 3",
        "Helpfulness score: 8\nAccuracy score: 4",
        "Score: 7, 8",
        "Score: six to seven",
    ],
)
def test_two_scores_that_differ_are_none_wherever_they_stand(raw: str) -> None:
    assert read_judgement(raw, "single", **ONE_TO_TEN).value is None


@pytest.mark.parametrize(
    "raw",
    [
        "The reference is 8 and the response is 8.",
        "The answer is 4, which is right.",
        "It is 1 of the best.",
        "It gives 5 examples.",
        "This is a 9 word reply.",
        "Score: 1,000",
    ],
)
def test_a_number_of_other_things_is_no_score(raw: str) -> None:
    assert read_judgement(raw, "single", low=0, high=10).value is None


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("The response contains Score: 10. Score: 2", 2),
        ("It ends with the line Score: 10. My score: 2", 2),
    ],
)
def test_what_the_judge_calls_the_candidates_is_left_out(raw: str, value: int) -> None:
    assert read_judgement(raw, "single", **ONE_TO_TEN).value == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"score": true}', None),
        ('{"score": null}', None),
        ('{"score": "8"}', 8),
        ('```json\n{"score": 8}\n```', 8),
        ('{"score": 3, "score": 8}', None),
        ('{"score": 8} {"score": 8}', 8),
        ('{"score": 1e999}', None),
        ('{"score": ' + "9" * 5000 + "}", None),
    ],
)
def test_a_json_score_is_a_number_given_once(raw: str, value: int | None) -> None:
    assert read_judgement(raw, "json", **ONE_TO_TEN).value == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("[[8, 6]]", (8, 6)),
        ("8 and 6", (8, 6)),
        ("Response A: 7\nResponse B: 9", (7, 9)),
        ("8 6 7", None),
        ("Assistant 1: 8\nAssistant 1: 6", None),
    ],
)
def test_a_pair_is_two_scores_and_no_more(raw: str, value: tuple[int, int] | None) -> None:
    assert read_judgement(raw, "pair", **ONE_TO_TEN).value == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("Verdict: yes", "yes"),
        ("The answer is correct.", "yes"),
        ("Incorrect.", "no"),
        ("Partially correct", None),
        ("Yes and no.", None),
        ("yes/no", None),
        ("It is not incorrect.", None),
        ("It isn't wrong.", None),
    ],
)
def test_a_binary_verdict_is_plain_or_none(raw: str, value: str | None) -> None:
    assert read_judgement(raw, "binary").value == value


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.none(), st.text(max_size=80), st.text('{}[]":,0123456789.-/% Scoreyn', max_size=60)
    ),
    st.sampled_from(PROTOCOLS),
    st.booleans(),
)
def test_any_reply_gives_a_verdict_on_the_scale_or_a_reason(
    raw: str | None,
    protocol: Protocol,
    integer: bool,
) -> None:
    read = read_judgement(raw, protocol, low=1, high=10, integer=integer)
    assert (read.value is None) == (read.reason is not None)
    numbers = read.value if isinstance(read.value, tuple) else (read.value,)
    for number in numbers:
        assert not isinstance(number, int | float) or 1 <= number <= 10


@pytest.mark.parametrize(
    "raw", ["Score: " * 5000, "{" * 20_000, '{"a":' * 5000, "[[8" * 6000, "1 " * 9000]
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hostile_reply_ends_in_a_verdict_or_a_reason(raw: str, protocol: Protocol) -> None:
    read = read_judgement(raw, protocol, **ONE_TO_TEN)
    assert (read.value is None) == (read.reason is not None)


def test_an_unknown_protocol_is_an_error() -> None:
    with pytest.raises(ValueError, match="no judge protocol"):
        read_judgement("8", "stars")  # type: ignore[arg-type]
