"""When a latency is worse than its baseline, and what is said of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conversations import conversation, spread

from voxmeter.client.baseline import LATE, Samples, baseline_of
from voxmeter.client.regression import (
    Limits,
    Verdict,
    explanation,
    judge,
    left_out,
    short_of,
    unfit,
)
from voxmeter.endpoints.errors import UserError

METRIC = "first_audible_ms"


def verdict(base: list[float], new: list[float], **limits: Any) -> Verdict:
    asked: dict[str, Any] = {
        "metric": METRIC,
        "at": "p50",
        "relative": 0.1,
        "absolute_ms": 30.0,
    } | limits
    return judge(Samples(tuple(base), {}), Samples(tuple(new), {}), Limits(**asked))


def test_a_change_beyond_zero_and_both_floors_is_a_regression() -> None:
    found = verdict(spread(300), spread(350))
    assert found.regressed
    assert found.change.value == 50
    assert found.floor_ms == 30
    assert found.reason.startswith("the interval is above zero and the change beyond both")
    assert "p50 350 ms [" in found.figures
    assert "(n 20), was 300 ms [" in found.figures
    assert "change +50.0 ms [+" in found.figures


@pytest.mark.parametrize(
    ("limits", "floor"),
    [
        ({"absolute_ms": 60}, "the floor of 60 ms (absolute_ms=60)"),
        ({"relative": 0.2}, "the floor of 60 ms (relative=0.2 of 300 ms)"),
    ],
)
def test_one_floor_that_is_not_passed_is_enough_to_pass(limits: dict[str, Any], floor: str) -> None:
    found = verdict(spread(300), spread(350), **limits)
    assert not found.regressed
    assert found.reason == f"longer, but not beyond {floor}"


def test_a_change_that_is_just_the_floor_is_not_beyond_it() -> None:
    assert not verdict([300.0] * 9, [330.0] * 9).regressed
    assert verdict([300.0] * 9, [330.1] * 9).regressed


def test_without_floors_the_interval_alone_decides() -> None:
    assert verdict(spread(300), spread(350), relative=0, absolute_ms=0).regressed
    assert not verdict(spread(300), spread(300), relative=0, absolute_ms=0).regressed


def test_an_interval_that_holds_zero_is_no_regression_however_large_the_change() -> None:
    found = verdict(spread(300, 6, 200), spread(400, 6, 200))
    assert not found.regressed
    assert found.reason.endswith("but the interval holds zero: more trials can tell")
    assert verdict(spread(300), spread(301)).reason == "the interval holds zero"


def test_shorter_is_never_worse() -> None:
    found = verdict(spread(300), spread(200))
    assert (found.regressed, found.reason) == (False, "shorter than before")


def test_the_floor_of_a_reply_before_the_end_of_speech_is_a_share_of_its_size() -> None:
    found = verdict(spread(-500), spread(-440))
    assert found.floor_ms == 50
    assert found.regressed


def test_a_mean_sees_the_slow_few_that_a_median_does_not() -> None:
    base, new = [300.0] * 20, [300.0] * 11 + [500.0] * 9
    assert not verdict(base, new).regressed
    found = verdict(base, new, at="mean")
    assert found.regressed
    assert found.figures.startswith("mean 390 ms [")


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"metric": "first_audibel_ms"}, 'did you mean "first_audible_ms"?'),
        ({"metric": "ttfa"}, 'did you mean "first_audible_ms"?'),
        ({"metric": "stalls"}, 'did you mean "stall_ms"?'),
        ({"metric": "accuracy"}, "known: first_packet_ms"),
        ({"at": "p95"}, 'write "p50" or "mean"'),
        ({"relative": -0.1}, "relative is -0.1; write 0 or more"),
        ({"absolute_ms": math.inf}, "absolute_ms is inf"),
        ({"absolute_ms": math.nan}, "absolute_ms is nan"),
    ],
)
def test_limits_that_cannot_be_are_the_users_mistake(limits: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        verdict(spread(300), spread(300), **limits)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("n", "reasons", "told"),
    [
        (5, {}, None),
        (4, {"timeout": 1}, "too few samples: 4 of 5 trials have first_audible_ms"),
        (5, {"timeout": 5}, None),
        (5, {"timeout": 6}, "most trials failed: 5 of 11 trials"),
        (5, {LATE: 15}, None),
        (0, {"bad_clip": 20}, "0 of 20 trials have first_audible_ms (left out: 20 bad_clip)"),
    ],
)
def test_it_takes_five_samples_and_an_endpoint_that_answers(
    n: int, reasons: dict[str, int], told: str | None
) -> None:
    found = unfit(Samples((300.0,) * n, reasons), METRIC)
    assert found is None if told is None else told in str(found)


def test_a_baseline_without_samples_of_the_latency_is_short() -> None:
    base = baseline_of(conversation(spread(300)), "here")
    assert short_of(base, METRIC) is None
    assert short_of(base, "first_text_ms") == "has 0 samples of first_text_ms; 5 are needed"
    assert short_of(base, "yield_ms") == "has 0 samples of yield_ms; 5 are needed"


def test_a_regression_is_explained_with_all_that_was_left_out() -> None:
    base = baseline_of(conversation(spread(300), host="laptop\x1b[2J"), "here")
    new = baseline_of(conversation(spread(400), late=2, failed=1, host="ci-7"), "here")
    found = judge(base.samples[METRIC], new.samples[METRIC], Limits(METRIC, "p50", 0.1, 30))
    lines = explanation(found, "hello.json", base, new, "pytest --voxmeter-update x").splitlines()
    assert lines[0] == "first_audible_ms is worse than in hello.json"
    assert lines[1].strip() == found.figures
    assert "30 ms (absolute_ms=30), 30 ms (relative=0.1 of 300 ms)" in lines[2]
    assert lines[3] == "  here, of 23 trials (left out: 2 late on this machine, 1 timeout)"
    assert lines[4].endswith("another machine (laptop\\x1b[2J, this is ci-7)")
    assert lines[5].endswith("pytest --voxmeter-update x")
    assert left_out(base.samples[METRIC]) == ""


@pytest.mark.parametrize(
    ("deviation", "trials", "at", "found"),
    [(30, 20, "p50", 0.94), (30, 20, "mean", 0.98), (60, 80, "mean", 0.98), (20, 10, "p50", 0.96)],
)
def test_a_shift_of_50_ms_is_found_as_often_as_the_page_says_and_chance_is_not(
    deviation: float, trials: int, at: str, found: float
) -> None:
    random = np.random.default_rng(8)
    runs, hits, alarms = 200, 0, 0
    for _ in range(runs):
        base, same, slow = random.normal([[300], [300], [350]], deviation, (3, trials)).tolist()
        hits += verdict(base, slow, at=at).regressed
        alarms += verdict(base, same, at=at).regressed
    slack = 3 * (found * (1 - found) / runs) ** 0.5
    assert hits / runs >= found - slack
    assert alarms / runs <= 0.05
