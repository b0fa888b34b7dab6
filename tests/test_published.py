"""Published tables beside a run: rows as printed, slips marked, and what keeps them apart."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
from sample_run import build, item, score, trial
from test_aggregates import SCHEME, config, run_row, written

from voxmeter.client.cli import main
from voxmeter.client.published import beside
from voxmeter.client.report import markdown_report
from voxmeter.client.summary import summarise
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.copied_rows import TableRow, copied_rows
from voxmeter.suites import catalog
from voxmeter.suites.adu_domains import COUNTS, DATASETS
from voxmeter.suites.air_bench_tasks import CHAT, FOUNDATION
from voxmeter.suites.published_tables import Table, names, published
from voxmeter.suites.voicebench_subsets import COLUMNS
from voxmeter.suites.voxeval_layout import SETTINGS

Json = dict[str, Any]


def table(found: Json, start: str) -> Json:
    chosen: list[Json] = [one for one in found["tables"] if one["title"].startswith(start)]
    assert len(chosen) == 1
    return chosen[0]


def texts(row: Json) -> list[str | None]:
    return [figure and figure["text"] for figure in row["figures"]]


def adu(tmp_path: Path, run: Mapping[str, Any] | None = None, **more: Any) -> Json:
    with written(tmp_path, run=run, **more) as folder:
        return beside(summarise(folder), folder.run, "adu-bench")


def test_own_figures_stand_under_the_papers_columns(tmp_path: Path) -> None:
    found = adu(tmp_path)
    both = table(found, "Table 2:")
    assert both["columns"] == ["general", "skill", "multilingual", "ambiguity", "average"]
    (own,) = both["yours"]
    assert (own["endpoint"], own["size"], own["judge"]) == ("bot", "7B", "gpt-4-0613")
    assert texts(own) == [None, "4.67", None, "4.00", "4.33"]
    assert own["figures"][1]["items"] == 6
    assert own["figures"][1]["low"] < own["figures"][1]["value"]


def test_each_order_is_told_from_score_and_gap(tmp_path: Path) -> None:
    found = adu(tmp_path)
    assert texts(table(found, "Table 9:")["yours"][0])[1] == "4.17"
    assert texts(table(found, "Table 10:")["yours"][0])[1] == "5.17"
    (own,) = table(found, "Table 13:")["yours"]
    assert texts(own) == [None, "5.50", None, None, None, None]
    assert own["figures"][1]["low"] is None


def test_a_judge_asked_in_one_order_has_no_figure_of_the_other(tmp_path: Path) -> None:
    run = {"config": config(orders="reference-first"), "aggregation": {"adu": SCHEME.row()}}
    found = adu(tmp_path, run)
    titles = {one["title"].partition(":")[0] for one in found["tables"]}
    assert "Table 9" in titles
    assert not titles & {"Table 2", "Table 10", "Table 12"}
    assert any("orders = reference-first" in text for text in found["warnings"])


def test_the_papers_rows_are_as_printed(tmp_path: Path) -> None:
    systems = table(adu(tmp_path), "Table 2:")["systems"]
    assert len(systems) == 13
    assert systems[0] == {
        "system": "PandaGPT",
        "size": "7B",
        "figures": ["1.02", "0.98", "0.98", "0.50", "0.87"],
        "notes": {},
    }
    assert systems[-1]["size"] == ""


def test_another_judge_is_warned_of(tmp_path: Path) -> None:
    run = {"config": config(model="qwen"), "aggregation": {"adu": SCHEME.row()}}
    warnings = adu(tmp_path, run)["warnings"]
    assert any("the paper's judge is gpt-4-0613, qwen rated" in text for text in warnings)
    same = adu(tmp_path / "same")["warnings"]
    assert not any(text.startswith("Table 2:") for text in same)
    assert any(text.startswith("Table 4:") for text in same)  # rated by LLaMA-3-70B there


def test_a_scale_of_ones_own_is_warned_of(tmp_path: Path) -> None:
    run = {"config": config(scale=[1, 5]), "aggregation": {"adu": SCHEME.row()}}
    warnings = adu(tmp_path, run)["warnings"]
    assert "judge gpt rates on a scale of its own: [1, 5]" in warnings


def test_a_run_without_a_figure_of_any_table_says_so(tmp_path: Path) -> None:
    row = trial("a", suite="adu")
    run = {"config": {"suite": [{"kind": "adu-bench", "name": "adu"}]}}
    with build(tmp_path, [item("a", suite="adu")], [row], run=run) as folder:
        summary = summarise(folder)
        summary["published"] = beside(summary, folder.run, "adu-bench")
        assert not summary["published"]["tables"]
        text = "".join(markdown_report(folder, summary))
    assert "This run has no figure that stands in one of its tables." in text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"selection": {"limit": 5}}, "a sample (--limit)"),
        ({"config": {**config(), "suite": [{"kind": "adu-bench", "name": "adu", "subset": 0.1}]}},
         "a sample (subset)"),
        ({}, "12 questions have a figure; the published ones are of 20715"),
    ],
)  # fmt: skip
def test_a_sample_is_warned_of(tmp_path: Path, more: Json, words: str) -> None:
    assert any(words in text for text in adu(tmp_path, run_row(**more))["warnings"])


def test_figures_under_other_conditions_are_left_out_and_told(tmp_path: Path) -> None:
    names = ["a", "b"]
    items = [item(name, suite="voxeval") for name in names]
    trials = [
        trial(name, suite="voxeval", condition=condition)
        for condition in ("clean", "alloy_pitch", "train-station")
        for name in names
    ]
    scores = [score(row, value=float(row["item"] == "a")) for row in trials]
    run = {"config": {"suite": [{"kind": "voxeval"}]}}
    with build(tmp_path, items, trials, scores, run=run) as folder:
        found = beside(summarise(folder), folder.run, "voxeval")
    (one,) = found["tables"]
    (own,) = one["yours"]
    shown = {name: text for name, text in zip(one["columns"], texts(own), strict=True) if text}
    assert shown == {"Alloy": "0.5000", "Pitch": "0.5000"}
    assert any("train-station" in text for text in found["warnings"])
    moshi = next(row for row in one["systems"] if row["system"] == "Moshi")
    assert moshi["figures"][one["columns"].index("Pitch")] == "0.0609"


def test_another_clean_voice_is_warned_of(tmp_path: Path) -> None:
    run = {"config": {"suite": [{"kind": "voxeval", "options": {"speaker": "nova"}}]}}
    row = trial("a", suite="voxeval")
    with build(tmp_path, [item("a", suite="voxeval")], [row], [score(row)], run=run) as folder:
        warnings = beside(summarise(folder), folder.run, "voxeval")["warnings"]
    assert any("speaker is nova; the published figures are of alloy" in text for text in warnings)


@pytest.mark.parametrize(
    ("kind", "suite", "told"),
    [
        ("voxeval", {}, ["few_shot is 0; the published figures are of 5"]),
        ("voxeval", {"few_shot": 0}, ["few_shot is 0; the published figures are of 5"]),
        ("voxeval", {"few_shot": 5}, []),
        ("voxeval", {"few_shot": 5, "options": {"speaker": None}}, []),
        (
            "voxeval",
            {"options": {"prompt_mode": "cot"}},
            ["prompt_mode is cot; the published figures are of regular"],
        ),
        (
            "voxeval",
            {"few_shot": 3, "options": {"few_shot_via": "history", "keep_last_ms": 0}},
            [
                "few_shot is 3; the published figures are of 5",
                "few_shot_via is history; the published figures are of clip",
                "keep_last_ms is 0; the published figures are of 80000",
            ],
        ),
        ("air-bench", {}, []),
        (
            "air-bench",
            {"question_via": "speech-after"},
            ["question_via is speech-after; the published figures are of text"],
        ),
    ],
)
def test_options_that_the_paper_had_otherwise_are_warned_of_also_where_they_are_not_written(
    kind: str, suite: dict[str, Any], told: list[str], tmp_path: Path
) -> None:
    run = {"config": {"suite": [{"kind": kind, **suite}]}}
    row = trial("a", suite=kind)
    with build(tmp_path, [item("a", suite=kind)], [row], [score(row)], run=run) as folder:
        warnings = beside(summarise(folder), folder.run, kind)["warnings"]
    assert [one for one in warnings if " is " in one and "published figures are of" in one] == [
        f"{kind}: {one}" for one in told
    ]


def test_shares_stand_beside_percentages_in_per_cent(tmp_path: Path) -> None:
    groups = ["foundation", "speech", "Intent classification"]
    rows = [trial(name, suite="air-bench") for name in ("a", "b", "c")]
    scores = [score(row, value=float(row["item"] != "a")) for row in rows]
    items = [item(name, suite="air-bench", groups=groups) for name in ("a", "b", "c")]
    run = {"config": {"suite": [{"kind": "air-bench"}]}}
    with build(tmp_path, items, rows, scores, run=run) as folder:
        found = beside(summarise(folder), folder.run, "air-bench")
    overall = table(found, "Table 3: foundation")
    assert texts(overall["yours"][0]) == ["66.7", None, None, "66.7"]
    mean = overall["yours"][0]["figures"][3]
    assert mean["without"] == ["foundation_sound", "foundation_music"], "it is of fewer groups"
    assert overall["yours"][0]["figures"][0]["without"] == []
    task = table(found, "Table 5:")
    at = task["columns"].index("Intent classification")
    assert texts(task["yours"][0])[at] == "66.7"
    qwen = next(row for row in task["systems"] if row["system"] == "Qwen-Audio-Chat")
    assert qwen["figures"][at] == "77.8"


def test_a_suites_own_leaderboard_stands_beside_the_published_one(tmp_path: Path) -> None:
    names = ["a", "b"]
    items = [item(name, suite="vb", groups=["openbookqa"]) for name in names]
    rows = [trial(name, suite="vb") for name in names]
    scores = [score(row, value=float(row["item"] == "a")) for row in rows]
    run = {"config": {"suite": [{"kind": "voicebench", "name": "vb"}]}}
    with build(tmp_path, items, rows, scores, run=run) as folder:
        found = beside(summarise(folder), folder.run, "voicebench")
    one = table(found, "Leaderboard")
    (own,) = one["yours"]
    assert dict(zip(one["columns"], texts(own), strict=True))["obqa"] == "50.00"
    assert [text for text in texts(own) if text] == ["50.00"]
    kimi = next(row for row in one["systems"] if row["system"] == "Kimi-Audio")
    assert set(kimi["notes"]) == set(one["columns"])
    assert len(one["systems"]) == 33


def test_replies_in_text_are_told(tmp_path: Path) -> None:
    row = trial("a", suite="voxeval", reply_channel="text")
    run = {"config": {"suite": [{"kind": "voxeval"}]}}
    with build(tmp_path, [item("a", suite="voxeval")], [row], [score(row)], run=run) as folder:
        warnings = beside(summarise(folder), folder.run, "voxeval")["warnings"]
    assert any("bot replied in text" in text for text in warnings)


def test_an_unknown_name_and_a_run_without_that_suite_are_one_line(tmp_path: Path) -> None:
    with written(tmp_path) as folder:
        summary = summarise(folder)
        with pytest.raises(UserError, match="did you mean 'adu-bench'"):
            beside(summary, folder.run, "adu")
        with pytest.raises(UserError, match="has no suite of kind voxeval"):
            beside(summary, folder.run, "voxeval")


def test_report_published_writes_the_tables_into_the_run_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with written(tmp_path) as folder:
        path = folder.path
    assert main(["report", str(path), "--published", "adu-bench"]) == 0
    text = (path / "report.md").read_text()
    assert "## Beside published figures: ADU-Bench" in text
    assert "| Whisper+LLaMA-2 | 7B | 7.44 * | 8.35 * |" in text
    assert "copied: the same as the row of Whisper+LLaMA-3 8B in Table 14" in text
    assert "| **bot (gpt-4-0613)** | 7B | - | **4.67** [" in text
    capsys.readouterr()
    assert main(["report", str(path), "--format", "json", "--published", "adu-bench"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["published"]["name"] == "adu-bench"
    assert main(["report", str(path), "--published", "adu-banch"]) == 2
    assert "did you mean 'adu-bench'" in capsys.readouterr().err
    assert main(["report", str(path)]) == 0
    assert "published" not in (path / "report.md").read_text()


def every_table() -> list[tuple[str, Table]]:
    return [(name, one) for name in names() for one in published(name).tables]


def test_every_published_name_belongs_to_a_suite_that_there_is() -> None:
    assert set(names()) >= {"adu-bench", "air-bench", "voicebench", "voxeval"}
    for name in names():
        assert published(name).suite in catalog.BUILT_IN
        assert published(name).tables


def test_every_column_is_a_group_or_a_condition_that_its_suite_has() -> None:
    adu_paths = {(), *((dataset,) for dataset in DATASETS), *COUNTS}
    air_paths = {task.groups[:depth] for task in (*FOUNDATION.values(), *CHAT.values())
                 for depth in (1, 2, 3)}  # fmt: skip
    known: Mapping[str, Collection[tuple[str, ...]]] = {
        "adu-bench": adu_paths,
        "air-bench": air_paths,
        "voxeval": {()},
    }
    for name, one in every_table():
        for column in one.columns:
            if name in known and column.path is not None:
                assert column.path in known[name], (one.title, column)
                assert column.condition in {"clean", *SETTINGS}
        if name == "voicebench":
            assert [column.path for column in one.columns] == [
                *((head,) for head in COLUMNS.values()),
                ("overall",),
            ]
    without = [column.name for _, one in every_table() for column in one.columns
               if column.path is None]  # fmt: skip
    assert without == ["Text MMLU"]


def test_every_domain_of_adu_bench_has_a_column_in_both_orders() -> None:
    for order in ("reference-first", "response-first"):
        paths = [column.path for one in published("adu-bench").tables if one.order == order
                 for column in one.columns if column.path and len(column.path) == 2]  # fmt: skip
        assert sorted(paths) == sorted(COUNTS)


def test_every_copied_row_is_marked_and_no_other() -> None:
    rows = [
        TableRow(one.title, tuple(column.name for column in one.columns),
                 f"{system.name} {system.size}".strip(), system.figures)
        for _, one in every_table() for system in one.systems
    ]  # fmt: skip
    copies = {pair.other.table for pair in copied_rows(rows)}
    marked = {
        one.title
        for _, one in every_table()
        for system in one.systems
        if any(note.startswith("copied") for note in system.notes.values())
    }
    assert copies == marked
    assert len(marked) == 2


def test_every_mark_is_of_a_column_that_is_there() -> None:
    count = 0
    for _, one in every_table():
        columns = {column.name for column in one.columns}
        for system in one.systems:
            assert set(system.notes) <= columns
            count += len(system.notes)
    assert count >= 20
