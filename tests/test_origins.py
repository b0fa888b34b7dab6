"""People against synthesisers: pairs of the same words, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sample_run import Row, build, item, score, trial
from test_aggregates import rated

from voxmeter.client.report import markdown_report
from voxmeter.client.summary import summarise

Json = dict[str, Any]

SAID: Sequence[tuple[str, str, float]] = [
    ("eggs", "real", 8.0),
    ("eggs", "synthetic", 6.0),
    ("eggs", "synthetic", 4.0),
    ("dinner", "real", 5.0),
    ("dinner", "synthetic", 4.0),
    ("weather", "real", 1.0),
    ("traffic", "synthetic", 9.0),
    ("noise", "", 0.0),
]


def summary(tmp_path: Path, said: Sequence[tuple[str, str, float]] = SAID) -> tuple[Json, str]:
    items: list[Row] = []
    trials: list[Row] = []
    rows: list[Row] = []
    for number, (words, origin, value) in enumerate(said):
        fields = {"cluster": words, "origin": origin, "kind": "open", "options": []}
        items.append(item(f"q{number}", **fields))
        trials.append(trial(f"q{number}"))
        rows += rated(trials[-1], value)
    with build(tmp_path, items, trials, rows) as folder:
        found = summarise(folder)
        return found, "".join(markdown_report(folder, found))


def test_the_same_words_of_both_are_compared_pair_by_pair(tmp_path: Path) -> None:
    found, text = summary(tmp_path)
    (row,) = found["cells"][0]["origins"]
    assert row["metric"] == "judge_score:gpt"
    assert row["paired"]["pairs"] == 2
    assert row["paired"]["value"] == 2.0  # ((8 - 5) + (5 - 4)) / 2
    assert row["paired"]["low"] < 2.0 < row["paired"]["high"]
    assert row["real"]["value"] == pytest.approx(14 / 3, abs=1e-6)
    assert row["synthetic"]["value"] == 23 / 4
    assert (row["real"]["n"], row["synthetic"]["n"]) == (3, 4)
    assert "## People and synthesisers" in text
    assert "score:gpt | 4.67" in text
    assert "+2 [" in text


def test_without_the_same_words_there_is_no_difference(tmp_path: Path) -> None:
    found, text = summary(tmp_path, [("a", "real", 8.0), ("b", "synthetic", 2.0)])
    (row,) = found["cells"][0]["origins"]
    assert row["paired"] == {"value": None, "low": None, "high": None, "pairs": 0}
    assert "no words of both" in text


@pytest.mark.parametrize("origin", ["real", "synthetic", ""])
def test_where_only_one_speaks_nothing_is_said_of_it(tmp_path: Path, origin: str) -> None:
    found, text = summary(tmp_path, [("a", origin, 8.0), ("b", origin, 2.0)])
    assert found["cells"][0]["origins"] == []
    assert "synthesisers" not in text


def test_right_and_wrong_answers_are_compared_too(tmp_path: Path) -> None:
    said = [
        ("a", "real", 1.0),
        ("a", "synthetic", 0.0),
        ("b", "real", 1.0),
        ("b", "synthetic", 1.0),
    ]
    items = [
        item(f"q{n}", cluster=words, origin=origin) for n, (words, origin, _) in enumerate(said)
    ]
    trials = [trial(f"q{n}") for n in range(4)]
    rows = [score(row, value=said[n][2]) for n, row in enumerate(trials)]
    with build(tmp_path, items, trials, rows) as folder:
        (row,) = summarise(folder)["cells"][0]["origins"]
    assert row["metric"] == "accuracy"
    assert row["paired"]["value"] == 0.5
