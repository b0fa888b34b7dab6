"""`voxmeter live` on a sound card with real parts, against what was recorded in the room."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from needs import needs_extra
from room_talk import SOURCE, held, live, rows, until
from test_card import TRIES, question
from virtual_card import RATE, virtual_card

TURNS = 3
WITHIN_MS = {"PulseAudio": 40.0, "JACK": 5.0}
"""PulseAudio's stamps wander on a busy machine: two blocks; `benchmarks/live_truth.py` says how
far on a quiet one."""


@pytest.mark.parametrize("card", ["PulseAudio", "JACK"])
def test_a_latency_is_that_of_the_room_where_the_devices_did_not_complain(
    tmp_path: Path, card: str
) -> None:
    for attempt in range(TRIES):
        folder = tmp_path / f"{attempt}"
        folder.mkdir()
        talk = held(folder, TURNS, jack=card == "JACK")
        assert talk.status == 130
        assert [row["item"] for row in talk.rows] == ["turn-1", "turn-2", "turn-3"]
        for row, truth in zip(talk.rows, talk.truth_ms, strict=True):
            assert row["status"] == "ok"
            assert row["latency_kind"] == "live"
            assert row["audit"]["hop_ms"]["p50"] < 20
            assert truth >= 300  # the metronome's delay
        valid = [row["audit"]["latency_valid"] for row in talk.rows]
        errors = np.abs(np.subtract(talk.told_ms, talk.truth_ms))[valid]
        assert np.all(errors < WITHIN_MS[card]), errors
        if len(errors):
            return
    pytest.fail(f"the devices complained of every turn of {TRIES} talks")


def test_the_assistant_on_this_machine_hears_a_question_and_answers_aloud(tmp_path: Path) -> None:
    needs_extra("faster_whisper", "local")
    said = np.concatenate([question(), np.zeros(RATE // 2, np.int16)])
    soundfile.write(tmp_path / "question.wav", said, RATE)
    bench = '[[endpoint]]\nname = "cascade"\nbuiltin = "cascade"\n[[suite]]\nkind = "demo"\n'
    with virtual_card(tmp_path / "card") as card, live(card, tmp_path, bench=bench) as process:
        until(process, "listening")
        with card.hear() as room:
            card.say(tmp_path / "question.wav")
            until(process, "1 ok")
            pcm = room.further(0.1)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    heard = np.frombuffer(pcm, np.int16).reshape(-1, 2)
    assert np.abs(heard[:, 1]).max() > 1000  # the reply was to be heard in the room
    (row,) = rows(tmp_path)
    assert "Tokyo" in row["reply_text"]
    assert row["latency"]["first_audible_ms"] > row["latency"]["first_packet_ms"] > 0
    (run,) = (tmp_path / "runs").iterdir()
    assert told.splitlines()[-1] == str(run)
    for command in ("score", "report"):
        done = subprocess.run(
            [sys.executable, "-m", "voxmeter", command, str(run)],
            env={**os.environ, "PYTHONPATH": SOURCE},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert "tokyo" in (run / "transcripts.jsonl").read_text().lower()
    assert "turn-1" in (run / "report.md").read_text()
