"""Secrets: read from environment variables alone, and taken out of everything that is written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote, quote_plus

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import UserError

MARK = "[redacted]"
_SHORT = 8  # a shorter value is replaced only as a whole word: "none" inside "nonetheless" stays
_SIGNS = '"\\/'  # that JSON may escape by a backslash alone
_BACKSLASHES = r"\\{1,8}"  # JSON inside JSON has several for one
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
        found = sorted(spellings, key=len, reverse=True)
        self._pattern = _any_of(found, re.escape) if found else None
        self._escaped = _any_of(found, _in_json) if found else None

    def text(self, text: str) -> str:
        """Return the text without the secrets; also for a whole file of JSON lines."""
        pattern = self._escaped if "\\" in text else self._pattern
        return pattern.sub(MARK, text) if pattern else text

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


def _any_of(values: Iterable[str], spelled: Callable[[str], str]) -> re.Pattern[str]:
    whole = ((value, spelled(value)) for value in values)
    return re.compile(
        "|".join(one if len(value) >= _SHORT else rf"(?<!\w){one}(?!\w)" for value, one in whole)
    )


def _in_json(value: str) -> str:
    r"""Return a pattern of a value whose letters may be escaped: `\/` and `\u003d` are usual."""
    return "".join(f"(?:{re.escape(one)}|{_escape(one)})" for one in value)


def _escape(letter: str) -> str:
    code = letter.encode("utf-16-be", "surrogatepass")
    units = (rf"{_BACKSLASHES}u(?i:{code[at : at + 2].hex()})" for at in range(0, len(code), 2))
    return "".join(units) + (rf"|{_BACKSLASHES}{re.escape(letter)}" if letter in _SIGNS else "")
