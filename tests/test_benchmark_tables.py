"""Tables of AIR-Bench and VoiceBench: the papers' own figures come out of the papers' own parts."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
import pytest

from voxmeter.scoring.aggregate import Rounding
from voxmeter.scoring.stats import Interval
from voxmeter.suites import air_bench_tables, catalog, voicebench_tables
from voxmeter.suites.air_bench_tasks import CHAT_COUNTS, FOUNDATION
from voxmeter.suites.analysis import Answers, Measured, Table
from voxmeter.suites.voicebench_subsets import COLUMNS

Path = tuple[str, ...]


def published(name: str) -> list[dict[str, str]]:
    path = resources.files("voxmeter.suites").joinpath("published", name)
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def measured(values: Sequence[tuple[Path, float]]) -> Measured:
    numbers = np.arange(len(values), dtype=np.int64)
    return Measured(
        numbers, numbers, [path for path, _ in values], np.array([value for _, value in values])
    )


def answers(
    accuracy: Sequence[tuple[Path, float]] = (),
    **others: Sequence[tuple[Path, float]],
) -> Answers:
    found = measured(accuracy)
    chance = np.full(len(accuracy), 0.25)
    by_name = {name.replace("__", ":"): measured(values) for name, values in others.items()}
    return Answers(found.items, found.clusters, found.groups, found.values, chance, by_name)


def rows_of(table: Table) -> Mapping[str, tuple[Any, ...]]:
    return {" / ".join(str(cell) for cell in row[:2]): row for row in table.rows}


TASKS = {task.groups[2]: task.groups for task in FOUNDATION.values()}
GROUP_OF = {"speech": "foundation_speech", "sound": "foundation_sound", "music": "foundation_music"}
PAPER = {row["model"]: row for row in published("air_table03_overall.csv")}
BY_TASK = published("air_table05_foundation_tasks.csv")
MODELS = [name for name in BY_TASK[0] if name not in {"group", "task"}]


@pytest.mark.parametrize("model", MODELS)
def test_the_papers_task_figures_give_the_papers_means(model: str) -> None:
    values = [(TASKS[row["task"]], float(row[model]) / 100) for row in BY_TASK if row[model]]
    (table,) = air_bench_tables.tables({"clean": answers(values)}, {})
    found = rows_of(table)
    for group, column in GROUP_OF.items():
        cell = found[f"{group} / mean of its tasks"][2]
        if PAPER[model][column]:
            assert cell * 100 == pytest.approx(float(PAPER[model][column]), abs=0.0501)
        else:
            assert cell == "/", "the paper has none, and so have we"
    average = found[" / mean of the three groups"][2]
    if PAPER[model]["foundation_average"]:
        assert average * 100 == pytest.approx(float(PAPER[model]["foundation_average"]), abs=0.0501)
    else:
        assert average == "/"


def test_every_task_of_the_papers_table_is_one_of_ours() -> None:
    assert {row["task"]: row["group"] for row in BY_TASK} == {
        name: path[1] for name, path in TASKS.items()
    }


CHAT_MISFITS = {"Macaw-LLM", "NExT-GPT"}
"""Averages of the paper that do not follow from its own columns."""


@pytest.mark.parametrize("model", [name for name in PAPER if name != "Whisper+GPT-4"])
def test_the_papers_chat_figures_give_its_averages_but_for_two(model: str) -> None:
    scores = {
        group: float(PAPER[model][f"chat_{group}"])
        for group in ("speech", "sound", "music", "mixed")
    }
    values = [(path, scores[path[1]]) for path in CHAT_COUNTS]
    (table,) = air_bench_tables.tables({"clean": answers(judge_score__gpt=values)}, {})
    assert table.heads == ("judge", "speech", "sound", "music", "mixed", "average", "n")
    (row,) = table.rows
    assert row[0] == "gpt"
    assert isinstance(row[5], float)
    difference = abs(row[5] - float(PAPER[model]["chat_average"]))
    assert (difference > 0.02) == (model in CHAT_MISFITS)


def test_a_task_that_nobody_asked_is_a_slash_and_never_zero() -> None:
    values = [(path, 0.0) for path in TASKS.values() if path[1] == "speech"]
    (table,) = air_bench_tables.tables({"clean": answers(values)}, {})
    found = rows_of(table)
    asked, absent = found["speech / Speech grounding"], found["music / Music question answering"]
    assert isinstance(asked[2], Interval)
    assert asked[2].value == 0.0
    assert (absent[2], absent[3]) == ("/", 0)
    assert found["speech / mean of its tasks"][2] == 0.0
    assert found["sound / mean of its tasks"][2] == "/"


def test_a_judge_that_aligns_replies_has_a_column_beside_the_rules() -> None:
    path = TASKS["Speech grounding"]
    one = answers([(path, 0.0), (path, 1.0)], judge_accuracy__gpt=[(path, 1.0), (path, 1.0)])
    (table,) = air_bench_tables.tables({"clean": one}, {})
    assert table.heads == ("group", "task", "by rules", "by rules, then gpt", "n")
    row = rows_of(table)["speech / Speech grounding"]
    assert [cell.value for cell in row[2:4]] == [0.5, 1.0]
    assert row[4] == 2


def test_mixed_is_the_mean_of_its_two_tasks_whatever_their_counts() -> None:
    values = [
        (("chat", "mixed", "speech and sound"), 8.0),
        (("chat", "mixed", "speech and sound"), 6.0),
        (("chat", "mixed", "speech and music"), 1.0),
    ]
    (table,) = air_bench_tables.tables({"noisy": answers(judge_score__gpt=values)}, {})
    assert table.rows[0][4] == 4.0
    assert table.rows[0][1] == table.rows[0][5] == "/"
    assert (table.name, table.title) == ("chat:noisy", "Chat: rating by group (noisy)")


def test_nothing_measured_is_no_table() -> None:
    assert air_bench_tables.tables({"clean": answers()}, {}) == []
    assert voicebench_tables.tables({"clean": answers()}, {}) == ()


LEADERBOARD = published("voicebench_leaderboard.csv")
SHORT = {
    "alpacaeval": "alpacaeval_full",
    "commoneval": "commoneval",
    "wildvoice": "wildvoice",
    "sdqa": "sd-qa",
    "mmsu": "mmsu",
    "obqa": "openbookqa",
    "bbh": "bbh",
    "ifeval": "ifeval",
    "advbench": "advbench",
}


def test_all_rows_of_the_leaderboard_reproduce() -> None:
    assert list(SHORT.values()) == list(COLUMNS)
    assert len(LEADERBOARD) == 33
    for row in LEADERBOARD:
        found = voicebench_tables.overall({name: float(row[key]) for key, name in SHORT.items()})
        assert found is not None
        assert Rounding(2).text(round(found, 9)) == row["overall"], row["model"]


def instructions(*kept: int) -> dict[str, list[tuple[Path, float]]]:
    path = ("ifeval",)
    return {
        "instructions": [(path, 3.0), (path, 1.0)],
        "instructions_kept": [(path, float(one)) for one in kept],
        "instructions_kept_loosely": [(path, 3.0), (path, 1.0)],
        "accuracy_loose": [(path, 1.0), (path, 1.0)],
    }


def test_instructions_count_alike_however_many_a_question_has() -> None:
    one = answers([(("ifeval",), 0.0), (("ifeval",), 1.0)], **instructions(0, 1))
    found = voicebench_tables.columns_of(one, "")
    # questions 1/2 and 2/2, instructions 1/4 and 4/4
    assert found["ifeval"] == pytest.approx(100 * (0.5 + 1.0 + 0.25 + 1.0) / 4)


def test_each_column_comes_from_its_own_metric_and_there_is_no_mean_without_all() -> None:
    one = answers(
        [
            (("mmsu", "law"), 1.0),
            (("mmsu", "law"), 0.0),
            (("mmsu", "math"), 1.0),
            (("openbookqa",), 0.5),
            (("bbh", "navigate"), 0.25),
            (("advbench",), 1.0),
            (("ifeval",), 0.0),
            (("ifeval",), 1.0),
        ],
        judge_score__gpt=[
            (("alpacaeval_full",), 5.0),
            (("commoneval",), 3.0),
            (("wildvoice",), 4.0),
        ],
        judge_accuracy__gpt=[(("sd-qa", "usa"), 1.0), (("sd-qa", "usa"), 0.0)],
        **instructions(3, 1),
    )
    (table,) = voicebench_tables.tables({"clean": one}, {})
    (row,) = table.rows
    assert row[:2] == ("clean", "gpt")
    assert row[2:11] == (5.0, 3.0, 4.0, 50.0, 66.67, 50.0, 25.0, 87.5, 100.0)
    expected = (100 + 60 + 80 + 50 + 200 / 3 + 50 + 25 + 87.5 + 100) / 9
    assert row[11] == pytest.approx(expected, abs=0.005)
    assert table.heads == ("condition", "judge", *COLUMNS.values(), "overall")

    partial = answers([(("advbench",), 1.0)])
    (table,) = voicebench_tables.tables({"clean": partial}, {})
    assert table.rows == (("clean", "/", *"///////", "/", 100.0, "/"),)


def test_the_short_alpacaeval_stands_in_where_the_full_one_is_not_there() -> None:
    one = answers(judge_score__gpt=[(("alpacaeval",), 2.0)])
    assert voicebench_tables.columns_of(one, "gpt")["alpacaeval_full"] == 2.0


def test_tables_are_found_by_the_kind_of_a_suite() -> None:
    assert catalog.analysis("air-bench") is air_bench_tables.tables
    assert catalog.analysis("voicebench") is voicebench_tables.tables
