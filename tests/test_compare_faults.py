"""Comparing what was damaged, copied, mapped oddly or lost: one line, the right status."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from sample_run import build, item, score, trial
from test_compare import GATE, configured, figure, names, run_at

from voxmeter.client.cli import main
from voxmeter.client.compare import compare_runs
from voxmeter.scoring.paired import Difference, Floors, outcome

RUN = {
    "machine": {"host": "here"},
    "planned": [{"endpoint": "bot", "suite": "demo", "condition": "clean", "planned": 10}],
    **configured(seed=3),
}

WRONG = [
    ("trials", "trial", "first", "its trial is not a whole number"),
    ("trials", "trial", None, "its trial is null"),
    ("trials", "turn", [1], "its turn is not a whole number"),
    ("trials", "attempt", 10**400, "its attempt is larger than any that a run writes"),
    ("trials", "endpoint", {"a": 1}, "its endpoint is not text"),
    ("trials", "clip", "abc", "its clip is not an object"),
    ("trials", "latency", [700], "its latency is not an object"),
    ("trials", "audit", True, "its audit is not an object"),
    ("trials", "audit", {"loop_lag_ms": 3}, "its loop_lag_ms is not an object"),
    ("trials", "segments", ["a"], "its segments are not objects"),
    ("scores", "key", {}, "its key is not text"),
    ("scores", "metric", 3, "its metric is not text"),
    ("scores", "detail", "none", "its detail is not an object"),
    ("transcripts", "key", ["a"], "its key is not text"),
    ("items", "groups", 3, "its groups is not a list"),
    ("run", "config", "x", "is damaged: its config is not an object"),
    ("run", "config", {"endpoint": ["a"]}, "in its config, endpoint is not a list of objects"),
    ("run", "config", {"run": {"seed": -1}}, "seed is not a whole number from 0"),
    ("run", "machine", [1], "is damaged: its machine is not an object"),
    ("run", "planned", ["a"], "its planned is not a list of cells"),
    ("run", "schema", True, "is damaged: no JSON object with a schema"),
]


@pytest.mark.parametrize(("file", "field", "value", "told"), WRONG)
@pytest.mark.parametrize("side", [0, 1], ids=["base", "new"])
def test_a_field_of_another_kind_is_one_line_and_status_2(
    tmp_path: Path,
    file: str,
    field: str,
    value: object,
    told: str,
    side: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = [run_at(tmp_path / one, right=[1] * 10, run=RUN) for one in ("base", "new")]
    heard = {"key": "k", "attempt": 1, "text": "B", "model_hash": "x", "settings": {}}
    (paths[side] / "transcripts.jsonl").write_text(json.dumps(heard) + "\n")
    place = paths[side] / ("run.json" if file == "run" else f"{file}.jsonl")
    text = place.read_text()
    rows = [json.loads(text)] if file == "run" else [json.loads(x) for x in text.splitlines()]
    rows[-1][field] = value
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["compare", *map(str, paths)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert str(place) in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("value", [10**400, 1e308, -1e308, float("nan"), float("inf"), "7", True])
def test_a_number_that_nobody_measured_is_missing_and_not_zero(
    tmp_path: Path, value: object
) -> None:
    base, new = run_at(tmp_path / "base"), run_at(tmp_path / "new")
    rows = [json.loads(line) for line in (new / "trials.jsonl").read_text().splitlines()]
    rows[3]["latency"]["first_audible_ms"] = value
    (new / "trials.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = figure(compare_runs(base, new))
    assert (found["n"], found["mean"]["value"]) == (9, 0)
    assert found["left_out"] == {"base_only": 1, "new_only": 0}


def test_half_a_letter_in_a_stored_configuration_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = configured()
    base, new = run_at(tmp_path / "base"), run_at(tmp_path / "new", run=run)
    run["config"]["endpoint"][0]["builtin"] = "\ud800"
    (new / "run.json").write_text(json.dumps({"schema": 1, **run}))
    assert main(["compare", str(base), str(new)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_nested_without_end_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = run_at(tmp_path / "base"), run_at(tmp_path / "new")
    (new / "run.json").write_text("[" * 100_000)
    assert main(["compare", str(base), str(new)]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_an_endpoint_is_not_mapped_to_itself_in_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(run_at(tmp_path))
    assert main(["compare", path, path, "--map", "bot=bot"]) == 2
    assert "is compared with itself" in capsys.readouterr().err


def test_copies_of_one_run_are_told(tmp_path: Path) -> None:
    base, new = run_at(tmp_path / "base"), run_at(tmp_path / "new")
    told = json.loads((base / "run.json").read_text())
    (new / "run.json").write_text(json.dumps(told))
    warnings = compare_runs(base, new).document["warnings"]
    assert warnings == [f"both folders are copies of one run ({told['run']})"]


def both_bots(parent: Path, run: dict[str, Any] | None = None) -> Path:
    rows = [
        trial(name, endpoint=endpoint, first_audible_ms=800 + 9 * number + (number % 3))
        for number, name in enumerate(names())
        for endpoint in "ab"
    ]
    with build(parent, [item(name) for name in names()], rows, run=run) as folder:
        return folder.path


def test_an_endpoint_that_was_mapped_elsewhere_is_not_called_missing(tmp_path: Path) -> None:
    base, new = (
        both_bots(tmp_path / one, configured(GATE) | {"planned": []}) for one in ("base", "new")
    )
    found = compare_runs(base, new, mapped={"a": "b"})
    assert [(cell["base_endpoint"], cell["endpoint"]) for cell in found.document["cells"]] == [
        ("a", "b")
    ]
    assert (found.document["missing"], found.status) == ([], 0)


def test_a_regression_that_is_certain_stands_although_another_gate_has_nothing_to_judge(
    tmp_path: Path,
) -> None:
    base = run_at(tmp_path / "base")
    rows = [trial(name, "timeout") for name in names()]
    with build(tmp_path / "dead", [item(name) for name in names()], rows) as folder:
        dead = folder.path
    found = compare_runs(base, dead)
    assert (found.verdict, found.status) == ("regression", 1)
    verdicts = {gate["metric"]: gate["verdict"] for gate in found.document["gates"]}
    assert verdicts["first_audible_ms"] == "not applicable"
    assert verdicts["reply_rate"] == "failed"


def test_a_gate_on_answers_is_not_about_a_control(tmp_path: Path) -> None:
    gate = {"metric": "accuracy", "regression": {"absolute": 0.05}}
    run = configured(gate, GATE)
    run["config"]["endpoint"][0]["builtin"] = "metronome?delay_ms=300"
    base = run_at(tmp_path / "base", right=[1] * 10, run=run)
    new = run_at(tmp_path / "new", right=[0] * 10, run=run)
    found = compare_runs(base, new)
    told = {gate["metric"]: (gate["cell"], gate["verdict"]) for gate in found.document["gates"]}
    assert told["first_audible_ms"] == ("bot/demo/clean", "passed")
    assert told["accuracy"][0] == ""  # of no cell, which it is told, as nothing else has answers
    run["config"]["gate"][0]["endpoint"] = "bot"
    assert compare_runs(base, run_at(tmp_path / "named", right=[0] * 10, run=run)).status == 1


@pytest.mark.parametrize("value", [50.0, 800.1 - 750.1, 50.000000000001, 49.999])
def test_a_difference_as_large_as_a_floor_is_not_beyond_it(value: float) -> None:
    found = Difference(value, value - 9, value + 9, 0.001)
    for floors in (Floors(0.05, 0), Floors(0, 50), Floors(0.05, 50)):
        assert outcome(found, 0.001, 1000.0, "lower", floors) == "no difference"
    assert outcome(found, 0.001, 1000.0, "lower", Floors(0, 49.9)) == "regression"


def test_two_forms_do_not_share_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = str(run_at(tmp_path / "1")), str(run_at(tmp_path / "2"))
    for place in ("-", str(tmp_path / "out")):
        assert main(["compare", base, new, "--json", place, "--markdown", place]) == 2
        out, error = capsys.readouterr()
        assert "is given for two forms" in error
        assert (out, (tmp_path / "out").exists()) == ("", False)


def some_late(parent: Path, late: int, **fields: Any) -> Path:
    rows = [
        trial(name, first_audible_ms=800 + number, latency_valid=number >= late)
        for number, name in enumerate(names())
    ]
    with build(parent, [item(name) for name in names()], rows, **fields) as folder:
        return folder.path


def test_a_gate_that_lacks_samples_says_how_many_this_machine_spoilt(tmp_path: Path) -> None:
    base = run_at(tmp_path / "base")
    late = run_at(tmp_path / "late", run=configured(GATE), latency_valid=False)
    assert compare_runs(base, late).failed == (
        "first_audible_ms regression over 0.01 of the base and 10 ms (bot/demo/clean): could not "
        "be measured: 0 of 10 items left, 10 latencies lost to this machine's own lateness (no "
        "item has a value in both runs); run it again on a quiet machine, with lower concurrency "
        "or with more items",
    )


def test_what_a_busy_machine_lost_is_told_at_once_and_not_as_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, late = run_at(tmp_path / "base"), some_late(tmp_path / "late", 6, run=configured(GATE))
    files = {name: tmp_path / name for name in ("junit", "markdown")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    assert main(["compare", str(base), str(late), *options]) == 1
    words = "could not be measured: 4 of 10 items left, 6 latencies lost to this machine's own"
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith(f"verdict: {words}")
    assert files["markdown"].read_text().startswith(f"**voxmeter: {words}")
    (failure,) = ET.fromstring(files["junit"].read_text()).iter("failure")  # noqa: S314 - our own
    assert (failure.get("message") or "").startswith(words)
    assert "regression of" not in "".join(shown)
    unwritten = some_late(tmp_path / "unwritten", 6)  # nor where nobody wrote a gate
    found = compare_runs(base, unwritten)
    assert (found.status, str(found.document["said"]).startswith(words)) == (2, True)


def test_a_gate_that_passed_for_want_of_items_says_what_it_would_have_let_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = run_at(tmp_path / "base", right=[1, 1, 1, 0, 0, 0, 0], count=7)
    new = run_at(tmp_path / "new", right=[0] * 7, count=7)
    files = {name: tmp_path / name for name in ("junit", "markdown")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    assert main(["compare", str(base), str(new), *options]) == 0
    told = capsys.readouterr().out
    words = "too few items to tell: a loss of up to 86 points would pass"
    assert f"(bot/demo/clean): {words}" in told
    assert (
        told.splitlines()[-1] == f"verdict: no regression, but accuracy (bot/demo/clean): {words}"
    )
    assert words in files["markdown"].read_text().splitlines()[0]
    assert f"passed: {words}" in files["markdown"].read_text()
    (case,) = ET.fromstring(files["junit"].read_text()).iter("system-out")  # noqa: S314 - our own
    assert case.text == words
    many = [run_at(tmp_path / str(n), right=[1] * 40, count=40) for n in range(2)]
    assert compare_runs(*many).document["said"] == "no regression"


def test_answers_are_not_compared_with_those_of_a_control(tmp_path: Path) -> None:
    run = configured(GATE)
    run["config"]["endpoint"] = [
        {"name": "bot", "kind": "openai-realtime", "builtin": "echo"},
        {"name": "tick", "kind": "openai-realtime", "builtin": "metronome?delay_ms=300"},
    ]
    rows = [
        trial(name, endpoint=endpoint, first_audible_ms=800)
        for name in names()
        for endpoint in ("bot", "tick")
    ]
    scores = [score(row, value=float(row["endpoint"] == "bot")) for row in rows]
    with build(tmp_path, [item(name) for name in names()], rows, scores, run=run) as folder:
        found = compare_runs(folder.path, folder.path, mapped={"bot": "tick"}).document
    (cell,) = found["cells"]
    assert "accuracy" not in cell["metrics"]
    assert "first_audible_ms" in cell["metrics"]
    assert [gate["metric"] for gate in found["gates"]] == ["first_audible_ms"]
    assert [one for one in found["warnings"] if "is a control" in one]
    metronome = configured(GATE)
    metronome["config"]["endpoint"][0]["builtin"] = "metronome"
    two = [run_at(tmp_path / str(n), right=[1] * 10, run=metronome) for n in range(2)]
    assert not [one for one in compare_runs(*two).document["warnings"] if "control" in one]


def test_what_is_to_be_asked_again_is_counted_as_the_run_itself_counts_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = {"planned": [{"endpoint": "bot", "suite": "demo", "condition": "clean", "planned": 10}]}
    rows = [trial(name, "disconnected") for name in names(7)]
    with build(tmp_path / "cut", [item(name) for name in names()], rows, run=run) as folder:
        cut = folder.path
    assert main(["compare", str(run_at(tmp_path / "base")), str(cut)]) == 2
    told = capsys.readouterr().err
    assert "10 of 10 planned trials are to be asked again (7 could not be held, 3 were" in told


@pytest.mark.parametrize("place", ["", ".", "FOLDER"])
def test_a_place_that_is_no_file_is_one_line(
    tmp_path: Path,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FOLDER").mkdir()
    base, new = str(run_at(tmp_path / "1")), str(run_at(tmp_path / "2"))
    assert main(["compare", base, new, "--json", place]) == 2
    error = capsys.readouterr().err
    assert "is no file; give the path of a file" in error
    assert error.count("\n") == 1


def test_a_pipe_and_a_link_are_written_into_and_stay_what_they_are(tmp_path: Path) -> None:
    base, new = str(run_at(tmp_path / "1")), str(run_at(tmp_path / "2"))
    pipe, link, file = (tmp_path / one for one in ("pipe", "link", "file"))
    os.mkfifo(pipe)
    link.symlink_to(file)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        words = ["compare", base, new, "--markdown", str(pipe), "--json", str(link)]
        assert main(words) == 0
        assert os.read(reader, 65_536).startswith(b"**voxmeter: no regression**")
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert json.loads(file.read_text())["status"] == 0


def test_a_full_device_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = Path("/dev/full")
    if not full.is_char_device():
        pytest.skip("no /dev/full here")
    base, new = str(run_at(tmp_path / "1")), str(run_at(tmp_path / "2"))
    (tmp_path / "link").symlink_to(full)
    assert main(["compare", base, new, "--json", str(tmp_path / "link")]) == 2
    assert "no space left on the disk" in capsys.readouterr().err
    assert full.is_char_device()
