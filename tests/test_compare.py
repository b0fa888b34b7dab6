"""Comparing runs: what is paired, what is refused, what is a regression, and how it is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from sample_run import Row, build, item, score, trial

import voxmeter
from voxmeter.client.cli import main
from voxmeter.client.compare import Comparison, compare_runs

JITTER = (-30, 12, 25, -8, 4, 17, -22, 9, -14, 31)
"""What latencies differ by from one trial to the next, ms."""


def names(count: int = 10) -> list[str]:
    return [f"q{number}" for number in range(count)]


def run_at(
    parent: Path,
    shift: float = 0.0,
    *,
    right: Iterable[float] = (),
    count: int = 10,
    items: Iterable[Row] | None = None,
    run: Mapping[str, Any] | None = None,
    version: str = "test-1",
    turned: int = 1,
    **fields: Any,
) -> Path:
    """A run of one cell: the same latencies each time, `turned` places on, and `shift` more."""
    trials = [
        trial(
            name,
            first_audible_ms=800 + 10 * number + JITTER[(number * turned) % 10] + shift,
            **fields,
        )
        for number, name in enumerate(names(count))
    ]
    scores = [
        score(one, value=value, version=version) for one, value in zip(trials, right, strict=False)
    ]
    rows = items if items is not None else [item(name) for name in names(count)]
    with build(parent, rows, trials, scores, run=run) as folder:
        return folder.path


def figure(found: Comparison, metric: str = "first_audible_ms") -> dict[str, Any]:
    (cell,) = found.document["cells"]
    return dict(cell["metrics"][metric])


def configured(*gates: Mapping[str, Any], **run: object) -> dict[str, Any]:
    return {
        "config": {
            "run": run,
            "endpoint": [{"name": "bot", "kind": "openai-realtime", "builtin": "echo"}],
            "suite": [{"kind": "demo"}],
            "gate": list(gates),
        }
    }


GATE = {"metric": "first_audible_ms", "regression": {"relative": 0.01, "absolute_ms": 10}}


def test_the_differences_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    base = [trial("a", first_audible_ms=700), trial("b", first_audible_ms=900)]
    base += [trial("c", first_audible_ms=800, number=number) for number in (1, 2)]
    new = [trial("a", first_audible_ms=760), trial("b", first_audible_ms=890)]
    new += [trial("c", first_audible_ms=value, number=n) for n, value in ((1, 900), (2, 940))]
    new += [trial("d", first_audible_ms=1)]
    items = [item(name) for name in "abcd"]
    with build(tmp_path / "1", items, base) as one, build(tmp_path / "2", items, new) as two:
        found = figure(compare_runs(one.path, two.path))
    assert found["n"] == 3
    assert (found["base"], found["new"]) == (800, 856.666667)  # c counts once: 920
    assert found["mean"]["value"] == 56.666667  # 60, -10, 120
    assert found["median"]["value"] == 60
    assert found["ratio"] == 1.070833
    assert found["left_out"] == {"base_only": 0, "new_only": 1}


def test_a_slower_run_is_a_regression_and_the_same_run_again_is_not(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base")
    assert compare_runs(base, run_at(tmp_path / "again", turned=3)).verdict == "no regression"
    slower = compare_runs(base, run_at(tmp_path / "slower", 90, turned=3))
    assert (slower.verdict, slower.status) == ("regression", 1)
    assert "a regression of +" in slower.failed[0]
    faster = compare_runs(base, run_at(tmp_path / "faster", -90, turned=3))
    assert (faster.verdict, faster.status) == ("no regression", 0)


def test_a_difference_below_either_floor_is_no_regression(tmp_path: Path) -> None:
    base, new = run_at(tmp_path / "base"), tmp_path / "new"
    run_at(new, 30)
    for number, (floors, status) in enumerate(
        [
            ({"absolute_ms": 29}, 1),
            ({"absolute_ms": 31}, 0),
            ({"relative": 0.03}, 1),
            ({"relative": 0.04}, 0),  # the median of the base is 848 ms
            ({"relative": 0.04, "absolute_ms": 29}, 0),
            ({"relative": 0.03, "absolute_ms": 31}, 0),
        ]
    ):
        gate = {"metric": "first_audible_ms", "regression": floors}
        path = run_at(tmp_path / str(number), 30, run=configured(gate))
        assert compare_runs(base, path).status == status, floors


def test_late_trials_and_warm_ups_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [trial(name, first_audible_ms=800) for name in names(7)]
    spoilt = [*rows[:6], trial("q6", first_audible_ms=9000, latency_valid=False)]
    spoilt.append(trial("q0", number=0, first_audible_ms=9000))
    items = [item(name) for name in names(7)]
    with build(tmp_path / "1", items, rows) as one, build(tmp_path / "2", items, spoilt) as two:
        found = compare_runs(one.path, two.path)
    assert figure(found)["mean"]["value"] == 0
    assert figure(found)["left_out"] == {"base_only": 1, "new_only": 0}
    assert found.document["cells"][0]["left_out"] == {
        "base": {"warmup": 0, "latency_invalid": 0},
        "new": {"warmup": 1, "latency_invalid": 1},
    }


def test_accuracy_is_judged_by_mcnemars_exact_test(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base", right=[1] * 10)
    new = run_at(tmp_path / "new", right=[0] * 8 + [1, 1])
    found = compare_runs(base, new)
    assert figure(found, "accuracy")["mcnemar"] == {"lost": 8, "won": 0, "p": 2 / 2**8}
    (gate,) = [one for one in found.document["gates"] if one["metric"] == "accuracy"]
    assert gate["p"] == 2 / 2**8
    assert gate["p_holm"] == 3 * 2 / 2**8
    assert gate["verdict"] == "failed"
    fewer = compare_runs(base, run_at(tmp_path / "fewer", right=[0] * 5 + [1] * 5))
    assert fewer.status == 0  # 2 / 2**5 = 0.06


def test_two_endpoints_of_one_run_are_paired_by_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        trial(name, endpoint=endpoint, first_audible_ms=800 + 100 * (endpoint == "b") + number)
        for number, name in enumerate(names())
        for endpoint in "ab"
    ]
    with build(tmp_path, [item(name) for name in names()], rows) as folder:
        path = str(folder.path)
    assert main(["compare", path, path, "--map", "a=b"]) == 1
    assert "a -> b/demo/clean" in capsys.readouterr().out
    assert main(["compare", path, path, "--map", "b=a"]) == 0
    assert main(["compare", path, path]) == 2
    assert "is compared with itself" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"latency_kind": "commit"}, "latency_kind differs (server-vad and commit)"),
        ({"clip": {"sha256": "cd" * 32}}, "the clips of 10 items (q0, ...) differ"),
        ({"run": configured(pacing="fast")}, "pacing differs (real-time and fast)"),
    ],
)
def test_latency_is_refused_where_it_was_made_otherwise_and_the_rest_is_compared(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    base = run_at(tmp_path / "base", right=[1] * 10)
    new = run_at(tmp_path / "new", 500, right=[1] * 10, **fields)
    found = compare_runs(base, new)
    (cell,) = found.document["cells"]
    assert cell["refused"] == {"latency": [reason]}
    assert "first_audible_ms" not in cell["metrics"]
    assert figure(found, "accuracy")["n"] == 10
    assert (found.verdict, found.status) == ("not comparable", 2)
    forced = compare_runs(base, new, force=True)
    assert forced.status == 1
    assert f"compared by force: bot/demo/clean: latency: {reason}" in forced.document["warnings"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"items": [item(name, reference="C") for name in names()]}, "what is asked or right in"),
        ({"version": "test-2"}, "the rules of accuracy differ (test-1 and test-2)"),
    ],
)
def test_accuracy_is_refused_where_it_was_scored_otherwise_and_the_rest_is_compared(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    base = run_at(tmp_path / "base", right=[1] * 10)
    new = run_at(tmp_path / "new", right=[0] * 10, **fields)
    found = compare_runs(base, new)
    (cell,) = found.document["cells"]
    assert list(cell["refused"]) == ["answers"]
    assert cell["refused"]["answers"][0].startswith(reason)
    assert list(cell["metrics"]) == ["first_audible_ms"]
    assert found.status == 2


def test_what_no_gate_is_about_may_be_refused_without_a_failure(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base", right=[1] * 10)
    new = run_at(tmp_path / "new", right=[0] * 10, version="test-2", run=configured(GATE))
    assert compare_runs(base, new).status == 0


def test_accuracy_of_another_recogniser_is_refused(tmp_path: Path) -> None:
    paths = []
    for model in ("tiny", "base"):
        trials = [trial(name, first_audible_ms=800) for name in names()]
        heard = [
            {"key": one["key"], "attempt": 1, "text": "B", "model_hash": model, "settings": {}}
            for one in trials
        ]
        scores = [score(one) for one in trials]
        items = [item(name) for name in names()]
        with build(tmp_path / model, items, trials, scores, heard) as folder:
            paths.append(folder.path)
    (cell,) = compare_runs(*paths).document["cells"]
    assert cell["refused"] == {
        "answers": ["the transcripts were made by different models or settings"]
    }


def judged_run(parent: Path, rating: float, model: str = "judge-a") -> Path:
    trials = [trial(name, first_audible_ms=800) for name in names()]
    detail = {"orders": [], "scale": [1, 5], "model": model}
    scores = [
        score(one, "judge_score:j", rating + number % 2, detail=detail)
        for number, one in enumerate(trials)
    ]
    gate = {"metric": "judge_score:j", "regression": {"absolute": 0.5}}
    run = configured(gate)
    run["config"]["judge"] = [{"name": "j", "model": model, "base_url": "http://127.0.0.1:9"}]
    with build(parent, [item(name) for name in names()], trials, scores, run=run) as folder:
        return folder.path


def test_a_judges_ratings_are_gated_and_another_judge_is_refused(tmp_path: Path) -> None:
    base = judged_run(tmp_path / "base", 4)
    assert compare_runs(base, judged_run(tmp_path / "again", 4)).status == 0
    worse = compare_runs(base, judged_run(tmp_path / "worse", 3))
    assert figure(worse, "judge_score:j")["mean"]["value"] == -1
    assert worse.verdict == "regression"
    other = compare_runs(base, judged_run(tmp_path / "other", 3, "judge-b"))
    assert other.document["cells"][0]["refused"] == {"answers": ["judge j is another model"]}
    assert other.status == 2


def test_what_was_refused_is_said_in_one_line_and_in_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = run_at(tmp_path / "base", right=[1] * 10)
    new = run_at(tmp_path / "new", right=[1] * 10, latency_kind="commit")
    junit = tmp_path / "junit.xml"
    assert main(["compare", str(base), str(new), "--junit", str(junit)]) == 2
    out, error = capsys.readouterr()
    assert "not compared: latency of bot/demo/clean: latency_kind differs" in out
    assert "accuracy" in out
    assert error.startswith("voxmeter: compare: bot/demo/clean: cannot be evaluated: latency_kind")
    assert error.count("\n") == 1
    assert "latency_kind differs" in junit.read_text()


def test_other_machines_and_endpoint_kinds_are_warned_of(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base", run=configured())
    other = configured()
    other["config"]["endpoint"][0] = {"name": "bot", "kind": "moshi", "url": "ws://x.example"}
    new = run_at(tmp_path / "new", run=other, host="there")
    found = compare_runs(base, new)
    assert found.status == 0
    kinds = [one for one in found.document["warnings"] if "endpoint kinds differ" in one]
    machines = [one for one in found.document["warnings"] if "(here and there)" in one]
    assert len(kinds) == len(machines) == 1


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        (
            GATE | {"at": "p95"},
            "could not be measured: p95 needs 20 trials on each side; run it again with more items",
        ),
        (
            GATE | {"metric": "yield_ms"},
            "cannot be evaluated: no item has a value in both runs",
        ),
        (
            GATE | {"metric": "reply_ms"},
            "cannot be evaluated: neither way is known to be worse for reply_ms",
        ),
    ],
)
def test_a_gate_that_cannot_be_evaluated_fails_with_its_reason(
    tmp_path: Path, gate: dict[str, Any], reason: str
) -> None:
    found = compare_runs(run_at(tmp_path / "base"), run_at(tmp_path / "new", run=configured(gate)))
    assert (found.verdict, found.status) == ("gate failed", 1)
    assert found.document["gates"][0]["reason"] == reason


def test_a_gate_over_few_sources_or_a_missing_cell_fails(tmp_path: Path) -> None:
    run = configured(GATE)
    few = compare_runs(run_at(tmp_path / "1", count=5), run_at(tmp_path / "2", count=5, run=run))
    assert (few.status, "5 items from 5 sources" in few.failed[0]) == (1, True)
    rows = [
        trial(name, condition=condition, first_audible_ms=900 + 10 * number)
        for number, name in enumerate(names())
        for condition in ("clean", "noisy")
    ]
    with build(tmp_path / "3", [item(name) for name in names()], rows) as folder:
        both = folder.path
    found = compare_runs(both, run_at(tmp_path / "4", run=run))
    assert found.failed == (
        "first_audible_ms regression over 0.01 of the base and 10 ms (bot/demo/noisy): "
        "cannot be evaluated: the new run has no such cell",
    )
    assert found.document["missing"] == [
        {"in": "new", "endpoint": "bot", "suite": "demo", "condition": "noisy"}
    ]


def test_a_run_that_lost_its_latencies_is_no_success(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base", right=[1] * 10)
    late = run_at(tmp_path / "late", right=[1] * 10, latency_valid=False)
    again = run_at(tmp_path / "again", right=[1] * 10, latency_valid=False)
    assert compare_runs(late, again).status == 2  # nor is it one where both runs lost them
    found = compare_runs(base, late)
    assert (found.verdict, found.status) == ("not comparable", 2)
    assert [gate["verdict"] for gate in found.document["gates"]] == [
        "not applicable",
        "passed",
        "passed",
    ]


@pytest.mark.parametrize("at", ["mean", "p50", "p90"])
def test_a_gate_looks_at_the_statistic_that_it_names(tmp_path: Path, at: str) -> None:
    run = configured(GATE | {"at": at})
    found = compare_runs(run_at(tmp_path / "base"), run_at(tmp_path / "new", 40, run=run))
    (gate,) = found.document["gates"]
    assert gate["difference"][0] == pytest.approx(40)
    assert gate["at"] == at
    assert found.status == 1


def test_gates_come_from_the_bench_that_is_given(tmp_path: Path) -> None:
    base, new = run_at(tmp_path / "base"), run_at(tmp_path / "new", 90)
    bench = tmp_path / "bench.toml"
    text = '[[endpoint]]\nname = "bot"\nbuiltin = "echo"\n[[suite]]\nkind = "demo"\n'
    bench.write_text(
        text + '[[gate]]\nmetric = "first_audible_ms"\nregression = {absolute_ms = 100}\n'
    )
    assert main(["compare", str(base), str(new)]) == 1
    assert main(["compare", str(base), str(new), "--gate", str(bench)]) == 0
    bench.write_text(text + '[[gate]]\nmetric = "first_audible_ms"\nmax = 900\n')
    assert main(["compare", str(base), str(new), "--gate", str(bench)]) == 2


def bad_runs(folder: Path) -> dict[str, tuple[Path, Path, str]]:
    """Pairs of runs that cannot be compared, and what is said of them."""
    good = run_at(folder / "good")
    planned = [{"endpoint": "bot", "suite": "demo", "condition": "clean", "planned": 24}]
    torn = run_at(folder / "torn")
    (torn / "trials.jsonl").write_text("{not json\n{}\n")
    others = [trial(f"z{number}", first_audible_ms=800) for number in range(10)]
    with build(folder / "others", [item(one["item"]) for one in others], others) as other:
        pass
    with build(folder / "empty", [], []) as empty:
        pass
    return {
        "no folder": (good, folder / "none", "no such folder"),
        "no run": (folder, good, "not a run folder"),
        "empty": (good, empty.path, "has no trials yet; finish it"),
        "half": (good, run_at(folder / "half", run={"planned": planned}), "14 of 24 planned"),
        "torn": (good, torn, "trials.jsonl:1: not a JSON object"),
        "older": (run_at(folder / "old", run={"schema": 0}), good, "schema 0 against 1"),
        "newer": (good, run_at(folder / "new", run={"schema": 2}), "is newer than 1"),
        "items": (good, other.path, "no item has a value in both runs"),
        "cells": (good, run_at(folder / "cells", endpoint="x"), "--map OLD=NEW pairs endpoints"),
    }


@pytest.mark.parametrize(
    "case", ["no folder", "no run", "empty", "half", "torn", "older", "newer", "items", "cells"]
)
def test_runs_that_cannot_be_compared_get_one_line_and_status_2(
    tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new, told = bad_runs(tmp_path)[case]
    assert main(["compare", str(base), str(new)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_force_compares_other_schemas_and_half_a_run(tmp_path: Path) -> None:
    runs = bad_runs(tmp_path)
    for case in ("half", "older"):
        base, new, _ = runs[case]
        found = compare_runs(base, new, force=True)
        assert found.status == 0
        assert any("by force" in one for one in found.document["warnings"])


def test_an_endpoint_that_is_nowhere_cannot_be_mapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = str(run_at(tmp_path / "1")), str(run_at(tmp_path / "2"))
    for words, told in (
        (["a=bot"], "the base run has no endpoint 'a'; it has bot"),
        (["bot=c"], "the new run has no endpoint 'c'; it has bot"),
        (["bot"], "'bot' is not OLD=NEW"),
        (["bot=a", "bot=b"], "'bot' is given twice"),
        (["a=bot", "b=bot"], "'bot' is given twice"),
    ):
        options = [part for word in words for part in ("--map", word)]
        assert main(["compare", base, new, *options]) == 2
        assert told in capsys.readouterr().err


HOSTILE = 'a|b <img src=x onerror="x()"> [x](javascript:x) \x1b[31m\ufffe]]>&\n# `h`'


def hostile(tmp_path: Path) -> tuple[Path, Path]:
    def one(parent: Path, shift: float) -> Path:
        trials = [
            trial(name, endpoint=HOSTILE, first_audible_ms=800 + shift + n)
            for n, name in enumerate(names())
        ]
        with build(parent, [item(name) for name in names()], trials) as folder:
            return folder.path

    return one(tmp_path / "base", 0), one(tmp_path / "new", 90)


def test_hostile_names_do_nothing_in_any_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = hostile(tmp_path)
    files = {name: tmp_path / name for name in ("json", "junit", "markdown")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    assert main(["compare", str(base), str(new), *options]) == 1
    assert "\x1b" not in capsys.readouterr().out
    assert json.loads(files["json"].read_text())["cells"][0]["endpoint"] == HOSTILE
    root = ET.fromstring(files["junit"].read_text())  # noqa: S314 - our own
    assert [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]
    page = MarkdownIt("commonmark").enable("table").render(files["markdown"].read_text())
    assert "<img" not in page
    assert "<a " not in page
    assert "<code>" not in page
    assert page.count("<th>") == 4 + 7


def test_junit_counts_its_cases_and_names_the_reason(tmp_path: Path) -> None:
    base, new = run_at(tmp_path / "base"), run_at(tmp_path / "new", 90)
    path = tmp_path / "deep" / "junit.xml"
    assert main(["compare", str(base), str(new), "--junit", str(path)]) == 1
    suite = ET.fromstring(path.read_text())[0]  # noqa: S314 - our own
    cases = list(suite)
    assert suite.get("tests") == str(len(cases))
    assert suite.get("failures") == "1"
    failure = cases[0].find("failure")
    assert failure is not None
    assert (failure.get("message") or "").startswith("a regression of +90 ms [")


def test_the_markdown_of_many_cells_fits_a_pull_requests_comment(tmp_path: Path) -> None:
    def many(parent: Path) -> Path:
        trials = [
            trial(name, condition="|" * 50 + f"noise-{number}", first_audible_ms=800)
            for number in range(150)
            for name in names(6)
        ]
        with build(parent, [item(name) for name in names(6)], trials) as folder:
            return folder.path

    path = tmp_path / "comment.md"
    assert (
        main(
            [
                "compare",
                *map(str, map(many, (tmp_path / "a", tmp_path / "b"))),
                "--markdown",
                str(path),
            ]
        )
        == 0
    )
    text = path.read_text()
    assert 20_000 < len(text) < 65_536
    assert "more are in the JSON." in text


def test_json_on_standard_output_is_nothing_but_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = run_at(tmp_path / "base"), run_at(tmp_path / "new")
    assert main(["compare", str(base), str(new), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "no regression"


def test_the_same_runs_give_the_same_document(tmp_path: Path) -> None:
    base, new = run_at(tmp_path / "base"), run_at(tmp_path / "new", 20, turned=3)
    assert compare_runs(base, new).document == compare_runs(base, new).document


def test_it_can_be_called_from_a_script(tmp_path: Path) -> None:
    found = voxmeter.compare_runs(run_at(tmp_path / "base"), run_at(tmp_path / "new", 90))
    assert isinstance(found, voxmeter.Comparison)
    assert found.status == 1
