"""Words on the terminal: what others wrote is shown harmlessly, warnings go to standard error."""

from __future__ import annotations

import sys
import unicodedata

_SHOWN = {"\n": "\\n", "\r": "\\r", "\t": " "}


def printable(text: str, limit: int | None = None) -> str:
    r"""Return text from an endpoint, a file or a server as one line without control characters.

    Escape sequences cannot move the cursor or colour the screen, bidirectional overrides cannot
    turn a line round: such characters become `\x1b`-like escapes; line ends become `\n`.

    Args:
        text: Anything.
        limit: Most characters to show; the rest becomes `...`.
    """
    if limit is not None and len(text) > limit:
        text = text[: max(0, limit - 3)] + "..."
    return "".join(_SHOWN.get(letter) or _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    if letter == "\N{ZERO WIDTH JOINER}" or unicodedata.category(letter) not in {
        "Cc",
        "Cf",
        "Cs",
        "Zl",
        "Zp",
    }:
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def warn(text: str) -> None:
    """Print one line of warning on standard error."""
    print(f"voxmeter: warning: {printable(text)}", file=sys.stderr, flush=True)


def human_bytes(count: float) -> str:
    """Return a size in the unit that fits, to two or three digits: `1.2 GB` (1 GB = 10^9)."""
    for unit in ("B", "kB", "MB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def human_seconds(seconds: float) -> str:
    """Return a duration as a person would say it: `40 s`, `12 min`, `3 h 05 min`, `5.5 days`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes >= 72 * 60:
        days = seconds / 86_400
        return f"{days:.1f} days" if days < 9.95 else f"{days:.0f} days"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
