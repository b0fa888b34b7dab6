"""Names of trials: keys in rows, cells and files on disk, from the user's own names.

Two different trials never share a name. Every name is safe as a file name: no separators, no
leading dots, no control characters, nothing outside ASCII, at most 60 bytes a part.
"""

from __future__ import annotations

import hashlib

LONGEST = 60
"""Bytes of an encoded part; a longer one is cut and ends in a hash of the whole."""

_HASH = 16
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_EMPTY = "%"  # no encoded text is a bare percent sign, so an empty part has a name of its own
_CUT = "="  # never left plain by the encoding, so a cut part equals no whole one


def part(name: str) -> str:
    """Return one part of a key: percent-encoded UTF-8, `~`, `/` and a leading dot as well.

    Args:
        name: Any text, as the user wrote it.

    Returns:
        1 to 60 characters of ASCII. Equal only for equal names (up to a 64-bit hash, for names
        whose encoded form is longer than 60 bytes).
    """
    data = name.encode("utf-8", "surrogatepass")
    encoded = "".join(
        chr(byte) if byte in _PLAIN and not (byte == ord(".") and index == 0) else f"%{byte:02X}"
        for index, byte in enumerate(data)
    )
    if len(encoded) <= LONGEST:
        return encoded or _EMPTY
    head = encoded[: LONGEST - _HASH - 1]
    escape = head.rfind("%", -2)
    if escape >= 0:  # never cut an escape in two
        head = head[:escape]
    return head + _CUT + hashlib.sha256(data).hexdigest()[:_HASH]


def key(
    endpoint: str, suite: str, item: str, condition: str, trial: int, turn: int | None = None
) -> str:
    """Return `endpoint/suite/item/condition/trial`, and `/turn` for an item of several turns."""
    parts = [part(endpoint), part(suite), part(item), part(condition), str(trial)]
    if turn is not None:
        parts.append(str(turn))
    return "/".join(parts)


def cell(endpoint: str, suite: str, condition: str) -> str:
    """Return `endpoint~suite~condition`: the folder of one cell's logs and audio."""
    return "~".join((part(endpoint), part(suite), part(condition)))


def file(item: str, trial: int, attempt: int, turn: int | None = None) -> str:
    """Return `item~trial[~turn]~attempt`: the stem of one attempt's files inside its cell."""
    numbers = [trial, attempt] if turn is None else [trial, turn, attempt]
    return "~".join((part(item), *map(str, numbers)))
