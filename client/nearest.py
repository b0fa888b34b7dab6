"""The nearest valid name, for errors about unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a mistyped one most likely means; None where none is near."""
    by_fold = {one.casefold().replace("-", "_"): one for one in known}
    found = difflib.get_close_matches(name.casefold().replace("-", "_"), by_fold, n=1, cutoff=0.6)
    return by_fold[found[0]] if found else None


def cure(name: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown name: the nearest one, or the list of all."""
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        return f'did you mean "{near}"?'
    return f"known: {', '.join(names)}" if names else "there are none"
