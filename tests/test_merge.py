"""Parts of a run become the run: nothing lost, nothing twice, and figures as if it were one."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from merge_world import BENCH, ITEMS, Json, files, made, rows, summary, write_bench

from voxmeter.client.cli import main
from voxmeter.client.folder_lock import locked
from voxmeter.client.merge import merge
from voxmeter.client.runfolder import RunFolder
from voxmeter.endpoints.errors import UserError

PARTS = 3


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bench(tmp_path_factory.mktemp("merge"))


@pytest.fixture(scope="module")
def whole(bench: Path) -> Path:
    return made(bench, "whole")


@pytest.fixture(scope="module")
def streamed(bench: Path) -> list[Path]:
    return [
        made(bench, f"part{number}", "--shard", f"{number}/{PARTS}")
        for number in range(1, PARTS + 1)
    ]


@pytest.fixture
def parts(streamed: list[Path], tmp_path: Path) -> list[Path]:
    """Parts that a test may change."""
    copies = [tmp_path / f"part{number}" for number in range(1, PARTS + 1)]
    for source, copy in zip(streamed, copies, strict=True):
        shutil.copytree(source, copy)
    return copies


def merged(parts: list[Path], out: Path, *, status: int = 0) -> Path:
    assert main(["merge", *map(str, parts), "-o", str(out)]) == status
    return out


def change(path: Path, edit: Callable[[Json], None]) -> None:
    run = json.loads((path / "run.json").read_text())
    edit(run)
    (path / "run.json").write_text(json.dumps(run))


def rewrite(path: Path, changed: list[Json]) -> None:
    text = "".join(json.dumps(row) + "\n" for row in changed)
    (path / "trials.jsonl").write_text(text)


def nothing_left(out: Path) -> None:
    assert not out.exists()
    assert not [entry for entry in out.parent.iterdir() if "merging" in entry.name]


# Parts


def test_an_item_is_in_one_part_with_all_its_trials_conditions_and_endpoints(
    whole: Path, streamed: list[Path]
) -> None:
    keys = [{row["key"] for row in rows(part, "trials")} for part in streamed]
    assert set.union(*keys) == {row["key"] for row in rows(whole, "trials")}
    assert sum(map(len, keys)) == ITEMS * 2 * 2 * 2  # disjoint
    for part in streamed:
        asked = rows(part, "trials")
        items = {row["item"] for row in asked}
        assert items
        assert len(asked) == len(items) * 2 * 2 * 2


def test_all_parts_know_the_whole(whole: Path, streamed: list[Path]) -> None:
    items = (whole / "items.jsonl").read_bytes()
    planned = json.loads((whole / "run.json").read_text())["planned"]
    for part in streamed:
        run = json.loads((part / "run.json").read_text())
        assert (part / "items.jsonl").read_bytes() == items
        assert run["planned_whole"] == planned
        own = sum(cell["planned"] for cell in run["planned"])
        assert own == len(rows(part, "trials"))


def test_a_resumed_part_stays_its_part(parts: list[Path], bench: Path) -> None:
    before = rows(parts[1], "trials")
    rewrite(parts[1], before[: len(before) // 2])
    assert main(["run", "--resume", str(parts[1]), "--quiet"]) == 0
    after = rows(parts[1], "trials")
    assert sorted(row["key"] for row in after) == sorted(row["key"] for row in before)
    assert not (parts[1] / "summary.json").exists()


# The whole


def test_a_merged_run_is_the_run_that_was_not_cut(
    whole: Path, parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = merged(parts, tmp_path / "all")
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.splitlines()[0].startswith("112 of 112 planned trials, 112 attempts with ")
    assert told.out.splitlines()[-1] == str(out)
    assert main(["score", str(out), "--quiet"]) == 0
    assert summary(out) == summary(whole)
    assert files(out) == files(whole)
    assert (out / "items.jsonl").read_bytes() == (whole / "items.jsonl").read_bytes()
    assert (out / "report.md").is_file()
    assert (out / "report.html").is_file()
    run = json.loads((out / "run.json").read_text())
    assert run["run"] == "all"
    assert run["selection"]["shard"] is None
    assert run["parts"]["had"] == [1, 2, 3]
    assert [one["shard"] for one in run["parts"]["runs"]] == [[1, 3], [2, 3], [3, 3]]


def test_attempts_stand_in_the_order_in_which_they_were_made(
    parts: list[Path], tmp_path: Path
) -> None:
    for number, part in enumerate(parts):
        changed = rows(part, "trials")
        for place, row in enumerate(changed):
            row["started_at"] = f"2026-01-01T00:00:{place:02}.{number}00+00:00"
        rewrite(part, changed)
    started = [row["started_at"] for row in rows(merged(parts, tmp_path / "all"), "trials")]
    assert started == sorted(started)


def test_scores_of_parts_are_kept_and_are_those_of_the_whole(
    whole: Path, parts: list[Path], tmp_path: Path
) -> None:
    for part in parts:
        assert main(["score", str(part), "--quiet"]) == 0
    out = merged(parts, tmp_path / "all")
    kept = (out / "scores.jsonl").read_bytes()
    assert kept.count(b"\n") == len(rows(whole, "scores"))
    assert main(["score", str(out), "--quiet"]) == 0
    assert (out / "scores.jsonl").read_bytes() == kept
    assert summary(out) == summary(whole)


def test_a_part_that_is_missing_is_told_and_a_resume_asks_what_it_had(
    whole: Path, parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = merged([parts[0], parts[2]], tmp_path / "all")
    had = len(rows(out, "trials"))
    error = capsys.readouterr().err
    assert f"missing: 2/3; {112 - had} of 112 trials are not here; merge it as well" in error
    assert f"voxmeter run --resume {out}" in error
    assert main(["score", str(out), "--quiet"]) == 0
    found = summary(out)
    assert sum(cell["planned"] for cell in found["cells"]) == 112
    assert {one["code"] for one in found["warnings"]} >= {"incomplete"}
    assert main(["run", "--resume", str(out), "--quiet"]) == 0
    assert summary(out) == summary(whole)


def test_a_merged_run_can_be_merged_with_the_rest(
    whole: Path, parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = merged(parts[:2], tmp_path / "some")
    capsys.readouterr()
    out = merged([parts[2], some], tmp_path / "all")
    assert capsys.readouterr().err == ""
    assert main(["score", str(out), "--quiet"]) == 0
    assert summary(out) == summary(whole)
    assert json.loads((out / "run.json").read_text())["parts"]["had"] == [1, 2, 3]


def test_what_is_told_of_a_clusters_workers_is_kept(parts: list[Path], tmp_path: Path) -> None:
    told = [{"worker": f"w{n}", "host": "h", "what": "started"} for n in range(2)]
    for part, row in zip(parts, told, strict=False):
        (part / "workers.jsonl").write_text(json.dumps(row) + "\n")
    assert rows(merged(parts, tmp_path / "all"), "workers") == told


# What is there twice


def test_what_is_known_of_workers_goes_with_their_trials(parts: list[Path], tmp_path: Path) -> None:
    row = {"worker": "a-1", "host": "a", "what": "began"}
    (parts[1] / "workers.jsonl").write_text(json.dumps(row) + "\n")
    assert rows(merged(parts, tmp_path / "all"), "workers") == [row]


def test_a_copy_of_a_part_adds_nothing(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(parts[0], tmp_path / "copy")
    once = merged(parts, tmp_path / "once")
    capsys.readouterr()
    out = merged([*parts, tmp_path / "copy"], tmp_path / "all")
    number = len(rows(parts[0], "trials"))
    assert f"{number} trials are in several parts" in capsys.readouterr().err
    assert {row["key"]: row for row in rows(out, "trials")} == {
        row["key"]: row for row in rows(once, "trials")
    }
    assert len(rows(out, "trials")) == len(rows(once, "trials"))
    assert files(out) == files(once)


def test_of_a_trial_that_two_parts_have_the_newest_finished_attempt_counts(
    parts: list[Path], tmp_path: Path
) -> None:
    other = tmp_path / "again"
    shutil.copytree(parts[0], other)
    first, again = rows(parts[0], "trials"), rows(other, "trials")
    for number, row in enumerate(again):
        row |= {"session_tag": f"again{number}", "started_at": "2099-01-01T00:00:00.000+00:00"}
        row["reply_text"] = "from the other"
    again[0]["status"] = "disconnected"  # newer, but no result
    rewrite(other, again)
    (other / "transcripts.jsonl").write_text(
        json.dumps(
            {"key": again[1]["key"], "attempt": 1, "text": "new", "model_hash": "m", "settings": {}}
        )
        + "\n"
    )
    out = merged([other, parts[0]], tmp_path / "all")
    with RunFolder.open(out) as folder:
        newest = {row["key"]: row for row in folder.newest_trials()}
        every = list(folder.rows("trials"))
        assert all(folder.attempt_paths(row).events.is_file() for row in every)
        (heard,) = folder.rows("transcripts")
    assert len(every) == 2 * len(first)
    kept = newest[again[0]["key"]]
    assert (kept["attempt"], kept["session_tag"]) == (2, first[0]["session_tag"])
    for row in again[1:]:
        found = newest[row["key"]]
        assert (found["attempt"], found["reply_text"]) == (2, "from the other")
    assert (heard["key"], heard["attempt"]) == (again[1]["key"], 2)


def test_a_later_failed_attempt_does_not_take_the_result_that_two_copies_have(
    parts: list[Path], tmp_path: Path
) -> None:
    copy, failed = tmp_path / "copy", tmp_path / "failed"
    shutil.copytree(parts[0], copy)
    shutil.copytree(parts[0], failed)
    later = rows(failed, "trials")
    for number, row in enumerate(later):
        row |= {"session_tag": f"later{number}", "started_at": "2099-01-01T00:00:00.000+00:00"}
        row["status"] = "disconnected"
    rewrite(failed, later)
    out = merged([parts[0], copy, failed], tmp_path / "all")
    with RunFolder.open(out) as folder:
        newest = {row["key"]: row for row in folder.newest_trials()}
        assert len(list(folder.rows("trials"))) == 2 * len(later)
    for row in rows(parts[0], "trials"):
        kept = newest[row["key"]]
        assert (kept["attempt"], kept["status"]) == (2, "ok")
        assert kept["session_tag"] == row["session_tag"]


# What is refused


def refused(parts: list[Path], out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    merged(parts, out, status=2)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    nothing_left(out)
    return error


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda run: run["config"]["run"].update(seed=6), "config.run.seed is 6, not 5"),
        (lambda run: run.update(voxmeter="0.0.1"), 'voxmeter is "0.0.1", not'),
        (lambda run: run["selection"].update(limit=3), "selection.limit is 3, not null"),
        (lambda run: run["selection"].update(shard=[2, 4]), "parts is 4, not 3"),
        (lambda run: run["suites"].update(mine="ff"), 'suites.mine is "ff", not'),
        (lambda run: run.update(extractor="0"), 'extractor is "0", not'),
        (lambda run: run["config"]["endpoint"].pop(), "config.endpoint[1].name is absent, not"),
    ],
)
def test_parts_of_different_runs_are_refused_and_told_apart(
    edit: Callable[[Json], None],
    words: str,
    parts: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(parts[1], edit)
    error = refused(parts, tmp_path / "all", capsys)
    assert f"{parts[1]}: is of another run than {parts[0]}: " in error
    assert words in error


def test_where_a_part_was_run_does_not_tell_it_apart(parts: list[Path], tmp_path: Path) -> None:
    def elsewhere(run: Json) -> None:
        run["config"]["run"] |= {"out": "/data/runs", "name": "two"}
        run["config"]["suite"][0]["path"] = "/data/items.jsonl"

    change(parts[1], elsewhere)
    assert (merged(parts, tmp_path / "all") / "trials.jsonl").is_file()


def test_other_items_are_refused(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = rows(parts[2], "items")
    items[0]["reference"] = ["D"]
    (parts[2] / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items))
    assert "items.jsonl has other items" in refused(parts, tmp_path / "all", capsys)


def test_a_part_that_is_still_written_to_is_refused(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(parts[1]):
        error = refused(parts, tmp_path / "all", capsys)
    assert f"{parts[1]}: process {os.getpid()} is writing to this run" in error
    assert merged(parts, tmp_path / "all").is_dir()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_part_that_may_only_be_read_is_merged_unless_it_is_still_written_to(
    number: int,
    parts: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = Path.open

    def read_only(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if path.parent in parts and mode != "r" and "b" not in mode:
            raise OSError(number, os.strerror(number), str(path))
        return opened(path, mode, *rest, **more)

    (parts[0] / ".lock").unlink(missing_ok=True)  # nobody ever wrote here
    with locked(parts[1]):
        monkeypatch.setattr(Path, "open", read_only)
        error = refused(parts, tmp_path / "all", capsys)
    assert f"{parts[1]}: process {os.getpid()} is writing to this run" in error
    assert merged(parts, tmp_path / "all").is_dir()
    assert not (parts[0] / ".lock").exists()


def test_a_run_that_was_not_cut_is_no_part(
    whole: Path, parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is no part of a run" in refused([parts[0], whole], tmp_path / "all", capsys)
    assert "no such folder" in refused([tmp_path / "nowhere"], tmp_path / "all", capsys)
    twice = [parts[0], parts[0].parent / "." / parts[0].name]
    assert "is given twice" in refused(twice, tmp_path / "all", capsys)


def test_what_is_there_is_not_overwritten(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "all"
    out.mkdir()
    merged(parts, out, status=2)
    assert f"{out}: is there already" in capsys.readouterr().err
    assert list(out.iterdir()) == []


def test_a_torn_last_line_is_left_out_and_a_damaged_one_is_refused(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (parts[0] / "trials.jsonl").open("a") as stream:
        stream.write('{"key": "a/mi')
    before = (parts[0] / "trials.jsonl").read_bytes()
    assert len(rows(merged(parts, tmp_path / "torn"), "trials")) == 112
    assert "torn" in capsys.readouterr().err
    assert (parts[0] / "trials.jsonl").read_bytes() == before  # a part is not changed
    with (parts[0] / "trials.jsonl").open("a") as stream:
        stream.write('\n{"key": 1}\n')
    assert "trials.jsonl:" in refused(parts, tmp_path / "all", capsys)


@pytest.mark.parametrize(
    ("file", "damaged"),
    [
        ("trials", {"key": "k", "attempt": 1, "status": "ok"}),
        ("trials", {"key": ["k"], "attempt": 1, "status": "ok"}),
        ("scores", {"key": ["k"], "attempt": 1}),
        ("scores", {"key": "k", "attempt": {}}),
        ("transcripts", {"key": "k"}),
    ],
)
def test_rows_of_another_kind_are_one_line(
    file: str,
    damaged: Json,
    parts: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rest = dict.fromkeys(("metric", "version", "value", "unscored", "detail"), None)
    with (parts[1] / f"{file}.jsonl").open("a") as stream:
        stream.write(json.dumps(damaged | rest) + "\n")
    assert f"{file}.jsonl" in refused(parts, tmp_path / "all", capsys)


@pytest.mark.parametrize(
    "damage",
    [
        {"parts": {"of": 10**9, "had": [10**9]}},
        {"parts": {"of": 3, "had": ["x"]}},
        {"parts": {"of": 3, "had": [4]}},
        {"parts": {"of": 3, "had": [1], "runs": [3]}},
        {"parts": {"of": 3, "had": [1], "runs": [{"machine": "here"}]}},
        {"parts": [3]},
        {"selection": ["shard"]},
        {"selection": {"shard": [3, 2]}},
        {"selection": {"shard": [1, 10**9]}},
        {"planned_whole": [3]},
        {"planned_whole": {"endpoint": "a"}},
    ],
    ids=str,
)
def test_what_parts_say_wrongly_of_themselves_is_one_line(
    damage: Json, parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in parts[:2]:
        change(part, lambda run: run.update({"selection": None} | damage))
    assert f"{parts[0]}/run.json: is damaged: " in refused(parts[:2], tmp_path / "all", capsys)


# Whole or not at all


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
def test_a_merge_that_is_cut_off_leaves_nothing(
    stop: BaseException, parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, made_so_far = os.link, 0

    def cut(source: Any, target: Any) -> None:
        nonlocal made_so_far
        made_so_far += 1
        if made_so_far == 20:
            raise stop
        link(source, target)

    monkeypatch.setattr(os, "link", cut)
    with pytest.raises((KeyboardInterrupt, UserError)):
        merge(parts, tmp_path / "all")
    nothing_left(tmp_path / "all")
    monkeypatch.undo()
    assert merge(parts, tmp_path / "all").had == 112


def test_what_a_killed_merge_left_is_cleared(parts: list[Path], tmp_path: Path) -> None:
    left = tmp_path / ".all.merging"
    (left / "audio" / "old").mkdir(parents=True)
    (left / "audio" / "old" / "x.flac").write_bytes(b"x")
    (left / "trials.jsonl").write_text("torn")
    out = merged(parts, tmp_path / "all")
    assert not (out / "audio" / "old").exists()
    assert len(rows(out, "trials")) == 112
    assert not left.exists()


def test_two_merges_to_one_name_do_not_meet(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".all.merging").mkdir()
    with locked(tmp_path / ".all.merging"):
        merged(parts, tmp_path / "all", status=2)
    assert "is writing to this run" in capsys.readouterr().err


def test_files_of_another_disk_are_copied(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = merged(parts, tmp_path / "linked")

    def other_disk(source: Any, target: Any) -> None:
        raise OSError(errno.EXDEV, "another disk")

    monkeypatch.setattr(os, "link", other_disk)
    copied = merged(parts, tmp_path / "copied")
    assert files(copied) == files(linked)
    one = sorted(files(copied))[0]
    assert (copied / one).read_bytes() == (linked / one).read_bytes()
    assert (copied / one).stat().st_nlink == 1
    assert (linked / one).stat().st_nlink == 2


# Machines


def test_parts_of_several_machines_are_told_apart_in_the_report(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = rows(parts[1], "trials")
    for row in changed:
        row["audit"]["host"] = "elsewhere"
    rewrite(parts[1], changed)
    change(parts[1], lambda run: run["machine"].update(host="elsewhere"))
    out = merged(parts, tmp_path / "all")
    assert main(["score", str(out), "--quiet"]) == 0
    run = json.loads((out / "run.json").read_text())
    assert run["calibration"] == {}  # that of one machine is not the other's
    found = json.loads((out / "summary.json").read_text())
    assert len(found["audit"]["hosts"]) == 2
    assert "elsewhere" in {row["host"] for row in found["audit"]["by_host"]}
    (warning,) = [one for one in found["warnings"] if one["code"] == "mixed-hosts"]
    assert "trials ran on 2 machines" in warning["text"]
    assert "## By machine" in (out / "report.md").read_text()


def test_a_bench_with_more_parts_than_items_has_empty_parts_that_merge(tmp_path: Path) -> None:
    bench = write_bench(tmp_path)
    bench.write_text(BENCH.replace("trials = 2", "trials = 1"))
    cut = [made(bench, f"p{n}", "--shard", f"{n}/4", "--limit", "2") for n in range(1, 5)]
    assert (
        min(len(rows(part, "trials")) if (part / "trials.jsonl").exists() else 0 for part in cut)
        == 0
    )
    assert merge(cut, tmp_path / "all").had == 2 * 2 * 2
