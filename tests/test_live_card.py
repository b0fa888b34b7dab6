"""`voxmeter live` on a sound card with real parts, against what was recorded in the room."""

from __future__ import annotations

from pathlib import Path

from room_talk import held

TURNS = 3
WITHIN_MS = 40.0
"""Two blocks, on a busy machine; `benchmarks/live_truth.py` says how near it is on a quiet one."""


def test_a_latency_is_that_of_the_room_where_the_devices_did_not_complain(tmp_path: Path) -> None:
    talk = held(tmp_path, TURNS)
    assert talk.status == 130
    assert [row["item"] for row in talk.rows] == ["turn-1", "turn-2", "turn-3"]
    for row, told, truth in zip(talk.rows, talk.told_ms, talk.truth_ms, strict=True):
        assert row["status"] == "ok"
        assert row["latency_kind"] == "live"
        assert row["audit"]["hop_ms"]["p50"] < 20
        assert truth >= 300  # the metronome's delay
        if row["audit"]["latency_valid"]:
            assert abs(told - truth) < WITHIN_MS
