"""A calibration as a run folder: kept over time, compared and reported like any run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from voxmeter.client import calibration_run
from voxmeter.client.audio import to_pcm16
from voxmeter.client.calibrate import CASES, Budget, folder_for
from voxmeter.client.capture import Utterance
from voxmeter.client.cli import main
from voxmeter.client.compare import compare_runs
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.servers.voice import babble

MS = 1_000_000
SPEECH = babble(24_000, 0.2)
ASKED = Utterance(to_pcm16(SPEECH), 24_000, 0, len(SPEECH))


def trial(sessions: int, item: str, number: int, off: float, **fields: Any) -> dict[str, Any]:
    """A trial that began at 0 and measured `off` more than the true 300 ms."""
    placed = calibration_run.fields("openai-realtime", sessions, item, number, ASKED, 0)
    latency = {"first_packet_ms": 300 + off, "first_audible_ms": 500 - off}
    return {
        **placed,
        "session_tag": f"{sessions}-{item}-{number}",
        "status": "ok",
        "t0_ns": 0,
        "latency_kind": "server-vad",
        "latency": latency,
        "audit": {"latency_valid": True, "host": "here"},
    } | fields


def truth(row: dict[str, Any]) -> dict[str, Any]:
    spans = {"first_packet_ns": 300 * MS, "first_audible_ns": 500 * MS}
    return {"tag": row["session_tag"], "user_end_ns": 0, **spans}


def write(folder: RunFolder, rows: list[dict[str, Any]], known: dict[str, Any]) -> None:
    for row in rows:
        folder.append("trials", row)
    calibration_run.write_scores(folder, rows, known)


def kept(parent: Path, off: float, sessions: tuple[int, ...] = (1, 50)) -> Path:
    """A calibration of two trials a case in which every mark was off by about `off` ms."""
    with folder_for(parent, sessions, Budget(2)) as folder:
        rows = [
            trial(number, case.name, turn, off + 0.01 * place * turn)
            for number in sessions
            for place, case in enumerate(CASES)
            for turn in range(1, 5 if number > 12 else 3)
        ]
        if 50 in sessions:
            rows += [trial(50, case.name, n, off) for case in CASES[:4] for n in range(5, 10)]
            rows += [trial(50, case.name, n, off) for case in CASES[4:] for n in range(5, 9)]
        write(folder, rows, {row["session_tag"]: truth(row) for row in rows})
        calibration_run.summarise(folder)
        return folder.path


def test_there_is_one_cell_for_each_number_of_sessions_with_its_table(tmp_path: Path) -> None:
    path = kept(tmp_path, 0.25)
    summary = json.loads((path / "summary.json").read_text())
    cells = {cell["condition"]: cell for cell in summary["cells"]}
    assert list(cells) == ["sessions-1", "sessions-50"]
    assert cells["sessions-1"]["planned"] == 24
    assert cells["sessions-50"]["planned"] == 100
    for cell in cells.values():
        assert cell["suite"] == "calibration"
        assert cell["endpoint"] == "openai-realtime"
        found = cell["metrics"]["packet_error_ms"]
        assert (found["unit"], found["better"]) == ("ms", "lower")
        assert 0.25 <= found["low"] <= found["value"] <= found["high"] < 0.5
    assert {gate["verdict"] for gate in summary["gates"]} == {"not applicable"}


def test_a_clock_that_got_worse_is_a_regression_and_the_same_one_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = kept(tmp_path / "old", 0.25)
    assert main(["compare", str(old), str(kept(tmp_path / "same", 0.3))]) == 0
    assert "openai-realtime/calibration/sessions-50" in capsys.readouterr().out
    assert main(["compare", str(old), str(kept(tmp_path / "worse", 2.5))]) == 1
    told = capsys.readouterr().out
    assert "gate failed: audible_error_ms regression over 1 ms" in told
    assert "+2.25 [" in told  # a rounded millisecond would say nothing


def test_errors_of_either_sign_are_distances(tmp_path: Path) -> None:
    with folder_for(tmp_path, [1], Budget(1)) as folder:
        rows = [trial(1, case.name, 1, -3.0) for case in CASES]
        write(folder, rows, {row["session_tag"]: truth(row) for row in rows})
        scores = list(folder.rows("scores"))
    assert {(one["metric"], one["value"], one["detail"]["off_ms"]) for one in scores} == {
        ("packet_error_ms", 3.0, -3.0),
        ("audible_error_ms", 3.0, 3.0),
    }


def test_what_was_late_or_failed_or_unknown_to_the_truth_has_no_error(tmp_path: Path) -> None:
    with folder_for(tmp_path, [1], Budget(1)) as folder:
        late = {"latency_valid": False, "host": "here"}
        rows = [
            trial(1, CASES[0].name, 1, 0.5),
            trial(1, CASES[1].name, 1, 9.5, audit=late),
            trial(1, CASES[2].name, 1, 9.5, status="disconnected", audit={}),
            trial(1, CASES[3].name, 1, 9.5),
        ]
        known = {row["session_tag"]: truth(row) for row in rows[:3]}
        write(folder, rows, known)
        assert [one["value"] for one in folder.rows("scores")] == [0.5, 0.5]
        assert len(list(folder.rows("trials"))) == 4


def test_other_wires_and_other_numbers_of_sessions_have_nothing_in_common(tmp_path: Path) -> None:
    one, other = kept(tmp_path / "1", 0.2, (1,)), kept(tmp_path / "2", 0.2, (2,))
    assert main(["compare", str(one), str(other)]) == 2
    assert calibration_run.endpoint("openai-realtime", "commit") == "openai-realtime-commit"


def test_a_full_duplex_wire_is_gated_on_the_mark_that_it_has(tmp_path: Path) -> None:
    with folder_for(tmp_path, [1], Budget(1), "gpt-live") as folder:
        gates = folder.run["config"]["gate"]
    assert [gate["metric"] for gate in gates] == ["audible_error_ms"]


def test_a_time_limit_plans_nothing_so_that_nothing_is_unfinished(tmp_path: Path) -> None:
    paths = []
    for name in ("old", "new"):
        with folder_for(tmp_path / name, [1], Budget(10_000, seconds=1.0)) as folder:
            rows = [trial(1, case.name, 1, 0.2) for case in CASES[: 8 if name == "new" else 12]]
            known = {row["session_tag"]: truth(row) for row in rows}
            write(folder, rows, known)
            paths.append(folder.path)
    (cell,) = compare_runs(*paths).document["cells"]
    assert cell["metrics"]["packet_error_ms"]["n"] == 8


def test_a_real_one_is_reported_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = ["calibrate", "--sessions", "2,2", "--seconds", "1", "--out", str(tmp_path / "kept")]
    paths = []
    for _ in range(2):
        assert main(words) in (0, 3)  # 3: a busy machine was late in every trial
        paths.append(Path(capsys.readouterr().out.splitlines()[-1]))
    assert paths[0] != paths[1]
    for path in paths:
        assert path.parent == tmp_path / "kept"
        assert {"run.json", "calibration.json", "truth.jsonl"} <= {
            one.name for one in path.iterdir()
        }
        with RunFolder.open(path) as folder:
            for row in folder.rows("trials"):
                assert folder.attempt_paths(row).audio.is_file()
    assert main(["report", str(paths[0]), "--format", "md,html"]) == 0
    assert "openai-realtime" in (paths[0] / "report.md").read_text()
    found = compare_runs(*paths, force=True)
    assert found.document["cells"][0]["condition"] == "sessions-2"
