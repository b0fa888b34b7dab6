"""What is wrong with a user's own suite: every line, where loading it stops at the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.jsonl import checked_lines, read_line


def verify(path: Path) -> Iterator[str]:
    """Yield one line for each line of a file that is no item; audio is not looked at.

    Raises:
        UserError: If the file cannot be read.
    """
    lines: dict[str, int] = {}
    for number, found in checked_lines(path):
        if isinstance(found, UserError):
            yield str(found)
            continue
        try:
            item = read_line(path, number, found, path.stem)
        except UserError as error:
            yield str(error)
            continue
        if item.item in lines:
            yield f"{path}:{number}: id {item.item!r} is already on line {lines[item.item]}"
        lines.setdefault(item.item, number)
