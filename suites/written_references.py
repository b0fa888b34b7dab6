"""References that a language model wrote for questions of a benchmark: files beside a download."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from voxmeter.suites.fields import Fields
from voxmeter.suites.jsonl import object_lines

KEYS = ("item", "reference", "question", "model", "prompt", "written_at")
"""Keys of a line; all but the first two are for readers of the file."""


def read_references(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the references of a file by item; of several lines for one the last counts.

    Raises:
        UserError: If it cannot be read, or a line has no item, no reference or unknown keys.
    """
    found: dict[str, tuple[str, ...]] = {}
    for number, row in object_lines(path):
        fields = Fields(f"{path}:{number}", row)
        fields.known_only(KEYS)
        found[fields.required_text("item")] = (fields.required_text("reference"),)
    return found
