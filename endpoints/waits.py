"""The wait that an endpoint names in words: how long until it may be asked again."""

from __future__ import annotations

import re

_UNITS_S = {
    **dict.fromkeys(("ms", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_UNIT = "|".join(sorted(_UNITS_S, key=len, reverse=True))
_PART = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?) ?({_UNIT})(?![a-z])", re.IGNORECASE)
_WAIT = re.compile(
    rf"\b(?:again|retry|retrydelay)\W{{1,4}}(?:(?:in|after) )?((?:{_PART.pattern}[ ,]{{0,2}})+)",
    re.IGNORECASE,
)


def named_wait_s(words: str) -> float | None:
    """Return the wait that a text names ("Please try again in 6m0s."), s; None where none is."""
    found = _WAIT.search(words)
    if found is None:
        return None
    return sum(float(number) * _UNITS_S[unit.lower()] for number, unit in _PART.findall(found[1]))
