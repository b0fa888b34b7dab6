"""Names of what is published: topics from names that users gave, and one message of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

QOS = 1
"""Every message is delivered at least once: a reader may see one twice."""

LONGEST = 64
"""Letters of one level that was made from a name."""

_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_HASH = 8


@dataclass(frozen=True, slots=True)
class Post:
    """One message.

    Attributes:
        topic: Where it goes.
        payload: Text; "" with `retain` removes what the broker has kept there.
        retain: Whether the broker keeps it for later readers; a newer one replaces it.
    """

    topic: str
    payload: str
    retain: bool = False


def slug(name: str) -> str:
    """Return a name as one level of a topic: letters, digits, `-` and `_`, at most 64 of them.

    A name that has anything else, or is longer, ends in a hash of the whole, so that two names
    never share a topic and one name has the same topic on every machine.
    """
    plain = _UNFIT.sub("-", name)
    if plain == name and 0 < len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{plain[: LONGEST - _HASH - 1].strip('-') or 'x'}-{digest}"


def prefix_problem(text: str) -> tuple[str, str] | None:
    """Return what is wrong with the first part of topics, and what to do; None if it is fit."""
    if any(letter in text for letter in "+#"):
        return f"{text!r} has + or #, which stand for other topics", "remove them"
    if not text.isprintable():
        return f"{text!r} has invisible characters", "remove them"
    if text.startswith("$"):
        return f'"{text}" begins with $, which is the broker\'s own', "choose another"
    if text.startswith("/") or text.endswith("/") or "//" in text:
        return f'"{text}" has an empty level', "remove / at its ends, and // inside"
    if len(text.encode("utf-8", "surrogatepass")) > 200:
        return "is longer than 200 bytes", "shorten it"
    return None


def host_problem(text: str) -> tuple[str, str] | None:
    """Return what is wrong with a broker's name or address, and what to do; None if it is fit."""
    if "://" in text or "/" in text:
        return f"{text!r} is not a bare name", 'write host = "broker.example", with port and tls'
    if any(letter.isspace() or not letter.isprintable() for letter in text) or "@" in text:
        return "has letters that no host's name has", "write the name or the address alone"
    if text.count(":") == 1 or text.startswith("["):
        return f"{text!r} has a port or brackets", "write the name or the address alone, and port"
    return None


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one run or live session.

    Attributes:
        prefix: First part of every topic.
        run: The run folder's name, or the session's.
    """

    prefix: str
    run: str

    @property
    def status(self) -> str:
        """Where the status stands, as one word."""
        return f"{self._base}/status"

    @property
    def summary(self) -> str:
        """Where the summary stands at the end."""
        return f"{self._base}/summary"

    def event(self, item: str) -> str:
        """Return where the events of an item come by."""
        return f"{self._base}/item/{slug(item)}/event"

    def stats(self, endpoint: str) -> str:
        """Return where the figures of an endpoint so far stand."""
        return f"{self._base}/endpoint/{slug(endpoint)}/stats"

    @property
    def _base(self) -> str:
        return f"{self.prefix}/{slug(self.run)}"


def dumped(content: Mapping[str, Any]) -> str:
    """Return a payload: JSON in one line, in ASCII, so that no reader stumbles over its letters.

    Raises:
        ValueError: If a number is not finite.
    """
    return json.dumps(content, separators=(",", ":"), allow_nan=False)
