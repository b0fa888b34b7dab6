"""Tables by a benchmark's own rules in `summary.json` and `report.md`, worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from sample_run import Row, build, item, score, trial

from voxmeter.client.report import markdown_report
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.summary import summarise
from voxmeter.scoring.aggregate import Rounding, Scheme
from voxmeter.suites.adu_domains import DATASET_RULES

Json = dict[str, Any]

SCHEME = Scheme(("macro", DATASET_RULES))
SCORES: Mapping[tuple[str, str], list[float]] = {
    ("ADU-Skill", "physics"): [8, 6, 7, 3],
    ("ADU-Skill", "law"): [2, 2],
    ("ADU-Ambiguity", "pause"): [10, 0, 0, 0],
    ("ADU-Ambiguity", "homophone"): [5, 6],
}


def config(size: str = "7B", **judge: object) -> Json:
    return {
        "endpoint": [{"name": "bot", "kind": "exec", "command": ["bot"], "size": size}],
        "suite": [{"kind": "adu-bench", "name": "adu", "path": "/adu"}],
        "judge": [{"name": "gpt", "model": "gpt-4-0613", "api_key_env": "KEY", **judge}],
    }


def run_row(scheme: Scheme = SCHEME, **more: object) -> Json:
    return {"config": config(), "aggregation": {"adu": scheme.row()}} | more


def rated(of: Row, value: float | None, gap: float = 0.0, **more: object) -> Iterable[Row]:
    detail = {"rubric": "adu", "model": "gpt-4-0613", "scale": [0.0, 10.0], "orders": []}
    yield score(of, "judge_score:gpt", value, **({"detail": detail} | more))
    if value is not None:
        yield score(of, "position_gap:gpt", gap, detail={"rubric": "adu", "prompt": "0"})


def written(
    tmp_path: Path,
    scores: Mapping[tuple[str, str], list[float]] = SCORES,
    run: Mapping[str, Any] | None = None,
    failures: Iterable[tuple[str, str]] = (),
) -> RunFolder:
    """A run of one endpoint whose replies a judge has rated; gaps of 1 in ADU-Skill."""
    items: list[Row] = []
    trials: list[Row] = []
    rows: list[Row] = []
    for path, values in scores.items():
        for number, value in enumerate(values):
            name = f"{'/'.join(path)}:{number}"
            fields = {"suite": "adu", "groups": list(path), "kind": "open", "rubric": "adu"}
            items.append(item(name, **fields, reference="r", options=[]))
            made = trial(name, suite="adu")
            trials.append(made)
            rows += rated(made, value, 1.0 if path[0] == "ADU-Skill" else 0.0)
    for path in failures:
        name = f"{'/'.join(path)}:failed"
        items.append(item(name, suite="adu", groups=list(path), kind="open", options=[]))
        made = trial(name, "timeout", suite="adu")
        trials.append(made)
        rows += rated(made, None, unscored="timeout", detail={})
    return build(tmp_path, items, trials, rows, run=run or run_row())


def figures(summary: Json, metric: str = "judge_score:gpt") -> dict[tuple[str, ...], Json]:
    (cell,) = summary["cells"]
    rows = cell["tables"]["figures"]
    return {tuple(row["path"]): row for row in rows if row["metric"] == metric}


def test_each_dataset_is_drawn_by_its_own_rule(tmp_path: Path) -> None:
    with written(tmp_path) as folder:
        found = figures(summarise(folder))
    assert found["ADU-Skill",]["value"] == pytest.approx(28 / 6, abs=1e-6)
    assert found["ADU-Skill",]["printed"] == "4.67"
    assert found["ADU-Skill",]["macro"] == "4.00"
    assert found["ADU-Ambiguity",]["value"] == 4.0  # (2.5 + 5.5) / 2
    assert found["ADU-Ambiguity",]["micro"] == "3.50"
    assert found[()]["value"] == pytest.approx((28 / 6 + 4) / 2, abs=1e-6)
    assert (found[()]["rule"], found["ADU-Skill",]["rule"]) == ("macro", "micro")
    assert found["ADU-Skill", "physics"]["value"] == 6.0


def test_the_headline_is_still_the_mean_over_items(tmp_path: Path) -> None:
    with written(tmp_path) as folder:
        (cell,) = summarise(folder)["cells"]
    assert cell["metrics"]["judge_score:gpt"]["value"] == pytest.approx(49 / 12, abs=1e-6)


def test_sizes_of_endpoints_stand_with_their_figures(tmp_path: Path) -> None:
    with written(tmp_path) as folder:
        (cell,) = summarise(folder)["cells"]
        text = "".join(markdown_report(folder, summarise(folder)))
    assert cell["size"] == "7B"
    assert "| bot | 7B | " in text


def test_rounding_at_every_level_is_shown_beside_where_it_differs(tmp_path: Path) -> None:
    scores = {("a", "x"): [1.0, 1.0, 2.0], ("a", "y"): [1.0], ("b", "z"): [1.0]}
    scheme = Scheme(("macro", "macro"), Rounding(1))
    with written(tmp_path, scores, run_row(scheme)) as folder:
        summary = summarise(folder)
        text = "".join(markdown_report(folder, summary))
    row = figures(summary)["a",]
    assert (row["printed"], row["from_raw"], row["from_rounded"]) == ("1.2", "1.2", "1.2")
    overall = figures(summary)[()]
    assert overall["printed"] == "1.1"
    assert "every item alike 1.2" in text  # 6 / 5


def test_a_scheme_that_rounds_at_every_level_prints_that_figure(tmp_path: Path) -> None:
    scores = {("a", "x"): [1.0, 1.0, 1.25], ("a", "y"): [1.0], ("b", "z"): [1.0]}
    scheme = Scheme(("macro", "macro"), Rounding(1, at_every_level=True))
    with written(tmp_path, scores, run_row(scheme)) as folder:
        row = figures(summarise(folder))["a",]
    assert row["from_raw"] == "1.0"  # (1.0833 + 1) / 2 = 1.0417
    assert row["printed"] == row["from_rounded"] == "1.1"  # (1.1 + 1.0) / 2 = 1.05


def test_failures_leave_the_mean_rating_and_stand_beside_it_at_the_lowest(tmp_path: Path) -> None:
    with written(tmp_path, failures=[("ADU-Skill", "law")] * 1) as folder:
        summary = summarise(folder)
        text = "".join(markdown_report(folder, summary))
    assert figures(summary)["ADU-Skill", "law"]["value"] == 2.0
    lowest = figures(summary, "judge_score:gpt:failures_lowest")
    assert lowest["ADU-Skill", "law"]["value"] == pytest.approx(4 / 3, abs=1e-6)
    assert lowest["ADU-Skill",]["value"] == pytest.approx(28 / 7, abs=1e-6)
    assert "Each failure of the endpoint has the lowest rating here." in text


def test_without_failures_there_is_no_second_table(tmp_path: Path) -> None:
    with written(tmp_path) as folder:
        assert not figures(summarise(folder), "judge_score:gpt:failures_lowest")


def test_groups_without_a_figure_are_counted(tmp_path: Path) -> None:
    with written(tmp_path, failures=[("ADU-Ambiguity", "repetition")]) as folder:
        summary = summarise(folder)
        text = "".join(markdown_report(folder, summary))
    row = figures(summary)["ADU-Ambiguity",]
    assert (row["groups"], row["of"], row["value"]) == (2, 3, 4.0)
    assert "only 2 of 3 groups have a figure" in text


def test_intervals_go_through_the_whole_aggregation(tmp_path: Path) -> None:
    with written(tmp_path) as folder:
        found = figures(summarise(folder))
    skill, whole = found["ADU-Skill",], found[()]
    assert skill["low"] < skill["value"] < skill["high"]
    assert whole["low"] < whole["value"] < whole["high"]
    law, pause = found["ADU-Skill", "law"], found["ADU-Ambiguity", "pause"]
    assert law["low"] < law["value"] == 2.0 < law["high"], "two equal ratings are no certainty"
    assert pause["low"] == 0.0, "no rating lies below the scale"


def test_the_report_has_a_table_of_datasets_and_one_of_each_datasets_domains(
    tmp_path: Path,
) -> None:
    with written(tmp_path) as folder:
        lines = "".join(markdown_report(folder, summarise(folder))).splitlines()
    heads = [line for line in lines if line.startswith("| endpoint | size |")]
    assert "| endpoint | size | ADU-Ambiguity | ADU-Skill | overall | n |" in heads
    assert "| endpoint | size | law | physics | ADU-Skill | n |" in heads
    assert any("ADU-Skill: every item counts alike." in line for line in lines)
    assert any("- bot (4.67): every group alike 4.00" in line for line in lines)


def test_rates_are_printed_in_per_cent(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    items = [item(name, groups=["air", "x" if name == "a" else "y"]) for name in names]
    trials = [trial(name) for name in names]
    scores = [score(row, value=float(row["item"] == "b")) for row in trials]
    run = {"aggregation": {"demo": Scheme(("macro", "macro")).row()}}
    with build(tmp_path, items, trials, scores, run=run) as folder:
        summary = summarise(folder)
        text = "".join(markdown_report(folder, summary))
    row = figures(summary, "accuracy")["air",]
    assert (row["value"], row["printed"], row["micro"]) == (0.25, "25.00", "33.33")
    assert "25.00%" in text


def test_a_suite_that_declares_nothing_has_no_such_tables(tmp_path: Path) -> None:
    with written(tmp_path, run={"config": config()}) as folder:
        summary = summarise(folder)
        text = "".join(markdown_report(folder, summary))
    assert "tables" not in summary["cells"][0]
    assert "own rules" not in text


def test_items_beside_inner_groups_have_a_line_of_their_own(tmp_path: Path) -> None:
    scores: dict[tuple[str, ...], list[float]] = {
        ("ADU-Skill", "physics"): [8, 6],
        ("ADU-Skill",): [1, 3],
        ("ADU-Ambiguity", "pause"): [10, 0],
    }
    with written(tmp_path, cast("Any", scores)) as folder:
        summary = summarise(folder)
        told = "\n".join(markdown_report(folder, summary))
    found = figures(summary)
    assert found["ADU-Skill",]["items"] == 4  # not those of its last line
    assert found["ADU-Skill", "(no group)"]["value"] == 2
    assert found["ADU-Skill", "physics"]["value"] == 7
    (cell,) = summary["cells"]
    paths = [
        (row["metric"], *row["path"])
        for row in cell["tables"]["figures"]
        if row["metric"] == "judge_score:gpt"
    ]
    assert len(set(paths)) == len(paths)
    assert "(no group)" in told
