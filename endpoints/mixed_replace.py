"""`multipart/x-mixed-replace` bodies, read while they come: parts without lengths, split by a mark.

A part ends only where the whole separator stands: audio may hold line ends, and a separator may be
split over any number of reads. What could still be its beginning is held back; all else is passed
on at once, so that the stamp of its arrival is the right one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from voxmeter.endpoints.codec import Binary
from voxmeter.endpoints.errors import ProtocolError

_LARGEST_HEAD = 16 * 1024
_HEAD_END = b"\r\n\r\n"
_LONGEST_BOUNDARY = 200
_SHOWN = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of one part.

    Attributes:
        type: The part's `Content-Type` in lower case, without parameters.
        data: May be empty only where `first` or `last`.
        first: Whether it begins the part.
        last: Whether it ends the part.
    """

    type: str
    data: bytes
    first: bool
    last: bool


class MixedReplace:
    """Reads one body from pieces that are split anywhere.

    Args:
        protocol: Whose reply it is, for errors.
        boundary: What separates the parts, without the two dashes.
    """

    def __init__(self, protocol: str, boundary: str) -> None:
        self._protocol = protocol
        self._mark = b"\r\n--" + boundary.encode("utf-8", "replace")[:_LONGEST_BOUNDARY]
        self._waiting = b"\r\n"  # a body may begin with its mark, without a line end before it
        self._type: str | None = None  # of the part that is open
        self._head: bool = False  # whether a part's head is being read
        self._first = False
        self._over = False
        self._parts = 0
        self._preamble = b""  # what came before the first part, to be shown if none comes

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield what the bytes add to the parts.

        Raises:
            ProtocolError: If a part's head has no end.
        """
        self._waiting += data
        while not self._over:
            if self._head:
                if not self._read_head():
                    return
            else:
                found = self._waiting.find(self._mark)
                if found < 0:
                    yield from self._pass_on(self._held_from())
                    return
                behind = self._waiting[found + len(self._mark) :][:2]
                if len(behind) < 2:
                    yield from self._pass_on(found)
                    return
                if behind in {b"\r\n", b"--"}:
                    yield from self._close(found, last=behind == b"--")
                else:  # the mark of another boundary that begins like ours, or audio
                    yield from self._pass_on(found + len(self._mark))

    def end(self) -> Iterator[Piece]:
        """Yield what was held back: the last part ends with the body.

        Raises:
            ProtocolError: If there was no part in the body at all.
        """
        if self._over:
            return
        came = (self._preamble + self._waiting).strip(b"\r\n")
        if not self._parts and came:
            problem = f"no part in the body, boundary {self._mark[4:].decode(errors='replace')!r}"
            raise ProtocolError(self._protocol, problem, Binary(came))
        if self._type is not None:
            cut = self._waiting.startswith(self._mark)  # amid the separator
            yield Piece(self._type, b"" if cut else self._waiting, self._first, last=True)
        self._waiting, self._over = b"", True

    def _held_from(self) -> int:
        """Return where the longest end that could begin a separator starts."""
        for length in range(min(len(self._waiting), len(self._mark) - 1), 0, -1):
            if self._waiting.endswith(self._mark[:length]):
                return len(self._waiting) - length
        return len(self._waiting)

    def _pass_on(self, size: int) -> Iterator[Piece]:
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        if self._type is not None and data:
            yield Piece(self._type, data, self._first, last=False)
            self._first = False
        elif self._type is None and not self._parts:
            self._preamble = (self._preamble + data)[:_SHOWN]

    def _close(self, size: int, *, last: bool) -> Iterator[Piece]:
        if self._type is not None:
            yield Piece(self._type, self._waiting[:size], self._first, last=True)
        self._waiting = self._waiting[size + len(self._mark) :]  # its line end begins the head
        self._type, self._head, self._over = None, not last, last

    def _read_head(self) -> bool:
        size = self._waiting.find(_HEAD_END)
        if size > _LARGEST_HEAD or (size < 0 and len(self._waiting) > _LARGEST_HEAD):
            raise ProtocolError(self._protocol, "a part's head has no end", Binary(self._waiting))
        if size < 0:
            return False
        head = self._waiting[:size].decode("latin-1").lower()
        self._waiting = self._waiting[size + len(_HEAD_END) :]
        self._type, self._head, self._first = "", False, True
        for line in head.split("\r\n"):
            name, _, value = line.partition(":")
            if name.strip() == "content-type":
                self._type = value.partition(";")[0].strip()
        self._parts += 1
        return True


def boundary_of(content_type: str) -> str | None:
    """Return the boundary that a `Content-Type` names, None for none."""
    for word in content_type.split(";")[1:]:
        name, _, value = word.partition("=")
        if name.strip().lower() == "boundary":
            return value.strip().strip('"') or None
    return None
