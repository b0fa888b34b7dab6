"""Standard output and standard error without the secrets that this process has read.

The last net: what libraries, tracebacks and threads print passes through it as well.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, cast

from voxmeter.client.redaction import everything_read


class _Redacted:
    """A text stream in front of another; all but writing is the other's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without the secrets; return its own length."""
        self._stream.write(everything_read().text(text))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def redacted_output() -> Iterator[None]:
    """Keep secrets out of all that is printed inside the block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _Redacted(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
