"""What lies in a folder of a download, by its listing alone: no file is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def listed(folder: Path) -> Mapping[str, int] | None:
    """Return the sizes of a folder's files by name; None where there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.stat().st_size for entry in entries}
    except OSError:
        return None
