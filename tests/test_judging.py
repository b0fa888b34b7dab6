"""What judges' replies are worth: read strictly, both orders together, nothing from nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from voxmeter.scoring import rubrics
from voxmeter.scoring.judge_messages import Case, Message, Order
from voxmeter.scoring.judging import (
    GAP,
    SCORE,
    VERDICT,
    Judged,
    Price,
    Reading,
    Said,
    Verdict,
    bill,
    judge_order,
    metric_names,
    outcomes,
    read_again,
    read_reply,
)
from voxmeter.scoring.types import Scored, Unscored

ADU, BINARY = rubrics.rubric("adu"), rubrics.rubric("adu-binary")
PAIR, ALIGN, BBA = (rubrics.rubric(name) for name in ("air-chat", "air-align", "bba"))
CASE = Case("What is red?", "A ball.", ("B",), "A man speaks.", ("sky", "ball"), choice=True)
CASES = Path(__file__).parent / "cases" / "judge.jsonl"


def said(raw: str | None, **more: Any) -> Said:
    return Said(raw, **({"tokens_in": 100, "tokens_out": 2} | more))


def script(*replies: str | None) -> tuple[Any, list[Sequence[Message]]]:
    """Return a chat call that says these things one after another, and what it was asked."""
    asked: list[Sequence[Message]] = []

    async def ask(sent: Sequence[Message]) -> Said:
        asked.append(sent)
        return said(replies[len(asked) - 1])

    return ask, asked


def judged(rubric: rubrics.Rubric, *replies: str | None, orders: Sequence[Order]) -> list[Verdict]:
    ask, _ = script(*replies)

    async def both() -> list[Verdict]:
        return [await judge_order(rubric, CASE, order, ask) for order in orders]

    return asyncio.run(both())


BOTH: tuple[Order, ...] = ("reference-first", "response-first")


def test_a_score_is_the_mean_of_both_orders_and_their_difference_the_gap() -> None:
    found = outcomes(Judged(ADU, judged(ADU, "6", "8", orders=BOTH)), CASE)
    assert isinstance(found[SCORE], Scored)
    assert (found[SCORE].value, found[GAP].value) == (7.0, 2.0)  # type: ignore[union-attr]
    assert [one["order"] for one in found[SCORE].detail["orders"]] == list(BOTH)  # type: ignore[attr-defined]
    assert VERDICT not in found


def test_what_was_asked_is_kept_beside_a_verdict_of_yes_or_no_in_both_orders() -> None:
    found = outcomes(Judged(BBA, judged(BBA, "correct", "incorrect", orders=BOTH)), CASE)
    assert (found[VERDICT].value, found[GAP].value) == (0.5, -1.0)  # type: ignore[union-attr]
    assert [one["order"] for one in found[VERDICT].detail["orders"]] == list(BOTH)  # type: ignore[attr-defined]


def test_a_judge_that_always_prefers_the_first_comes_out_even() -> None:
    """JD-11: two numbers, always 9 for the first and 3 for the second, whoever that is."""
    verdicts = judged(PAIR, "9 3", "9 3", orders=BOTH)
    found = outcomes(Judged(PAIR, verdicts), CASE)
    assert [one.reading.value for one in verdicts] == [3.0, 9.0]
    assert [one.reading.reference_value for one in verdicts] == [9.0, 3.0]
    assert found[SCORE].value == 6.0  # type: ignore[union-attr]
    assert found[GAP].value == 6.0  # type: ignore[union-attr]


def test_one_unreadable_order_leaves_no_score_for_the_other_would_be_one_sided() -> None:
    found = outcomes(Judged(ADU, judged(ADU, "6", "good", "very good", orders=BOTH)), CASE)
    assert found.keys() == {SCORE, GAP}
    for outcome in found.values():
        assert isinstance(outcome, Unscored)
        assert outcome.reason == "response-first: no score"
        assert outcome.detail["counted"] is False


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_and_counted() -> None:
    ask, asked = script("between 6 and 8", "7")
    verdict = asyncio.run(judge_order(ADU, CASE, "reference-first", ask))
    assert verdict.reading == Reading(7.0)
    assert [len(one) for one in asked] == [2, 4]
    assert bill([verdict], Price()).second_asks == 1


def test_there_is_no_third_ask() -> None:
    ask, asked = script(None, "", "7")
    verdict = asyncio.run(judge_order(ADU, CASE, "reference-first", ask))
    assert verdict.reading == Reading(None, "no reply")
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (said("Score: 1", finish="length"), "cut off by the token limit"),
        (said("", finish="content_filter"), "withheld by the judge's content filter"),
        (said("Score: 8", finish="content_filter"), "withheld by the judge's content filter"),
        (said(None), "no reply"),
        (said("11"), "11 is outside 0 to 10"),
        (said("I cannot help with that."), "no score"),
        (said("7 or 8"), "a range or several scores"),
    ],
)
def test_what_is_no_verdict_has_a_reason(reply: Said, reason: str) -> None:
    read = read_reply(ADU, CASE, "reference-first", reply)
    assert read.value is None
    assert read.reason is not None
    assert read.reason == reason


def test_a_binary_rubric_has_two_scores_and_none_between() -> None:
    assert read_reply(BINARY, CASE, "reference-first", said("7")).reason == "7 is not 0 or 10"
    found = outcomes(Judged(BINARY, judged(BINARY, "10", "0", orders=BOTH)), CASE)
    assert {name: one.value for name, one in found.items()} == {  # type: ignore[union-attr]
        SCORE: 5.0,
        GAP: -10.0,
        VERDICT: 0.5,
    }


def test_the_better_of_two_scores_is_right_wherever_they_lie_on_the_scale() -> None:
    inner = replace(BINARY, values=(2.0, 8.0))
    for raw, value in (("8", 1.0), ("2", 0.0)):
        outcome = outcomes(Judged(inner, judged(inner, raw, raw, orders=BOTH)), CASE)[VERDICT]
        assert isinstance(outcome, Scored)
        assert outcome.value == value


@pytest.mark.parametrize(
    ("raw", "value"), [("correct", 1.0), ("Incorrect.", 0.0), ("correct/incorrect", None)]
)
def test_right_or_wrong_is_a_fraction_and_no_score(raw: str, value: float | None) -> None:
    found = outcomes(Judged(BBA, judged(BBA, raw, raw, orders=("one",))), CASE)
    assert found.keys() == {VERDICT}
    outcome = found[VERDICT]
    assert (outcome.value if isinstance(outcome, Scored) else None) == value


@pytest.mark.parametrize(
    ("raw", "value", "reason"),
    [
        ("B", 1.0, None),
        ("(b).", 1.0, None),
        ("Option B", 1.0, None),
        ("The answer is B.", 1.0, None),
        ("**A**", 0.0, None),
        ("<think>A? No.</think>\nB", 1.0, None),
        ("none", None, "no answer: the judge finds none"),
        ("C", None, "C is no option"),
        ("A or B", None, "not one label"),
        ("", None, "no reply"),
    ],
)
def test_an_aligned_answer_is_right_when_its_label_is(
    raw: str, value: float | None, reason: str | None
) -> None:
    (outcome,) = outcomes(Judged(ALIGN, judged(ALIGN, raw, raw, orders=("one",))), CASE).values()
    if value is not None:
        assert isinstance(outcome, Scored)
        assert outcome.value == value
        assert outcome.detail["by"] == "judge"
    else:
        assert isinstance(outcome, Unscored)
        assert outcome.reason == reason
        counts = reason != "no answer: the judge finds none"  # that one is the endpoint's fault
        assert (outcome.detail.get("counted") is False) == counts


def test_known_replies_are_read_again_and_an_open_second_ask_is_seen() -> None:
    assert read_again(ADU, CASE, "reference-first", [said("7")]) == Verdict(
        "reference-first", Reading(7.0), (said("7"),)
    )
    assert read_again(ADU, CASE, "reference-first", []) is None
    assert read_again(ADU, CASE, "reference-first", [said("hm")]) is None
    twice = read_again(ADU, CASE, "reference-first", [said("hm"), said("hm")])
    assert twice is not None
    assert twice.reading.value is None


def test_cost_is_the_users_price_and_null_where_anything_is_unknown() -> None:
    verdict = Verdict("one", Reading(7.0), (said("7", tokens_in=1_000_000, tokens_out=500_000),))
    assert bill([verdict], Price(2.5, 10)).cost == 7.5
    assert bill([verdict], Price(2.5)).cost is None
    unknown = replace(verdict, replies=(said("7", tokens_in=None),))
    found = bill([verdict, unknown], Price(2.5, 10))
    assert (found.asks, found.tokens_in, found.tokens_out, found.cost) == (2, None, 500_002, None)
    assert bill([replace(verdict, cached=True)], Price(2.5, 10)).cost == 0.0


def test_the_metrics_of_a_prompt_are_known_before_it_is_asked() -> None:
    assert metric_names(ADU, BOTH) == [SCORE, GAP]
    assert metric_names(ADU, BOTH[:1]) == [SCORE]
    assert metric_names(BINARY, BOTH) == [SCORE, GAP, VERDICT]
    assert metric_names(BBA, ("one",)) == [VERDICT]


def test_every_labelled_reply_that_a_prompt_reads_comes_out_as_labelled() -> None:
    """The cases of `read_judgement`, through the door that the stage uses."""
    checked = 0
    for line in CASES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["protocol"] in {"single", "json"} and row["low"] is not None:
            rubric = replace(
                ADU,
                protocol=row["protocol"],
                low=row["low"],
                high=row["high"],
                whole=row["integer"],
            )
            read = read_reply(rubric, CASE, "reference-first", said(row["raw"]))
            assert read.value == row["value"], row
            checked += 1
    assert checked > 30
