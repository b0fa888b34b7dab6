"""What rules look for in the reply to an open question: a refusal, or that it does as told.

An item carries its checks; each has a name and settings. `scoring/instructions.py` has the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

REFUSAL = "refusal"
"""The check that a reply declines; all other names are instructions (`punctuation:no_comma`)."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look for.

    Attributes:
        name: Which rule looks.
        settings: What the rule has to know, by name; JSON values only.
    """

    name: str
    settings: Mapping[str, object] = field(default_factory=dict, hash=False)

    def row(self) -> dict[str, object]:
        """Return it as it stands in `items.jsonl`."""
        return {"name": self.name, **self.settings}


def checks_of(value: object) -> tuple[Check, ...]:
    """Return the checks of an item's line; what is no check is left out."""
    if not isinstance(value, list):
        return ()
    return tuple(
        Check(str(one["name"]), {key: told for key, told in one.items() if key != "name"})
        for one in value
        if isinstance(one, Mapping) and one.get("name")
    )
