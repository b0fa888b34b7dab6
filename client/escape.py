"""Text that an endpoint wrote, made harmless for the document it is put into."""

from __future__ import annotations

import re
import unicodedata

_SPACES = re.compile(r"\s+")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKUP = re.compile(r"([\\|`*_\[\]~$@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"  # parts of words and of emoji
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # noqa: RUF001 - full-width too


def plain(text: str, limit: int | None = None) -> str:
    """Return text on one line without control or invisible direction characters.

    Args:
        text: Anything.
        limit: Most characters; what is cut ends in three dots.
    """
    kept = "".join(letter if _is_visible(letter) else " " for letter in text)
    kept = _SPACES.sub(" ", kept).strip()
    if limit is not None and len(kept) > limit:
        return kept[: max(0, limit - 3)].rstrip() + "..."
    return kept


def _is_visible(letter: str) -> bool:
    if letter in _JOINERS:
        return True
    return unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def markdown(text: str, limit: int | None = 300) -> str:
    """Return text as one cell of a Markdown table: no markup, no HTML, no link, no new column."""
    cleaned = _MARKUP.sub(r"\\\1", plain(text, limit))
    return "".join(_HTML.get(letter, letter) for letter in cleaned)


def csv_cell(text: str) -> str:
    """Return text as a cell that no spreadsheet takes for a formula.

    A cell that would begin one gets an apostrophe in front, as spreadsheets themselves write it.
    """
    cleaned = plain(text)
    return f"'{cleaned}" if text.lstrip(" ")[:1] in _FORMULA or cleaned[:1] in _FORMULA else cleaned
