"""Which benchmark a folder or file is a download of, by names alone: nothing is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

JSONL = "suite.jsonl"
"""The file of a suite that `voxmeter suites build` makes."""

SIGNS: Mapping[str, Sequence[str]] = {
    "voxeval": ("test/*.csv",),
    "adu-bench": (
        "input/ADU-*/*.jsonl",
        "ADU-General/*.jsonl",
        "ADU-Skill/*.jsonl",
        "ADU-Multilingual/*.jsonl",
        "ADU-Ambiguity/*.jsonl",
    ),
    "air-bench": (
        "Foundation/Foundation_meta.json",
        "Chat/Chat_meta.json",
        "Foundation_meta.json",
        "Chat_meta.json",
    ),
    "big-bench-audio": ("metadata.jsonl",),
    "jsonl": (JSONL,),
    "voicebench": ("*/*.jsonl", "*/*.parquet"),
}
"""What lies in a download of each kind, the most certain first."""


def recognised(path: Path) -> str | None:
    """Return the kind of a download, None where it looks like none that is known.

    Args:
        path: Its folder; a file is a suite of one's own.
    """
    if not path.is_dir():
        return "jsonl"
    for kind, signs in SIGNS.items():
        if any(next(path.glob(sign), None) is not None for sign in signs):
            return kind
    return None
