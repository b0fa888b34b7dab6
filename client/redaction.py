"""Secrets: read from environment variables alone, and taken out of everything that is written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import UserError

MARK = "[redacted]"
_SHORT = 8  # a shorter value is replaced only as a whole word: "none" inside "nonetheless" stays
_PLACEHOLDERS = frozenset({"", "-", "dummy", "empty", "fake", "no-key", "none", "null", "unused"})
_REFERENCE = re.compile(r"\{env:([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def secret(name: str, place: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the value of an environment variable that holds a secret.

    Args:
        name: The variable's name.
        place: Where the name stands, for the error.
        environment: Other than the process's own, in tests.

    Raises:
        UserError: If the variable is missing or empty, or if `name` cannot be a variable's name
            (a key pasted in its place is never repeated).
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            place,
            "this is not a name of an environment variable",
            "write the variable's name here and put the secret into the variable",
        )
    value = (os.environ if environment is None else environment).get(name, "")
    if not value.strip():
        found = "is empty" if value else "is not set"
        raise UserError(place, f"environment variable {name} {found}", f"export {name}=...")
    return value


def references(text: str) -> list[str]:
    """Return the variables that `{env:NAME}` names in a text, in order."""
    return _REFERENCE.findall(text)


def expand(text: str, place: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the text with each `{env:NAME}` replaced by that variable's value.

    Raises:
        UserError: If a variable is missing or empty.
    """
    return _REFERENCE.sub(lambda found: secret(found[1], place, environment), text)


class Redactor:
    """Replaces the values of secrets wherever they appear, in any spelling a file may give them.

    Values of four to seven characters are replaced where they stand as whole words; shorter ones
    and usual placeholders ("none", "EMPTY") are no secrets and stay.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings: dict[str, None] = {}
        for value in secrets:
            if len(value) >= 4 and value.lower() not in _PLACEHOLDERS:
                spellings.update(dict.fromkeys(_spellings(value)))
        patterns = sorted(spellings, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_pattern, patterns))) if patterns else None

    def text(self, text: str) -> str:
        """Return the text without the secrets; also for a whole file of JSON lines."""
        return self._pattern.sub(MARK, text) if self._pattern else text

    def json(self, value: Json) -> Json:
        """Return a JSON value, every string and key of it without the secrets."""
        if self._pattern is None:
            return value
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.json(one) for one in value]
            case dict():
                return {self.text(name): self.json(one) for name, one in value.items()}
            case _:
                return value


def _spellings(value: str) -> list[str]:
    return [
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
    ]


def _pattern(value: str) -> str:
    escaped = re.escape(value)
    return escaped if len(value) >= _SHORT else rf"(?<!\w){escaped}(?!\w)"
