"""`voxmeter suites verify`: every benchmark is recognised, and whatever is wrong is one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import adu_world
import air_world
import numpy as np
import pytest
import soundfile
import voxeval_world
from attempt_logs import joined, silence, voice

from voxmeter.client import suite_check
from voxmeter.client.cli import main
from voxmeter.suites.recognise import recognised
from voxmeter.suites.suite import Gap, Item, Recording


def _row(name: str, **changes: Any) -> dict[str, Any]:
    number = int(name.removeprefix("q"))
    return {
        "id": name,
        "audio": f"{name}.wav",
        "question": f"What is {number} plus {number}?",
        "kind": "number",
        "reference": str(2 * number),
    } | changes


def _wav(path: Path, ms: int = 300, *, rate: int = 24_000, channels: int = 1) -> None:
    sound = np.asarray(joined(silence(40), voice(ms), silence(40)), np.float32)
    soundfile.write(path, np.stack([sound] * channels, axis=1), rate)


def _suite(folder: Path, rows: Sequence[Any]) -> Path:
    """A suite with a recording for each line, each of a length of its own."""
    path = folder / "items.jsonl"
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{text}\n" for text in texts))
    for number, row in enumerate(rows):
        if isinstance(row, dict) and "audio" in row:
            _wav(folder / row["audio"], 200 + 10 * number)
    return path


def _verified(
    capsys: pytest.CaptureFixture[str], path: Path, *options: str
) -> tuple[int, list[str], str]:
    """Exit status, lines of standard output, standard error."""
    status = main(["suites", "verify", str(path), *options])
    found = capsys.readouterr()
    return status, found.out.splitlines(), found.err


def test_a_sound_suite_is_called_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _suite(tmp_path, [_row("q1"), _row("q2")])
    status, lines, error = _verified(capsys, path)
    assert (status, error) == (0, "")
    assert lines == [
        f"{path}: jsonl, 2 items in 2 clusters (2 number)",
        "2 recordings, 1 s, 24000 Hz; all decoded, with sound in them",
        "sound: nothing is wrong with it",
    ]


def test_one_item_is_no_several_items(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _suite(tmp_path, [_row("q1")])
    _, lines, _ = _verified(capsys, path)
    assert lines[0] == f"{path}: jsonl, 1 item in 1 cluster (1 number)"
    assert lines[1].startswith("1 recording, ")


def test_a_suite_of_texts_has_no_recordings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _suite(tmp_path, [{"id": "q", "text": "Who wrote Hamlet?", "kind": "open"}])
    assert _verified(capsys, path)[1][1] == "no recordings: every item is a text to be spoken"


def test_every_bad_line_is_told_and_not_the_first_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [_row("q1"), "{torn", _row("q2", kind="numbr"), _row("q1"), _row("q3", reference="x")]
    path = _suite(tmp_path, rows)
    status, lines, error = _verified(capsys, path)
    assert status == 2
    assert [line.partition(": ")[0] for line in lines] == [
        "FAIL items.jsonl:2:2",
        "FAIL items.jsonl:3",
        "FAIL items.jsonl:4",
        "FAIL items.jsonl:5",
    ]
    assert "id 'q1' is already on line 1" in lines[2]
    cure = "download again or mend what the lines above name"
    assert error == f"voxmeter: {path}: 4 faults; {cure}\n"


def test_recordings_that_are_missing_empty_broken_or_silent_are_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _suite(tmp_path, [_row(f"q{number}") for number in range(1, 6)])
    (tmp_path / "q1.wav").unlink()
    (tmp_path / "q2.wav").write_bytes(b"")
    (tmp_path / "q3.wav").write_bytes(b"no sound at all, but bytes enough for a header")
    soundfile.write(tmp_path / "q4.wav", np.zeros(9000, np.float32), 24_000)
    status, lines, error = _verified(capsys, path)
    assert status == 2
    faults = [line for line in lines if line.startswith("FAIL")]
    assert [line.partition(": ")[0] for line in faults] == [
        f"FAIL q{number}.wav" for number in range(1, 5)
    ]
    assert faults[0].endswith("no such file")
    assert faults[1].endswith("is empty")
    assert "nothing audible" in faults[3]
    assert "4 faults" in error


def test_what_is_odd_and_usable_is_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = _row("q3", question="What is 1  plus 1?", reference="2")
    path = _suite(tmp_path, [_row("q1"), _row("q2"), again])
    _wav(tmp_path / "q2.wav", 200, rate=16_000, channels=2)
    (tmp_path / "q3.wav").write_bytes((tmp_path / "q1.wav").read_bytes())
    status, lines, error = _verified(capsys, path)
    assert (status, error) == (0, "")
    notes = [line.removeprefix("note ") for line in lines if line.startswith("note")]
    assert notes == [
        "the question of q1 is also that of q3",
        "q3.wav has the very bytes of q1.wav",
        "rates differ: 2 of 24000 Hz, 1 of 16000 Hz; each clip is brought to what the endpoint "
        "takes",
        "1 recording has several channels: they are mixed to one",
    ]


def test_one_question_in_several_voices_is_one_cluster_and_no_repetition() -> None:
    def item(name: str, cluster: str, question: str = "Who?", **changes: Any) -> Item:
        return Item("s", name, "open", (Gap(1),), question=question, cluster=cluster, **changes)

    assert list(suite_check.repeated([item("a", "c"), item("b", "c")])) == []
    assert len(list(suite_check.repeated([item("a", "c"), item("b", "d")]))) == 1
    heading = [item(f"i{number}", f"c{number}") for number in range(11)]
    assert list(suite_check.repeated(heading)) == []
    about = [
        Item("s", name, "open", (Recording(Path(name)),), question="Who?", question_via="text")
        for name in ("a", "b")
    ]
    assert list(suite_check.repeated(about)) == []


def test_many_faults_of_a_sort_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _suite(tmp_path, [_row(f"q{number}") for number in range(1, 9)])
    for number in range(1, 9):
        (tmp_path / f"q{number}.wav").unlink()
    _, lines, error = _verified(capsys, path)
    assert [line for line in lines if "more like it" in line] == ["FAIL ... and 3 more like it"]
    assert ": 8 faults; " in error


def test_some_are_decoded_and_all_with_decode(tmp_path: Path) -> None:
    files = []
    for number in range(6):
        files.append(tmp_path / f"{number}.wav")
        _wav(files[-1], 200 + number)
    few = suite_check.recordings(files, 3 * suite_check.DECODED, decode=False, lacking=True)
    assert (few.count, few.decoded) == (6, 2)
    every = suite_check.recordings(files, 3 * suite_check.DECODED, decode=True, lacking=True)
    assert (every.count, every.decoded) == (6, 6)
    assert every.ms == few.ms == pytest.approx(6 * 280 + 15, abs=2)


def test_silence_is_found_where_it_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "silent.wav"
    soundfile.write(path, np.zeros(24_000, np.float32), 24_000)
    assert suite_check.recordings([path], 1, decode=True, lacking=True).decoded == 0
    named = suite_check.recordings([path], 1, decode=True, lacking=True).faults
    assert len(named) == 1
    assert "nothing audible" in named[0]


def test_a_recording_that_claims_to_be_too_long_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "long.flac"
    soundfile.write(path, np.zeros(8000 * 901, np.float32), 8000)
    (fault,) = suite_check.recordings([path], 1, decode=False, lacking=True).faults
    assert fault == f"{path}: 901 s; clips over 900 s are refused"


@pytest.fixture
def downloads(tmp_path: Path) -> dict[str, Path]:
    """One small download of each benchmark."""
    big = tmp_path / "big"
    (big / "data").mkdir(parents=True)
    row = {"category": "navigate", "official_answer": "Yes", "file_name": "data/question_0.mp3"}
    (big / "metadata.jsonl").write_text(json.dumps(row | {"id": 0}) + "\n")
    (big / "data" / "question_0.mp3").write_bytes(voxeval_world.mp3(300))
    own = tmp_path / "own"
    own.mkdir()
    _suite(own, [_row("q1")]).rename(own / "suite.jsonl")
    entries = [air_world.foundation(1), air_world.foundation(2)]
    return {
        "voxeval": voxeval_world.small(tmp_path / "voxeval").write(),
        "adu-bench": adu_world.write(tmp_path / "adu"),
        "air-bench": air_world.Download(tmp_path / "air", entries).write(),
        "big-bench-audio": big,
        "jsonl": own,
    }


def test_a_download_is_recognised_by_its_files(downloads: dict[str, Path], tmp_path: Path) -> None:
    assert {kind: recognised(path) for kind, path in downloads.items()} == {
        kind: kind for kind in downloads
    }
    assert recognised(downloads["adu-bench"] / "input") == "adu-bench"
    assert recognised(downloads["air-bench"] / "Foundation") == "air-bench"
    assert recognised(tmp_path / "mine.jsonl") == "jsonl"
    (tmp_path / "nothing").mkdir()
    assert recognised(tmp_path / "nothing") is None


def test_settings_that_were_not_downloaded_are_no_fault(
    downloads: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines, error = _verified(capsys, downloads["voxeval"])
    assert (status, error) == (0, "")
    assert 'note setting "echo" is not in the download: no folder test/echo' in lines
    assert lines[-1] == "sound: nothing is wrong with it"


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        ("air-bench", "2 items in 2 clusters (2 choice)"),
        ("big-bench-audio", "1 item in 1 cluster (1 yes-no)"),
    ],
)
def test_a_benchmarks_own_check_and_the_general_one_are_both_made(
    downloads: dict[str, Path], kind: str, counted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines, error = _verified(capsys, downloads[kind])
    assert status == 2  # far fewer questions than the benchmark has
    assert f"{downloads[kind]}: {kind}, {counted}" in lines
    assert any(line.startswith("FAIL") for line in lines)
    assert any(" decoded, with sound in them" in line for line in lines)
    assert " faults; " in error or " fault; " in error


def test_a_broken_recording_of_a_benchmark_is_found_in_whatever_setting(
    downloads: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    root = downloads["voxeval"]
    bad = "test/nova/virology_test/00000001_question.mp3"
    (root / bad).write_bytes(b"<html>Too many requests</html>")
    _, lines, error = _verified(capsys, root)
    faults = [line for line in lines if line.startswith("FAIL ")]
    assert len(faults) == 1
    assert faults[0].startswith(f"FAIL {bad}: not an audio file that can be read")
    assert error.startswith(f"voxmeter: {root}: 1 fault; ")
    example = next(root.glob("all_fewshot_examples/alloy/*/*_question.mp3"))
    example.write_bytes(b"<html>Too many requests</html>")
    _, lines, _ = _verified(capsys, root)
    assert any(f"FAIL {example.relative_to(root)}" in line for line in lines)


def test_a_download_that_cannot_be_asked_is_a_fault_whatever_its_own_check_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = voxeval_world.small(tmp_path, settings=()).write()
    status, lines, error = _verified(capsys, root)
    faults = [line for line in lines if line.startswith("FAIL")]
    assert status == 2
    assert len(faults) == 1
    assert 'setting "alloy" is not in the download' in faults[0]
    assert "1 fault; " in error


def test_what_is_missing_is_told_once(
    downloads: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    gone = downloads["voxeval"] / "test/alloy/virology_test/00000001_question.mp3"
    gone.unlink()
    _, lines, _ = _verified(capsys, downloads["voxeval"])
    assert sum("virology_test/00000001_question.mp3" in line for line in lines) == 1


def test_of_a_folder_with_a_file_of_ones_own_the_file_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _suite(tmp_path, [_row("q1")])
    status, lines, error = _verified(capsys, tmp_path)
    assert (status, lines) == (2, [])
    assert error.endswith(f"looks like no benchmark that is known; give the file itself: {path}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "no such file or folder; check the path"),
        (["."], "looks like no benchmark that is known; give the folder of the download, or say"),
        ([".", "--kind", "voxval"], "unknown kind 'voxval'; did you mean 'voxeval'?"),
        ([".", "--knd", "x"], "unknown argument --knd; did you mean --kind?"),
        ([".", "--kind", "air-bench"], "neither Foundation/Foundation_meta.json nor"),
    ],
)
def test_a_wrong_path_or_option_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["suites", "verify", *words]) == 2
    found = capsys.readouterr()
    assert said in found.err
    assert found.err.count("\n") == 1
