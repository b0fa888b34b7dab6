"""How far raters agree, against worked figures and the published tables."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from voxmeter.scoring.agreement import (
    Pair,
    Score,
    mean_abs_diff,
    pairs_of,
    preference,
    preference_agreement,
    ranks,
    system_means,
)

PUBLISHED = Path(__file__).parent.parent / "suites" / "published"
TABLES = {
    "gpt4": "adu_table02_overall_avg.csv",
    "llama3": "adu_table04_overall_llama3_70b_judge.csv",
    "qwen2": "adu_table05_overall_qwen2_72b_judge.csv",
}


def column(judge: str, name: str) -> dict[tuple[str, str], float]:
    """Return one column of a judge's table by model and size."""
    with (PUBLISHED / TABLES[judge]).open(encoding="utf-8", newline="") as file:
        return {(row["model"], row["size"]): float(row[name]) for row in csv.DictReader(file)}


def test_equal_orders_agree_wholly_and_opposite_ones_not_at_all() -> None:
    up = np.array([1.0, 2.0, 3.0, 4.0])
    assert ranks(up, up * 10) == pytest.approx((1.0, 1.0))
    assert ranks(up, -up) == pytest.approx((-1.0, -1.0))
    assert mean_abs_diff(up, up + 0.5) == pytest.approx(0.5)


def test_ties_take_their_mean_rank_and_are_corrected_for() -> None:
    """Worked by hand: 4 pairs alike, 1 unlike, 1 tied in one and 0 in the other."""
    one, two = np.array([1.0, 2.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0, 4.0])
    found = ranks(one, two)
    assert found.kendall_tau_b == pytest.approx(5 / np.sqrt(5 * 6))
    assert found.spearman == pytest.approx(4.5 / np.sqrt(4.5 * 5))


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, 2.0]])
def test_a_rater_that_tells_nothing_apart_has_no_rank_correlation(values: list[float]) -> None:
    found = np.array(values)
    assert ranks(found, found) == (None, None)


@pytest.mark.parametrize(
    ("one", "other", "name", "spearman", "tau", "distance"),
    [
        ("gpt4", "llama3", "general", 0.976617, 0.916148, 0.257692),
        ("gpt4", "llama3", "skill", 0.973866, 0.916148, 0.517692),
        ("gpt4", "llama3", "multilingual", 0.965613, 0.890341, 0.505385),
        ("gpt4", "llama3", "ambiguity", 0.988965, 0.954432, 0.259231),
        ("gpt4", "llama3", "average", 1.0, 1.0, 0.258462),
        ("gpt4", "qwen2", "general", 0.989011, 0.948718, 0.169231),
        ("gpt4", "qwen2", "skill", 0.994505, 0.974359, 0.627692),
        ("gpt4", "qwen2", "multilingual", 0.965613, 0.890341, 0.863077),
        ("gpt4", "qwen2", "ambiguity", 0.97521, 0.909168, 0.610769),
        ("gpt4", "qwen2", "average", 0.994505, 0.974359, 0.468462),
        ("llama3", "qwen2", "general", 0.960111, 0.890341, 0.29),
        ("llama3", "qwen2", "skill", 0.968364, 0.890341, 0.480769),
        ("llama3", "qwen2", "multilingual", 1.0, 1.0, 0.636154),
        ("llama3", "qwen2", "ambiguity", 0.977843, 0.927173, 0.434615),
        ("llama3", "qwen2", "average", 0.994505, 0.974359, 0.311538),
    ],
)
def test_the_agreement_of_adu_benchs_judges_follows_from_its_tables(
    one: str, other: str, name: str, spearman: float, tau: float, distance: float
) -> None:
    first, second = column(one, name), column(other, name)
    assert len(first) == 13
    values = np.array([[score, second[system]] for system, score in first.items()])
    found = ranks(values[:, 0], values[:, 1])
    assert found.spearman == pytest.approx(spearman, abs=1e-6)
    assert found.kendall_tau_b == pytest.approx(tau, abs=1e-6)
    assert mean_abs_diff(values[:, 0], values[:, 1]) == pytest.approx(distance, abs=1e-6)


def test_a_preference_is_for_the_greater_score_and_a_tie_is_one_too() -> None:
    assert (preference(3, 2), preference(2, 3), preference(2, 2)) == (1, -1, 0)
    pairs = [Pair("q1", "q1", 1, 1), Pair("q2", "q2", 0, 0), Pair("q3", "q3", 1, 0)]
    found = preference_agreement(pairs)
    assert found is not None
    assert found.value == pytest.approx(2 / 3)
    assert found.low is not None
    assert found.low < found.value
    assert preference_agreement([]) is None


def test_pairs_are_of_systems_on_one_item_with_trials_averaged_first() -> None:
    scores = [
        Score("q1", "c1", "a", 8, 4),
        Score("q1", "c1", "a", 6, 4),
        Score("q1", "c1", "b", 7, 3),
        Score("q1", "c1", "c", 1, 9),
        Score("q2", "c2", "a", 5, 5),
    ]
    found = pairs_of(scores)
    assert [(pair.one, pair.other) for pair in found] == [(0, 1), (1, -1), (1, -1)]
    assert {pair.item for pair in found} == {"q1"}
    assert system_means(scores)["b"] == (7, 3)
