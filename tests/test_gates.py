"""Gates: judged in every cell they are about; what was not measured keeps no limit."""

from __future__ import annotations

from typing import Any

import pytest

from voxmeter.client.bench import Gate
from voxmeter.client.gates import GateResult, judge

SUMMARY: dict[str, Any] = {
    "cells": [
        {
            "endpoint": endpoint,
            "suite": "demo",
            "condition": "clean",
            "metrics": {
                "accuracy": {"value": accuracy, "n": 8},
                "first_audible_ms": {"p50": {"value": 700.0}, "p95": None, "mean": {"value": 810}},
            },
        }
        for endpoint, accuracy in (("a", 0.75), ("b", None))
    ]
}


def _gate(**fields: object) -> Gate:
    return Gate.model_validate(fields)


def test_a_limit_is_judged_in_every_cell() -> None:
    assert judge([_gate(metric="accuracy", min=0.7)], SUMMARY) == [
        GateResult("accuracy min 0.7", "a/demo/clean", 0.75, "passed"),
        GateResult("accuracy min 0.7", "b/demo/clean", None, "failed", "there is no value"),
    ]


def test_a_limit_on_answers_is_not_about_a_control_that_it_does_not_name() -> None:
    control = SUMMARY["cells"][0] | {"endpoint": "metronome", "control": {"expected": {}}}
    summary = {"cells": [SUMMARY["cells"][0], control]}
    answers, reply = _gate(metric="accuracy", min=0.7), _gate(metric="first_audible_ms", max=800)
    assert [one.cell for one in judge([answers, reply], summary)] == [
        "a/demo/clean",
        "a/demo/clean",
        "metronome/demo/clean",
    ]
    named = _gate(metric="accuracy", min=0.7, endpoint="metronome")
    assert [one.cell for one in judge([named], summary)] == ["metronome/demo/clean"]


@pytest.mark.parametrize(
    ("entry", "at", "reason"),
    [
        ({"n": 19, "p95": None}, "p95", "too few samples: p95 needs 20, and there are 19"),
        ({"n": 99, "p99": None}, "p99", "too few samples: p99 needs 100, and there are 99"),
        ({"n": 0, "p50": None}, None, "too few samples: it needs 1, and there are none"),
        ({}, None, "too few samples: it needs 1, and there are none"),
    ],
)
def test_a_gate_that_cannot_be_evaluated_fails_and_says_how_many_samples_it_lacks(
    entry: dict[str, Any], at: str | None, reason: str
) -> None:
    cell = {"endpoint": "a", "suite": "demo", "condition": "clean"}
    summary = {"cells": [cell | {"metrics": {"first_audible_ms": entry} if entry else {}}]}
    (found,) = judge([_gate(metric="first_audible_ms", max=800, at=at)], summary)
    assert (found.verdict, found.reason) == ("failed", reason)


def test_a_latency_gate_takes_the_median_or_what_it_says() -> None:
    found = judge(
        [
            _gate(metric="first_audible_ms", max=700, endpoint="a"),
            _gate(metric="first_audible_ms", max=800, endpoint="a", at="mean"),
            _gate(metric="first_audible_ms", max=800, endpoint="a", at="p95"),
        ],
        SUMMARY,
    )
    assert [(one.gate, one.verdict, one.reason) for one in found] == [
        ("first_audible_ms max 700", "passed", ""),
        ("first_audible_ms mean max 800", "failed", "810 is over 800"),
        (
            "first_audible_ms p95 max 800",
            "failed",
            "too few samples: p95 needs 20, and there are none",
        ),
    ]


def test_a_regression_gate_is_listed_as_not_applicable() -> None:
    (found,) = judge([_gate(metric="accuracy", regression={"relative": 0.1})], SUMMARY)
    assert (found.verdict, found.reason) == (
        "not applicable",
        "needs a second run: voxmeter compare",
    )


def test_a_gate_about_no_cell_has_failed() -> None:
    (found,) = judge([_gate(metric="accuracy", min=0.5, condition="noisy")], SUMMARY)
    assert (found.verdict, found.reason) == ("failed", "no cell that it is about was run")
