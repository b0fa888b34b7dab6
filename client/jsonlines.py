"""Files of JSON lines: whole lines in, whole lines out, whatever happened to the last writer."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from voxmeter.client.terminal import printable, warn
from voxmeter.endpoints.errors import UserError

Row = dict[str, Any]
"""One object of a file; outside data, so its values are checked where they are used."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_WRONG_KIND = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError)
_BLOCK = 1 << 16
_LONGEST = 64 << 20  # of a line; nothing that a run writes comes near


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn what a disk can refuse inside the block into the one line a user can act on.

    Raises:
        UserError: For a full disk, missing rights, a read-only file system.
    """
    try:
        yield
    except OSError as error:
        place = str(error.filename or path)
        if error.errno in _FULL:
            found, cure = "no space left on the disk", "free some, then resume the run"
        elif isinstance(error, PermissionError) or error.errno == errno.EROFS:
            found, cure = "may not be written", "choose another folder (-o) or change its rights"
        elif isinstance(error, _WRONG_KIND):
            found, cure = error.strerror or "not a file", "check the path"
        else:
            raise
        raise UserError(place, found, cure) from error


def refuse_foreign(path: Path) -> None:
    """Refuse to write in place to what is no file of the folder's own.

    A run folder may come from somebody else, and a link in it would lead into files of ours.

    Raises:
        UserError: If there is a link or anything else that is no regular file.
    """
    with disk(path):
        if path.is_symlink():
            raise UserError(str(path), "is a link, and a run writes to its own files", "delete it")
        if path.exists() and not path.is_file():
            raise UserError(str(path), "is no regular file", "delete it, or move it away")


def dump(row: Mapping[str, Any]) -> str:
    """Return one row as one line, with its line end.

    Raises:
        ValueError: If a number is not finite: JSON has no word for it.
    """
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def _no_problem(_: Row) -> None:
    return None


def read(
    path: Path,
    on_torn: Callable[[str], None] = warn,
    *,
    needed: AbstractSet[str] = frozenset(),
    problem: Callable[[Row], str | None] = _no_problem,
) -> Iterator[Row]:
    """Yield the rows of a file one by one; a missing file has none.

    A last line without a line end was torn by a writer that died: it is left out and told to
    `on_torn`, unless it is whole but for its line end.

    Args:
        path: The file.
        on_torn: Told of a torn line, in words.
        needed: Fields that every row must have.
        problem: Says what else is wrong with a row, in words.

    Raises:
        UserError: For any other line that is not a JSON object with those fields, or has a
            problem, with file and line number; or if it is no file.
    """
    if not path.exists():
        return
    if not path.is_file():  # a named pipe would be waited for
        raise UserError(str(path), "is no regular file", "restore the file")
    with disk(path), path.open("rb") as stream:
        for number, line in enumerate(iter(lambda: stream.readline(_LONGEST + 1), b""), start=1):
            if len(line) > _LONGEST:
                raise _broken(path, number, f"is over {_LONGEST >> 20} MiB long")
            if not line.strip():
                continue
            row = _parsed(line)
            if row is None and not line.endswith(b"\n"):
                on_torn(f"{path}:{number}: the last line is torn and left out")
            elif row is None:
                shown = printable(line[:60].decode("utf-8", "replace").rstrip())
                raise _broken(path, number, f"not a JSON object: {shown!r}")
            elif not needed <= row.keys():
                lacking = ", ".join(sorted(needed - row.keys()))
                raise _broken(path, number, f"has no {lacking}")
            elif (found := problem(row)) is not None:
                raise _broken(path, number, found)
            else:
                yield row


def growing(path: Path) -> Callable[[], Iterator[Row]]:
    """Return what yields the whole rows that a file has more than at the call before."""
    seen = 0

    def more() -> Iterator[Row]:
        nonlocal seen
        if not path.exists():
            return
        with disk(path), path.open("rb") as stream:
            stream.seek(seen)
            for line in stream:
                if not line.endswith(b"\n"):
                    return  # it is being written
                seen += len(line)
                row = _parsed(line)
                if row is not None:
                    yield row

    return more


def _broken(path: Path, number: int, found: str) -> UserError:
    return UserError(
        f"{path}:{number}", found, "restore the line or delete it; nothing was changed"
    )


_DECODER = json.JSONDecoder()


class Appender:
    """Adds rows to one file, each as one whole line in one write; one writer at a time.

    Opening repairs what the last writer left: a torn tail is cut, a whole row without its line end
    gets it. The first append opens. Nothing is buffered: a row that was appended survives the
    death of the process. Calls block for the time of one write.
    """

    def __init__(self, path: Path, on_torn: Callable[[str], None] = warn) -> None:
        self._path = path
        self._on_torn = on_torn
        self._file: int | None = None

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row; when the disk refuses, nothing of it stays in the file.

        Raises:
            UserError: If the disk is full or may not be written.
            ValueError: If the row has a number that is not finite.
        """
        data = dump(row).encode("utf-8", "backslashreplace")
        file = self.open()
        with disk(self._path):
            self._write(file, data)

    def open(self) -> int:
        """Open and repair the file now, and return its descriptor.

        Raises:
            UserError: If it may not be written.
        """
        if self._file is None:
            with disk(self._path):
                self._file = self._opened()
        return self._file

    def _opened(self) -> int:
        refuse_foreign(self._path)
        file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._repair(file)
        except BaseException:
            os.close(file)
            raise
        return file

    def _repair(self, file: int) -> None:
        size = os.fstat(file).st_size
        whole = _end_of_last_line(file, size)
        if whole == size:
            return
        if _parsed(os.pread(file, size - whole, whole)) is not None:
            os.write(file, b"\n")
            return
        os.ftruncate(file, whole)
        self._on_torn(f"{self._path}: {size - whole} bytes of a torn last line were cut")

    @staticmethod
    def _write(file: int, data: bytes) -> None:
        size = os.fstat(file).st_size
        rest = memoryview(data)
        try:
            while rest:  # a disk that fills up takes a part first and refuses the next call
                rest = rest[os.write(file, rest) :]
        except OSError:
            os.ftruncate(file, size)
            raise

    def close(self) -> None:
        """Close the file; a later append opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _parsed(line: bytes) -> Row | None:
    try:
        # As `json.loads` of bytes does, but for its look at how each line is encoded.
        row = _DECODER.decode(line.decode("utf-8", "surrogatepass").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _end_of_last_line(file: int, size: int) -> int:
    """Return the offset behind the last line end, 0 where there is none."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
