"""A finished run as columns: one number per trial and metric, read from the run folder's files.

Twenty thousand trials with two dozen metrics are a few megabytes this way; as dictionaries they
would be half a gigabyte.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.judge_columns import Tally
from voxmeter.scoring.definitions import JUDGES, LATENCY
from voxmeter.scoring.metrics import OURS, WITH_REPLY, chance, question

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]
Row = Mapping[str, Any]

ABSENT, SCORED, UNSCORED, LEFT_OUT = 0, 1, 2, 3
"""States of a score: no row; a value; no value, which counts against the endpoint; no value, which
does not."""

_BELIEVED = 1e12
"""Largest figure of a row that is one: sums of squares stay finite. In ms it is 30 years."""


@dataclass(slots=True)
class Names:
    """Texts as small numbers, in the order of their first appearance."""

    texts: list[str] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    def code(self, text: str) -> int:
        """Return the number of `text`, a new one if it is new."""
        if text not in self.codes:
            self.codes[text] = len(self.texts)
            self.texts.append(text)
        return self.codes[text]


@dataclass(slots=True)
class Column:
    """One metric of all trials, each array of shape (trials,).

    Attributes:
        value: The number; NaN where there is none (never written anywhere).
        state: `ABSENT`, `SCORED`, `UNSCORED` or `LEFT_OUT`.
        reason: Code in `Columns.reasons` of an unscored row, -1 otherwise.
    """

    value: Floats
    state: NDArray[np.int8]
    reason: Codes

    @classmethod
    def empty(cls, count: int) -> Column:
        """Return a column without any row."""
        nothing = np.full(count, np.nan)
        return cls(nothing, np.zeros(count, np.int8), np.full(count, -1, np.int32))


@dataclass(frozen=True, slots=True)
class ItemInfo:
    """What a summary needs of one item."""

    cluster: int
    path: tuple[str, ...]
    closed: bool
    chance: float
    origin: str = ""


NO_ITEM = ItemInfo(cluster=-1, path=(), closed=False, chance=0.0)


@dataclass(slots=True)
class Columns:
    """All trials of a run, each key's newest attempt; arrays have shape (trials,).

    Attributes:
        cells: Names of cells are triples, coded in `cell`.
        items: What is known of each item, by its code in `item`.
        latency_valid: False where our own lateness spoiled the trial's latency.
        waited: Trials that were refused first and asked again within their run.
        lost: Trials that were asked again because the worker that asked them was lost.
        host: Code in `hosts` of the machine that asked.
        gave_up: By endpoint, why it was asked no more; one that was asked on is not in it.
        early: How many replies began while our clip was playing and were not the answer.
        talked_over: Trials whose answer was audible before the user's end of speech.
        scores: A column for each metric that any row names, latency included.
        suite_sizes: Number of items of each suite.
        judged: What each judge took, by its name.
        audit: Numbers of the client's audit by name (`send_lateness_ms.p50`), NaN where absent.
    """

    keys: dict[str, int]
    attempt: Codes
    cells: list[tuple[str, str, str]]
    cell: Codes
    items: list[ItemInfo]
    item: Codes
    cluster: Codes
    closed: Flags
    chance: Floats
    status: Codes
    statuses: Names
    warmup: Flags
    latency_kind: Codes
    latency_kinds: Names
    latency_valid: Flags
    waited: Flags
    lost: Flags
    early: Codes
    talked_over: Flags
    scores: dict[str, Column]
    reasons: Names
    audit: dict[str, Floats]
    host: Codes
    hosts: Names
    channels: dict[int, set[str]]
    gave_up: Mapping[str, str]
    suite_sizes: Mapping[str, int]
    judged: dict[str, Tally] = field(default_factory=dict)

    @property
    def with_reply(self) -> Flags:
        """Trials that are scored on a reply."""
        return self._has_status(WITH_REPLY)

    @property
    def ours(self) -> Flags:
        """Trials that failed through no fault of the endpoint."""
        return self._has_status(OURS)

    def _has_status(self, wanted: Iterable[str]) -> Flags:
        codes = [self.statuses.codes[one] for one in wanted if one in self.statuses.codes]
        return np.isin(self.status, codes)

    def column(self, metric: str) -> Column:
        """Return the column of a metric, an empty one if no row names it."""
        return self.scores.get(metric) or Column.empty(len(self.attempt))


def read_items(rows: Iterable[Row]) -> dict[tuple[str, str], ItemInfo]:
    """Return what a summary needs of each item, by suite and item."""
    clusters = Names()
    found: dict[tuple[str, str], ItemInfo] = {}
    for row in rows:
        asked = question(row)
        suite, item = str(row["suite"]), str(row["item"])
        found[suite, item] = ItemInfo(
            cluster=clusters.code(f"{suite}\n{row.get('cluster') or item}"),
            path=tuple(str(group) for group in row.get("groups") or ()),
            closed=asked.closed,
            chance=chance(asked),
            origin=str(row.get("origin") or ""),
        )
    return found


_CODED = (
    *("cell", "item", "attempt", "status", "warmup", "kind", "valid", "waited"),
    *("early", "talked_over", "host", "lost"),
)
_EARLY = frozenset({"greeting", "early", "backchannel"})
"""Roles of replies that may come before the answer, as `scoring/segments.py` names them."""
_AUDIT = [
    f"{name}.{part}"
    for name in ("send_lateness_ms", "loop_lag_ms")
    for part in ("p50", "p99", "max")
]


def read_columns(
    items: Mapping[tuple[str, str], ItemInfo], trials: Iterable[Row], scores: Iterable[Row]
) -> Columns:
    """Read a run.

    Args:
        items: Of `read_items`; a trial of an unknown item counts as an open question.
        trials: The newest attempt of each key, rows of `trials.jsonl`.
        scores: All rows of `scores.jsonl`, oldest first; of each trial and metric the newest row
            counts, and only rows of the newest attempt.
    """
    reader = _TrialReader(items)
    for row in trials:
        reader.add(row)
    columns = reader.columns()
    _add_scores(columns, scores)
    return columns


@dataclass(slots=True)
class _TrialReader:
    items: Mapping[tuple[str, str], ItemInfo]
    keys: dict[str, int] = field(default_factory=dict)
    codes: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in _CODED})
    numbers: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in (*LATENCY, *_AUDIT)}
    )
    cells: dict[tuple[str, str, str], int] = field(default_factory=dict)
    item_codes: dict[tuple[str, str], int] = field(default_factory=dict)
    names: dict[str, Names] = field(
        default_factory=lambda: {name: Names() for name in ("status", "kind", "host")}
    )
    channels: dict[int, set[str]] = field(default_factory=dict)
    gave_up: dict[str, str] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        self.keys[row["key"]] = len(self.keys)
        cell = (str(row["endpoint"]), str(row["suite"]), str(row["condition"]))
        item = (cell[1], str(row["item"]))
        latency, audit = row.get("latency") or {}, row.get("audit") or {}
        found = row.get("segments")
        segments = found if isinstance(found, list) else []
        segments = [one for one in segments if isinstance(one, Mapping)]
        clip_ms = number((row.get("clip") or {}).get("speech_end_ms"))
        added = {
            "cell": self.cells.setdefault(cell, len(self.cells)),
            "item": self.item_codes.setdefault(item, len(self.item_codes)),
            "attempt": int(row["attempt"]),
            "status": self.names["status"].code(str(row["status"])),
            "warmup": int(bool(row.get("warmup"))),
            "kind": self.names["kind"].code(str(row.get("latency_kind") or "")),
            "valid": int(audit.get("latency_valid") is not False),
            "waited": int(bool(row.get("waited_s")) and row["attempt"] > 1),
            "host": self.names["host"].code(str(audit.get("host") or "")),
            "lost": int(number(row.get("lost_attempts", 0)) > 0),
            "early": sum(_is_early(one, clip_ms) for one in segments),
            "talked_over": int(any(one.get("role") == "talk-over" for one in segments)),
        }
        for name, code in added.items():
            self.codes[name].append(code)
        if row.get("gave_up"):
            self.gave_up[cell[0]] = str(row["gave_up"])
        for name in LATENCY:
            self.numbers[name].append(number(latency.get(name)))
        for name in _AUDIT:
            group, part = name.split(".")
            self.numbers[name].append(number((audit.get(group) or {}).get(part)))
        self.channels.setdefault(added["cell"], set()).add(str(row.get("reply_channel") or ""))

    def columns(self) -> Columns:
        codes = {name: np.array(self.codes[name], np.int32) for name in _CODED}
        infos = [self.items.get(item, NO_ITEM) for item in self.item_codes]
        item = codes["item"]
        return Columns(
            keys=self.keys,
            attempt=codes["attempt"],
            cells=list(self.cells),
            cell=codes["cell"],
            items=infos,
            item=item,
            cluster=np.array([one.cluster for one in infos], np.int32)[item],
            closed=np.array([one.closed for one in infos], np.bool_)[item],
            chance=np.array([one.chance for one in infos], np.float64)[item],
            status=codes["status"],
            statuses=self.names["status"],
            warmup=codes["warmup"].astype(np.bool_),
            latency_kind=codes["kind"],
            latency_kinds=self.names["kind"],
            latency_valid=codes["valid"].astype(np.bool_),
            waited=codes["waited"].astype(np.bool_),
            lost=codes["lost"].astype(np.bool_),
            early=codes["early"],
            talked_over=codes["talked_over"].astype(np.bool_),
            scores={name: _measured(self.numbers[name]) for name in LATENCY},
            reasons=Names(),
            audit={name: np.array(self.numbers[name], np.float64) for name in _AUDIT},
            host=codes["host"],
            hosts=self.names["host"],
            channels=self.channels,
            gave_up=self.gave_up,
            suite_sizes=Counter(suite for suite, _ in self.items),
        )


def _is_early(segment: Row, clip_ms: float) -> bool:
    """Return whether a reply was heard to begin while our clip was playing, and is not the answer.

    Args:
        segment: Of a trial's row; its times are from the end of the user's speech, null where
            nothing was audible.
        clip_ms: Where in the clip that end is.
    """
    return segment.get("role") in _EARLY and -clip_ms < number(segment.get("start_ms")) < 0


def _measured(numbers: list[float]) -> Column:
    column = Column.empty(len(numbers))
    column.value[:] = numbers
    column.state[np.isfinite(column.value)] = SCORED
    return column


def _add_scores(columns: Columns, rows: Iterable[Row]) -> None:
    count = len(columns.attempt)
    attempts = columns.attempt.tolist()
    for row in rows:
        index = columns.keys.get(row["key"])
        if index is None or attempts[index] != row.get("attempt"):
            continue
        column = columns.scores.get(row["metric"])
        if column is None:
            column = columns.scores[row["metric"]] = Column.empty(count)
        value = number(row.get("value"))
        column.value[index] = value
        reason = row.get("unscored")
        column.reason[index] = -1 if reason is None else columns.reasons.code(str(reason))
        if math.isfinite(value):
            column.state[index] = SCORED
        else:
            counted = (row.get("detail") or {}).get("counted") is not False
            column.state[index] = UNSCORED if counted else LEFT_OUT
        name, colon, judge = row["metric"].partition(":")
        if colon and name in JUDGES:
            if judge not in columns.judged:
                columns.judged[judge] = Tally.empty(count)
            columns.judged[judge].take(index, row.get("detail") or {})


def number(value: object) -> float:
    """Return a number of a row as a float, NaN where there is none or it is beyond belief."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if abs(value) <= _BELIEVED else math.nan
