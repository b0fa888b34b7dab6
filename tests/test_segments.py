"""Which stretches of output are replies, and which of them is the answer."""

from __future__ import annotations

from typing import Any

import attempt_logs as logs
import numpy as np
import pytest
from attempt_logs import MS, RATE, T0_NS, audio, came, silence, voice

from voxmeter.scoring.attempt import read
from voxmeter.scoring.playout import Arrival, listen, play
from voxmeter.scoring.segments import (
    Segment,
    stream_roles,
    stream_segments,
    told_roles,
    told_segments,
)

ONSET_NS = T0_NS - 1900 * MS


def told(rows: list[dict[str, Any]], stream: logs.Samples) -> list[Segment]:
    attempt = read(logs.log(logs.frames(300), rows))
    assert attempt is not None
    playout = listen(attempt, RATE, stream.size, None)
    return told_roles(
        told_segments(attempt, stream, RATE), playout, attempt.onset_ns, attempt.t0_ns
    )


def ended(ms: float, reply: str = "r1", reason: str = "completed") -> dict[str, Any]:
    return came(ms, "reply_ended", reply=reply, reason=reason)


def started(ms: float, reply: str = "r1") -> dict[str, Any]:
    return came(ms, "reply_started", reply=reply)


SECOND = RATE
TOLD = {
    "one reply": ([started(300), audio(300, SECOND), ended(400)], ["answer"]),
    "no start is told": ([audio(300, SECOND), ended(400)], ["answer"]),
    "no end is told": ([started(300), audio(300, SECOND)], ["answer"]),
    "no ids": ([started(9, ""), audio(300, SECOND, ""), ended(400, "")], ["answer"]),
    "one after the other without ids": (
        [audio(300, SECOND, ""), ended(400, ""), audio(900, SECOND, ""), ended(950, "")],
        ["answer", "later"],
    ),
    "a greeting first": (
        [audio(-1995, SECOND, "g"), ended(-1950, "g"), audio(300, SECOND), ended(400)],
        ["greeting", "answer"],
    ),
    "a reply to half the question": (
        [audio(-900, SECOND, "h"), ended(-800, "h"), audio(300, SECOND), ended(400)],
        ["early", "answer"],
    ),
    "cancelled before the end of speech": (
        [started(-900, "h"), ended(-800, "h", "cancelled"), audio(300, SECOND), ended(400)],
        ["early", "answer"],
    ),
    "interrupted before the end of speech": (
        [audio(-900, SECOND, "h"), came(-500, "interrupted"), audio(300, SECOND)],
        ["early", "answer"],
    ),
    "begun before the end of speech": (
        [started(-300), audio(-300, SECOND), ended(200)],
        ["talk-over"],
    ),
    "cancelled after it without a sound": (
        [started(20, "h"), ended(60, "h", "cancelled"), audio(300, SECOND), ended(400)],
        ["early", "answer"],
    ),
    "cancelled without a sound, and nothing else": (
        [started(20), ended(60, "r1", "cancelled")],
        ["answer"],
    ),
    "cancelled with words and without a sound": (
        [
            *(started(20, "h"), came(30, "reply_text", text="Hi", reply="h")),
            *(ended(60, "h", "cancelled"), audio(300, SECOND), ended(400)),
        ],
        ["early", "answer"],
    ),
    "cancelled with words, and nothing else": (
        [
            *(started(20, "e"), ended(25, "e"), started(30, "h")),
            *(came(40, "reply_text", text="Hi", reply="h"), ended(60, "h", "cancelled")),
        ],
        ["early", "answer"],
    ),
    "only early ones": ([audio(-900, SECOND), ended(-800)], ["early"]),
    "words before sound": (
        [came(100, "reply_text", text="Hi", reply="r1"), audio(300, SECOND), ended(400)],
        ["answer"],
    ),
    "a second reply": (
        [audio(300, SECOND, "a"), ended(400, "a"), audio(500, SECOND, "b"), ended(600, "b")],
        ["answer", "later"],
    ),
    "ids that interleave": (
        [audio(300, SECOND, "a"), audio(310, SECOND, "b"), audio(320, SECOND, "a")],
        ["answer", "later"],
    ),
    "an end that never began": ([ended(300)], ["answer"]),
    "quiet alone parts what nothing else does": (
        [audio(-1995, SECOND // 20, ""), audio(200, SECOND, ""), audio(250, SECOND, "")],
        ["greeting", "answer"],
    ),
    "nothing": ([], []),
}


@pytest.mark.parametrize(("rows", "roles"), TOLD.values(), ids=TOLD.keys())
def test_told_replies_have_their_roles(rows: list[dict[str, Any]], roles: list[str]) -> None:
    samples = sum(row.get("samples", 0) for row in rows)
    assert [s.role for s in told(rows, voice(samples * 1000 / RATE))] == roles


def test_interleaved_replies_keep_their_own_audio() -> None:
    rows = [audio(300, SECOND, "a"), audio(310, SECOND, "b"), audio(320, SECOND, "a")]
    first, second = told(rows, logs.joined(silence(500), voice(2500)))
    assert first.ranges == ((0, SECOND), (2 * SECOND, 3 * SECOND))
    assert (first.onset, first.end) == (SECOND // 2, 3 * SECOND)
    assert second.ranges == ((SECOND, 2 * SECOND),)


def test_without_an_end_of_speech_nothing_has_a_role() -> None:
    segments = [Segment(((0, 9),), 0, 9), Segment(((9, 18),), 9, 18)]
    playout = play([Arrival(T0_NS, 18)], RATE)
    assert all(s.role is None for s in told_roles(segments, playout, None, None))
    assert all(s.role is None for s in stream_roles(segments, playout, None, None))


@pytest.mark.parametrize(
    ("spans", "segments"),
    [
        ([], []),
        ([(0, 1)], [(0, 1)]),
        ([(0, 1), (2.4, 3)], [(0, 3)]),  # 1.4 s of quiet are a pause
        ([(0, 1), (2.5, 3)], [(0, 1), (2.5, 3)]),  # 1.5 s part two segments
        ([(1, 2), (4, 5), (5.5, 6)], [(1, 2), (4, 6)]),
    ],
)
def test_a_stream_is_split_at_a_second_and_a_half_of_quiet(
    spans: list[tuple[float, float]], segments: list[tuple[float, float]]
) -> None:
    samples = np.array(spans, dtype=np.float64).reshape(-1, 2) * RATE
    found = stream_segments(samples.astype(np.int64), RATE)
    assert [(s.onset, s.end) for s in found] == [(a * RATE, b * RATE) for a, b in segments]


@pytest.mark.parametrize(
    ("spans_ms", "roles"),
    [
        ([(300, 900)], ["answer"]),
        ([(-1990, -1920), (300, 900)], ["greeting", "answer"]),
        ([(-1990, 50), (300, 900)], ["greeting", "answer"]),  # it went on, but had begun before
        ([(-800, -500), (300, 900)], ["backchannel", "answer"]),
        ([(-800, 500)], ["talk-over"]),
        ([(-800, 500), (3000, 4000)], ["talk-over", "later"]),
        ([(-1990, -1920), (-900, -700), (-100, 900)], ["greeting", "backchannel", "talk-over"]),
        ([(300, 900), (3000, 4000), (6000, 6500)], ["answer", "later", "later"]),
        ([(-800, -500)], ["backchannel"]),
        ([(0, 900)], ["answer"]),
    ],
)
def test_duplex_segments_have_their_roles(
    spans_ms: list[tuple[int, int]], roles: list[str]
) -> None:
    start = T0_NS - 2000 * MS
    samples = [(round((a + 2000) * 24), round((b + 2000) * 24)) for a, b in spans_ms]
    segments = [Segment((span,), *span) for span in samples]
    playout = play([Arrival(start, samples[-1][1] + RATE)], RATE)
    found = stream_roles(segments, playout, ONSET_NS, T0_NS)
    assert [segment.role for segment in found] == roles
