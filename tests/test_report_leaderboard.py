"""The leaderboard: who stands where, and who does not stand in it."""

from __future__ import annotations

from pathlib import Path

from sample_run import Row, build, item, score, trial

from voxmeter.client.report import summarised, text_of
from voxmeter.client.report_leaderboard import lines
from voxmeter.client.runfolder import RunFolder

RIGHT = {"good | bot": 4, "fair": 2, "also fair": 2, "bad": 0}


def contest(parent: Path, right: dict[str, int], control: str = "") -> RunFolder:
    names = [f"q{n}" for n in range(4)]
    rows: list[Row] = []
    scores: list[Row] = []
    for endpoint, count in right.items():
        for number, name in enumerate(names):
            one = trial(name, endpoint=endpoint, first_audible_ms=400.0)
            rows.append(one)
            scores.append(score(one, value=float(number < count)))
    tables = [{"name": name, "url": "ws://127.0.0.1:1"} for name in right if name != control]
    tables += [{"name": control, "builtin": "metronome?delay_ms=300"}] if control else []
    config = {"endpoint": tables, "suite": [{"kind": "demo"}]}
    return build(parent, [item(name) for name in names], rows, scores, run={"config": config})


def cells(line: str) -> list[str]:
    return [one.strip() for one in line.replace("\\|", "/").strip("|").split("|")]


def test_the_best_stands_first_and_equals_share_a_rank(tmp_path: Path) -> None:
    with contest(tmp_path, RIGHT) as folder:
        found = list(lines([summarised(folder)]))
    assert found[1] == "## Leaderboard: demo, clean"
    table = [cells(line) for line in found if line.startswith("|")]
    assert found[-2].startswith("Ranked by accuracy alone; the same accuracy is the same rank.")
    assert table[0][:4] == ["rank", "endpoint", "accuracy", "first audible p50, ms"]
    ranked = [(row[0], row[1]) for row in table[2:]]
    assert ranked == [("1", "good / bot"), ("2", "fair"), ("2", "also fair"), ("4", "bad")]
    assert {row[-1] for row in table[2:]} == {"4 / 4"}


def test_a_control_and_an_endpoint_alone_are_not_ranked(tmp_path: Path) -> None:
    with contest(tmp_path, {"bot": 2, "known": 4}, control="known") as folder:
        assert list(lines([summarised(folder)])) == []


def test_several_runs_are_ranked_together_and_what_has_no_accuracy_is_last(tmp_path: Path) -> None:
    open_item = item("q0", kind="open")
    with (
        contest(tmp_path / "a", {"bot": 1}) as one,
        contest(tmp_path / "b", {"bot": 3}) as other,
        build(tmp_path / "c", [open_item], [trial("q0")]) as unscored,
    ):
        text = "".join(text_of("md", [one, other, unscored]))
        runs = [folder.path.name for folder in (other, one, unscored)]
    board = text.split("# voxmeter: sample")[0].splitlines()
    ranked = [cells(line)[:2] for line in board if line.startswith(("| 1", "| 2", "| -"))]
    assert ranked == [[rank, run] for rank, run in zip("12-", runs, strict=True)]
    assert text.count("# voxmeter: sample") == 3
