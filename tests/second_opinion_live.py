"""Made-up logs as a microphone and a loudspeaker would have written them: blocks of 20 ms."""

from __future__ import annotations

from collections import deque
from typing import Any

from second_opinion_logs import INPUT_RATE, OUTPUT_RATE, Samples, Script

_BLOCK = OUTPUT_RATE // 50
_BLOCK_NS = 20_000_000
_IN_NS, _OUT_NS = 7_300_000, 31_700_000
"""From the microphone's converter to us, and from us to the loudspeaker's."""


def live_log(script: Script) -> tuple[list[dict[str, Any]], Samples]:
    """Return a script's log with devices: when sound was taken, and what of it was put out."""
    rows, stream = script.log()
    duplex = script.kind == "duplex"
    header = {**rows[0], "latency_kind": "live", "live": True, "full_duplex": duplex}
    taken: list[dict[str, Any]] = []
    for row in rows[1:]:
        if row["kind"] == "audio":
            length_ns = row["samples"] * 1_000_000_000 // INPUT_RATE
            taken.append({**row, "taken_ns": row["due_ns"] - length_ns - _IN_NS})
        else:
            taken.append(row)
    return [header, *taken, *_put_out(rows)], stream


def _put_out(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Play what has come in blocks, whole or not; what is cut is thrown away."""
    coming = deque(sorted(_events(rows), key=lambda one: one[0]))
    queue: deque[int] = deque()
    played: list[dict[str, Any]] = []
    now = coming[0][0] if coming else 0
    while coming or queue:
        while coming and coming[0][0] <= now:
            _, samples = coming.popleft()
            if samples is None:
                queue.clear()
            else:
                queue.extend(samples)
        if queue:
            block = [queue.popleft() for _ in range(min(_BLOCK, len(queue)))]
            told = {"dir": "out", "kind": "played", "bytes": 0, "t_ns": now + _BLOCK_NS}
            stretch = {"sample": block[0], "samples": len(block), "heard_ns": now + _OUT_NS}
            played.append(told | stretch)
        now += _BLOCK_NS
    return played


def _events(rows: list[dict[str, Any]]) -> list[tuple[int, range | None]]:
    found: list[tuple[int, range | None]] = []
    place = 0
    for row in rows:
        if row["kind"] == "reply_audio":
            found.append((row["t_ns"], range(place, place + row["samples"])))
            place += row["samples"]
        elif row["kind"] == "interrupted" or row.get("reason") == "cancelled":
            found.append((row["t_ns"], None))
    return found
