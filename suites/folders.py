"""What lies in a folder of a download, by its listing alone: no file is opened."""

from __future__ import annotations

import ntpath
import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


def listed(folder: Path) -> Mapping[str, int] | None:
    """Return the sizes of a folder's files by name; None where there is no such folder.

    A link that leads nowhere, a folder and a named pipe are no files.
    """
    try:
        with os.scandir(folder) as entries:
            sizes = {entry.name: _size(entry) for entry in entries}
    except OSError:
        return None
    return {name: size for name, size in sizes.items() if size is not None}


def leads_out(name: str) -> bool:
    r"""Return whether a path in a data set leads out of the folder that it starts from.

    Both ways of writing one count, wherever this runs: `../x`, `/x`, `..\\x`, `\\\\host\\x`, `C:x`.
    """
    if "\0" in name:
        return True
    for style in (posixpath, ntpath):
        drive, rest = style.splitdrive(style.normpath(name))
        first = rest.replace("\\", "/").split("/")[0] if style is ntpath else rest.split("/")[0]
        if drive or first in ("", ".."):
            return True
    return False


def link_out(files: Iterable[Path], root: Path) -> Path | None:
    """Return the first file that a link takes out of a folder; None where none does.

    The cache of the Hugging Face Hub is links throughout: a download there (`snapshots/REVISION`)
    may link to the `blobs` beside it.
    """
    whole = Path(os.path.realpath(root))
    homes = [whole]
    if "snapshots" in whole.parts:
        at = len(whole.parts) - 1 - whole.parts[::-1].index("snapshots")
        homes.append(Path(*whole.parts[:at], "blobs"))
    folders: dict[Path, tuple[bool, frozenset[str]]] = {}
    for file in files:
        if file.parent not in folders:
            real = Path(os.path.realpath(file.parent))
            folders[file.parent] = any(map(real.is_relative_to, homes)), _links(real)
        inside, links = folders[file.parent]
        if inside and file.name in links:
            inside = any(map(Path(os.path.realpath(file)).is_relative_to, homes))
        if not inside:
            return file
    return None


def _links(folder: Path) -> frozenset[str]:
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if entry.is_symlink())
    except OSError:
        return frozenset()


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat().st_size if entry.is_file() else None
    except OSError:  # a link that leads to itself
        return None


def unusable(files: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the files that cannot be played, and why: `missing` or `empty`."""
    sizes: dict[Path, Mapping[str, int]] = {}
    for file in files:
        if file.parent not in sizes:
            sizes[file.parent] = listed(file.parent) or {}
        size = sizes[file.parent].get(file.name)
        if not size:
            yield file, "missing" if size is None else "empty"


def bad_clips(files: Iterable[Path], root: Path) -> Iterator[str]:
    """Yield one sentence on the recordings that cannot be played, nothing where all can.

    Args:
        files: Recordings that are asked for.
        root: The download; the example is named from there.
    """
    lacking = list(unusable(files))
    if lacking:
        file, why = lacking[0]
        count = "a recording is" if len(lacking) == 1 else f"{len(lacking)} recordings are"
        yield (
            f"{count} missing or empty, such as {file.relative_to(root)} ({why}); "
            "those questions end as bad_clip"
        )
