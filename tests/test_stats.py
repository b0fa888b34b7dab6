"""Intervals against closed forms, and their coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.scoring.stats import (
    Interval,
    bootstrap_mean,
    half_up,
    item_means,
    mean_interval,
    on_scale,
    percentile,
    wilson,
)


def singles(n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(n, dtype=np.int64)


def test_wilson_agrees_with_published_values() -> None:
    # Newcombe (1998), table I: 81/263, 15/148, 0/20, 1/29, at 95 %.
    for successes, n, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        interval = wilson(successes, n)
        assert interval.low == pytest.approx(low, abs=5e-5)
        assert interval.high == pytest.approx(high, abs=5e-5)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_rate_and_stays_between_nought_and_one(case: tuple[int, int]) -> None:
    value, low, high = wilson(*case)
    assert low is not None
    assert high is not None
    assert 0 <= low <= value <= high <= 1
    assert low < high


def test_the_bootstrap_of_a_mean_approaches_the_normal_interval() -> None:
    values = np.random.default_rng(5).normal(700, 120, 400)
    value, low, high = bootstrap_mean(values, singles(400), resamples=4000)
    half = 1.96 * values.std() / math.sqrt(400)
    assert value == pytest.approx(values.mean())
    assert low == pytest.approx(values.mean() - half, abs=half / 10)
    assert high == pytest.approx(values.mean() + half, abs=half / 10)


def test_the_bootstrap_of_clusters_approaches_the_cluster_robust_interval() -> None:
    random = np.random.default_rng(6)
    sizes = random.integers(1, 6, 300)
    clusters = np.repeat(singles(300), sizes)
    values = np.repeat(random.normal(0, 1, 300), sizes) + random.normal(0, 0.3, len(clusters))
    residuals = np.bincount(clusters, weights=values - values.mean())
    half = 1.96 * math.sqrt(float((residuals**2).sum())) / len(values)
    interval = bootstrap_mean(values, clusters, resamples=4000)
    assert interval.low == pytest.approx(values.mean() - half, abs=half / 10)
    assert interval.high == pytest.approx(values.mean() + half, abs=half / 10)
    naive = bootstrap_mean(values, singles(len(values)))
    assert width(interval) > 1.3 * width(naive)


def test_both_ways_of_drawing_clusters_have_the_same_distribution() -> None:
    values = np.repeat([0.0, 1.0], [30, 70])
    kinds = bootstrap_mean(values, singles(100), resamples=20_000)
    jitter = values + np.linspace(0, 1e-9, 100)  # all distinct: the other path
    drawn = bootstrap_mean(jitter, singles(100), resamples=20_000)
    assert kinds == pytest.approx(drawn, abs=0.0101)  # one step of a rate of 100
    assert kinds.low == pytest.approx(0.61, abs=0.011)


def test_very_many_clusters_give_the_limits_that_the_bootstrap_would() -> None:
    values = np.random.default_rng(7).exponential(100, 5001)
    normal = bootstrap_mean(values, singles(5001))
    drawn = bootstrap_mean(values[:5000], singles(5000))
    assert drawn.low is not None
    assert drawn.high is not None
    assert normal == pytest.approx(drawn, abs=width(drawn) / 15)


@pytest.mark.parametrize("k", [2, 3, 5, 6, 8, 12])
def test_few_clusters_get_intervals_that_are_wide_enough(k: int) -> None:
    random = np.random.default_rng(13)
    rounds = 400
    hits = sum(
        holds(bootstrap_mean(random.normal(5, 1, k), singles(k), resamples=300, seed=n), 5.0)
        for n in range(rounds)
    )
    assert 0.91 < hits / rounds < 0.99


def test_two_values_give_students_interval() -> None:
    interval = bootstrap_mean(np.array([10.0, 12.0]), singles(2))
    assert interval.low == pytest.approx(11 - 12.7062, abs=1e-3)
    assert interval.high == pytest.approx(11 + 12.7062, abs=1e-3)


def test_a_rate_stays_a_rate_with_few_clusters() -> None:
    values = np.array([1.0, 0.0, 1.0, 1.0])
    interval = mean_interval(values, singles(4), np.array([0, 0, 1, 1]), rate=True)
    assert interval is not None
    assert interval.low == 0.0
    assert interval.high == 1.0


def test_one_cluster_has_a_mean_and_no_interval() -> None:
    assert bootstrap_mean(np.array([1.0, 3.0]), np.array([0, 0])) == Interval(2.0, None, None)
    ones = np.ones(2)
    assert mean_interval(ones, singles(2), np.array([7, 7]), rate=True) == (1.0, None, None)


def test_the_seed_decides_the_limits_and_row_order_does_not() -> None:
    random = np.random.default_rng(1)
    values, clusters = random.normal(size=60), np.repeat(singles(20), 3)
    first = bootstrap_mean(values, clusters, seed=3)
    order = random.permutation(60)
    again = bootstrap_mean(values[order], clusters[order], seed=3)
    assert again == pytest.approx(first, rel=1e-12)
    assert bootstrap_mean(values, clusters, seed=4) != first


def test_trials_are_averaged_within_their_item_first() -> None:
    values = np.array([1.0, 1.0, 1.0, 0.0])
    means = item_means(values, np.array([4, 4, 4, 9]), np.array([2, 2, 2, 8]))
    assert means.values.tolist() == [1.0, 0.0]
    assert means.clusters.tolist() == [0, 1]
    interval = mean_interval(values, np.array([4, 4, 4, 9]), np.array([2, 2, 2, 8]), rate=True)
    assert interval is not None
    assert interval.value == 0.5


def test_a_rate_of_independent_items_gets_wilson() -> None:
    values = np.repeat([1.0, 0.0], [15, 9])
    assert mean_interval(values, singles(24), singles(24), rate=True) == wilson(15, 24)


def test_all_right_is_not_certainty_even_with_clusters() -> None:
    interval = mean_interval(np.ones(12), singles(12), np.repeat(singles(4), 3), rate=True)
    assert interval == wilson(4, 4)
    assert interval.low == pytest.approx(0.5101, abs=1e-4)


def test_no_values_have_no_mean_and_no_percentile() -> None:
    nothing = np.empty(0)
    empty = np.empty(0, dtype=np.int64)
    assert mean_interval(nothing, empty, empty) is None
    assert percentile(nothing, 0.5) is None


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two() -> None:
    interval = percentile(np.array([10.0, 40.0, 20.0, 30.0]), 0.5)
    assert interval is not None
    assert interval.value == 25.0


def test_median_limits_are_the_order_statistics_of_the_textbook() -> None:
    # 95 % ranks of a median: n = 10 -> 2 and 9, n = 20 -> 6 and 15, n = 100 -> 40 and 61.
    for n, low, high in [(10, 2, 9), (20, 6, 15), (100, 40, 61)]:
        interval = percentile(np.arange(1.0, n + 1), 0.5)
        assert interval is not None
        assert (interval.low, interval.high) == (low, high)


def test_a_limit_that_no_order_statistic_reaches_is_none() -> None:
    few = percentile(np.arange(1.0, 6.0), 0.5)  # n = 5: 1/32 on each side is over 2.5 %
    assert few == Interval(3.0, None, None)
    tail = percentile(np.arange(1.0, 24.0), 0.95)
    assert tail is not None
    assert tail.low is not None
    assert tail.high is None


@pytest.mark.parametrize(("fraction", "least"), [(0.95, 20), (0.99, 100)])
def test_a_high_percentile_is_withheld_until_there_are_enough_samples(
    fraction: float, least: int
) -> None:
    samples = np.arange(float(least))
    assert percentile(samples[1:], fraction) is None
    assert percentile(samples, fraction) is not None


def test_repeated_trials_widen_the_limits_of_a_percentile() -> None:
    samples = np.repeat(np.arange(40.0), 5)
    independent = percentile(samples, 0.5)
    clustered = percentile(samples, 0.5, np.repeat(singles(40), 5))
    assert independent is not None
    assert clustered is not None
    assert width(clustered) > 2 * width(independent)


def test_coverage_is_what_is_claimed() -> None:
    random = np.random.default_rng(11)
    rounds, hits = 400, np.zeros(4)
    for number in range(rounds):
        effects = random.normal(0, 1, 40)
        clusters = np.repeat(singles(40), 3)
        values = np.repeat(effects, 3) + random.normal(0, 0.5, 120)
        latency = random.exponential(1.0, 60)
        rate = (random.random(50) < 0.7).astype(float)
        median, p90 = percentile(latency, 0.5), percentile(latency, 0.9)
        mean = bootstrap_mean(values, clusters, resamples=400, seed=number)
        hits += [
            holds(mean, 0.0),
            holds(mean_interval(rate, singles(50), singles(50), rate=True), 0.7),
            holds(median, math.log(2)),
            holds(p90, math.log(10)),
        ]
    assert np.all(hits / rounds > 0.91), hits / rounds
    assert np.all(hits / rounds < 0.995), hits / rounds


def test_coverage_falls_when_clusters_are_ignored() -> None:
    random = np.random.default_rng(12)
    hits = 0
    for number in range(200):
        values = np.repeat(random.normal(0, 1, 20), 5)
        hits += holds(bootstrap_mean(values, singles(100), resamples=300, seed=number), 0.0)
    assert hits / 200 < 0.8


def test_published_tables_round_half_up() -> None:
    assert half_up(0.125, 2) == "0.13"
    assert half_up(2.675, 2) == "2.68"
    assert half_up("35.95", 1) == "36.0"
    assert half_up(1.005, 2) == "1.01"


def width(interval: Interval) -> float:
    assert interval.low is not None
    assert interval.high is not None
    return interval.high - interval.low


def holds(interval: Interval | None, truth: float) -> bool:
    if interval is None:
        return False
    return (interval.low is None or interval.low <= truth) and (
        interval.high is None or truth <= interval.high
    )


def test_a_mean_on_a_scale_has_no_limit_beyond_it_and_equal_values_are_not_certain() -> None:
    found = on_scale(Interval(9.5, 8.0, 11.0), np.array([9.0, 10.0]), singles(2), (0, 10))
    assert found == (9.5, 8.0, 10.0)
    equal = on_scale(Interval(3.0, 3.0, 3.0), np.full(24, 3.0), singles(24), (1, 5))
    share = wilson(12, 24)
    assert share.low is not None
    assert share.high is not None
    assert equal == (3.0, 1 + 4 * share.low, 1 + 4 * share.high)
    alone = Interval(3.0, None, None)
    assert on_scale(alone, np.full(2, 3.0), np.zeros(2, np.int64), (1, 5)) == alone
