"""Replies of judges kept on disk, so that no judge is asked the same thing twice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from voxmeter.client.model_files import write_atomically
from voxmeter.scoring.judging import Said

_FORM = 1


class JudgementCache:
    """A folder with one JSON file for each thing asked; a damaged one only costs another ask.

    The name of a file is the hash of everything that decides a reply: the service's address, the
    model, its settings and every message.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, asked: str) -> tuple[Said, ...]:
        """Return the replies that are known, none where nothing is."""
        try:
            row = json.loads(self._path(asked).read_text(encoding="utf-8"))
            return read_replies(row["replies"]) if row["form"] == _FORM else ()
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return ()

    def put(self, asked: str, replies: Sequence[Said]) -> None:
        """Keep replies."""
        row = {"form": _FORM, "replies": [asdict(said) for said in replies]}
        with contextlib.suppress(OSError):
            write_atomically(self._path(asked), json.dumps(row).encode())

    def _path(self, asked: str) -> Path:
        return self._folder / asked[:2] / f"{asked}.json"


def read_replies(rows: object) -> tuple[Said, ...]:
    """Return replies as a cache or a row of scores.jsonl holds them; none of them if one is wrong.

    Args:
        rows: A list of objects; outside data.
    """
    if not isinstance(rows, list):
        return ()
    found = [_said(row) for row in rows if isinstance(row, Mapping)]
    kept = [said for said in found if said is not None]
    return tuple(kept) if len(kept) == len(rows) else ()


def _said(row: Mapping[str, Any]) -> Said | None:
    match dict(row):
        case {"raw": str() | None as raw, "finish": str(finish), "model": str(model)}:
            return Said(
                raw,
                finish,
                model,
                _count(row.get("tokens_in")),
                _count(row.get("tokens_out")),
                _count(row.get("tries")) or 1,
            )
        case _:
            return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
