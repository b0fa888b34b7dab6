"""Bodies made of lines, read while they come: one JSON object a line, and server-sent events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

DONE = "[DONE]"
"""What many servers send as the last of their events."""


_FIELDS = (":", "event:", "id:", "retry:")
_STRANGE = 64 * 1024


class Lines:
    """Splits a body at line ends.

    Args:
        ends: Bytes that end a line; a carriage return before one belongs to it.
    """

    def __init__(self, ends: bytes = b"\n") -> None:
        self._end = re.compile(b"[" + re.escape(ends) + b"]")
        self._waiting = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> Sequence[str]:
        """Return the lines that are whole by now, without their ends."""
        self._waiting += data
        found = []
        start = 0
        for at in [one.start() for one in self._end.finditer(self._waiting, self._searched)]:
            found.append(_line(self._waiting[start:at]))
            start = at + 1
        del self._waiting[:start]
        self._searched = len(self._waiting)
        return found

    def end(self) -> Sequence[str]:
        """Return the last line, where it has no end."""
        last = _line(self._waiting)
        self._waiting.clear()
        self._searched = 0
        return [last] if last else []


class ServerSentEvents:
    """Reads the data of events; their names, ids and comments say nothing that is needed here.

    Attributes:
        strange: What came in place of events, such as an error page; empty once there is an event.
    """

    def __init__(self) -> None:
        self.strange = ""
        self._lines = Lines()
        self._data: list[str] = []
        self._begun = False

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the data of every event that is whole by now."""
        for line in self._lines.feed(data):
            yield from self._take(line)

    def end(self) -> Iterator[str]:
        """Yield the data of a last event that no empty line has ended."""
        for line in [*self._lines.end(), ""]:
            yield from self._take(line)

    def _take(self, line: str) -> Iterator[str]:
        line = line.removeprefix("\ufeff")
        if not line:
            if self._data:
                yield "\n".join(self._data)
            self._data = []
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
            self._begun, self.strange = True, ""
        elif not self._begun and not line.startswith(_FIELDS) and len(self.strange) < _STRANGE:
            self.strange += f"{line}\n"


def _line(data: bytearray) -> str:
    return data.decode("utf-8", errors="replace").removesuffix("\r")
