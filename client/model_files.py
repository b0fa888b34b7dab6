"""Large files: where they are kept, their hashes, and joining them whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from voxmeter.endpoints.errors import UserError

_BLOCK = 1 << 20
_SETTLED_S = 2.0  # coarser than any file system's time stamps
_ABANDONED_S = 3600.0


def user_cache() -> Path:
    """Return this program's folder in the user's cache: `$XDG_CACHE_HOME`, else `~/.cache`.

    Raises:
        UserError: If there is neither.
    """
    # The XDG rules say that a relative path there is to be ignored.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "voxmeter"
    try:
        return Path.home() / ".cache" / "voxmeter"
    except RuntimeError:
        raise UserError("the cache folder", "no home is known", "set XDG_CACHE_HOME") from None


def file_sha256(path: Path) -> str:
    """Return a file's sha256, 64 hex digits, from the record of an earlier call where that holds.

    The record holds as long as size, time stamps and inode are the same. The change time is among
    them, which no program can set back, so that a changed file is always found. A cache folder
    that cannot be written only costs the time.

    Raises:
        UserError: If the file cannot be read.
    """
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
    record = user_cache() / "checked" / f"{name}.json"
    try:
        stamp = _stamp(path)
        known = _recorded(record, stamp)
        if known is not None:
            return known
        digest = _hash(path)
        # A file that changed within the stamp's own grain could change again unseen.
        if _stamp(path) == stamp and time.time() - max(stamp[1], stamp[2]) / 1e9 > _SETTLED_S:
            with contextlib.suppress(OSError):
                write_atomically(record, json.dumps({"stamp": stamp, "sha256": digest}).encode())
    except OSError as error:
        raise UserError(str(path), error.strerror or "unreadable", "check the file") from None
    return digest


def _stamp(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def _recorded(record: Path, stamp: list[int]) -> str | None:
    try:
        row = json.loads(record.read_text(encoding="utf-8"))
        digest = row["sha256"] if row["stamp"] == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return digest if isinstance(digest, str) else None


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(target: Path, data: bytes) -> None:
    """Write a file so that other processes see all of it or none.

    Raises:
        OSError: If the folder cannot be written.
    """
    with _temporary(target) as temporary:
        temporary.write_bytes(data)
        temporary.replace(target)


def join(sources: Sequence[Path], target: Path, expected: str) -> str:
    """Concatenate `sources` into `target`, which appears only when its sha256 is `expected`.

    Two processes may do so at once: each writes its own temporary file and renames it.

    Returns:
        The sha256 of the concatenation; if it is not `expected`, nothing was written.

    Raises:
        UserError: If a source cannot be read, or the disk is full or read-only.
    """
    digest = hashlib.sha256()
    try:
        _sweep(target.parent)
        with _temporary(target) as temporary:
            with temporary.open("wb") as out:
                for block in _blocks(sources):
                    digest.update(block)
                    out.write(block)
            if digest.hexdigest() == expected:
                temporary.replace(target)
    except OSError as error:
        cure = "set XDG_CACHE_HOME to a folder that can be written"
        if error.errno == errno.ENOSPC:
            size_mb = sum(source.stat().st_size for source in sources) / 1e6
            cure = f"free {size_mb:.0f} MB, or {cure}"
        place = str(error.filename or target)
        raise UserError(place, error.strerror or "unreadable", cure) from None
    return digest.hexdigest()


def _blocks(sources: Sequence[Path]) -> Iterator[bytes]:
    for source in sources:
        with source.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """Yield a new empty file beside `target`; what has not been renamed by the end is deleted."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Delete what a process that was killed while writing left behind."""
    for leftover in folder.glob("*.part"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _ABANDONED_S:
                leftover.unlink()
