"""Options from bench.toml, read one by one: a wrong one is the user's mistake, in one line."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import UserError


class OptionTable:
    """`[endpoint.options]` of one kind.

    Args:
        kind: Whose options they are.
        options: What the user wrote.
        known: The names there are.

    Raises:
        UserError: If an option is not among them.
    """

    def __init__(self, kind: str, options: Mapping[str, Json], known: Iterable[str]) -> None:
        self._options = options
        names = list(known)
        for name in options:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                cure = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
                raise UserError(f"options.{name}", f"{kind} has no such option", cure)

    def wrong(self, name: str, wanted: str) -> UserError:
        """Return the error of an option that is not what it can be, to be raised."""
        shown = repr(self._options.get(name))
        return UserError(f"options.{name}", shown[:80], f"use {wanted}")

    def has(self, name: str) -> bool:
        """Return whether an option was given."""
        return name in self._options

    def text(self, name: str, default: str = "") -> str:
        """Return a string."""
        value = self._options.get(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """Return one of a few strings."""
        value = self._options.get(name, default)
        if value not in allowed:
            raise self.wrong(name, " or ".join(repr(one) for one in allowed))
        return str(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a truth value."""
        value = self._options.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def whole(self, name: str, default: int | None, least: int, most: int) -> int | None:
        """Return a whole number within limits."""
        value = self._options.get(name, default)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not _is_finite(value)
            or value != int(value)
            or not least <= value <= most
        ):
            raise self.wrong(name, f"a whole number from {least} to {most}")
        return int(value)

    def number(self, name: str) -> float | None:
        """Return a finite number, None where there is none."""
        value = self._options.get(name)
        if value is None:
            return None
        wrong = isinstance(value, bool) or not isinstance(value, int | float)
        if wrong or not _is_finite(value):  # type: ignore[arg-type]
            raise self.wrong(name, "a number")
        return value  # type: ignore[return-value]

    def texts(self, name: str) -> Sequence[str]:
        """Return a list of strings; an absent one is empty."""
        value = self._options.get(name, [])
        if not isinstance(value, list):
            raise self.wrong(name, "a list of strings")
        found = [one for one in value if isinstance(one, str) and one]
        if len(found) != len(value):
            raise self.wrong(name, "a list of strings")
        return found

    def value(self, name: str) -> Json:
        """Return whatever was given, None where nothing was."""
        return self._options.get(name)

    def table(self, name: str) -> Mapping[str, Json]:
        """Return a table; an absent one is empty."""
        value = self._options.get(name, {})
        if not isinstance(value, dict):
            raise self.wrong(name, "a table")
        return value


def laid_over(base: Mapping[str, Json], extra: Mapping[str, Json]) -> dict[str, Json]:
    """Return `base` with the fields of `extra` laid over it, objects field by field."""
    made = dict(base)
    for name, value in extra.items():
        old = made.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        made[name] = laid_over(old, value) if both else value  # type: ignore[arg-type]
    return made


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # TOML allows whole numbers that are larger than every float
        return False
