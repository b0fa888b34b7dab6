"""Other Pythons that this machine may have, for what must run where voxmeter is not installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

_WANTED = range(8, 11)


@cache
def old_python() -> Path | None:
    """Return the oldest Python from 3.8 up and below 3.11 that can be run, if there is one."""
    named = {minor: shutil.which(f"python3.{minor}") for minor in _WANTED}
    homes = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python3"))
    for minor in _WANTED:
        places = [home for home in homes if home.parts[-3].startswith(f"3.{minor}.")]
        places += [Path(found) for found in [named[minor]] if found is not None]
        for place in places:
            if _version(place) == minor:
                return place
    return None


def _version(python: Path) -> int | None:
    try:
        done = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.fullmatch(r"Python 3\.(\d+)\..*", done.stdout.strip())
    return int(found[1]) if found else None
