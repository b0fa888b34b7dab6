"""The main job on the embedded assistant: real speech in, real speech out, every part for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import soundfile

from voxmeter.client.cli import main

BENCH = """
[run]
out = "{out}"
warmup = 1
[[endpoint]]
name = "cascade"
builtin = "cascade"
[[suite]]
kind = "demo"
limit = 2
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two spoken questions: Whisper, Gemma and a voice answer, Whisper reads."""
    place = tmp_path_factory.mktemp("embedded")
    bench = place / "bench.toml"
    bench.write_text(BENCH.format(out=place / "runs"))
    assert main(["run", str(bench), "--quiet"]) == 0
    (folder,) = (place / "runs").iterdir()
    return folder


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_two_questions_get_two_spoken_replies(run: Path) -> None:
    warm, *trials = rows(run, "trials")
    assert warm["warmup"]
    assert [trial["status"] for trial in trials] == ["ok", "ok"]
    for trial in trials:
        latency = trial["latency"]
        assert 0 < latency["endpointing_ms"] < latency["first_packet_ms"]
        assert latency["first_packet_ms"] <= latency["first_audible_ms"] < latency["reply_end_ms"]
        assert latency["first_text_ms"] is not None
        assert trial["reply_text"]


def test_the_recordings_hold_what_was_said_and_heard(run: Path) -> None:
    trials = rows(run, "trials")
    folder = run / "audio" / "cascade~demo~clean"
    for trial in trials:
        stem = f"{trial['item']}~{trial['trial']}~{trial['attempt']}"
        both, rate = soundfile.read(folder / f"{stem}.flac")
        reply, reply_rate = soundfile.read(folder / f"{stem}.reply.flac")
        assert both.shape[1] == 2
        assert rate == reply_rate == 24_000
        assert abs(both[:, 0]).max() > 0.05
        assert abs(both[:, 1]).max() > 0.05
        end_ms = trial["clip"]["speech_end_ms"] + trial["latency"]["reply_end_ms"]
        assert len(both) / 24 >= end_ms - 25  # the reply is on the timeline of the question
        assert len(reply) / 24 >= trial["latency"]["reply_ms"]


def test_what_was_spoken_was_read_and_is_what_the_model_meant(run: Path) -> None:
    texts = {row["key"]: row["text"] for row in rows(run, "transcripts")}
    counted = [row for row in rows(run, "trials") if not row["warmup"]]
    for trial in counted:
        heard = set(texts[trial["key"]].lower().replace(",", " ").replace(".", " ").split())
        meant = set(trial["reply_text"].lower().replace(",", " ").replace(".", " ").split())
        assert len(heard & meant) >= len(meant) / 2


def test_the_summary_counts_both_and_says_how_sure_it_is(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    (cell,) = summary["cells"]
    assert (cell["planned"], cell["status"]) == (2, {"ok": 2})
    latency = cell["metrics"]["first_audible_ms"]
    late = sum(
        not row["warmup"] and not row["audit"]["latency_valid"] for row in rows(run, "trials")
    )
    assert latency["n"] == 2 - late  # a busy machine may have spoiled one
    assert latency["p99"] is None
    accuracy = cell["metrics"]["accuracy"]
    assert accuracy["n"] == 2
    assert accuracy["low"] <= accuracy["value"] <= accuracy["high"]
    assert "| cascade |" in (run / "report.md").read_text()
