"""The page's list of trials: one column a fact, so that twenty thousand rows stay small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from voxmeter.client.trial_lines import TrialLine
from voxmeter.scoring.definitions import LATENCY

Json = dict[str, Any]

SNIPPET = 120
"""Characters of a reply in the list of trials; its details have all."""


@dataclass(slots=True)
class TrialTable:
    """The list of trials as columns: what is the same in many rows stands there once."""

    cells: dict[tuple[int, str, str, str], int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    timed: dict[str, None] = field(default_factory=dict)
    lines: list[tuple[Any, ...]] = field(default_factory=list)
    latency: list[Mapping[str, float | None]] = field(default_factory=list)

    def add(self, run: int, line: TrialLine) -> None:
        """Add a trial of a run.

        Args:
            run: Its place on the page, from 0.
            line: The trial.
        """
        trial = line.trial
        cell = (run, str(trial["endpoint"]), str(trial["suite"]), str(trial["condition"]))
        right = {None: None, True: 1, False: 0}[line.right]
        valid = (trial.get("audit") or {}).get("latency_valid", True)
        judged = ", ".join(f"{name} {gave}" for name, gave in line.judged.items())
        status = "warm-up" if trial.get("warmup") else str(trial["status"])
        self.lines.append(
            (
                str(trial["key"]),
                self.cells.setdefault(cell, len(self.cells)),
                str(trial["item"]),
                trial["trial"],
                trial.get("turn"),
                self._word(status),
                right,
                line.answer[:SNIPPET],
                line.reference[:SNIPPET],
                self._word(line.rule or line.unscored),
                line.reply[:SNIPPET],
                judged[:SNIPPET],
                int(bool(valid)),
            )
        )
        self.timed |= {name: None for name, ms in line.latency.items() if ms is not None}
        self.latency.append(line.latency)

    def _word(self, text: str) -> int:
        return self.words.setdefault(text, len(self.words))

    def columns(self) -> Json:
        """Return one list a column, and what their numbers stand for."""
        columns = list(zip(*self.lines, strict=True)) or [()] * len(_COLUMNS)
        found: Json = dict(zip(_COLUMNS, columns, strict=True))
        for name in LATENCY:
            if name in self.timed:
                found[name] = [_short(one.get(name)) for one in self.latency]
        found["words"] = list(self.words)
        found["cells"] = [list(cell) for cell in self.cells]
        return found


_COLUMNS = (
    *("key", "cell", "item", "trial", "turn", "status", "right", "answer", "reference", "rule"),
    *("reply", "judged", "valid"),
)


def _short(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 1)
