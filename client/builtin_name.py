"""The value of `builtin = "..."`: which of our own servers, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from voxmeter.client import nearest

SERVERS = ("cascade", "metronome", "echo")


@dataclass(frozen=True, slots=True)
class Builtin:
    """A server of ours that a run starts and stops by itself.

    Attributes:
        name: One of `SERVERS`.
        query: Its options as written, in order; the server itself judges their values.
    """

    name: str
    query: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.name}?{urlencode(self.query)}" if self.query else self.name


def parse_builtin(text: str) -> Builtin:
    """Read `"metronome?delay_ms=300&jitter_ms=20"`.

    Raises:
        ValueError: With `(found, cure)` as its arguments.
    """
    name, mark, query = text.partition("?")
    if name not in SERVERS:
        raise ValueError(f'"{name}" is not a built-in server', nearest.cure(name, SERVERS))
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(mark))
    except ValueError:
        raise ValueError(f'"{query}" is not a list of options', "write a=1&b=2") from None
    names = [key for key, _ in pairs]
    for key in names:
        if names.count(key) > 1:
            raise ValueError(f'option "{key}" is given twice', "keep one of them")
    return Builtin(name, tuple(pairs))
