"""A table or JSON object of the user's, read key by key with errors that name the place."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.catalog import nearest

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_Word = TypeVar("_Word", bound=str)


@dataclass(frozen=True, slots=True)
class Fields:
    """Values as they came from outside.

    Numbers of JSON lines are kept as they were written, as text: 5.0 has one digit after the
    point, and a reference says so.

    Attributes:
        place: File and line, or table; the start of every error.
        values: Key to value.
    """

    place: str
    values: Mapping[str, object]

    def known_only(self, known: tuple[str, ...]) -> None:
        """Raise when a key is none of `known`.

        Raises:
            UserError: With the nearest known key.
        """
        for key in self.values:
            if key not in known:
                raise UserError(self.place, f"unknown key {key!r}", nearest(key, known))

    def text(self, key: str) -> str:
        """Return a text without space around it, empty where there is none.

        Raises:
            UserError: If it is something else, or holds half of a surrogate pair.
        """
        return self._text(key, self.values.get(key)) if key in self.values else ""

    def required_text(self, key: str) -> str:
        """Return a text that may not be empty.

        Raises:
            UserError: If it is missing, empty or no text.
        """
        found = self.text(key)
        if not found:
            raise UserError(self.place, f"no {key}", f"give {key} as text")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty where there is none.

        Raises:
            UserError: If it is no list, or one of it is no text or empty.
        """
        found = self.values.get(key)
        if found is None:
            return ()
        if not isinstance(found, list | tuple):
            raise UserError(self.place, f"{key} is no list", f'write {key} = ["…", "…"]')
        listed = tuple(self._text(key, entry) for entry in found)
        if not all(listed):
            raise UserError(self.place, f"{key} has an empty entry", "fill it or leave it out")
        return listed

    def one_of(self, key: str, known: tuple[_Word, ...]) -> _Word | None:
        """Return a word of `known`, None where the key is absent.

        Raises:
            UserError: With the nearest known word.
        """
        found = self.text(key)
        if not found:
            return None
        if found not in known:
            raise UserError(self.place, f"unknown {key} {found!r}", nearest(found, known))
        return found

    def language(self, key: str) -> str:
        """Return a language code, `en` where there is none.

        Raises:
            UserError: If it does not look like one.
        """
        found = self.text(key) or "en"
        if not _LANGUAGE.fullmatch(found):
            raise UserError(self.place, f"{key} {found!r}", "give a code such as en, de or pt-BR")
        return found

    def flag(self, key: str) -> bool:
        """Return true or false, false where there is none.

        Raises:
            UserError: If it is something else.
        """
        found = self.values.get(key, False)
        if not isinstance(found, bool):
            raise UserError(self.place, f"{key} is {found!r}", "write true or false")
        return found

    def number(self, key: str, default: float) -> float:
        """Return a number that is not negative.

        Raises:
            UserError: If it is something else.
        """
        found = self.values.get(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise UserError(self.place, f"{key} is {found!r}", "give a number")
        if not 0 <= found <= sys.float_info.max:
            raise UserError(self.place, f"{key} is {found!r}", "give a number from 0 up")
        return float(found)

    def _text(self, key: str, found: object) -> str:
        if found is None:
            return ""
        if not isinstance(found, str):
            raise UserError(self.place, f"{key} is not text: {found!r:.60}", "put it in quotes")
        try:
            found.encode()
        except UnicodeEncodeError:
            raise UserError(
                self.place, f"{key} holds half a character (a lone surrogate)", "write it anew"
            ) from None
        return found.strip()
