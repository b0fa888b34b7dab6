"""Temporary files of workers that Ray ended at once: who comes next on the machine removes them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

_TRIES = 100


def own_prefix() -> str:
    """Return how the names of this process's temporary files and folders begin."""
    return f"voxmeter-worker-{_host()}-{os.getpid()}-"


def remove_left() -> None:
    """Remove what processes of this machine and user left that have ended."""
    name = re.compile(rf"voxmeter-worker-{re.escape(_host())}-(\d+)-.*")
    folder = Path(tempfile.gettempdir())
    for path in folder.glob("voxmeter-worker-*"):
        match = name.fullmatch(path.name)
        if match and not _lives(int(match[1])):
            _remove(path)


def remove_own() -> None:
    """Remove what this process has there, whatever still writes to it.

    An empty file takes the place of each folder, so that nothing can be written into it any more;
    `remove_left` takes it away.
    """
    for path in list(Path(tempfile.gettempdir()).glob(f"{own_prefix()}*")):
        for number in range(_TRIES):  # a writer may make the folder anew before the file is there
            if not path.is_dir():
                break
            away = path.with_name(f"{path.name}-{number}")
            with suppress(OSError):
                path.rename(away)
                path.touch()
            _remove(away)


def _remove(path: Path) -> None:
    with suppress(OSError):  # another worker may do so too
        if path.lstat().st_uid != os.getuid():
            return
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _host() -> str:
    """Return a machine's name for a file: containers may share a folder, but not processes."""
    return re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())
