"""Logs of attempts whose every mark is known, because it was put there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxmeter.scoring.log import Row

MS = 1_000_000
START_NS = 5_000_000_000_000
RATE = 24_000
CLIP_MS = 2000
"""The question: voiced from 100 ms to 2 s of the outgoing stream."""
T0_NS = START_NS + CLIP_MS * MS

Samples = NDArray[np.float32]


def header(kind: str = "server-vad", **changes: Any) -> dict[str, Any]:
    row = {
        "t_ns": START_NS,
        "dir": "out",
        "kind": "start",
        "input_rate": 16_000,
        "output_rate": RATE,
        "frame_ms": 20,
        "lead_in_samples": 1600,
        "clip_samples": 32_000 - 1600,
        "onset_sample": 1600,
        "speech_end_sample": 32_000,
        "end_kind": "speech",
        "latency_kind": kind,
        "commit_after_ms": 0,
        "pacing": "real-time",
    }
    return row | changes


def frames(count: int, *, late_ms: float = 0, late: Sequence[int] = ()) -> list[Row]:
    """20 ms frames, each sent when it was due; those in `late` so much later."""
    rows: list[Row] = []
    for number in range(count):
        due = START_NS + (number + 1) * 20 * MS
        t_ns = due + (int(late_ms * MS) if number in late else 0)
        rows.append({"t_ns": t_ns, "dir": "out", "kind": "audio", "due_ns": due, "samples": 320})
    return rows


def came(ms: float, kind: str, **fields: Any) -> dict[str, Any]:
    """A row that came in `ms` after t0."""
    return {"t_ns": T0_NS + round(ms * MS), "dir": "in", "kind": kind, **fields}


def audio(ms: float, samples: int, reply: str = "r1") -> dict[str, Any]:
    return came(ms, "reply_audio", samples=samples, reply=reply)


def told_reply(
    ms: float, samples: int, *, chunk_ms: float = 100, pace: float = 1, reply: str = "r1"
) -> list[dict[str, Any]]:
    """A whole reply in chunks that come `pace` times as slowly as they play."""
    chunk = int(chunk_ms * RATE / 1000)
    rows = [came(ms, "reply_started", reply=reply)]
    for number, start in enumerate(range(0, samples, chunk)):
        at = ms + number * chunk_ms * pace
        rows.append(audio(at, min(chunk, samples - start), reply))
    end = {"reason": "completed", "reply": reply}
    return [*rows, {**rows[-1], "kind": "reply_ended", **end}]


def log(*parts: Sequence[Row], kind: str = "server-vad", **changes: Any) -> list[Row]:
    """The header, then all rows in the order of their time."""
    rows = [row for part in parts for row in part]
    return [header(kind, **changes), *sorted(rows, key=lambda row: row["t_ns"])]


def silence(ms: float) -> Samples:
    return np.zeros(round(RATE * ms / 1000), dtype=np.float32)


def voice(ms: float) -> Samples:
    """Sound that is audible from its first sample to its last."""
    count = round(RATE * ms / 1000)
    return np.asarray(0.2 * np.cos(2 * np.pi * 250 * np.arange(count) / RATE), dtype=np.float32)


def joined(*parts: Samples) -> Samples:
    return np.concatenate(parts)
