"""What a link in somebody's run folder leads to is not written, sent to others or removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from merge_world import made, write_bench
from sample_run import build, item, score, trial

from voxmeter.client.cli import main
from voxmeter.client.runfolder import RunFolder

MANY = 51
"""Trials whose details lie in files beside the page."""

PRECIOUS = "one\nwithout a line end"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = [f"q{number}" for number in range(MANY)]
    rows = [trial(name, first_audible_ms=400.0) for name in names]
    items = [item(name) | {"kind": "open"} for name in names]
    with build(tmp_path, items, rows, [score(row) for row in rows]) as folder:
        return folder.path


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "precious"
    path.parent.mkdir()
    path.write_text(PRECIOUS)
    return path


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


@pytest.mark.parametrize("name", [".lock", "trials.jsonl", "scores.jsonl", "workers.jsonl"])
def test_no_link_is_written_through(
    name: str, run: Path, precious: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link(run / name, precious)
    assert f"{run / name}: is a link" in told(capsys, "report", str(run))
    assert precious.read_text() == PRECIOUS


def test_a_pipe_in_place_of_a_file_is_not_waited_for(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (".lock", "trials.jsonl"):
        (run / name).unlink()
        os.mkfifo(run / name)
        assert f"{name}: is no regular file" in told(capsys, "report", str(run))
        (run / name).unlink()


@pytest.mark.parametrize("place", ["audio", "audio/cell", "events/cell"])
def test_what_a_folder_elsewhere_holds_is_not_removed_as_left_over(
    place: str, run: Path, precious: Path
) -> None:
    link(run / place, precious.parent)
    own = run / "events" / "own" / "left.jsonl"
    own.parent.mkdir(parents=True)
    own.touch()
    with RunFolder.open(run, write=True) as folder:
        assert folder.remove_orphans() == 1
    assert precious.read_text() == PRECIOUS


@pytest.mark.parametrize("name", [".report.html.part", "report_data"])
def test_a_page_does_not_go_where_a_link_leads(
    name: str, run: Path, precious: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = precious.parent / "999.js"
    part.touch()
    link(run / name, precious.parent if name == "report_data" else precious)
    status = main(["report", str(run), "--format", "html"])
    assert status == (2 if name == "report_data" else 0), capsys.readouterr().err
    assert precious.read_text() == PRECIOUS
    assert set(precious.parent.iterdir()) == {precious, part}


def test_a_sound_that_leads_to_itself_is_none(run: Path) -> None:
    with RunFolder.open(run) as folder:
        audio = folder.attempt_paths(next(folder.newest_trials())).audio
    link(audio, audio)
    assert main(["report", str(run), "--format", "html"]) == 0


def test_a_study_shows_nobody_what_is_none_of_the_runs(
    run: Path, precious: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with RunFolder.open(run) as folder:
        reply = folder.attempt_paths(next(folder.newest_trials())).reply
    link(reply, precious)
    words = ("judge", "collect", str(run), "--embed", "-o", str(tmp_path / "study"))
    assert f"{reply}: leads out of the run folder" in told(capsys, *words)
    assert not (tmp_path / "study").exists()


def test_a_merge_takes_nothing_that_is_none_of_the_parts(
    precious: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bench = write_bench(tmp_path / "bench")
    parts = [made(bench, f"p{n}", "--shard", f"{n}/2", "--trials", "1") for n in (1, 2)]
    log = next((parts[1] / "events").rglob("*.jsonl"))
    link(log, precious)
    capsys.readouterr()
    words = ("merge", *map(str, parts), "-o", str(tmp_path / "all"))
    assert f"{log}: leads out of the run folder" in told(capsys, *words)
    assert not (tmp_path / "all").exists()
