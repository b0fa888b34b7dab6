"""What lies in a folder of a download, by its listing alone: no file is opened."""

from __future__ import annotations

import os
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
