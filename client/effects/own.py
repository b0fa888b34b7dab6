"""Sounds of the user's own: a file, or one of a folder drawn for every item."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from voxmeter.client import audio
from voxmeter.client.effects.sound import Random, Wave
from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import ClipError

ENDINGS = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif")


def files(path: Path) -> list[Path]:
    """Return the sound files that a path stands for, sorted; none where there are none."""
    if path.is_dir():
        found = (one for one in path.rglob("*") if one.suffix.lower() in ENDINGS and one.is_file())
        return sorted(found, key=lambda one: one.relative_to(path).as_posix())
    return [path] if path.is_file() else []


def own_sound(
    values: Mapping[str, Json], rate: int, draw: Random
) -> tuple[Wave | None, Mapping[str, Json]]:
    """Return the sound of `path` and the name of its file; None where no `path` is given.

    Args:
        values: What was drawn for the step.
        rate: Samples a second wanted.
        draw: Draws one of several files.

    Raises:
        ClipError: If the file cannot be read or is silent, or the path holds none.
    """
    if "path" not in values:
        return None, {}
    path = Path(str(values["path"]))
    found = files(path)
    if not found:
        raise ClipError(str(path), "no sound files")
    file = found[int(draw.integers(len(found)))]
    wave = np.asarray(audio.resample(audio.read(file), rate).samples, dtype=np.float64)
    if not wave.any():
        raise ClipError(str(file), "is silent from end to end")
    return wave, {"file": file.relative_to(path).as_posix() if path.is_dir() else file.name}
