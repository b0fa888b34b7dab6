"""Outside JSON, read field by field: what is asked for has the right type, or a `ProtocolError`."""

from __future__ import annotations

import binascii
import json
import math
from collections.abc import Sequence

from voxmeter.endpoints.codec import Binary, Json, Message, Text
from voxmeter.endpoints.errors import ProtocolError

MAX_CHARACTERS = 64 * 1024 * 1024
"""Longest message that is parsed at all; the largest a protocol here allows is 15 MiB of base64."""


class Fields:
    """One JSON object of a peer's message.

    A field that is null counts as absent, as protocols here use the two alike; `has_null` tells
    them apart where it matters.

    Attributes:
        protocol: Whose message it is, for error messages.
        message: The whole message, for error messages.
        data: The object itself.
        place: Where in the message the object stands (`response.status_details.`), or empty.
    """

    def __init__(
        self, protocol: str, message: Message, data: dict[str, Json], place: str = ""
    ) -> None:
        self.protocol = protocol
        self.message = message
        self.data = data
        self.place = place

    def problem(self, words: str) -> ProtocolError:
        """Return an error about this message, to be raised."""
        return ProtocolError(self.protocol, words, self.message)

    def _wrong(self, name: str, wanted: str) -> ProtocolError:
        value = self.data.get(name)
        found = "missing" if value is None else f"of type {type(value).__name__}"
        return self.problem(f"{self.place}{name} is {found}; {wanted} is wanted")

    def has(self, name: str) -> bool:
        """Return whether the field is there and not null."""
        return self.data.get(name) is not None

    def has_null(self, name: str) -> bool:
        """Return whether the field is there and null."""
        return name in self.data and self.data[name] is None

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string, with lone surrogates replaced so that it can be written anywhere."""
        value = self.data.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return clean(value)

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number."""
        value = self.data.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise self._wrong(name, "a finite number")
        return value

    def whole(self, name: str, default: int | None = None) -> int:
        """Return a number rounded to a whole one."""
        return round(self.number(name, default))

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a truth value."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def object(self, name: str) -> Fields:
        """Return an object; an absent one is empty."""
        value = self.data.get(name)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return Fields(self.protocol, self.message, value, f"{self.place}{name}.")

    def objects(self, name: str) -> Sequence[Fields]:
        """Return a list of objects; an absent one is empty."""
        value = self.data.get(name)
        if value is None:
            value = []
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        found = []
        for index, one in enumerate(value):
            if not isinstance(one, dict):
                raise self.problem(f"{self.place}{name}[{index}] is not an object")
            place = f"{self.place}{name}[{index}]."
            found.append(Fields(self.protocol, self.message, one, place))
        return found

    def audio(self, name: str) -> bytes:
        """Return what a base64 string holds; a `data:` URL is taken apart first."""
        value = self.text(name)
        if value.startswith("data:"):
            value = value.partition(",")[2]
        try:
            found = binascii.a2b_base64(value, strict_mode=True)
        except (binascii.Error, ValueError) as error:
            words = str(error).lower()
            raise self.problem(f"{self.place}{name} is not base64: {words}") from None
        if found[:4] == b"RIFF" and found[8:12] == b"WAVE":
            raise self.problem(f"{self.place}{name} holds a WAV file where samples are wanted")
        return found


def parse_object(protocol: str, message: Message) -> Fields:
    """Return the JSON object that one whole message is; binary messages may hold JSON too.

    Raises:
        ProtocolError: If it is not one JSON object, is nested beyond reason, or is over 64 MiB.
    """
    match message:
        case Text(data):
            words = data
        case Binary(data):
            try:
                words = data.decode("utf-8")
            except UnicodeDecodeError:
                raise ProtocolError(protocol, "not UTF-8", message) from None
        case _:
            raise ProtocolError(protocol, "not a text or binary message", message)
    if len(words) > MAX_CHARACTERS:
        raise ProtocolError(protocol, "over 64 MiB", message)
    try:
        found = json.loads(words, parse_constant=_refuse)
    except RecursionError:
        raise ProtocolError(protocol, "nested too deeply", message) from None
    except ValueError:
        raise ProtocolError(protocol, "not JSON", message) from None
    if not isinstance(found, dict):
        raise ProtocolError(protocol, "JSON, but not an object", message)
    return Fields(protocol, message, found)


def clean(text: str) -> str:
    """Return text with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _refuse(constant: str) -> float:
    raise ValueError(constant)
