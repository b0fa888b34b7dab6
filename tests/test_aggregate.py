"""Figures drawn together by rules, worked out by hand; intervals, tried on a known truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.scoring.aggregate import (
    Level,
    Mode,
    Node,
    Path,
    Rounding,
    Scheme,
    Weights,
    all_alike,
    figure,
    leaf_of,
    scheme_of,
    shares,
    tree,
)
from voxmeter.scoring.aggregate_interval import Aggregated
from voxmeter.scoring.stats import Interval, mean_interval, wilson

BY_DATASET: Mapping[str, Level] = {}
ADU: Sequence[Level] = ("macro", {"Skill": "micro", "Ambiguity": "macro"})
PATHS: Sequence[Path] = (
    ("Skill", "physics"),
    ("Skill", "law"),
    ("Ambiguity", "pause"),
    ("Ambiguity", "homophone"),
)
COUNTS = dict(zip(PATHS, (1, 3, 1, 9), strict=True))
MEANS = dict(zip(PATHS, map(Fraction, (8, 4, 10, 2)), strict=True))


def at(whole: Node, *path: str) -> Node:
    return next(node for node in whole.nodes() if node.path == path)


def test_each_group_is_drawn_by_its_own_rule() -> None:
    whole = tree(PATHS, ADU)
    assert figure(at(whole, "Skill"), MEANS, COUNTS) == 5  # (8 + 3 * 4) / 4
    assert figure(at(whole, "Ambiguity"), MEANS, COUNTS) == 6  # (10 + 2) / 2
    assert figure(whole, MEANS, COUNTS) == Fraction(11, 2)
    assert figure(all_alike(whole), MEANS, COUNTS) == Fraction(8 + 12 + 10 + 18, 14)


def test_weights_count_groups_as_they_say() -> None:
    whole = tree(PATHS, (Weights({"Skill": 3.0}), "macro"))
    assert figure(whole, MEANS, COUNTS) == (3 * 6 + 6) / Fraction(4)


def test_levels_without_a_rule_count_every_item_alike() -> None:
    assert figure(tree(PATHS), MEANS, COUNTS) == figure(all_alike(tree(PATHS)), MEANS, COUNTS)
    whole = tree(PATHS, ("macro", {"Ambiguity": "macro"}))
    assert at(whole, "Skill").rule == "micro"


def test_a_group_without_any_figure_leaves_the_others_the_whole() -> None:
    counts = {**COUNTS, ("Ambiguity", "pause"): 0}
    whole = tree(PATHS, ADU)
    means = {path: mean for path, mean in MEANS.items() if path[1] != "pause"}
    assert figure(at(whole, "Ambiguity"), means, counts) == 2
    assert figure(whole, means, counts) == Fraction(7, 2)
    nothing = dict.fromkeys(PATHS, 0)
    assert figure(whole, {}, nothing) is None
    assert figure(whole, {}, nothing, Rounding(at_every_level=True)) is None


def test_items_beside_inner_groups_are_a_group_of_their_own() -> None:
    whole = tree([("a",), ("a", "x"), ("b",)], ("macro", "macro"))
    assert whole.leaves() == (("a", ""), ("a", "x"), ("b",))
    means: dict[Path, Fraction] = {
        ("a", ""): Fraction(2), ("a", "x"): Fraction(4), ("b",): Fraction(9)
    }  # fmt: skip
    assert figure(whole, means, dict.fromkeys(means, 1)) == 6


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", ""]), max_size=4).map(tuple), min_size=1, unique=True
    )
)
def test_every_item_lies_in_one_leaf_of_the_groups_that_it_made(paths: list[Path]) -> None:
    leaves = {leaf: number for number, leaf in enumerate(tree(paths).leaves())}
    found = {leaf_of(path, leaves) for path in paths}
    assert found == set(leaves.values())


def test_an_item_of_other_groups_lies_in_none() -> None:
    with pytest.raises(KeyError):
        leaf_of(("c",), {("a", "x"): 0, ("b",): 1})


def test_a_suite_without_groups_is_one_leaf() -> None:
    whole = tree([()], ("macro",))
    assert whole.leaves() == ((),)
    assert figure(whole, {(): Fraction(3)}, {(): 2}) == 3


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1, unique=True),
    st.data(),
)
def test_shares_add_up_to_one(paths: list[Path], data: st.DataObject) -> None:
    known: list[Level] = ["micro", "macro", Weights({"a": 2.5, "x": 0.25})]
    rules = st.sampled_from(known)
    levels = data.draw(st.lists(rules, max_size=3))
    counts = {path: data.draw(st.integers(0, 5)) for path in paths}
    found = shares(tree(paths, levels), counts)
    assert sum(found.values()) == (1 if any(counts.values()) else 0)
    assert all(counts[path] for path in found)


@pytest.mark.parametrize(
    ("mode", "texts"),
    [
        ("half-up", ["0.13", "0.12", "-0.13", "2.68", "1.00"]),
        ("half-even", ["0.12", "0.12", "-0.12", "2.68", "1.00"]),
        ("half-down", ["0.12", "0.12", "-0.12", "2.67", "1.00"]),
        ("down", ["0.12", "0.12", "-0.12", "2.67", "0.99"]),
    ],
)
def test_a_half_goes_where_the_mode_says(mode: Mode, texts: list[str]) -> None:
    numbers: list[float | Fraction] = [
        0.125,
        0.1249,
        -0.125,
        2.675,
        Fraction(995, 1000) + Fraction(1, 10**9),
    ]
    assert [Rounding(2, mode).text(number) for number in numbers] == texts


def test_a_third_is_rounded_and_not_lost() -> None:
    assert Rounding(4).text(Fraction(2, 3)) == "0.6667"
    assert Rounding(0).text(Fraction(1, 2)) == "1"


def test_what_rounds_to_nothing_has_no_sign() -> None:
    assert [Rounding(2).text(number) for number in (-0.001, -0.006)] == ["0.00", "-0.01"]


def test_rounding_at_every_level_is_declared_and_gives_other_figures() -> None:
    paths: Sequence[Path] = [("a", "x"), ("a", "y"), ("b", "z")]
    means = dict(zip(paths, map(Fraction, ("1.04", "1.05", "1.00")), strict=True))
    whole, counts = tree(paths, ("macro", "macro")), dict.fromkeys(paths, 1)
    rounded = figure(whole, means, counts, Rounding(1, at_every_level=True))
    assert rounded == Fraction("1.05")  # 1.0 and 1.1 give 1.05, printed 1.1; with 1.0: 1.05
    assert figure(whole, means, counts, Rounding(1)) == Fraction("1.0225")


def test_a_scheme_is_read_back_as_it_was_written() -> None:
    scheme = Scheme(
        ("macro", {"a": "macro", "b": Weights({"x": 0.5})}, Weights({"y": 2.0}), "micro"),
        Rounding(3, "half-even", at_every_level=True),
    )
    assert scheme_of(json.loads(json.dumps(scheme.row()))) == scheme
    for damaged in ({}, {**scheme.row(), "rounding": "up"}, {**scheme.row(), "levels": ["mini"]}):
        with pytest.raises(ValueError, match="no aggregation"):
            scheme_of(damaged)


def drawn(
    paths: Sequence[Path], values: Sequence[float], levels: Sequence[Level],
    clusters: Sequence[int] | None = None, *, bounds: tuple[float, float] | None = None,
) -> Interval:  # fmt: skip
    """The overall figure of items with one trial each."""
    whole = tree(paths, levels)
    items = np.arange(len(values))
    own = items if clusters is None else np.array(clusters)
    made = Aggregated(whole, paths, np.array(values, float), items, own, bounds=bounds)
    found = made.interval(whole)
    assert found is not None
    return found


def test_where_every_item_counts_alike_the_interval_is_that_of_the_mean() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(5, 2, 60)
    paths: Sequence[Path] = [("a", str(number % 3)) for number in range(60)]
    items = np.arange(60)
    assert drawn(paths, list(values), ("micro", "micro")) == pytest.approx(
        mean_interval(values, items, items)
    )


def test_a_half_is_still_one_after_averaging() -> None:
    whole = tree([("a",)])
    values = np.array([2.0] * 13 + [3.0] * 27)
    items = np.arange(40)
    made = Aggregated(whole, [("a",)] * 40, values, items, items)
    found = figure(whole, made.means, made.counts)
    assert found == Fraction("2.675")
    assert Rounding(2).text(found) == "2.68"


def test_trials_of_an_item_are_averaged_first() -> None:
    whole = tree([("a",), ("b",)], ("macro",))
    paths: Sequence[Path] = [("a",), ("a",), ("a",), ("b",)]
    items = np.array([0, 0, 1, 2])
    made = Aggregated(whole, paths, np.array([0.0, 4.0, 6.0, 10.0]), items, items)
    assert made.counts == {("a",): 2, ("b",): 1}
    assert figure(whole, made.means, made.counts) == 7  # ((2 + 6) / 2 + 10) / 2


def test_a_group_of_one_cluster_has_no_interval_and_neither_has_what_rests_on_it() -> None:
    paths: Sequence[Path] = [("a",), ("b",), ("b",), ("b",)]
    found = drawn(paths, [1, 2, 3, 4], ("macro",))
    assert found == Interval(2.0, None, None)
    assert drawn(paths, [1, 2, 3, 4], ("micro",)).low is not None


def test_equal_outcomes_are_no_certainty() -> None:
    paths: Sequence[Path] = [("a",)] * 12 + [("b",)] * 4
    found = drawn(paths, [1.0] * 16, ("macro",), bounds=(0.0, 1.0))
    assert found.value == 1.0
    assert found.low is not None
    assert found.low < 0.85
    assert found.high == 1.0


def test_a_rate_stays_between_0_and_1() -> None:
    paths: Sequence[Path] = [("a",)] * 3 + [("b",)] * 3
    found = drawn(paths, [1, 1, 1, 1, 1, 0], ("macro",), bounds=(0.0, 1.0))
    assert found.high == 1.0


def test_ratings_stay_on_their_scale_and_equal_ones_are_no_certainty() -> None:
    paths: Sequence[Path] = [("a",)] * 3 + [("b",)] * 3
    found = drawn(paths, [10, 10, 9, 10, 10, 2], ("macro",), bounds=(0.0, 10.0))
    assert found.high == 10.0
    zeros = drawn(paths, [0.0] * 6, ("macro",), bounds=(0.0, 10.0))
    assert (zeros.value, zeros.low) == (0.0, 0.0)
    assert zeros.high == pytest.approx(10 * (wilson(0, 6).high or 0))
    sevens = drawn(paths, [7.0] * 6, ("micro",), bounds=(0.0, 10.0))
    assert sevens.low is not None
    assert sevens.high is not None
    assert sevens.low < 7.0 < sevens.high < 10.0
    assert drawn([("a",)], [7.0], ("micro",), bounds=(0.0, 10.0)) == Interval(7.0, None, None)


def test_clusters_that_span_groups_are_drawn_as_a_whole() -> None:
    rng = np.random.default_rng(3)
    shared = rng.normal(0, 1, 40)
    paths: Sequence[Path] = [("a",)] * 40 + [("b",)] * 40
    values = [*shared, *shared]
    together = drawn(paths, values, ("macro",), [*range(40), *range(40)])
    apart = drawn(paths, values, ("macro",))
    assert together.value == pytest.approx(apart.value)
    assert width(together) > 1.3 * width(apart)  # twice the same forty numbers tell what forty do


def width(found: Interval) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_the_same_files_give_the_same_limits() -> None:
    rng = np.random.default_rng(4)
    paths: Sequence[Path] = [("a",)] * 20 + [("b",)] * 30
    values = rng.normal(0, 1, 50)
    one = drawn(paths, list(values), ("macro",))
    assert drawn(paths, list(values), ("macro",)) == one


def test_many_clusters_have_the_interval_of_the_stratified_mean() -> None:
    rng = np.random.default_rng(5)
    values = [*rng.normal(0, 1, 9000), *rng.normal(5, 2, 1000)]
    paths: Sequence[Path] = [("a",)] * 9000 + [("b",)] * 1000
    half = width(drawn(paths, values, ("macro",))) / 2
    error = np.sqrt(np.var(values[:9000], ddof=1) / 9000 + np.var(values[9000:], ddof=1) / 1000) / 2
    assert half == pytest.approx(1.96 * error, rel=0.01)


@pytest.mark.parametrize(
    ("sizes", "levels", "spread"),
    [
        ((10, 10, 10), ("macro",), 0.0),
        ((4, 12, 40), ("macro",), 0.0),
        ((5, 5, 5, 5, 5, 5, 5, 5), ("macro",), 0.0),
        ((6, 6, 20), ({"": Weights({"0": 3.0})}, "micro"), 0.0),
        ((8, 8), ("macro",), 2.0),
    ],
)
def test_intervals_hold_the_truth_about_as_often_as_they_say(
    sizes: Sequence[int], levels: Sequence[Level], spread: float
) -> None:
    """Clusters of two in groups with means of their own."""
    rng = np.random.default_rng(7)
    paths: Sequence[Path] = [
        (str(group),) for group, size in enumerate(sizes) for _ in range(2 * size)
    ]
    clusters = [number // 2 for number in range(len(paths))]
    centres = np.linspace(3, 7, len(sizes))
    whole = tree(paths, levels)
    truth = float(
        figure(
            whole,
            {(str(group),): Fraction(float(centre)) for group, centre in enumerate(centres)},
            {(str(group),): 2 * size for group, size in enumerate(sizes)},
        )
        or 0
    )
    held, draws = 0, 400
    for _ in range(draws):
        own = np.repeat(rng.normal(0, spread, sum(sizes)), 2)
        centre = np.array([centres[int(path[0])] for path in paths])
        values = centre + own + rng.normal(0, 2, len(paths))
        found = drawn(paths, list(values), levels, clusters)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
    assert 0.92 <= held / draws <= 0.99
