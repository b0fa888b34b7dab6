"""The query of a session's URL, read with one clear line for each mistake in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from voxmeter.client.nearest import cure
from voxmeter.client.servers.brain import RefusedError

Word = TypeVar("Word", bound=str)


def refuse_unknown(query: Mapping[str, str], known: Sequence[str]) -> None:
    """Refuse a query that has a key outside `known`.

    Raises:
        RefusedError: Naming the key and the nearest one that exists.
    """
    for key in query:
        if key not in known:
            raise RefusedError(400, f"query key {_shown(key)!r} is unknown; {cure(key, known)}")


def number(query: Mapping[str, str], key: str, default: float, low: float, high: float) -> float:
    """Return a number of the query between two limits, both allowed.

    Raises:
        RefusedError: If it is no number or outside.
    """
    raw = query.get(key)
    if raw is None:
        return default
    try:
        value = float(raw)
    except ValueError:
        value = math.nan
    if not low <= value <= high:  # NaN fails too
        raise RefusedError(400, f"{key}={_shown(raw)!r} is not a number from {low:g} to {high:g}")
    return value


def word(query: Mapping[str, str], key: str, default: Word, allowed: Sequence[Word]) -> Word:
    """Return one of a few words.

    Raises:
        RefusedError: If it is none of them.
    """
    raw = query.get(key)
    if raw is None:
        return default
    for choice in allowed:
        if raw == choice:
            return choice
    raise RefusedError(400, f"{key}={_shown(raw)!r} is not one of {', '.join(allowed)}")


def text(query: Mapping[str, str], key: str, longest: int) -> str:
    """Return a text of the query, "" without one.

    Raises:
        RefusedError: If it is longer than `longest` characters.
    """
    raw = query.get(key, "")
    if len(raw) > longest:
        raise RefusedError(400, f"{key} has {len(raw)} characters; at most {longest} are taken")
    return raw


def _shown(raw: str) -> str:
    """Return a client's word fit for one line of an answer or a log."""
    return raw[:60].encode("unicode_escape").decode("ascii")
