"""What the page is told: the updates of a live session as JSON objects with a `type`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from voxmeter.client.live.updates import (
    Level,
    Mark,
    Notice,
    PhaseChanged,
    Running,
    Saved,
    TurnOver,
    Update,
    Words,
)

Figures = Mapping[str, tuple[int, float, float]]


def shown(update: Update, paths_ms: tuple[float | None, float | None]) -> dict[str, object] | None:
    """Return the message that shows an update; None for levels, which the page measures itself.

    Args:
        update: What the session tells.
        paths_ms: Of `PageSound.paths_ms`; stand beside the latencies of a turn.
    """
    match update:
        case Level():
            return None
        case Words(side, turn, text, whole):
            return {"type": "words", "side": side, "turn": turn, "text": text, "whole": whole}
        case Mark(turn, name, ms):
            return {"type": "mark", "turn": turn, "name": name, "ms": _finite(ms)}
        case TurnOver(turn, status, latency, condition):
            return {
                "type": "turn-over",
                "turn": turn,
                "status": status,
                "latency": {name: _finite(ms) for name, ms in latency.items()},
                "condition": condition,
                "paths": {"microphone": _finite(paths_ms[0]), "speaker": _finite(paths_ms[1])},
            }
        case Running(figures):
            return {"type": "running", "figures": _figures(figures)}
        case PhaseChanged(phase, detail):
            return {"type": "phase", "phase": phase, "detail": detail}
        case Notice(text, serious):
            return {"type": "notice", "text": text, "serious": serious}
        case Saved(folder, turns, figures):
            return {
                "type": "saved",
                "folder": str(folder),
                "turns": turns,
                "figures": _figures(figures),
            }


def _figures(figures: Figures) -> dict[str, list[float | None]]:
    return {name: [n, _finite(p50), _finite(p90)] for name, (n, p50, p90) in figures.items()}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
