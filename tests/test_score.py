"""Stages 2 and 3 on run folders that were built by hand, with a transcriber that only pretends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_run import Row, build, item, trial

from voxmeter.client import config
from voxmeter.client.audio import write_flac
from voxmeter.client.bench import Bench
from voxmeter.client.latency import latency_again
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.score import Progress, score_run
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring import log
from voxmeter.scoring.asr import Transcript
from voxmeter.scoring.types import Scored, Unscored

RATE = 24_000
MS = 1_000_000
BENCH = config.parse(
    {
        "endpoint": [{"name": "bot", "url": "ws://127.0.0.1:1"}],
        "suite": [{"kind": "demo"}],
        "gate": [{"metric": "accuracy", "min": 0.5}],
    },
    "test",
)


class Pretender:
    """Gives texts by the item in the key; what it has no text for cannot be read."""

    def __init__(self, texts: Mapping[str, str], model_hash: str = "aa") -> None:
        self.texts = texts
        self.model_hash = model_hash
        self.asked: list[tuple[str, str | None]] = []
        self.dies_after: int | None = None

    at_a_time = 1

    def record(self) -> Mapping[str, object]:
        return {"model": "fake", "model_hash": self.model_hash, "settings": {"beam_size": 5}}

    def submit(
        self, audio: Path, key: str = "", language: str | None = None
    ) -> Future[Transcript | Unscored]:
        assert audio.is_file()
        self.asked.append((key, language))
        future: Future[Transcript | Unscored] = Future()
        if self.dies_after is not None and len(self.asked) > self.dies_after:
            future.set_exception(KeyboardInterrupt())
            return future
        text = self.texts.get(key.split("/")[2])
        known = Transcript(text, language or "en") if text is not None else Unscored("unreadable")
        future.set_result(known)
        return future


def reply_log(samples: int, *, arrives_ms: float) -> str:
    """One second of question that ends at 0.8 s; the reply arrives in one piece."""
    start = 1_000 * MS
    header = {
        "t_ns": start,
        "dir": "out",
        "kind": "start",
        "bytes": 0,
        "input_rate": RATE,
        "output_rate": RATE,
        "frame_ms": 20,
        "lead_in_samples": 0,
        "clip_samples": RATE,
        "onset_sample": 0,
        "speech_end_sample": RATE * 8 // 10,
        "end_kind": "speech",
        "latency_kind": "server-vad",
        "commit_after_ms": 0,
        "pacing": "real-time",
    }
    frame = RATE // 50
    rows: list[dict[str, Any]] = [header]
    for number in range(200):
        due = start + (number + 1) * 20 * MS
        rows.append(
            {
                "t_ns": due,
                "dir": "out",
                "kind": "audio",
                "bytes": 1,
                "due_ns": due,
                "samples": frame,
            }
        )
    arrived = start + 800 * MS + round(arrives_ms * MS)
    common = {"dir": "in", "bytes": 1, "reply": "r"}
    rows.append({"t_ns": arrived - 1000, "kind": "reply_started", **common})
    rows.append(
        {
            "t_ns": arrived,
            "kind": "reply_audio",
            "samples": samples,
            "encoding": "pcm16",
            "rate": RATE,
            **common,
        }
    )
    rows.append(
        {
            "t_ns": arrived + 1000,
            "kind": "reply_ended",
            "reason": "completed",
            "detail": "",
            **common,
        }
    )
    return log.dump(rows)


def speech(lead_ms: float = 100, ms: float = 500) -> np.ndarray[Any, np.dtype[np.float32]]:
    quiet = np.zeros(round(RATE * lead_ms / 1000))
    sound = 0.3 * np.sin(2 * np.pi * 220 * np.arange(round(RATE * ms / 1000)) / RATE)
    return np.concatenate([quiet, sound]).astype(np.float32)


def with_files(folder: RunFolder, row: Row, *, arrives_ms: float = 400.0) -> None:
    paths = folder.attempt_paths(row)
    paths.events.parent.mkdir(parents=True, exist_ok=True)
    paths.reply.parent.mkdir(parents=True, exist_ok=True)
    stream = speech()
    paths.events.write_text(reply_log(len(stream), arrives_ms=arrives_ms))
    write_flac(paths.reply, stream, RATE)


def sample(tmp_path: Path, count: int = 3) -> tuple[RunFolder, list[Row]]:
    rows = [trial(f"q{n}", first_audible_ms=1.0) for n in range(count)]
    folder = build(tmp_path, [item(f"q{n}") for n in range(count)], rows)
    for row in rows:
        with_files(folder, row)
    return folder, rows


def scores(folder: RunFolder, metric: str) -> dict[str, Row]:
    return {row["key"]: row for row in folder.rows("scores") if row["metric"] == metric}


TEXTS = {"q0": "The answer is B.", "q1": "It is C.", "q2": "Well, that depends."}


def test_replies_become_transcripts_scores_and_a_summary(tmp_path: Path) -> None:
    folder, rows = sample(tmp_path)
    told: list[Progress] = []
    with folder:
        summary = score_run(folder, BENCH, transcriber=Pretender(TEXTS), progress=told.append)
        texts = [row["text"] for row in folder.rows("transcripts")]
        accuracy = scores(folder, "accuracy")
    assert texts == list(TEXTS.values())
    found = [accuracy[row["key"]]["value"] for row in rows]
    assert found == [1.0, 0.0, None]
    assert accuracy[rows[2]["key"]]["unscored"].startswith("no answer")
    metrics = summary["cells"][0]["metrics"]
    assert metrics["accuracy"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert metrics["accuracy"]["unscored"] == 1
    assert summary["gates"][0]["verdict"] == "failed"
    assert (folder.path / "summary.json").is_file()
    assert told[-1] == Progress("score", 3, 3)
    assert Progress("transcribe", 3, 3) in told


def test_scoring_twice_adds_not_a_single_row(tmp_path: Path) -> None:
    folder, _ = sample(tmp_path)
    with folder:
        score_run(folder, BENCH, transcriber=Pretender(TEXTS))
        before = [len(list(folder.rows("transcripts"))), len(list(folder.rows("scores")))]
        again = Pretender(TEXTS)
        score_run(folder, BENCH, transcriber=again)
        after = [len(list(folder.rows("transcripts"))), len(list(folder.rows("scores")))]
    assert before == after
    assert again.asked == []


def test_another_model_reads_again_and_only_changed_scores_are_added(tmp_path: Path) -> None:
    folder, rows = sample(tmp_path)
    with folder:
        score_run(folder, BENCH, transcriber=Pretender(TEXTS))
        before = len(list(folder.rows("scores")))
        better = Pretender(TEXTS | {"q2": "The answer is B."}, model_hash="bb")
        summary = score_run(folder, BENCH, transcriber=better)
        added = list(folder.rows("scores"))[before:]
    assert len(better.asked) == 3
    assert {row["key"] for row in added} == {rows[2]["key"]}
    assert summary["cells"][0]["metrics"]["accuracy"]["value"] == pytest.approx(2 / 3, abs=1e-6)


def test_a_killed_run_of_scoring_loses_only_what_was_under_way(tmp_path: Path) -> None:
    folder, _ = sample(tmp_path, 40)
    texts = {f"q{n}": "The answer is B." for n in range(40)}
    dying = Pretender(texts)
    dying.dies_after = 5
    with folder, pytest.raises(KeyboardInterrupt):
        score_run(folder, BENCH, transcriber=dying)
    with RunFolder.open(folder.path, write=True) as again:
        kept = len(list(again.rows("transcripts")))
        rest = Pretender(texts)
        summary = score_run(again, BENCH, transcriber=rest)
        keys = [row["key"] for row in again.rows("transcripts")]
    assert kept == 5
    assert len(rest.asked) == 35
    assert len(keys) == len(set(keys)) == 40
    assert summary["cells"][0]["metrics"]["accuracy"]["value"] == 1.0


def test_the_items_language_is_asked_for_unless_the_bench_fixes_one(tmp_path: Path) -> None:
    for name, bench, expected in (
        ("a", BENCH, "de"),
        ("b", fixed_language("fr"), "fr"),
    ):
        row = trial("q0")
        folder = build(tmp_path / name, [item("q0", language="de")], [row])
        with_files(folder, row)
        reader = Pretender({"q0": "B"})
        with folder:
            score_run(folder, bench, transcriber=reader)
        assert [language for _, language in reader.asked] == [expected]


def fixed_language(code: str) -> Bench:
    wanted = BENCH.transcribe.model_copy(update={"language": code})
    return BENCH.model_copy(update={"transcribe": wanted})


def test_only_spoken_replies_are_transcribed(tmp_path: Path) -> None:
    rows = [
        trial("q0"),
        trial("q1", "timeout"),
        trial("q2", "no_reply"),
        trial("q3", number=0),
        trial("q4", reply_channel="text", reply_text="The answer is B."),
        trial("q5", "truncated"),
    ]
    folder = build(tmp_path, [item(f"q{n}") for n in range(6)], rows)
    for row in rows:
        with_files(folder, row)
    reader = Pretender({f"q{n}": "The answer is B." for n in range(6)})
    with folder:
        score_run(folder, BENCH, transcriber=reader)
        accuracy = scores(folder, "accuracy")
    assert [key.split("/")[2] for key, _ in reader.asked] == ["q0", "q5"]
    assert rows[3]["key"] not in accuracy
    assert accuracy[rows[4]["key"]]["detail"]["channel"] == "text"
    assert accuracy[rows[1]["key"]]["unscored"] == "timeout"


def test_latency_is_computed_again_from_log_and_audio(tmp_path: Path) -> None:
    folder, rows = sample(tmp_path, 1)
    with folder:
        summary = score_run(folder, BENCH, transcriber=Pretender(TEXTS))
        audible = scores(folder, "first_audible_ms")[rows[0]["key"]]
    assert audible["value"] == pytest.approx(500.0, abs=5.0)
    assert audible["version"]
    figures = summary["cells"][0]["metrics"]["first_audible_ms"]
    assert figures["mean"]["value"] == pytest.approx(audible["value"])
    assert scores(folder, "first_packet_ms")[rows[0]["key"]]["value"] == pytest.approx(400.0)


def test_a_broken_file_unscores_its_trial_and_no_other(tmp_path: Path) -> None:
    folder, rows = sample(tmp_path, 5)
    paths = [folder.attempt_paths(row) for row in rows]
    paths[0].reply.write_bytes(b"not audio at all")
    paths[1].events.write_text("{}\nnot json\n{}\n")
    paths[2].events.write_text(reply_log(7, arrives_ms=400))
    paths[3].events.write_text('{"kind":"audio"}\n')
    reader = Pretender({"q1": "B", "q2": "B", "q3": "B", "q4": "B"})
    with folder:
        score_run(folder, BENCH, transcriber=reader)
        audible = scores(folder, "first_audible_ms")
        accuracy = scores(folder, "accuracy")
    for row in rows[:4]:
        assert audible[row["key"]]["value"] is None
        assert audible[row["key"]]["unscored"].startswith("broken file")
        assert str(tmp_path) not in audible[row["key"]]["unscored"]
    assert audible[rows[4]["key"]]["value"] == pytest.approx(500.0, abs=5.0)
    assert accuracy[rows[0]["key"]]["unscored"] == "not transcribed: unreadable"
    assert accuracy[rows[0]["key"]]["detail"] == {"counted": False}
    assert accuracy[rows[3]["key"]]["value"] == 1.0


@pytest.mark.parametrize("value", [10**400, -(10**400), 1e308, [1], "x", None])
@pytest.mark.parametrize(
    ("number", "name"),
    [
        *((0, name) for name in ("t_ns", "input_rate", "speech_end_sample", "commit_after_ms")),
        *((-1, name) for name in ("t_ns", "samples", "rate")),
    ],
)
def test_a_log_with_any_number_in_it_is_a_broken_file_at_most(
    number: int, name: str, value: object, tmp_path: Path
) -> None:
    folder, (row,) = sample(tmp_path, 1)
    events = folder.attempt_paths(row).events
    found = [json.loads(line) for line in events.read_text().splitlines()]
    place = next(
        at for at in range(len(found)) if number == 0 or found[at]["kind"] == "reply_audio"
    )
    found[place][name] = value
    events.write_text("".join(json.dumps(one) + "\n" for one in found))
    with folder:
        score_run(folder, BENCH, transcriber=Pretender(TEXTS))


def test_a_log_that_is_nested_too_deeply_is_a_broken_file(tmp_path: Path) -> None:
    folder, (row,) = sample(tmp_path, 1)
    folder.attempt_paths(row).events.write_text("[" * 100_000)
    with folder:
        score_run(folder, BENCH, transcriber=Pretender(TEXTS))
        found = scores(folder, "first_audible_ms")[row["key"]]
    assert found["unscored"].startswith("broken file")


def test_files_that_were_not_kept_leave_the_trials_own_latency(tmp_path: Path) -> None:
    folder, rows = sample(tmp_path, 2)
    folder.attempt_paths(rows[0]).reply.unlink()
    folder.attempt_paths(rows[1]).events.unlink()
    told: list[Progress] = []
    with folder:
        summary = score_run(folder, BENCH, transcriber=Pretender(TEXTS), progress=told.append)
        assert Progress("transcribe", 2, 2) in told
        assert scores(folder, "first_audible_ms") == {}
        reason = scores(folder, "accuracy")[rows[0]["key"]]["unscored"]
    assert summary["cells"][0]["metrics"]["first_audible_ms"]["mean"]["value"] == 1.0
    assert reason == "not transcribed: the reply's audio is missing"


def test_the_whole_stream_is_read_where_the_answer_is_only_a_part(tmp_path: Path) -> None:
    row = trial("q0", first_audible_ms=1.0)
    folder = build(tmp_path, [item("q0")], [row])
    with_files(folder, row)
    paths = folder.attempt_paths(row)
    write_flac(paths.stream, speech(), RATE)
    write_flac(paths.reply, speech()[:100], RATE)
    with folder:
        again = latency_again(folder, row)
    assert isinstance(again["first_audible_ms"], Scored)


def test_a_run_without_speech_needs_no_transcriber(tmp_path: Path) -> None:
    row = trial("q0", reply_channel="text", reply_text="B.")
    with build(tmp_path, [item("q0")], [row]) as folder:
        summary = score_run(folder, BENCH)
    assert summary["cells"][0]["metrics"]["accuracy"]["value"] == 1.0


def test_a_transcriber_that_cannot_work_at_all_is_one_error_and_not_many_rows(
    tmp_path: Path,
) -> None:
    folder, _ = sample(tmp_path, 2)

    class Refuser(Pretender):
        def submit(
            self, audio: Path, key: str = "", language: str | None = None
        ) -> Future[Transcript | Unscored]:
            future: Future[Transcript | Unscored] = Future()
            future.set_exception(UserError("language 'de'", "unknown", "use base"))
            return future

    with folder, pytest.raises(UserError, match="use base"):
        score_run(folder, BENCH, transcriber=Refuser({}))


def test_only_the_newest_attempt_is_scored(tmp_path: Path) -> None:
    rows = [trial("q0", "disconnected", attempt=1), trial("q0", attempt=2)]
    folder = build(tmp_path, [item("q0")], rows)
    with_files(folder, rows[1])
    with folder:
        summary = score_run(folder, BENCH, transcriber=Pretender(TEXTS))
        attempts = {row["attempt"] for row in folder.rows("scores")}
    assert attempts == {2}
    assert summary["cells"][0]["metrics"]["accuracy"]["n"] == 1


def test_a_later_attempt_is_read_for_itself(tmp_path: Path) -> None:
    folder, rows = sample(tmp_path, 1)
    with folder:
        score_run(folder, BENCH, transcriber=Pretender(TEXTS))
        again = {**rows[0], "attempt": 2}
        with_files(folder, again)
        folder.append("trials", again)
        summary = score_run(folder, BENCH, transcriber=Pretender({"q0": "It is C."}))
        read = [(row["attempt"], row["text"]) for row in folder.rows("transcripts")]
    assert read == [(1, TEXTS["q0"]), (2, "It is C.")]
    assert summary["cells"][0]["metrics"]["accuracy"]["value"] == 0.0


def run_command(*words: str) -> int:
    import argparse

    from voxmeter.client.commands import score as command

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(words)))


def text_run(tmp_path: Path, status: str = "ok", least: float = 0.5) -> Path:
    row = trial("q0", status, reply_channel="text", reply_text="The answer is C.")
    run = {
        "config": {
            "endpoint": [{"name": "bot", "url": "ws://127.0.0.1:1"}],
            "suite": [{"kind": "demo"}],
            "gate": [{"metric": "accuracy", "min": least}],
        }
    }
    with build(tmp_path, [item("q0")], [row], run=run) as folder:
        return folder.path


@pytest.mark.parametrize(
    ("status", "least", "expected"), [("ok", 0.0, 0), ("ok", 0.5, 1), ("timeout", 0.0, 3)]
)
def test_the_command_scores_writes_prints_and_says_how_it_ended(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    status: str,
    least: float,
    expected: int,
) -> None:
    path = text_run(tmp_path, status, least)
    assert run_command(str(path)) == expected
    assert (path / "report.md").is_file()
    assert "bot" in (path / "summary.json").read_text()
    out = capsys.readouterr().out
    assert "accuracy" in out
    assert ("gate failed" in out) == (expected == 1)


def test_a_judge_that_is_nowhere_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r'--judge: no judge "gpt" in the run; add a \[\[judge\]\]'):
        run_command(str(text_run(tmp_path)), "--judge", "gpt")
