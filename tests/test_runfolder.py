"""The run folder: whole files, whole rows, one writer, nothing lost and nothing twice."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from voxmeter.client import keys
from voxmeter.client.redaction import MARK, Redactor
from voxmeter.client.runfolder import Newest, RunFolder
from voxmeter.endpoints.errors import UserError

SECRET = "sk-very-secret-1"  # noqa: S105 - a made-up one


def _trial(item: str, status: str = "ok", attempt: int = 1) -> dict[str, Any]:
    return {
        "key": keys.key("mine", "demo", item, "clean", 1),
        "endpoint": "mine",
        "suite": "demo",
        "item": item,
        "condition": "clean",
        "trial": 1,
        "turn": None,
        "attempt": attempt,
        "status": status,
    }


@contextmanager
def _dying(folder: RunFolder, target: Path) -> Iterator[None]:
    """A write that has got half way when what the block does happens."""
    with folder.replacing(target) as partial:
        partial.write_text("half")
        yield


def _key(item: str) -> str:
    return str(_trial(item)["key"])


def _created(parent: Path, **run: object) -> RunFolder:
    return RunFolder.create(parent, "my run", run, Redactor([SECRET]))


def test_a_new_folder_is_named_after_run_time_and_chance_and_says_its_schema(
    tmp_path: Path,
) -> None:
    with _created(tmp_path / "deep" / "runs", seeds={"run": 0}) as folder:
        assert re.fullmatch(r"my%20run-\d{8}-\d{6}-[0-9a-f]{4}", folder.path.name)
    run = json.loads((folder.path / "run.json").read_text())
    assert run == {"schema": 1, "run": folder.path.name, "seeds": {"run": 0}}
    assert RunFolder.open(folder.path).run == run


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "{}: not a run folder: it has no run.json; give a run's own folder"),
        (
            '{"schema": 2}',
            "{}/run.json: schema 2 is newer than 1, the newest known here; "
            "pip install --upgrade voxmeter",
        ),
        (
            '{"schema": ',
            "{}/run.json: is damaged: no JSON object with a schema; restore the file",
        ),
        ("[]", "{}/run.json: is damaged: no JSON object with a schema; restore the file"),
    ],
)
def test_what_is_no_run_folder_is_one_line(tmp_path: Path, content: str | None, line: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(UserError) as caught:
        RunFolder.open(tmp_path)
    assert str(caught.value) == line.format(tmp_path)


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gone: no such folder; give the path that"):
        RunFolder.open(tmp_path / "gone")


def test_only_one_process_writes_and_the_lock_ends_with_it(tmp_path: Path) -> None:
    with _created(tmp_path) as folder:
        with pytest.raises(UserError) as caught:
            RunFolder.open(folder.path, write=True)
        assert f"process {os.getpid()} is writing to this run" in str(caught.value)
        RunFolder.open(folder.path)  # readers need no lock
    RunFolder.open(folder.path, write=True).close()


def test_a_folder_opened_for_reading_is_not_written_to(tmp_path: Path) -> None:
    _created(tmp_path).close()
    folder = RunFolder.open(next(tmp_path.iterdir()))
    assert not folder.writable
    with pytest.raises(RuntimeError, match="opened for reading"):
        folder.append("trials", _trial("q1"))


def test_everything_written_is_redacted(tmp_path: Path) -> None:
    with _created(tmp_path, config={"url": f"wss://host/?key={SECRET}"}) as folder:
        folder.append("trials", {**_trial("q1"), "fault": f"key {SECRET} is wrong"})
        folder.append("scores", {"detail": {"nested": [SECRET]}})
        folder.write_items([{"suite": "demo", "item": "q1", "question": SECRET}])
        folder.replace("report.md", f"# {SECRET}\n")
        folder.write(folder.attempt_paths(_trial("q1")).events, f'{{"text":"{SECRET}"}}\n')
    written = [path.read_text() for path in folder.path.rglob("*") if path.is_file()]
    assert len(written) == 7
    assert not [text for text in written if SECRET in text]
    assert sum(text.count(MARK) for text in written) == 6


def test_the_newest_attempt_counts_and_only_transport_failures_come_again(
    tmp_path: Path,
) -> None:
    """Case ST-05: an item that fails twice in transport, then answers."""
    with _created(tmp_path) as folder:
        for status, attempt in (("disconnected", 1), ("refused", 2), ("ok", 3)):
            folder.append("trials", _trial("q1", status, attempt))
        for item, status in (
            ("q2", "no_reply"),
            ("q3", "timeout"),
            ("q4", "truncated"),
            ("q5", "protocol_error"),
            ("q6", "disconnected"),
            ("q7", "refused"),
            ("q8", "bad_clip"),
        ):
            folder.append("trials", _trial(item, status))
        newest = folder.newest()
        assert newest[_key("q1")] == Newest(3, finished=True)
        again = {key for key, one in newest.items() if not one.finished}
        assert again == {_key("q6"), _key("q7"), _key("q8")}
        rows = list(folder.newest_trials())
    assert [(row["item"], row["attempt"]) for row in rows][:2] == [("q1", 3), ("q2", 1)]
    assert len(rows) == 8


def test_of_two_rows_of_one_attempt_the_last_counts_everywhere(tmp_path: Path) -> None:
    with _created(tmp_path) as folder:
        folder.append("trials", _trial("q1", "ok"))
        folder.append("trials", _trial("q1", "refused"))
        assert folder.newest() == {_key("q1"): Newest(1, finished=False)}
        assert [row["status"] for row in folder.newest_trials()] == ["refused"]


def test_a_row_without_a_key_is_one_line(tmp_path: Path) -> None:
    with _created(tmp_path) as folder:
        folder.append("trials", {"attempt": 1, "status": "ok"})
        with pytest.raises(UserError, match="jsonl:1: has no key; restore"):
            folder.newest()


def test_a_key_of_another_kind_is_one_line(tmp_path: Path) -> None:
    with _created(tmp_path) as folder:
        folder.append("trials", {**_trial("q1"), "attempt": "first"})
        with pytest.raises(UserError, match="jsonl:1: its attempt is not a whole number; restore"):
            folder.newest()


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (
            lambda folder: list(folder.rows("scores")),
            r"scores.jsonl:1: has no attempt, detail, key",
        ),
        (
            lambda folder: list(folder.rows("transcripts")),
            r"transcripts.jsonl:1: has no attempt, key",
        ),
        (lambda folder: list(folder.items()), r"items.jsonl:1: has no suite"),
        (lambda folder: list(folder.newest_trials()), r"jsonl:1: has no condition, endpoint"),
        (lambda folder: folder.remove_orphans(), r"jsonl:1: has no condition, endpoint"),
    ],
)
def test_a_row_that_lacks_what_readers_need_is_one_line(
    read: Callable[[RunFolder], object], words: str, tmp_path: Path
) -> None:
    with _created(tmp_path) as folder:
        folder.append("scores", {"metric": "accuracy"})
        folder.append("transcripts", {"text": "B."})
        folder.append("trials", {"key": "k", "attempt": 1, "status": "ok"})
        folder.write_items([{"item": "q1"}])
        with pytest.raises(UserError, match=words):
            read(folder)


def test_a_folder_that_could_not_be_made_whole_is_not_kept_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: RunFolder, *_: object) -> None:
        raise UserError("disk", "no space left", "free some")

    monkeypatch.setattr(RunFolder, "replace", full)
    with pytest.raises(UserError) as kept:
        _created(tmp_path)
    monkeypatch.undo()
    (folder,) = tmp_path.iterdir()
    (folder / "run.json").write_text('{"schema": 1}')
    monkeypatch.setattr(RunFolder, "_tidy", full)
    with pytest.raises(UserError) as also_kept:
        RunFolder.open(folder, write=True)
    monkeypatch.undo()
    RunFolder.open(folder, write=True).close()
    assert kept.value.found == also_kept.value.found == "no space left"


def test_files_of_an_attempt_lie_where_the_contract_says(tmp_path: Path) -> None:
    with _created(tmp_path) as folder:
        paths = folder.attempt_paths({**_trial("q/1", attempt=2), "turn": 3})
    inside = [str(path.relative_to(folder.path)) for path in (paths.events, paths.audio)]
    assert inside == [
        "events/mine~demo~clean/q%2F1~1~3~2.jsonl",
        "audio/mine~demo~clean/q%2F1~1~3~2.flac",
    ]
    assert paths.reply.name == "q%2F1~1~3~2.reply.flac"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    """Case ST-08: a report that dies in the middle leaves the old one."""
    with _created(tmp_path) as folder:
        folder.replace("summary.json", "old")
        target = folder.path / "summary.json"
        with pytest.raises(KeyError), _dying(folder, target):
            raise KeyError
        assert target.read_text() == "old"
        with pytest.raises(UserError) as caught, folder.replacing(target):
            raise OSError(errno.ENOSPC, "No space left on device")
        assert str(caught.value) == (
            f"{target}: no space left on the disk; free some, then resume the run"
        )
        assert target.read_text() == "old"
        assert list((folder.path / ".partial").iterdir()) == []
        folder.replace("summary.json", "new")
        assert target.read_text() == "new"
    assert sorted(path.name for path in folder.path.iterdir()) == [
        ".lock",
        "run.json",
        "summary.json",
    ]


def test_what_a_killed_attempt_left_is_removed_and_the_rest_stays(tmp_path: Path) -> None:
    with _created(tmp_path) as folder:
        for item in ("q1", "q2"):
            paths = folder.attempt_paths(_trial(item))
            for path in (paths.events, paths.audio, paths.reply):
                folder.write(path, "x")
        folder.append("trials", _trial("q1"))
    (folder.path / ".partial").mkdir()
    (folder.path / ".partial" / "1234-q3~1~1.flac").write_text("half")
    with RunFolder.open(folder.path, write=True) as folder:
        assert not (folder.path / ".partial").exists()
        assert folder.remove_orphans() == 3
        left = folder.attempt_paths(_trial("q1"))
        assert left.events.exists()
        assert left.audio.exists()
        assert left.reply.exists()
        assert not folder.attempt_paths(_trial("q2")).audio.exists()


def test_items_are_written_once_and_read_back_lazily(tmp_path: Path) -> None:
    items = [{"suite": "demo", "item": name, "question": "Größe?"} for name in ("a", "B")]
    with _created(tmp_path) as folder:
        assert list(folder.items()) == []
        folder.write_items(items)
        assert list(folder.items()) == items


def test_items_that_one_disk_would_mix_up_are_refused_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _created(tmp_path) as folder:
        twins = [{"suite": "demo", "item": "A"}, {"suite": "demo", "item": "a"}]
        folder.write_items(twins)
        monkeypatch.setattr(RunFolder, "_ignores_case", lambda _: True)
        with pytest.raises(UserError, match="'A' and 'a' differ in upper and lower case alone"):
            folder.write_items(twins)
        assert len(list(folder.items())) == 2


def test_a_place_that_may_not_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="check the path"):
        _created(tmp_path / "file" / "runs")


def test_a_run_cut_at_any_byte_resumes_with_nothing_lost_and_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [f"q{number}" for number in range(3)]
    with _created(tmp_path) as folder:
        for item in items:
            folder.append("trials", _trial(item))
    trials = folder.path / "trials.jsonl"
    whole = trials.read_bytes()
    for size in range(len(whole) + 1):
        trials.write_bytes(whole[:size])
        with RunFolder.open(folder.path, write=True) as again:
            done = again.newest()
            for item in items:
                if _key(item) not in done:
                    again.append("trials", _trial(item))
            assert [row["item"] for row in again.newest_trials()] == items
        assert trials.read_bytes() == whole
    assert "torn" in capsys.readouterr().err


_WRITER = """
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from voxmeter.client.runfolder import RunFolder

folder = RunFolder.open(Path(sys.argv[1]), write=True)
done = len(list(folder.rows("trials")))
for number in range(done, 100_000):
    folder.append("trials", {"key": f"k{number}", "attempt": 1, "status": "ok", "pad": "x" * 5000})
    print(number, flush=True)
"""


def test_a_writer_killed_again_and_again_loses_no_row_that_it_reported(tmp_path: Path) -> None:
    with _created(tmp_path) as folder:
        pass
    reported = -1
    for wanted in (1, 17, 3, 29, 8, 40):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(folder.path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for _ in range(wanted):
            reported = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
        writer.wait()
        writer.stdout.close()
        reported = int(rest[-1]) if rest else reported
    keys_read = [row["key"] for row in RunFolder.open(folder.path).rows("trials")]
    assert keys_read == [f"k{number}" for number in range(len(keys_read))]
    assert len(keys_read) >= reported
