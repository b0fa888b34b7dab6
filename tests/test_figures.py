"""Figures as they are printed."""

from __future__ import annotations

from typing import Any

import pytest

from voxmeter.client import figures


def latency(**fields: Any) -> dict[str, Any]:
    value = {"value": 812.4, "low": 790.2, "high": None}
    return {"mean": value, "p50": value, "p95": None, "n": 12, "unit": "ms"} | fields


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"value": 0.625, "low": 0.4201, "high": 0.79}, "62.5% [42-79]"),
        ({"value": 1.0, "low": None, "high": None}, "100.0%"),
        ({"value": 0.0, "low": 0.0, "high": 0.1611}, "0.0% [0-16]"),
        ({"value": None, "low": None, "high": None, "n": 0}, "n/a (0 scored)"),
        (None, "n/a (0 scored)"),
    ],
)
def test_a_rate_is_a_percentage_with_its_limits(entry: dict[str, Any] | None, shown: str) -> None:
    assert figures.rate(entry) == shown


def test_a_limit_that_was_not_reached_is_a_question_mark() -> None:
    assert figures.time(latency(), "p50") == "812 [790-?]"
    assert figures.brief(latency(), "p50") == "812"


def test_a_withheld_percentile_says_how_many_samples_there_are() -> None:
    assert figures.time(latency(), "p95") == "- (n 12)"
    assert figures.time(latency(n=0), "p50") == "n/a (0 timed)"
    assert figures.brief(latency(n=0), "p50") == "n/a"


def test_negative_limits_stay_readable() -> None:
    early = {"value": -80.0, "low": -120.0, "high": -40.0}
    assert figures.time(latency(p50=early), "p50") == "-80 [-120 to -40]"


def test_a_mean_names_its_unit() -> None:
    entry = {"value": 12.34, "low": 10.0, "high": 15.0, "n": 5}
    assert figures.any_figure("reply_words", entry) == "12.3 words [10-15]"
    assert figures.any_figure("speech_text_wer", _share(0.1)) == "10.0% [5-20]"
    assert figures.any_figure("plugin", {"value": 3.0, "low": None, "high": None}) == "3"


def _share(value: float) -> dict[str, Any]:
    return {"value": value, "low": 0.05, "high": 0.2, "n": 5}


def test_a_large_number_is_written_out() -> None:
    entry = latency(unit="ratio", p50={"value": 1770.4, "low": 550.2, "high": 26600.0})
    assert figures.time(entry, "p50") == "1770 [550-26600]"
