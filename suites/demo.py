"""The demo suite: 32 short spoken questions that come with the program.

Three voices, six kinds of answer. Texts and references were written for it; every line of
`demo_items/items.jsonl` names its source, voice and licence. It shows that everything works and
what results look like; it is too small and too easy to rank anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from voxmeter.suites.fields import Fields
from voxmeter.suites.jsonl import read_items
from voxmeter.suites.suite import TABLE_KEYS, Suite

ITEMS = Path(__file__).parent / "demo_items" / "items.jsonl"
"""The items; their audio lies beside it."""


def load(name: str, config: Mapping[str, object], _base: Path) -> Suite:
    """Return the demo suite.

    Args:
        name: The user's name for it.
        config: Its table of bench.toml; `rubric` names the prompt by which a judge rates its open
            questions.
        _base: Not used: the items are inside the package.

    Raises:
        UserError: If the table gives it a path or an option.
    """
    table = Fields(f"[[suite]] {name}", config)
    table.known_only((*TABLE_KEYS, "rubric"))
    return Suite(name, "demo", tuple(read_items(ITEMS, name, rubric=table.text("rubric"))))
