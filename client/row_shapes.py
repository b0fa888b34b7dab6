"""What the rows and tables of a run folder are made of, as far as readers lean on it.

A row that a hand or another program changed is told with its file and line, never met halfway
through a calculation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Kinds = Mapping[str, type]
Row = dict[str, Any]

_ITEM: Kinds = {"suite": str, "item": str, "groups": list}
_TRIAL: Kinds = {
    **dict.fromkeys(("key", "endpoint", "suite", "item", "condition", "status"), str),
    **dict.fromkeys(("attempt", "trial", "turn"), int),
    **dict.fromkeys(("clip", "latency", "audit"), dict),
    "segments": list,
}
_TRANSCRIPT: Kinds = {"key": str, "attempt": int}
_SCORE: Kinds = {"key": str, "attempt": int, "metric": str, "detail": dict}

_WORKER: Kinds = dict.fromkeys(("worker", "host", "what"), str)

_AUDIT: Kinds = {"send_lateness_ms": dict, "loop_lag_ms": dict}
_CONFIG: Kinds = {
    "run": dict,
    **dict.fromkeys(("endpoint", "suite", "condition", "judge", "gate"), list),
}
_PLANNED: Kinds = {"endpoint": str, "suite": str, "condition": str, "planned": int}
_RUN: Kinds = {
    "run": str,
    **dict.fromkeys(("config", "machine", "selection", "parts"), dict),
    **dict.fromkeys(("planned", "planned_whole"), list),
}
_MOST = 1_000_000_000
MOST_PARTS = 999_999
"""Into which a run is cut."""

_TOLD = {str: "text", int: "a whole number", dict: "an object", list: "a list"}


def _problem(row: Mapping[str, Any], kinds: Kinds) -> str | None:
    """Return which field of a row is of another kind than readers take it for, in words.

    A field that is absent is of no kind: which have to be there is another question. Objects, lists
    and turns may be null.
    """
    for name, kind in kinds.items():
        value = row.get(name)
        if type(value) is kind and kind is not int:
            continue  # a run has a million rows, and nearly all of them are sound
        if value is None:
            if kind in (str, int) and name != "turn" and name in row:
                return f"its {name} is null"
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            return f"its {name} is not {_TOLD[kind]}"
        if isinstance(value, int) and abs(value) > _MOST:
            return f"its {name} is larger than any that a run writes"
    return None


def _trial_problem(row: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a row of `trials.jsonl`, None when nothing is."""
    found = _problem(row, _TRIAL)
    if found is None and row.get("audit"):
        found = _problem(row["audit"], _AUDIT)
    if found is None and not all(isinstance(one, dict) for one in row.get("segments") or ()):
        found = "its segments are not objects"
    return found


def run_problem(run: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the content of `run.json`, None when nothing is."""
    found = _problem(run, _RUN) or _selection_problem(run.get("selection") or {})
    found = found or _parts_problem(run.get("parts") or {})
    if found is not None:
        return found
    config = run.get("config") or {}
    found = _problem(config, _CONFIG)
    if found is not None:
        return f"in its config, {found}"
    for name in ("endpoint", "suite", "condition", "judge", "gate"):
        if not all(isinstance(one, dict) for one in config.get(name) or ()):
            return f"in its config, {name} is not a list of objects"
    seed = (config.get("run") or {}).get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        return "in its config, seed is not a whole number from 0"
    return _cells_problem(run, "planned") or _cells_problem(run, "planned_whole")


def _cells_problem(run: Mapping[str, Any], name: str) -> str | None:
    for row in run.get(name) or ():
        if not isinstance(row, dict) or not row.keys() >= _PLANNED.keys() or None in row.values():
            return f"its {name} is not a list of cells"
        found = _problem(row, _PLANNED)
        if found is not None:
            return f"in its {name}, {found}"
    return None


def _selection_problem(selection: Mapping[str, Any]) -> str | None:
    """Return what is wrong with what a run says of the command line that began it."""
    limit, only, shard = (selection.get(name) for name in ("limit", "only", "shard"))
    if limit is not None and (type(limit) is not int or limit < 1):
        return "in its selection, limit is not a whole number from 1"
    names = only.values() if isinstance(only, dict) else () if only is None else (only,)
    if not all(isinstance(one, list) and all(isinstance(n, str) for n in one) for one in names):
        return "in its selection, only is not lists of names"
    if shard is not None and not _is_part(shard):
        return "in its selection, shard is no part of a whole"
    return None


def _is_part(shard: object) -> bool:
    match shard:
        case [int(number), int(of)]:
            return type(number) is type(of) is int and 1 <= number <= of <= MOST_PARTS
        case _:
            return False


def _parts_problem(parts: Mapping[str, Any]) -> str | None:
    """Return what is wrong with what a merged run says of its parts."""
    if not parts:
        return None
    of, had, runs = parts.get("of"), parts.get("had"), parts.get("runs") or []
    if not isinstance(had, list) or not all(_is_part([number, of]) for number in had):
        return "in its parts, had is not a list of parts"
    if not isinstance(runs, list) or not all(isinstance(one, dict) for one in runs):
        return "in its parts, runs is not a list of objects"
    found = (_problem(one, {"run": str, "machine": dict}) for one in runs)
    return next((f"in its parts, {one}" for one in found if one is not None), None)


PROBLEMS: Mapping[str, Callable[[Row], str | None]] = {
    "items": partial(_problem, kinds=_ITEM),
    "trials": _trial_problem,
    "transcripts": partial(_problem, kinds=_TRANSCRIPT),
    "scores": partial(_problem, kinds=_SCORE),
    "workers": partial(_problem, kinds=_WORKER),
}
"""Says of a row of each file what is wrong with it, in words; None when nothing is."""
