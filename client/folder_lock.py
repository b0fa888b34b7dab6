"""One writer to a folder at a time: a lock that ends with the process that holds it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO

from voxmeter.client.jsonlines import disk, refuse_foreign
from voxmeter.client.terminal import warn
from voxmeter.endpoints.errors import UserError

NAME = ".lock"
"""The file that is locked; it holds the writer's process id, for messages."""

_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


def locked(path: Path) -> IO[str]:
    """Return a folder's lock file, open and locked; closing it ends the lock.

    The lock ends with the process as well, so none is ever stale.

    Raises:
        UserError: If another process holds the lock, or the folder may not be written.
    """
    refuse_foreign(path / NAME)
    with disk(path):
        file = (path / NAME).open("a+", encoding="ascii")
    _hold(file, path, fcntl.LOCK_EX)
    try:
        with disk(path / NAME):
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()}\n")
            file.flush()
    except BaseException:
        with suppress(OSError):  # what could not be written then cannot be now
            file.close()
        raise
    return file


def kept_from_writers(path: Path) -> IO[str] | None:
    """Return the lock file of a folder that is only read, as `locked`.

    Where nothing may be written, the lock is shared with other readers; None where there is no
    file to lock either, for then no writer ever had the folder.

    Raises:
        UserError: If another process is writing there.
    """
    refuse_foreign(path / NAME)
    try:
        (path / NAME).open("a+", encoding="ascii").close()
    except OSError as error:
        if error.errno in _READ_ONLY:
            return _shared(path)
    return locked(path)


def _shared(path: Path) -> IO[str] | None:
    if not (path / NAME).exists():
        return None
    with disk(path):
        file = (path / NAME).open(encoding="ascii")
    _hold(file, path, fcntl.LOCK_SH)
    return file


def _hold(file: IO[str], path: Path, how: int) -> None:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = re.sub(r"[^0-9]", "", file.read(20))
        file.close()
        process = f"process {owner}" if owner else "another process"
        raise UserError(
            str(path), f"{process} is writing to this run", "wait until it has ended, or stop it"
        ) from None
    except OSError as error:  # some network disks know no locks: say so, and go on
        warn(f"{path}: cannot be locked ({error.strerror}); let no two processes write to it")
