"""The course of a run: drift, cold against warm, outliers; in figures and in warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_run import Row, build, item, trial
from scipy import stats as reference

from voxmeter.client.summary import summarise
from voxmeter.scoring.course import Drift, drift, outliers


def test_drift_compares_the_first_third_with_the_last() -> None:
    values = np.array([*range(8), *[500] * 9, *range(100, 108)], dtype=np.float64)
    found = drift(values)
    assert found is not None
    assert (found.first, found.last) == (3.5, 103.5)
    expected = reference.mannwhitneyu(values[:8], values[-8:], method="asymptotic").pvalue
    assert found.p == expected < 0.001


def test_a_run_that_stands_still_or_is_short_has_no_drift() -> None:
    assert drift(np.full(24, 5.0)) == Drift(5.0, 5.0, 1.0)
    assert drift(np.arange(23, dtype=np.float64)) is None


def test_chance_alone_is_called_a_drift_about_as_often_as_it_says() -> None:
    draw = np.random.default_rng(0)
    found = [drift(draw.normal(0, 1, 60)) for _ in range(400)]
    assert 8 <= sum(one is not None and one.p < 0.05 for one in found) <= 34  # of 20 expected


def test_outliers_are_far_above_the_rest_the_largest_first() -> None:
    values = np.array([*range(100, 120), 900, 300], dtype=np.float64)
    assert outliers(values).tolist() == [20, 21]
    assert outliers(values, least=300).tolist() == [20]
    assert outliers(values[:20]).tolist() == []
    assert outliers(np.array([1.0] * 10 + [99])).tolist() == []  # too few to tell


def summary(folder: Path, latencies: list[float], cold: float | None = None) -> dict[str, Any]:
    rows: list[Row] = [] if cold is None else [trial("i0", number=0, first_audible_ms=cold)]
    rows += [trial(f"i{n}", first_audible_ms=value) for n, value in enumerate(latencies)]
    items = [item(f"i{n}") for n in range(len(latencies))]
    with build(folder, items, rows) as made:
        return summarise(made)


def told(found: dict[str, Any]) -> dict[str, str]:
    return {one["code"]: one["text"] for one in found["warnings"]}


def test_a_run_that_gets_slower_is_warned_of(tmp_path: Path) -> None:
    found = summary(tmp_path, [800.0 + 10 * number for number in range(30)])
    drifted = found["cells"][0]["course"]["drift"]
    assert (drifted["first"], drifted["last"]) == (845, 1045)
    assert "moved by +200 ms" in told(found)["drift"]


def test_a_small_drift_is_a_figure_and_no_warning(tmp_path: Path) -> None:
    found = summary(tmp_path, [800.0 + number / 10 for number in range(30)])
    assert found["cells"][0]["course"]["drift"]["p"] < 0.001
    assert "drift" not in told(found)


@pytest.mark.parametrize(("cold", "warned"), [(1400.0, True), (1100.0, False), (None, False)])
def test_a_slow_first_turn_is_held_against_warm_ones(
    tmp_path: Path, cold: float | None, *, warned: bool
) -> None:
    found = summary(tmp_path, [800.0] * 6, cold)
    against = None if cold is None else {"cold": cold, "warm": 800, "n": 1}
    assert found["cells"][0]["course"]["cold_against_warm"] == against
    assert ("slow-first-turn" in told(found)) is warned


def test_an_outlier_is_named_by_its_key(tmp_path: Path) -> None:
    found = summary(tmp_path, [800.0 + number for number in range(12)] + [2500.0])
    assert found["cells"][0]["course"]["outliers"] == {
        "n": 1,
        "largest": [{"key": "bot/demo/i12/clean/1", "first_audible_ms": 2500}],
    }
    assert "bot/demo/i12/clean/1 (2500 ms)" in told(found)["outliers"]


def test_a_run_without_a_reply_has_an_empty_course(tmp_path: Path) -> None:
    with build(tmp_path, [item("a")], [trial("a", "timeout")]) as folder:
        found = summarise(folder)
    assert found["cells"][0]["course"] == {
        "drift": None,
        "cold_against_warm": None,
        "outliers": {"n": 0, "largest": []},
    }
