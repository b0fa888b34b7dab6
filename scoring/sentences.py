"""How many sentences a written text has: dots of abbreviations, numbers and initials end none."""

from __future__ import annotations

import re

_WORDS = """
    mr mrs ms dr prof st jr sr vs etc inc ltd co corp dept fig no vol approx e.g i.e cf al gen col
    capt lt sgt rev hon jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k a.m p.m ph.d
"""
_ABBREVIATIONS = frozenset(_WORDS.split())
_END = re.compile(r"[.!?…]+[\"'”’)\]*_]*(?=\s|$)|[。！？]+|\n\s*\n")  # noqa: RUF001
_HAS_WORD = re.compile(r"\w")


def count_sentences(text: str) -> int:
    """Return the number of sentences, an unended one at the end included."""
    count, start = 0, 0
    for found in _END.finditer(text):
        if found[0].startswith(".") and _abbreviated(
            text[start : found.start()], text[found.end() :]
        ):
            continue
        count += bool(_HAS_WORD.search(text, start, found.end()))
        start = found.end()
    return count + bool(_HAS_WORD.search(text, start))


def _abbreviated(before: str, after: str) -> bool:
    """Return whether a dot belongs to the word before it."""
    words = before.split()
    last = words[-1].strip("(\"'*_") if words else ""
    if len(last) == 1 and last.isupper() and last != "I":
        return True
    if last.isdigit() and len(words) == 1:  # "1. First" is the number of an entry
        return True
    return last.casefold() in _ABBREVIATIONS and bool(after.strip())
