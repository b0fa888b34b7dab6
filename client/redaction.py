"""Secrets: read from environment variables alone, and taken out of everything that is written."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from urllib.parse import quote_plus

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import UserError

MARK = "[redacted]"
_SHORT = 8  # a shorter value is replaced only as a whole word: "none" inside "nonetheless" stays
_SIGNS = '"\\/'  # that JSON may escape by a backslash alone
_BACKSLASHES = r"\\{1,8}"  # JSON inside JSON has several for one
_OTHERS = re.compile("[^A-Za-z0-9]+")
_PLACEHOLDERS = frozenset({"", "-", "dummy", "empty", "fake", "no-key", "none", "null", "unused"})
_LONG = 24  # a value this long is also recognised by either half of it: a text may be cut anywhere
_ENCODED = 8  # fewer letters of base64 may stand for anything
_NAMED = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_LONGEST_ESCAPE = 40
_ESCAPES = re.compile(r"[\\%&]")
_ESCAPE = re.compile(
    r"\\u([0-9A-Fa-f]{4})|%(?:25)*([0-9A-Fa-f]{2})|"
    r"&(?:amp;)*(?:#[xX]0*([0-9A-Fa-f]{1,5});|#0*([0-9]{1,6});|(?:amp|lt|gt|quot|apos);)"
)
_TRACE = 6
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
    if environment is None:
        remember(value)
    return value


_read: dict[str, None] = {}


def remember(value: str) -> None:
    """Take note of a secret that came another way; `everything_read` knows it from here on."""
    _read[value] = None


def everything_read() -> Redactor:
    """Return a redactor of all secrets that this process has read from its environment."""
    return _redactor(tuple(_read))


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

    Known are JSON's escapes, those of URLs and of HTML, lower case, hexadecimal digits, and base64
    with whatever stands before and behind it. Of a long value either half is enough, so that a text
    that was cut in the middle of it shows nothing of use.

    Values of four to seven characters are replaced where they stand as whole words; shorter ones
    and usual placeholders ("none", "EMPTY") are no secrets and stay.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        values = [
            value
            for value in dict.fromkeys(secrets)
            if len(value) >= 4 and value.lower() not in _PLACEHOLDERS
        ]
        values.sort(key=len, reverse=True)
        spelled = dict.fromkeys(one for value in values for one in _spellings(value))
        found = sorted(spelled, key=len, reverse=True)
        self._pattern = _any_of(found, re.escape) if found else None
        self._escaped = _any_of(values, _in_escapes) if found else None
        self._long = [one for one in found if len(one) >= _LONG]
        self._parts = [_Parts(value) for value in values if len(value) >= _LONG]
        self._traces = [trace for value in values for trace in _traces(value)]

    def text(self, text: str) -> str:
        """Return the text without the secrets; also for a whole file of JSON lines."""
        if self._pattern is None or self._escaped is None:
            return text
        if self._may_be_escaped(text):
            text = self._escaped.sub(MARK, text)
            for parts in self._parts:
                text = parts.removed(text)
        text = self._pattern.sub(MARK, text)
        for value in self._long:
            text = _without_parts(text, value)
        return text

    def _may_be_escaped(self, text: str) -> bool:
        """Return whether a close look is worth its time."""
        if not _ESCAPES.search(text):
            return False
        bare = _bare(text)
        return any(trace in bare for trace in self._traces)

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


@cache
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    return Redactor(secrets)


def _spellings(value: str) -> list[str]:
    whole = value.encode("utf-8", "surrogatepass")
    return [
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote_plus(value, errors="surrogatepass"),  # a space as +
        *([value.lower()] if len(value) >= _SHORT else []),  # as the name of a host is written
        *((whole.hex(), whole.hex().upper()) if len(whole) >= _ENCODED else ()),
        *_in_base64(whole),
    ]


def _in_base64(value: bytes) -> Iterator[str]:
    """Yield what base64 of any bytes around a value has in it, for each way it may be aligned."""
    for before in range(3):
        digits = base64.b64encode(bytes(before) + value).decode("ascii")
        own = digits[(8 * before + 5) // 6 : 8 * (before + len(value)) // 6]
        if len(own) >= _ENCODED:
            yield own
            yield own.translate(str.maketrans("+/", "-_"))


def _without_parts(text: str, value: str) -> str:
    """Return a text without pieces of a value that hold its first or its last half."""
    half = len(value) // 2
    at = text.find(value[:half])
    while at >= 0:
        size = len(os.path.commonprefix([text[at : at + len(value)], value]))
        text = text[:at] + MARK + text[at + size :]
        at = text.find(value[:half], at + len(MARK))
    at = text.find(value[-half:])
    while at >= 0:
        end = at + half
        before = text[max(0, end - len(value)) : end]
        size = len(os.path.commonprefix([before[::-1], value[::-1]]))
        text = text[: end - size] + MARK + text[end:]
        at = text.find(value[-half:], end - size + len(MARK))
    return text


def _bare(text: str) -> str:
    """Return the letters and digits of a text, those that were escaped as well."""
    return _OTHERS.sub("", _ESCAPE.sub(_unescaped, text))


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    number = int(code, 16) if code else int(found[4] or 0)
    return chr(number) if number < 128 else ""


def _traces(value: str) -> Iterator[str]:
    """Yield what `_bare` leaves of a value, or of each half of a long one, in any spelling.

    An escape sign in the value itself may be cut by the middle, so the ends do not count.
    """
    half = len(value) // 2
    for piece in (value[:half], value[half:]) if len(value) >= _LONG else (value,):
        bare = _bare(piece)
        trace = bare[3:-3] if piece != value else bare
        yield trace if len(trace) >= _TRACE else ""


class _Parts:
    """Finds either half of a value whose letters may be escaped, with what else of it is there."""

    def __init__(self, value: str) -> None:
        letters = [_in_escapes(one) for one in value]
        self._half = len(letters) // 2
        self._head = re.compile("".join(letters[: self._half]))
        self._tail = re.compile("".join(letters[-self._half :]))
        self._after = [re.compile(one) for one in letters[self._half :]]
        self._before = [re.compile(rf"{one}\Z") for one in reversed(letters[: -self._half])]

    def removed(self, text: str) -> str:
        """Return the text without such pieces."""
        at = 0
        while head := self._head.search(text, at):
            end = head.end()
            for letter in self._after:
                following = letter.match(text, end)
                if following is None:
                    break
                end = following.end()
            text = text[: head.start()] + MARK + text[end:]
            at = head.start() + len(MARK)
        at = 0
        while tail := self._tail.search(text, at):
            start = tail.start()
            for letter in self._before:
                preceding = letter.search(text, max(0, start - _LONGEST_ESCAPE), start)
                if preceding is None:
                    break
                start = preceding.start()
            text = text[:start] + MARK + text[tail.end() :]
            at = start + len(MARK)
        return text


def _any_of(values: Iterable[str], spelled: Callable[[str], str]) -> re.Pattern[str]:
    whole = ((value, spelled(value)) for value in values)
    return re.compile(
        "|".join(one if len(value) >= _SHORT else rf"(?<!\w){one}(?!\w)" for value, one in whole)
    )


def _in_escapes(value: str) -> str:
    r"""Return a pattern of a value whose letters may be escaped: `\/`, `\u003d`, `%3D`, `&#61;`."""
    return "".join(f"(?:{_escape(one)}|{re.escape(one)})" for one in value)


def _escape(letter: str) -> str:
    code = letter.encode("utf-16-be", "surrogatepass")
    units = (rf"{_BACKSLASHES}u(?i:{code[at : at + 2].hex()})" for at in range(0, len(code), 2))
    octets = letter.encode("utf-8", "surrogatepass")
    ways = [
        "".join(units),
        "".join(f"%(?:25)*(?i:{octet:02x})" for octet in octets),
        f"&(?:amp;)*#0*{ord(letter)};",
        f"&(?:amp;)*#[xX]0*(?i:{ord(letter):x});",
    ]
    if letter in _SIGNS:
        ways.append(rf"{_BACKSLASHES}{re.escape(letter)}")
    if letter in _NAMED:
        ways.append(f"&(?:amp;)*{_NAMED[letter]};")
    return "|".join(ways)
