"""Reading, scoring and judging go on side by side, on every core, and say the same as in turn."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from chat_server import by_words, chat
from judge_world import bench, judge, values
from sample_run import Row, build, item, trial

from voxmeter.client import rule_scoring
from voxmeter.client.child import ChildDiedError
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.score import Progress, score_run
from voxmeter.client.worker import Worker
from voxmeter.scoring.asr import Transcript
from voxmeter.scoring.types import Unscored


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Held:
    """A transcriber whose replies come back when a test says so."""

    def __init__(self) -> None:
        self.futures: dict[str, Future[Transcript | Unscored]] = {}

    at_a_time = 1

    def record(self) -> Mapping[str, object]:
        return {"model": "fake", "model_hash": "aa", "settings": {}}

    def submit(
        self, audio: Path, key: str = "", language: str | None = None
    ) -> Future[Transcript | Unscored]:
        future: Future[Transcript | Unscored] = Future()
        self.futures[key.split("/")[2]] = future
        return future

    def back(self, name: str, text: str) -> None:
        self.futures[name].set_result(Transcript(text, "en"))


def spoken(tmp_path: Path, count: int, **fields: object) -> RunFolder:
    rows = [trial(f"q{n}") for n in range(count)]
    folder = build(tmp_path, [item(f"q{n}", **fields) for n in range(count)], rows)
    for row in rows:
        reply = folder.attempt_paths(row).reply
        reply.parent.mkdir(parents=True, exist_ok=True)
        reply.write_bytes(b"some sound")
    return folder


OPEN: dict[str, Any] = {"kind": "open", "reference": "a red ball", "rubric": "adu", "options": []}


def test_a_judge_is_asked_about_one_reply_while_another_is_still_being_read(
    tmp_path: Path,
) -> None:
    reader = InTurn(["q0"], of=2)

    def answer(body: Any) -> Any:
        if not reader.futures["q1"].done():
            reader.back("q1", "blue")  # it would never be read, were judges asked afterwards
        return by_words(body)

    with chat(answer) as service, spoken(tmp_path, 2, **OPEN) as folder:
        score_run(folder, bench(judge(service, concurrency=1)), transcriber=reader)
        assert values(folder, "judge_score:j") == {"q0": 7, "q1": 0}


def test_a_slow_reply_keeps_no_other_back(tmp_path: Path) -> None:
    reader = InTurn(["q1", "q2"], of=3)
    kept: list[str] = []

    def told(progress: Progress) -> None:
        if progress == Progress("transcribe", 2, 3):  # the first has not come back yet
            kept.extend(row["key"].split("/")[2] for row in folder.rows("transcripts"))
            reader.back("q0", "a ball")

    with spoken(tmp_path, 3) as folder:
        score_run(folder, bench(), transcriber=reader, progress=told)
        assert len(list(folder.rows("transcripts"))) == 3
    assert kept == ["q1", "q2"]


class InTurn(Held):
    """Gives replies back in an order of its own, once it has all of them.

    Args:
        order: Names; one that is missing is not given back here.
        of: How many it waits for.
    """

    def __init__(self, order: list[str], *, of: int) -> None:
        super().__init__()
        self._order, self._of = order, of

    def submit(
        self, audio: Path, key: str = "", language: str | None = None
    ) -> Future[Transcript | Unscored]:
        future = super().submit(audio, key, language)
        if len(self.futures) == self._of:
            for name in self._order:
                self.back(name, "a ball")
        return future


def texts(tmp_path: Path, count: int = 40) -> RunFolder:
    rows = [trial(f"q{n}", reply_channel="text", reply_text="ABCD"[n % 4]) for n in range(count)]
    return build(tmp_path, [item(f"q{n}") for n in range(count)], rows)


def rows_of(folder: RunFolder) -> list[Row]:
    return sorted(folder.rows("scores"), key=lambda row: (row["key"], row["metric"]))


def test_several_processes_find_what_one_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with texts(tmp_path / "a") as folder:
        alone = score_run(folder, bench())
        expected = rows_of(folder)
    monkeypatch.setattr(rule_scoring, "_WORTH_PROCESSES", 1)
    with texts(tmp_path / "b") as folder:
        together = score_run(folder, bench())
        assert rows_of(folder) == expected
        score_run(folder, bench())
        assert len(rows_of(folder)) == len(expected)
    assert together["cells"] == alone["cells"]


def test_a_scoring_process_that_dies_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died: list[int] = []

    def dies(_self: Worker, *_: object) -> Future[Any]:
        died.append(1)
        future: Future[Any] = Future()
        future.set_exception(ChildDiedError("exit status -9"))
        return future

    monkeypatch.setattr(rule_scoring, "_WORTH_PROCESSES", 1)
    monkeypatch.setattr(Worker, "submit", dies)
    with texts(tmp_path) as folder:
        summary = score_run(folder, bench())
    assert summary["cells"][0]["metrics"]["accuracy"]["value"] == 0.25
    assert len(died) == 6  # three batches, each tried twice
