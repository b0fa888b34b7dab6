"""Going on with a run folder that somebody has damaged: one line, and nothing is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import voxmeter
from voxmeter.client import config, run
from voxmeter.client.cli import main
from voxmeter.client.run import Prepared
from voxmeter.client.runfolder import RunFolder
from voxmeter.endpoints.errors import UserError


def prepared(limit: int | None = None, shard: tuple[int, int] | None = None) -> Prepared:
    tables = {
        "run": {"out": "runs"},
        "endpoint": [{"name": "m", "builtin": "metronome"}],
        "suite": [{"kind": "demo"}],
    }
    return run.prepare(config.parse(tables, "bench.toml"), limit=limit, shard=shard)


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with run.create(prepared(limit=2), {"limit": 2, "only": None, "shard": None}) as folder:
        return folder.path.absolute()


def changed(folder: Path, **fields: Any) -> None:
    file = folder / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def test_a_run_goes_on_with_what_it_began_with(begun: Path) -> None:
    again, folder = run.reopen(begun)
    folder.close()
    assert [item.item for item in again.plan.items()] == [
        item.item for item in prepared(limit=2).plan.items()
    ]


def test_a_part_of_a_run_stays_that_part(begun: Path) -> None:
    changed(begun, selection={"shard": [2, 3]})
    again, folder = run.reopen(begun)
    folder.close()
    assert len(again.plan) == len(prepared(shard=(2, 3)).plan)


def test_a_run_begun_without_a_selection_is_the_whole(begun: Path) -> None:
    changed(begun, selection=None)
    again, folder = run.reopen(begun)
    folder.close()
    assert len(again.plan) == len(prepared().plan)


def test_a_run_that_cannot_go_on_is_not_kept_locked(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: RunFolder, *_: object) -> None:
        raise UserError("disk", "no space left", "free some")

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "remove_orphans", full)
        patch.setattr(RunFolder, "write_items", full)
        with pytest.raises(UserError) as kept:
            run.reopen(begun)
        with pytest.raises(UserError) as also_kept:
            run.create(prepared(limit=2), {})
    for folder in begun.parent.iterdir():
        RunFolder.open(folder, write=True).close()
    assert kept.value.found == also_kept.value.found == "no space left"


@pytest.mark.parametrize(
    "fields",
    [
        {"config": None},
        {"config": []},
        {"config": {}},
        {"config": {"endpoint": 3}},
        {"selection": 3},
        {"selection": {"shard": [0, 0]}},
        {"selection": {"shard": [1]}},
        {"selection": {"shard": "x"}},
        {"selection": {"only": 3}},
        {"selection": {"only": {"endpoint": 5}}},
        {"selection": {"only": {"endpoint": [["m"]]}}},
        {"selection": {"shard": [1, 2, 3]}},
        {"selection": {"limit": -1}},
        {"selection": {"limit": True}},
        {"selection": {"limit": "x"}},
    ],
    ids=str,
)
def test_a_damaged_record_is_one_line(
    fields: dict[str, Any], begun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(begun, **fields)
    assert main(["run", "--resume", str(begun)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    with pytest.raises(UserError):
        voxmeter.run_bench(resume=begun)


def test_a_suite_that_is_gone_is_one_line(begun: Path) -> None:
    found = json.loads((begun / "run.json").read_text())["config"]
    found["suite"] = [{"kind": "jsonl", "name": "demo", "path": "gone.jsonl"}]
    changed(begun, config=found)
    with pytest.raises(UserError, match=r"gone\.jsonl"):
        run.reopen(begun)


def test_what_a_killed_start_left_out_is_written_again(begun: Path) -> None:
    whole = (begun / "items.jsonl").read_text()
    (begun / "items.jsonl").unlink()
    _, folder = run.reopen(begun)
    folder.close()
    assert (begun / "items.jsonl").read_text() == whole


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--limit", "x"], "not a whole number"),
        (["--trials", "1.5"], "not a whole number"),
        (["--concurrency", "0"], "too small"),
    ],
)
def test_a_number_that_is_none_is_one_line_in_plain_words(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *words]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "_" not in error
