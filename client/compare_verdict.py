"""A comparison's outcome in one sentence: a regression, none, or what could not be measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voxmeter.scoring.definitions import Better
from voxmeter.scoring.paired import Difference, Floors

UNMEASURED = "could not be measured"
"""Begins the reason of a gate that lacked samples: neither a regression nor a success."""

_QUIET = "run it again on a quiet machine, with lower concurrency or with more items"
_MORE = "run it again with more items"
_WIDE = 2.0

Gate = Mapping[str, Any]


def said(verdict: str, gates: Sequence[Gate]) -> str:
    """Return a verdict with what a reader must know at once.

    Args:
        verdict: Of the document.
        gates: Its rows.
    """
    if verdict in {"gate failed", "not comparable"}:
        reasons = [str(gate["reason"]) for gate in gates if gate["p_holm"] is None]
        lost = [one for one in reasons if one.startswith(UNMEASURED)]
        other = [one for one in reasons if one and not one.startswith(UNMEASURED)]
        if lost and (not other or verdict == "not comparable"):
            return lost[0]
        return f"{verdict}: {other[0]}" if other and verdict == "gate failed" else verdict
    doubts = [gate for gate in gates if gate["verdict"] == "passed" and gate["reason"]]
    if verdict != "no regression" or not doubts:
        return verdict
    first, more = doubts[0], f", and {len(doubts) - 1} more" if len(doubts) > 1 else ""
    return f"{verdict}, but {first['metric']} ({first['cell']}): {first['reason']}{more}"


def unmeasured(problem: str, left: int, items: int, late: int) -> str:
    """Return why a gate that lacked samples has no verdict, and what to do.

    Args:
        problem: What it lacked, in words.
        left: Items with a value on both sides.
        items: Items that both sides asked.
        late: Latencies that this machine spoilt by being late itself.
    """
    if not late:
        return f"{UNMEASURED}: {problem}; {_MORE}"
    lost = f"{late} {'latency' if late == 1 else 'latencies'} lost"
    counts = f"{left} of {items} items left, {lost} to this machine's own lateness"
    return f"{UNMEASURED}: {counts} ({problem}); {_QUIET}"


def doubt(found: Difference, base: float, better: Better, floors: Floors, unit: str) -> str:
    """Return what a passed gate would have let pass too, "" where it was measured closely.

    An interval that reaches more than twice as far as the larger floor tells of few items, or of
    items that differ much from each other.
    """
    worst = found.low if better == "higher" else found.high
    if worst is None:
        return ""
    loss = -worst if better == "higher" else worst
    if loss <= _WIDE * max(floors.absolute, floors.relative * abs(base)) or loss <= 0:
        return ""
    if unit == "fraction":
        amount = f"a loss of up to {100 * loss:.0f} points"
    else:
        amount = f"a change for the worse of up to {loss:.3g}{' ms' if unit == 'ms' else ''}"
    return f"too few items to tell: {amount} would pass"
