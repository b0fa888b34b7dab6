"""The log of a live turn: what a microphone took and what a loudspeaker played, read by scoring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from voxmeter.scoring import marks, playout

RATE = 8_000
T_NS = 5_000_000_000
MS = 1_000_000
STREAM = np.concatenate(
    (np.zeros(400), 0.3 * np.cos(2 * np.pi * 440 * np.arange(4000) / RATE))
).astype(np.float32)


def header(**more: Any) -> dict[str, Any]:
    return {
        "t_ns": T_NS,
        "dir": "out",
        "kind": "start",
        "bytes": 0,
        "input_rate": RATE,
        "output_rate": RATE,
        "frame_ms": 20,
        "lead_in_samples": 0,
        "clip_samples": 8000,
        "onset_sample": 800,
        "speech_end_sample": 4000,
        "end_kind": "speech",
        "latency_kind": "live",
        "commit_after_ms": 0,
        "pacing": "real-time",
        "live": True,
        "full_duplex": False,
        **more,
    }


def frames() -> list[dict[str, Any]]:
    """Return frames that were sent 40 ms after they had been taken."""
    return [
        {
            "t_ns": T_NS + (number + 1) * 20 * MS + 40 * MS,
            "dir": "out",
            "due_ns": T_NS + (number + 1) * 20 * MS + 39 * MS,
            "kind": "audio",
            "bytes": 320,
            "samples": 160,
            "taken_ns": T_NS + number * 20 * MS,
        }
        for number in range(50)
    ]


def reply(t_ns: int) -> dict[str, Any]:
    return {"t_ns": t_ns, "dir": "in", "kind": "reply_audio", "bytes": 1, "samples": STREAM.size}


def played(sample: int, samples: int, heard_ns: int) -> dict[str, Any]:
    return {
        "t_ns": heard_ns,
        "dir": "out",
        "kind": "played",
        "bytes": 0,
        "sample": sample,
        "samples": samples,
        "heard_ns": heard_ns,
    }


def test_t0_is_when_the_last_voiced_sample_was_at_the_converter_not_when_it_left() -> None:
    found = marks.latency([header(), *frames(), reply(T_NS + 700 * MS)], STREAM)
    assert found.t0_ns == T_NS + 500 * MS
    assert found.latency["first_packet_ms"] == 200


def test_a_reply_is_heard_when_the_loudspeaker_played_it_not_when_it_came() -> None:
    rows = [header(), *frames(), reply(T_NS + 700 * MS), played(0, STREAM.size, T_NS + 800 * MS)]
    found = marks.latency(rows, STREAM).latency
    assert found["first_audible_ms"] == 350
    assert found["reply_end_ms"] == 850
    assert (found["stalls"], found["stall_ms"]) == (0, 0)


def test_a_gap_of_the_loudspeaker_is_a_stall_and_the_jitter_of_its_stamps_is_none() -> None:
    rows = [
        *(header(), *frames(), reply(T_NS + 700 * MS)),
        played(0, 800, T_NS + 800 * MS),
        played(800, 800, T_NS + 903 * MS),
        played(1600, STREAM.size - 1600, T_NS + 1050 * MS),
    ]
    found = marks.latency(rows, STREAM).latency
    assert found["stalls"] == 1
    assert found["stall_ms"] == pytest.approx(50)


def test_what_was_thrown_away_was_not_heard() -> None:
    rows = [header(), *frames(), reply(T_NS + 700 * MS), played(0, 2000, T_NS + 800 * MS)]
    found = marks.latency(rows, STREAM).latency
    assert found["reply_ms"] == 200


def test_a_reply_that_was_never_played_was_never_heard() -> None:
    found = marks.latency([header(), *frames(), reply(T_NS + 700 * MS)], STREAM)
    assert found.latency["first_audible_ms"] is None
    assert found.latency["first_packet_ms"] == 200


@pytest.mark.parametrize(
    "odd",
    [
        {"heard_ns": None},
        {"heard_ns": -(10**12)},
        {"heard_ns": "soon"},
        {"sample": None},
        {"sample": -5000},
        {"samples": -3},
        {"samples": None},
    ],
    ids=str,
)
def test_a_row_that_cannot_be_true_is_left_out(odd: dict[str, Any]) -> None:
    good = played(0, STREAM.size, T_NS + 800 * MS)
    rows = [header(), *frames(), reply(T_NS + 700 * MS), good | odd, good]
    assert marks.latency(rows, STREAM).latency["first_audible_ms"] == 350


def test_nothing_is_played_twice() -> None:
    rows = [
        *(header(), *frames(), reply(T_NS + 700 * MS)),
        played(0, 2000, T_NS + 800 * MS),
        played(1000, STREAM.size - 1000, T_NS + 925 * MS),
    ]
    found = marks.latency(rows, STREAM).latency
    assert found["reply_ms"] == 500
    assert playout.heard(rows, STREAM).size == 800 * RATE // 1000 + STREAM.size


def test_what_a_device_lost_is_a_gap_in_what_was_taken() -> None:
    rows = frames()
    for row in rows[10:]:
        row["taken_ns"] += 100 * MS
    sent = np.ones(8000, dtype=np.float32)
    track = playout.spoken([header(), *rows], sent)
    assert track.size == 8800
    assert float(track[1600:2400].max()) == 0.0
    assert float(track[2400:].min()) == 1.0


def test_the_two_streams_of_a_full_duplex_turn_have_no_time_in_common() -> None:
    rows = [
        *(header(full_duplex=True), *frames(), reply(T_NS + 700 * MS)),
        played(0, STREAM.size, T_NS + 800 * MS),
    ]
    found = marks.latency(rows, STREAM).latency
    assert found["stream_first_audible_ms"] is None
    assert found["first_packet_ms"] is None
    assert found["first_audible_ms"] == 350
