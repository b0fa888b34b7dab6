"""Whether the clips of a suite are there, readable, and have sound in them."""

from __future__ import annotations

from collections.abc import Iterable
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
        ms: Length of the good ones together.
    """

    checked: int = 0
    problems: list[str] = field(default_factory=list)
    ms: float = 0.0


def check_clips(items: Iterable[Item]) -> ClipCheck:
    """Read every audio file that the items name; texts that are spoken later are left alone.

    Args:
        items: Of one suite.
    """
    found = ClipCheck()
    seen: set[Path] = set()
    for item in items:
        for path in item.files():
            if path not in seen:
                seen.add(path)
                _check(path, found)
    return found


def _check(path: Path, found: ClipCheck) -> None:
    from voxmeter.client import audio
    from voxmeter.scoring.speech import speech_bounds

    found.checked += 1
    try:
        pcm = audio.read(path)
    except ClipError as error:
        found.problems.append(str(error))
        return
    if speech_bounds(pcm.samples, pcm.rate) is None:
        found.problems.append(f"{path}: nothing in it is audible")
        return
    found.ms += 1000 * len(pcm.samples) / pcm.rate
