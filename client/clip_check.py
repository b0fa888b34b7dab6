"""Whether the clips of a suite are there, readable, and have sound in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from voxmeter.endpoints.errors import ClipError

if TYPE_CHECKING:
    from voxmeter.suites.suite import Item


@dataclass(slots=True)
class ClipCheck:
    """What was found.

    Attributes:
        checked: Number of files read; each file once.
        problems: One line for each that cannot be used.
        warnings: One line for each oddity of a file that can.
        ms: Length of the good ones together.
    """

    checked: int = 0
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    ms: float = 0.0


def check_clips(
    items: Iterable[Item], on_clip: Callable[[int], None] = lambda _: None
) -> ClipCheck:
    """Read every audio file that the items name; texts that are spoken later are left alone.

    Args:
        items: Of one suite.
        on_clip: Called after each file with the number read so far.
    """
    found = ClipCheck()
    for path in dict.fromkeys(path for item in items for path in item.files()):
        _check(path, found)
        on_clip(found.checked)
    return found


def _check(path: Path, found: ClipCheck) -> None:
    from voxmeter.client import audio, clips

    found.checked += 1
    try:
        clip = clips.clip(audio.read(path), str(path))
    except ClipError as error:
        found.problems.append(str(error))
        return
    found.ms += clip.ms
    found.warnings.extend(f"{path}: {warning}" for warning in clip.pcm.warnings)
