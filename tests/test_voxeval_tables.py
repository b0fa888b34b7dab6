"""VoxEval's own tables, from accuracies whose answers are known."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_run import build, item, score, trial

from voxmeter.client import report_analyses
from voxmeter.client.summary import read_run, summary_of
from voxmeter.scoring.stats import Interval
from voxmeter.suites import catalog
from voxmeter.suites.analysis import Answers, Table
from voxmeter.suites.voxeval_subjects import GROUP_OF, group_of
from voxmeter.suites.voxeval_tables import below_chance, box, subject_accuracies, tables

PUBLISHED = Path(__file__).parent.parent / "suites" / "published" / "voxeval_table3_overall.csv"


def answers(right: dict[str, Sequence[float]], first: int = 0) -> Answers:
    """Accuracies of items by subject; items are numbered from `first` on, each its own cluster."""
    groups = [(group_of(name), name) for name, found in right.items() for _ in found]
    values = np.array([one for found in right.values() for one in found], np.float64)
    items = np.arange(first, first + len(values))
    return Answers(items, items, groups, values, np.full(len(values), 0.25))


def named(found: Sequence[Table], name: str) -> Table:
    (table,) = [one for one in found if one.name == name]
    return table


def rows(found: Sequence[Table], name: str) -> dict[Any, tuple[Any, ...]]:
    table = named(found, name)
    assert all(len(row) == len(table.heads) for row in table.rows)
    return {row[0]: row[1:] for row in table.rows}


def test_each_setting_has_its_row_by_the_papers_name_and_order() -> None:
    one = answers({"virology": [1, 0, 0, 1]})
    asked = {"alloy_pitch": one, "clean": one, "nova": one, "mine": one, "alloy_tempo": one}
    assert list(rows(tables(asked, {}), "overall")) == ["Alloy", "Nova", "Speed", "Pitch", "mine"]
    assert next(iter(rows(tables(asked, {"speaker": "nova"}), "overall"))) == "Nova"


def test_a_change_is_over_the_questions_that_both_settings_have() -> None:
    clean = answers({"virology": [1, 1, 0, 0, 1, 1]})
    pitch = answers({"virology": [0, 1, 0, 0]}, first=1)  # items 1 to 4
    accuracy, change, chance, verdict, n = rows(
        tables({"clean": clean, "alloy_pitch": pitch}, {}), "overall"
    )["Pitch"]
    assert (accuracy.value, chance, n) == (0.25, 0.25, 4)
    # items 1, 2, 3, 4: 0, 1, 0, 0 against 1, 0, 0, 1
    assert change.value == pytest.approx(-0.25)
    assert verdict == "no different from chance"
    none = answers({"virology": [1.0]}, first=50)
    assert rows(tables({"clean": clean, "nova": none}, {}), "overall")["Nova"][1] is None


def test_replies_without_an_answer_push_an_accuracy_below_chance_and_it_says_so() -> None:
    silent = answers({"virology": [0] * 57 + [1] * 3})
    good = answers({"virology": [1] * 40 + [0] * 20})
    found = rows(tables({"clean": silent, "nova": good}, {}), "overall")
    assert (found["Alloy"][3], found["Nova"][3]) == ("below chance", "above chance")
    assert below_chance(Interval(0.1, None, None), 0.25) == "no different from chance"


def test_groups_are_over_questions_and_an_unknown_one_comes_last() -> None:
    one = answers({"virology": [1, 1], "nutrition": [0], "law": [1], "sociology": [0]})
    table = named(tables({"clean": one}, {}), "groups")
    assert table.heads == ("setting", "social sciences", "other", "unknown")
    assert [cell.value for cell in table.rows[0][1:] if isinstance(cell, Interval)] == [
        0,
        pytest.approx(2 / 3),
        1,
    ]


def test_mathematics_stands_by_level_with_the_way_it_was_asked() -> None:
    one = answers(
        {"college_mathematics": [0, 0], "elementary_mathematics": [1, 1], "virology": [1]}
    )
    two = answers({"elementary_mathematics": [1, 0]})
    found = tables({"clean": one, "nova": two}, {"prompt_mode": "cot"})
    assert named(found, "mathematics").heads == ("setting", "elementary", "college")
    assert named(found, "mathematics").note.startswith("Worked examples reason step by step")
    (elementary, college) = rows(found, "mathematics")["Nova"]
    assert (elementary.value, college) == (0.5, None)
    assert not [one for one in tables({"clean": answers({"law": [1]})}, {}) if "math" in one.name]


def test_the_box_of_speakers_is_best_voice_less_worst_for_each_subject() -> None:
    asked = {
        "clean": answers({"virology": [1, 1, 0, 0], "law": [1, 1], "sociology": [0, 0]}),
        "nova": answers({"virology": [1, 0, 0, 0], "law": [1, 1], "sociology": [0, 1]}),
        "echo": answers({"virology": [1, 1, 1, 0], "law": [0, 0], "sociology": [0, 0]}),
    }
    table = named(tables(asked, {}), "boxes")
    points, percent = table.rows
    # virology 0.75 - 0.25, law 1 - 0, sociology 0.5 - 0
    assert points == ("speakers (3)", "points", 50.0, 50.0, 50.0, 75.0, 100.0, 3)
    # of the clean voice: 0.5 / 0.5 and 1 / 1; nobody can divide by sociology's 0
    assert percent == ("speakers (3)", "percent", 100.0, 100.0, 100.0, 100.0, 100.0, 2)
    # half of 8 are right, and 2 of each: 100 * sqrt(0.25 / 2) = 35.4, times 1.128 and 1.693
    assert table.note.endswith(
        "chance alone makes sizes of some 39.9 points, and of 59.9 between the best and the worst "
        "of 3 voices, in a subject of 2 questions."
    )


def test_what_chance_alone_makes_of_a_box_is_what_the_note_says() -> None:
    draw = np.random.default_rng(5)
    voices = ("clean", "echo", "fable", "nova", "onyx", "shimmer")
    asked = {
        one: answers({name: (draw.random(200) < 0.4).tolist() for name in GROUP_OF})
        for one in voices
    }
    table = named(tables(asked, {}), "boxes")
    median = table.rows[0][4]
    told = float(table.note.partition("and of ")[2].partition(" ")[0])
    assert isinstance(median, float)
    assert median == pytest.approx(told, rel=0.15)


def test_other_boxes_are_a_setting_against_the_clean_one_with_and_without_its_sign() -> None:
    asked = {
        "clean": answers({"virology": [1, 1, 0, 0], "law": [1, 1, 1, 1]}),
        "alloy_noise": answers({"virology": [1, 1, 1, 0], "law": [1, 0, 0, 0]}),
    }
    found = [row for row in named(tables(asked, {}), "boxes").rows if row[1] == "points"]
    assert [row[0] for row in found] == ["Noise, size", "Noise, change"]
    assert found[0][2:] == (25.0, 37.5, 50.0, 62.5, 75.0, 2)
    assert found[1][2:] == (-75.0, -50.0, -25.0, 0.0, 25.0, 2)


def test_one_setting_alone_has_no_boxes_and_no_answers_have_no_tables() -> None:
    one = answers({"virology": [1, 0]})
    assert {table.name for table in tables({"clean": one}, {})} == {"overall", "groups"}
    assert tables({"clean": answers({})}, {}) == ()
    assert not [t for t in tables({"nova": one, "echo": one}, {}) if t.name == "boxes"]


def test_items_without_groups_are_in_the_overall_table_alone() -> None:
    items = np.arange(2)
    plain = Answers(items, items, [(), ()], np.array([1.0, 0.0]), np.full(2, 0.25))
    found = tables({"clean": plain, "alloy_noise": plain, "mine": answers({"law": [1]}, 9)}, {})
    assert [one.name for one in found] == ["overall", "groups"]
    assert [row[1] for row in named(found, "groups").rows] == [None, None, Interval(1, None, None)]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=60))
def test_a_box_is_in_order_and_inside_its_values(values: list[float]) -> None:
    found = box(np.array(values))
    assert found is not None
    assert list(found) == sorted(found)
    assert (found[0], found[-1]) == (min(values), max(values))


def test_nothing_has_no_box() -> None:
    assert box(np.array([])) is None


def test_the_papers_own_changes_come_out_of_its_accuracies() -> None:
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        published = {row["condition"]: row for row in csv.DictReader(file)}
    size = 10_000
    asked = {}
    for name, setting in (("Alloy", "clean"), ("Pitch", "alloy_pitch"), ("Nova", "nova")):
        right = round(float(published[name]["Moshi"]) * size)
        asked[setting] = answers({"virology": [1.0] * right + [0.0] * (size - right)})
    found = rows(tables(asked, {}), "overall")
    assert found["Pitch"][1].value == pytest.approx(-0.0607)
    assert found["Nova"][1].value == pytest.approx(0.0082)
    assert {row[3] for row in found.values()} == {"below chance"}


def test_accuracy_of_a_subject_is_over_its_questions() -> None:
    assert subject_accuracies(answers({"law": [1, 0, 0.5], "virology": [1]})) == {
        "law": pytest.approx(0.5),
        "virology": 1.0,
    }


def test_a_run_carries_the_tables_into_summary_and_report(tmp_path: Path) -> None:
    items = [
        item(f"virology-{n}", suite="vox", groups=["other", "virology"], cluster=f"virology/{n}")
        for n in range(4)
    ]
    trials, scores = [], []
    for condition, values in {"clean": (1, 1, 0, None), "nova": (1, 0, 0, 0)}.items():
        for number, value in enumerate(values):
            row = trial(f"virology-{number}", suite="vox", condition=condition)
            trials.append(row)
            scores.append(score(row, value=value))
    trials.append(trial("virology-0", suite="vox", number=0))
    run = {"config": {"suite": [{"kind": "voxeval", "name": "vox"}, {"kind": "demo"}]}}
    with build(tmp_path, items, trials, scores, run=run) as folder:
        summary = summary_of(read_run(folder), folder.run)
    (found,) = summary["analyses"]
    assert (found["suite"], found["kind"], found["endpoint"]) == ("vox", "voxeval", "bot")
    overall = found["tables"][0]
    assert overall["rows"][0][1]["value"] == 0.5
    assert overall["rows"][1][2]["value"] == -0.25
    shown = list(report_analyses.tables(summary))
    control = {**summary, "cells": [{**cell, "control": {}} for cell in summary["cells"]]}
    assert list(report_analyses.tables(control)) == [], "a control answers every question alike"
    assert shown[0].heading == "vox: Accuracy in each setting"
    assert shown[0].rows[0][:1] == ["Alloy"]
    assert shown[0].rows[0][1].startswith("50.0% [")
    assert shown[0].rows[0][2:] == ["-", "25.0%", "no different from chance", "4"]


def test_kinds_without_tables_of_their_own_have_none(tmp_path: Path) -> None:
    assert catalog.analysis("demo") is None
    run = {"config": {"suite": [{"kind": "demo"}]}}
    with build(tmp_path, [item("a")], [trial("a")], run=run) as folder:
        assert "analyses" not in summary_of(read_run(folder), folder.run)
