"""Paired differences: against figures worked out by hand, other programs' methods, and coverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from voxmeter.scoring.paired import (
    Difference,
    Discordant,
    Floors,
    Pairs,
    Samples,
    holm,
    mcnemar,
    mean_difference,
    median_difference,
    outcome,
    paired,
    percentile_difference,
)
from voxmeter.scoring.stats import Floats


class Measure(Protocol):
    """`mean_difference` or `median_difference`."""

    def __call__(self, pairs: Pairs, *, seed: int = 0) -> Difference | None: ...


def samples(values: Sequence[float] | Floats, items: Sequence[int] | None = None) -> Samples:
    numbers = np.arange(len(values)) if items is None else np.array(items)
    return Samples(np.array(values, dtype=np.float64), numbers, numbers)


def of(differences: list[float], clusters: list[int] | None = None) -> Pairs:
    new = np.array(differences, dtype=np.float64)
    numbers = np.arange(len(new)) if clusters is None else np.array(clusters)
    return Pairs(np.zeros(len(new)), new, numbers, 0, 0)


def test_trials_of_an_item_are_averaged_and_one_sided_items_are_counted() -> None:
    base = samples([100, 300, 50, 7], [1, 1, 2, 3])
    new = samples([250, 40, 60, 9, 9], [1, 2, 2, 8, 9])
    found = paired(base, new)
    assert found.base.tolist() == [200, 50]
    assert found.new.tolist() == [250, 50]
    assert found.differences.tolist() == [50, 0]
    assert (found.base_only, found.new_only, found.cluster_count) == (1, 2, 2)


def test_without_a_common_item_there_is_no_difference() -> None:
    found = paired(samples([1.0], [1]), samples([1.0], [2]))
    assert (found.base_only, found.new_only, found.cluster_count) == (1, 1, 0)
    assert mean_difference(found) is None
    assert median_difference(found) is None
    assert mcnemar(found) is None
    assert percentile_difference(samples([1.0], [1]), samples([1.0], [2]), 0.5) is None


def test_of_five_items_the_mean_and_its_p_are_those_of_a_paired_t_test() -> None:
    differences = [10.0, 20.0, 35.0, -5.0, 15.0]
    found = mean_difference(of(differences))
    expected = reference.ttest_1samp(differences, 0.0)
    limits = expected.confidence_interval(0.95)
    assert found is not None
    assert found.value == pytest.approx(15.0)
    assert found.p == pytest.approx(expected.pvalue)
    assert [found.low, found.high] == pytest.approx([limits.low, limits.high])


def test_a_limit_of_nothing_is_exactly_nothing() -> None:
    found = mean_difference(of([-1.0, -1.0] + [0.0] * 8))
    assert found is not None
    assert (found.value, found.high) == (-0.2, 0.0)


def test_the_median_is_the_middle_difference_and_not_the_difference_of_medians() -> None:
    base, new = samples([100, 200, 900]), samples([190, 210, 500])
    found = median_difference(paired(base, new))  # differences 90, 10, -400
    assert found is not None
    assert found.value == 10
    assert found.low is not None
    assert found.low <= 10 <= (found.high or 0)


@pytest.mark.parametrize("measure", [mean_difference, median_difference])
def test_a_difference_that_never_varies_is_believed_only_with_six_clusters(
    measure: Measure,
) -> None:
    assert measure(of([25.0] * 5)) == Difference(25.0, None, None, None)
    assert measure(of([25.0] * 6)) == Difference(25.0, 25.0, 25.0, 2 * 0.5**6)
    assert measure(of([0.0] * 6)) == Difference(0.0, 0.0, 0.0, 1.0)
    assert measure(of([25.0] * 8, [0] * 8)) == Difference(25.0, None, None, None)


@pytest.mark.parametrize("measure", [mean_difference, median_difference])
def test_one_cluster_gives_a_value_without_limits(measure: Measure) -> None:
    assert measure(of([1.0, 2.0, 6.0], [0, 0, 0])) in (
        Difference(3.0, None, None, None),
        Difference(2.0, None, None, None),
    )


@pytest.mark.parametrize("measure", [mean_difference, median_difference])
def test_items_of_one_source_do_not_count_as_independent(measure: Measure) -> None:
    draw = np.random.default_rng(1)
    effects = np.repeat(draw.normal(0, 50, 12), 10)
    alone = measure(of(effects.tolist()))
    together = measure(of(effects.tolist(), np.repeat(np.arange(12), 10).tolist()))
    assert alone is not None
    assert together is not None
    assert (together.high or 0) - (together.low or 0) > 2 * ((alone.high or 0) - (alone.low or 0))


@pytest.mark.parametrize("measure", [mean_difference, median_difference])
def test_the_same_seed_gives_the_same_limits(measure: Measure) -> None:
    pairs = of(np.random.default_rng(0).normal(10, 30, 40).tolist())
    assert measure(pairs, seed=3) == measure(pairs, seed=3)
    assert measure(pairs, seed=3) != measure(pairs, seed=4)


@pytest.mark.parametrize("count", [40, 3000])
@pytest.mark.parametrize("measure", [mean_difference, median_difference])
def test_intervals_hold_the_truth_about_as_often_as_they_say(measure: Measure, count: int) -> None:
    draw = np.random.default_rng(7)
    held = 0
    for _ in range(100):
        found = measure(of(draw.normal(12, 40, count).tolist()))
        assert found is not None
        held += (found.low or 0) <= 12 <= (found.high or 0)
    assert held >= 89  # of 95 expected; fewer happen once in two hundred times


def test_a_percentile_moves_by_what_was_added_to_every_trial() -> None:
    values = np.random.default_rng(0).normal(800, 60, 40)
    found = percentile_difference(samples(values.tolist()), samples((values + 70).tolist()), 0.95)
    assert found is not None
    assert found.value == pytest.approx(70)
    assert [found.low, found.high] == pytest.approx([70, 70])


@pytest.mark.parametrize(("fraction", "least"), [(0.9, 10), (0.95, 20), (0.99, 100)])
def test_a_percentile_of_too_few_trials_is_withheld(fraction: float, least: int) -> None:
    few, enough = (
        samples([float(one) for one in range(least - 1)]),
        samples([float(one) for one in range(least)]),
    )
    assert percentile_difference(few, few, fraction) is None
    assert percentile_difference(enough, enough, fraction) == Difference(0.0, 0.0, 0.0, 1.0)


def test_mcnemar_counts_what_was_lost_and_won_exactly() -> None:
    base = samples([1] * 9 + [0] + [1, 1, 0])
    new = samples([0] * 9 + [1] + [1, 1, 0])
    # of ten changes one was won: 2 * (1 + 10) / 2**10
    assert mcnemar(paired(base, new)) == Discordant(9, 1, 22 / 1024)
    assert mcnemar(paired(base, base)) == Discordant(0, 0, 1.0)


def test_mcnemar_is_not_for_items_that_are_right_half_the_time_or_share_a_source() -> None:
    assert mcnemar(paired(samples([0.5, 1]), samples([0, 1]))) is None
    assert mcnemar(Pairs(np.array([1.0, 0]), np.array([1.0, 0]), np.array([0, 0]), 0, 0)) is None


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_agrees_with_the_binomial_test(lost: int, won: int) -> None:
    base = samples([1.0] * lost + [0.0] * won + [1.0])
    new = samples([0.0] * lost + [1.0] * won + [1.0])
    found = mcnemar(paired(base, new))
    assert found is not None
    expected = reference.binomtest(lost, lost + won).pvalue if lost + won else 1.0
    assert found.p == pytest.approx(expected)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_never_below_the_probability_nor_above_bonferroni(given: list[float]) -> None:
    for raw, adjusted in zip(given, holm(given), strict=True):
        assert raw <= adjusted <= min(1.0, raw * len(given)) + 1e-12


WORSE = Difference(50.0, 20.0, 80.0, 0.001)


def test_a_regression_is_beyond_zero_and_beyond_both_floors() -> None:
    floors = Floors(relative=0.1, absolute=30.0)
    assert outcome(WORSE, 0.001, 400.0, "lower", floors) == "regression"
    assert outcome(WORSE, 0.001, 400.0, "higher", floors) == "improvement"
    assert outcome(WORSE, 0.001, 500.0, "lower", floors) == "no difference"  # 10 %, not more
    assert outcome(WORSE, 0.001, 400.0, "lower", Floors(0.1, 50.0)) == "no difference"
    assert outcome(WORSE, 0.06, 400.0, "lower", floors) == "no difference"  # after Holm
    assert outcome(WORSE._replace(low=-1.0), 0.001, 400.0, "lower", floors) == "no difference"
    assert outcome(WORSE._replace(low=None), 0.001, 400.0, "lower", floors) == "no difference"
    assert outcome(WORSE, 0.001, 0.0, "lower", floors) == "regression"  # a share of nothing


@pytest.mark.parametrize(("shift", "least", "most"), [(50.0, 95, 100), (0.0, 0, 5)])
def test_a_shift_of_50_ms_over_40_items_with_60_ms_of_jitter_is_found_and_none_is_not(
    shift: float, least: int, most: int
) -> None:
    draw = np.random.default_rng(5)
    floors = Floors(relative=0.05, absolute=20.0)
    found = 0
    for _ in range(100):
        base = 300 + draw.uniform(0, 60, 40)
        pairs = paired(samples(base), samples(300 + shift + draw.uniform(0, 60, 40)))
        moved = median_difference(pairs)
        assert moved is not None
        assert moved.p is not None
        middle = float(np.median(base))
        found += outcome(moved, holm([moved.p])[0], middle, "lower", floors) == "regression"
    assert least <= found <= most
