"""Differences of unpaired samples: by hand, against Welch's, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from voxmeter.scoring.stats import Floats
from voxmeter.scoring.unpaired import LEAST, Statistic, difference


def samples(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(("statistic", "by_hand"), [("median", 25.0), ("mean", 43.0)])
def test_the_value_is_the_difference_of_the_two_figures(
    statistic: Statistic, by_hand: float
) -> None:
    base = samples(300, 310, 290, 320, 280)  # median 300, mean 300
    new = samples(325, 315, 335, 305, 435)  # median 325, mean 343
    assert difference(base, new, statistic).value == by_hand


def test_one_sample_that_is_apart_on_two_sides_gives_the_limits_by_hand() -> None:
    # Of five draws, three or more are the 100 in 5.8 % of cases, more than the 2.5 % of a tail: the
    # upper limit is 100. Of fifty draws, half are never the one that is apart.
    base, new = samples(0, 0, 0, 0, 0), samples(0, 0, 0, 0, 100)
    assert difference(base, new, resamples=20_000) == (0.0, 0.0, 100.0)
    assert difference(new, base, resamples=20_000) == (0.0, -100.0, 0.0)
    assert difference(base, samples(*[0] * 49, 100)) == (0.0, 0.0, 0.0)


def test_samples_without_scatter_give_an_interval_without_width() -> None:
    found = difference(np.full(20, 300.0), np.full(20, 350.0))
    assert found == (50.0, 50.0, 50.0)


@pytest.mark.parametrize("few", range(1, LEAST))
def test_too_few_samples_on_a_side_give_no_limits(few: int) -> None:
    many = np.arange(20.0)
    assert difference(np.arange(float(few)), many).low is None
    assert difference(many, np.arange(float(few))).high is None
    assert difference(many, np.arange(float(LEAST))).low is not None


def test_the_bootstrap_of_means_approaches_welchs_interval() -> None:
    random = np.random.default_rng(3)
    base, new = random.normal(300, 40, 60), random.normal(330, 80, 90)
    found = difference(base, new, "mean", resamples=8000)
    welch = ttest_ind(new, base, equal_var=False).confidence_interval(0.95)
    width = welch.high - welch.low
    assert found.low == pytest.approx(welch.low, abs=0.06 * width)
    assert found.high == pytest.approx(welch.high, abs=0.06 * width)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=LEAST, max_size=40),
    st.lists(st.floats(-1e6, 1e6), min_size=LEAST, max_size=40),
    st.sampled_from(["median", "mean"]),
)
def test_the_limits_lie_where_samples_can_put_them(
    base: list[float], new: list[float], statistic: Statistic
) -> None:
    value, low, high = difference(samples(*base), samples(*new), statistic, resamples=200)
    assert low is not None
    assert high is not None
    slack = 1e-6 * (1 + max(map(abs, base + new)))
    assert min(new) - max(base) - slack <= low <= high <= max(new) - min(base) + slack
    assert min(new) - max(base) - slack <= value <= max(new) - min(base) + slack


@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_the_order_of_the_samples_makes_no_difference_and_the_seed_does(
    statistic: Statistic,
) -> None:
    random = np.random.default_rng(4)
    base, new = random.normal(300, 40, 30), random.normal(300, 40, 30)
    found = difference(base, new, statistic, seed=1)
    shuffled = difference(random.permutation(base), random.permutation(new), statistic, seed=1)
    assert shuffled == pytest.approx(found)
    assert difference(base, new, statistic, seed=2) != found


def test_many_samples_are_drawn_in_parts_with_the_same_result_each_time() -> None:
    random = np.random.default_rng(5)
    base, new = random.normal(300, 40, 3000), random.normal(305, 40, 3000)
    found = difference(base, new, resamples=700)
    assert found == difference(base, new, resamples=700)
    assert found.low is not None
    assert found.low > 0


@pytest.mark.parametrize("n", [8, 20])
@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_the_interval_holds_the_true_difference_as_often_as_it_says(
    statistic: Statistic, n: int
) -> None:
    random = np.random.default_rng(6)
    runs, held, above = 600, 0, 0
    for seed in range(runs):
        base, new = 200 + np.exp(random.normal(4, 0.5, (2, n)))  # skewed, as latencies are
        _, low, high = difference(base, new + 50, statistic, resamples=400, seed=seed)
        assert low is not None
        assert high is not None
        held += low <= 50 <= high
        above += low > 50
    # 95 %, and 2.5 % on the side that fails a test, each within three standard errors.
    assert 0.92 <= held / runs < 1
    assert above / runs <= 0.045


@pytest.mark.parametrize("shift", [50.0, -50.0])
def test_a_shift_is_found_and_its_direction_with_it(shift: float) -> None:
    random = np.random.default_rng(7)
    runs, found = 200, 0
    for seed in range(runs):
        base, new = random.normal(300, 30, 20), random.normal(300 + shift, 30, 20)
        _, low, high = difference(base, new, resamples=400, seed=seed)
        assert low is not None
        assert high is not None
        found += low > 0 if shift > 0 else high < 0
    assert found / runs >= 0.95
