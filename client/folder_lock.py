"""One writer to a folder at a time: a lock that ends with the process that holds it."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO

from voxmeter.client.jsonlines import disk
from voxmeter.client.terminal import warn
from voxmeter.endpoints.errors import UserError

NAME = ".lock"
"""The file that is locked; it holds the writer's process id, for messages."""


def locked(path: Path) -> IO[str]:
    """Return a folder's lock file, open and locked; closing it ends the lock.

    The lock ends with the process as well, so none is ever stale.

    Raises:
        UserError: If another process holds the lock, or the folder may not be written.
    """
    with disk(path):
        file = (path / NAME).open("a+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
