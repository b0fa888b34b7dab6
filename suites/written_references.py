"""References that a language model wrote for questions of a benchmark: files beside a download."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from voxmeter.suites.fields import Fields
from voxmeter.suites.jsonl import object_lines

KEYS = ("item", "reference", "question", "model", "prompt", "written_at")


def read_references(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the references of a file by item; of several lines for one the last counts.

    Raises:
        UserError: If it cannot be read, or a line is none of `reference_line`.
    """
    found: dict[str, tuple[str, ...]] = {}
    for number, row in object_lines(path):
        fields = Fields(f"{path}:{number}", row)
        fields.known_only(KEYS)
        found[fields.required_text("item")] = (fields.required_text("reference"),)
    return found


def reference_line(item: str, question: str, reference: str, **told: str) -> str:
    """Return one line of such a file, line end included.

    Args:
        item: Id of the question.
        question: Its words.
        reference: What was written.
        told: `model`, `prompt` (its hash) and `written_at`, for readers.
    """
    row = {"item": item, "question": question, "reference": reference, **told}
    return json.dumps(row, ensure_ascii=False) + "\n"
