"""Endpoints that are one endpoint under two names: `--map OLD=NEW`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def refuse_absent(mapped: Mapping[str, str], summaries: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to pair an endpoint that is not there.

    Args:
        mapped: Of `read_map`.
        summaries: Of the first run and those that follow it.

    Raises:
        UserError: If the first run lacks an old name, or all others a new one.
    """
    first, *others = ({str(cell["endpoint"]) for cell in one["cells"]} for one in summaries)
    for names, there, where in (
        (mapped.keys(), first, "the first run has no"),
        (mapped.values(), set().union(*others), "no later run has an"),
    ):
        for name in names:
            if name not in there:
                shown = ", ".join(printable(one, 40) for one in sorted(there)) or "none"
                found = f"{where} endpoint {printable(name, 40)!r}"
                raise UserError("--map", found, f"name one that is there: {shown}")
