"""Captures made by hand: what a session would have left behind, ready to be finished."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attempt_logs import MS, RATE, START_NS, T0_NS, frames, header, voice

from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Capture, Outcome, Utterance
from voxmeter.client.finish import Attempt
from voxmeter.client.redaction import Redactor
from voxmeter.client.runfolder import AttemptPaths

SENT = 0.25
"""Level of the question: every sample of it is this."""
CLIP_SAMPLES = 32_000 - 1600
REPLY = to_pcm16(voice(400))


def utterance() -> Utterance:
    """The clip that `attempt_logs.header` tells of: 16 kHz, voiced from its first sample on."""
    return Utterance(to_pcm16(np.full(CLIP_SAMPLES, SENT)), 16_000, 0, CLIP_SAMPLES)


def piece(
    data: bytes, ms: float = 300, encoding: str = "pcm16", rate: int = RATE, reply: str = "r1"
) -> tuple[dict[str, Any], bytes]:
    """One `reply_audio` row that came so long after t0, and its bytes."""
    row = {"t_ns": T0_NS + round(ms * MS), "dir": "in", "kind": "reply_audio", "bytes": len(data)}
    return row | {"encoding": encoding, "rate": rate, "reply": reply}, data


def told(ms: float, kind: str, **fields: Any) -> dict[str, Any]:
    """Any other row that came in."""
    return {"t_ns": T0_NS + round(ms * MS), "dir": "in", "kind": kind, "bytes": 0} | fields


def capture_of(
    *pieces: tuple[dict[str, Any], bytes],
    rows: Sequence[dict[str, Any]] = (),
    outcome: Outcome = "ended",
    late_ms: float = 0,
    late: Sequence[int] = (),
    changes: dict[str, Any] | None = None,
    **fields: Any,
) -> Capture:
    """A capture with these pieces of audio; one whole spoken reply by default.

    Args:
        pieces: From `piece`.
        rows: Further rows, from `told`.
        outcome: How the session ended.
        late_ms: How late the frames in `late` left.
        late: Numbers of frames.
        changes: Other fields of the header.
        fields: Other fields of the capture.
    """
    if not pieces and not rows:
        pieces = (piece(REPLY),)
        rows = (told(290, "reply_started", reply="r1"), told(310, "reply_ended", reply="r1"))
    start = header(**(changes or {}))
    del start["output_rate"]  # nobody knows it before the reply is decoded
    sent: list[dict[str, Any]] = [dict(row) for row in frames(110, late_ms=late_ms, late=late)]
    came = sorted([row for row, _ in pieces] + list(rows), key=lambda row: int(row["t_ns"]))
    everything = [start, *sent, *came]
    audio = [
        (next(n for n, one in enumerate(everything) if one is row), data) for row, data in pieces
    ]
    known: dict[str, Any] = {
        "utterance": utterance(),
        "fault": None,
        "raw": [],
        "ended_ns": START_NS + 10**10,
    }
    return Capture(outcome=outcome, rows=everything, audio=audio, **(known | fields))


def attempt_in(folder: Path, secrets: Sequence[str] = (), **fields: Any) -> Attempt:
    """An attempt whose files go to `events/` and `audio/` of a folder."""
    return Attempt(
        fields,
        AttemptPaths(
            folder / "events" / "one.jsonl",
            folder / "audio" / "one.flac",
            folder / "audio" / "one.reply.flac",
        ),
        Redactor(secrets),
    )
