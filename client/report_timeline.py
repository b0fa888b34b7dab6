"""Where the marks of one trial stand on the time of its recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from voxmeter.client.trial_lines import TrialLine

Json = dict[str, Any]
Row = Mapping[str, Any]

MOST_DELTAS = 500
"""Text deltas marked on one timeline; a page of ticks tells no more."""

_NS_A_MS = 1_000_000
_A_DAY_MS = 86_400_000
"""A mark further away is damage: with it the rest of the picture would be one line."""

_AT_ONCE = frozenset({"request", "text"})
"""Kinds of latency whose t0 is the moment that the whole question was sent."""

_MARKS = {
    "packet": "first_packet_ms",
    "audible": "first_audible_ms",
    "text": "first_text_ms",
    "endpointing": "endpointing_ms",
    "end": "reply_end_ms",
}


def timeline(line: TrialLine, rows: Sequence[Row]) -> Json:
    """Return marks in milliseconds from the recording's first sample; empty without a known t0.

    Args:
        line: The trial.
        rows: Its raw log, empty where there is none.
    """
    t0_ms = _t0_ms(line.trial, rows)
    if t0_ms is None:
        return {}
    marks = {"speech_end": round(t0_ms, 3)}
    for mark, name in _MARKS.items():
        after = _near(line.latency.get(name))
        if after is not None:
            marks[mark] = round(t0_ms + after, 3)
    return {
        "marks": marks,
        "sent": line.trial.get("latency_kind") in _AT_ONCE,
        "stalls": list(_stalls(line.trial.get("stall_spans"), t0_ms)),
        "deltas": _deltas(rows),
    }


def _near(ms: object) -> float | None:
    """Return a time that can be on a timeline, None for anything else."""
    if isinstance(ms, bool) or not isinstance(ms, int | float):
        return None
    return float(ms) if -_A_DAY_MS <= ms <= _A_DAY_MS else None


def _between(began: object, t_ns: object) -> float | None:
    if not isinstance(began, int) or not isinstance(t_ns, int):
        return None
    passed = t_ns - began
    return passed / _NS_A_MS if abs(passed) <= _A_DAY_MS * _NS_A_MS else None


def _t0_ms(trial: Row, rows: Sequence[Row]) -> float | None:
    if rows and rows[0].get("kind") == "start" and isinstance(trial.get("t0_ns"), int):
        return _between(rows[0].get("t_ns"), trial["t0_ns"])
    return _near((trial.get("clip") or {}).get("speech_end_ms"))


def _stalls(found: object, t0_ms: float) -> Iterator[list[float]]:
    for span in found if isinstance(found, list) else []:
        if isinstance(span, Mapping):
            start, length = _near(span.get("start_ms")), _near(span.get("ms"))
            if start is not None and length is not None:
                yield [round(t0_ms + start, 3), round(t0_ms + start + length, 3)]


def _deltas(rows: Sequence[Row]) -> list[float]:
    began = rows[0].get("t_ns") if rows else None
    texts = (row for row in rows if row.get("kind") == "reply_text")
    times = (_between(began, row.get("t_ns")) for row in texts)
    return [round(ms, 1) for ms in times if ms is not None and ms >= 0][:MOST_DELTAS]
