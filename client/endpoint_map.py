"""Endpoints that are one endpoint under two names: `--map OLD=NEW`."""

from __future__ import annotations

from collections.abc import Sequence

from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError


def read_map(words: Sequence[str]) -> dict[str, str]:
    """Return what `--map OLD=NEW` pairs, each name once.

    Raises:
        UserError: For a word that is no pair, or a name that is paired twice.
    """
    mapped: dict[str, str] = {}
    for word in words:
        old, equals, new = word.partition("=")
        if not (old and equals and new):
            found = f"{printable(word, 60)!r} is not OLD=NEW"
            raise UserError("--map", found, "write --map base-endpoint=new-endpoint")
        if old in mapped:
            raise UserError("--map", f"{printable(old, 60)!r} is given twice", "pair it once")
        if new in mapped.values():
            raise UserError("--map", f"{printable(new, 60)!r} is given twice", "pair it once")
        mapped[old] = new
    return mapped
