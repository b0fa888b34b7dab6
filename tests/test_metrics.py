"""What one reply earns."""

from __future__ import annotations

import json

import pytest

from voxmeter.scoring.definitions import ALL, LATENCY, definition
from voxmeter.scoring.metrics import (
    OPEN,
    Question,
    Reply,
    answer_outcome,
    chance,
    question,
    reply_metrics,
    strict_outcome,
    version_of,
)
from voxmeter.scoring.types import Scored, Unscored

CHOICE = Question("choice", ("B",), ("Venus", "Mars", "Jupiter", "Saturn"))
NUMBER = Question("number", ("42",))
NAME = Question("name", ("Paris", "City of Paris"))


def values(asked: Question, reply: Reply) -> dict[str, float | str]:
    found = reply_metrics(asked, reply)
    return {
        name: outcome.value if isinstance(outcome, Scored) else outcome.reason
        for name, outcome in found.items()
    }


def test_an_answer_row_names_the_rule_the_span_and_the_extractor() -> None:
    outcome = answer_outcome(CHOICE, "The answer is B.", "speech")
    assert isinstance(outcome, Scored)
    assert outcome.value == 1.0
    assert outcome.detail["answer"] == "B"
    assert outcome.detail["rule"]
    start, end = json.loads(json.dumps(outcome.detail["span"]))
    assert "The answer is B."[start:end] == "B"
    assert outcome.detail["extractor"]


def test_right_answers_in_sentences_are_lenient_and_not_strict() -> None:
    replies = [Reply("ok", transcript="it is 42") for _ in range(5)]
    for reply in replies:
        found = values(NUMBER, reply)
        assert found["accuracy"] == 1.0
        assert found["accuracy_strict"] == 0.0
    assert strict_outcome(NUMBER, "42.") == Scored(1.0)
    assert strict_outcome(NUMBER, "Forty-two!") == Scored(1.0)
    assert strict_outcome(NAME, "the city of paris") == Scored(0.0)


def test_a_wrong_answer_scores_nought_and_no_answer_scores_nothing() -> None:
    wrong = reply_metrics(CHOICE, Reply("ok", transcript="C, Jupiter."))["accuracy"]
    none = reply_metrics(CHOICE, Reply("ok", transcript="I cannot tell you that."))["accuracy"]
    assert isinstance(wrong, Scored)
    assert wrong.value == 0.0
    assert isinstance(none, Unscored)
    assert none.reason.startswith("no answer: ")
    assert "counted" not in none.detail


@pytest.mark.parametrize(
    "status", ["no_reply", "timeout", "refused", "disconnected", "protocol_error"]
)
def test_an_endpoints_failure_is_its_status_and_counts(status: str) -> None:
    found = reply_metrics(CHOICE, Reply(status, text="The answer is B."))
    assert found == {"accuracy": Unscored(status)}


def test_what_is_our_fault_does_not_count() -> None:
    for reply in (Reply("bad_clip"), Reply("ok", untranscribed="the audio is missing")):
        (outcome,) = reply_metrics(CHOICE, reply).values()
        assert isinstance(outcome, Unscored)
        assert outcome.detail["counted"] is False


def test_a_truncated_reply_is_scored_on_what_came() -> None:
    assert values(CHOICE, Reply("truncated", transcript="The answer is B, be"))["accuracy"] == 1.0


def test_the_text_channel_is_scored_beside_the_speech_and_never_instead() -> None:
    found = values(CHOICE, Reply("ok", transcript="The answer is D.", text="The answer is B."))
    assert found["accuracy"] == 0.0
    assert found["text_accuracy"] == 1.0
    assert found["speech_text_disagreement"] == 1.0
    assert found["speech_text_wer"] == 0.25


@pytest.mark.parametrize(
    ("asked", "spoken", "written", "differ"),
    [
        (NUMBER, "Fifty.", "50.0", 0.0),
        (NUMBER, "Fifteen.", "50", 1.0),
        (NAME, "It is paris.", "Paris", 0.0),
        (CHOICE, "Hmm, well.", "The answer is B.", 1.0),
    ],
)
def test_disagreement_compares_answers_and_not_words(
    asked: Question, spoken: str, written: str, differ: float
) -> None:
    found = values(asked, Reply("ok", transcript=spoken, text=written))
    assert found["speech_text_disagreement"] == differ


def test_two_channels_without_an_answer_neither_agree_nor_disagree() -> None:
    found = values(CHOICE, Reply("ok", transcript="Well.", text="Hmm."))
    assert found["speech_text_disagreement"] == "no answer in either channel"


def test_a_text_only_reply_gets_its_headline_from_the_text_and_says_so() -> None:
    reply = Reply("ok", channel="text", text="The answer is B.")
    outcome = reply_metrics(CHOICE, reply)["accuracy"]
    assert isinstance(outcome, Scored)
    assert (outcome.value, outcome.detail["channel"]) == (1.0, "text")
    assert "speech_text_wer" not in values(CHOICE, reply)


def test_open_questions_get_measures_without_a_reference_and_say_so() -> None:
    asked = Question("open", ("Because of Rayleigh scattering.",))
    reply = Reply(
        "ok",
        transcript="Blue light scatters more.",
        text="Blue light scatters more",
        audible_ms=2e3,
    )
    found = values(asked, reply)
    assert found["accuracy"] == OPEN
    assert found["speech_text_wer"] == 0.0
    assert found["reply_words"] == 4.0
    assert found["words_per_second"] == 2.0
    assert "accuracy_strict" not in found


def test_an_empty_own_text_gives_no_error_rate() -> None:
    assert "speech_text_wer" not in values(CHOICE, Reply("ok", transcript="B.", text="  "))
    dots = reply_metrics(CHOICE, Reply("ok", transcript="B.", text="..."))["speech_text_wer"]
    assert dots == Unscored("empty reference")


def test_a_loop_is_flagged_and_its_text_still_read() -> None:
    found = values(CHOICE, Reply("ok", transcript="The answer is B. " * 300))
    assert found["repetition"] == 1.0
    assert found["accuracy"] == 1.0


def test_an_item_that_cannot_be_scored_is_not_the_endpoints_fault() -> None:
    for asked in (
        Question("choice", ("B",), ()),
        Question("number", ("many",)),
        Question("choice", (), ("a", "b")),
    ):
        outcome = reply_metrics(asked, Reply("ok", transcript="It is 5, so B."))["accuracy"]
        assert isinstance(outcome, Unscored)
        assert outcome.detail["counted"] is False


def test_chance_is_computed_and_never_drawn() -> None:
    assert chance(CHOICE) == 0.25
    assert chance(Question("yes-no", ("yes",))) == 0.5
    assert chance(Question("true-false", ("true",))) == 0.5
    assert chance(NUMBER) == 0.0


def test_the_same_vague_reply_always_has_the_same_outcome() -> None:
    reply = Reply("ok", transcript="Saturn has rings, so that one.")
    first = reply_metrics(CHOICE, reply)
    assert all(reply_metrics(CHOICE, reply) == first for _ in range(20))


def test_questions_are_read_from_rows_as_they_are_written() -> None:
    row = {"kind": "name", "reference": ["Paris", "Lutetia"], "options": [], "language": "fr"}
    assert question(row) == Question("name", ("Paris", "Lutetia"), (), "fr")
    assert question({"kind": "open", "reference": None}) == Question("open")
    assert question({"kind": "number", "reference": 42}).references == ("42",)


def test_every_metric_is_defined_and_carries_a_version() -> None:
    found = reply_metrics(CHOICE, Reply("ok", transcript="B.", text="B.", audible_ms=500.0))
    for name in found:
        assert name in ALL
        assert version_of(name)
    for name, meant in ALL.items():
        assert meant.text.endswith(".")
        assert (meant.kind == "latency") == (name in LATENCY)
    judged = definition("judge_score:gpt")
    assert judged is not None
    assert judged.better == "higher"
    assert definition("nonsense") is None


def test_latency_names_are_those_of_the_marks() -> None:
    from voxmeter.scoring.marks import NAMES

    assert tuple(LATENCY) == NAMES
