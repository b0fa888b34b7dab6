"""How long a run will take and how much it will write, before it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from voxmeter.suites.suite import Gap, Part, Spoken

if TYPE_CHECKING:
    from pathlib import Path

    from voxmeter.client.bench import Bench
    from voxmeter.client.plan import Plan, Trial
    from voxmeter.suites.suite import Item

REPLY_MS = 5000.0
"""A usual wait and reply, ms: one to three spoken sentences."""

CONNECT_MS = 300.0
"""A usual connect and close, ms."""

BYTES_PER_AUDIO_S = 60_000.0
"""Two channels and the ungapped reply as FLAC at 24 kHz, bytes a second of speech and silence."""

BYTES_PER_TRIAL = 30_000.0
"""The raw log and the rows, bytes."""


FILES_OPENED = 2000
"""Headers that are read for an estimate; of VoxEval there are 150,000."""

MS_PER_LETTER = 65.0
"""A usual pace of speech, ms a letter."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run costs.

    Attributes:
        trials: Turns, warm-up turns as well.
        seconds: Of streaming; transcription comes on top and depends on the machine.
        disk_bytes: In the run folder.
    """

    trials: int
    seconds: float
    disk_bytes: float


def estimate(
    plan: Plan,
    bench: Bench,
    clip_ms: Callable[[Item], float],
    trials: Iterable[Trial] | None = None,
) -> Estimate:
    """Return time and disk of a plan.

    Args:
        plan: The plan.
        bench: Its bench: concurrency and pacing count.
        clip_ms: Length of an item's clip, ms; may be a guess.
        trials: Those that are left, when not all of the plan.
    """
    sessions = {one.name: one.concurrency or bench.run.concurrency for one in bench.endpoints}
    count = 0
    seconds = size = 0.0
    for trial in plan if trials is None else trials:
        clip = clip_ms(trial.item)
        spoken = 0.0 if bench.run.pacing == "fast" else clip
        count += 1
        seconds += (spoken + REPLY_MS + CONNECT_MS) / 1000 / sessions[trial.endpoint]
        size += BYTES_PER_TRIAL + BYTES_PER_AUDIO_S * (clip + REPLY_MS) / 1000
    return Estimate(count, seconds, size)


def clip_length(item: Item) -> float:
    """Return the length of an item's clip, ms; of many items `ClipLengths` knows it sooner."""
    return ClipLengths()(item)


class ClipLengths:
    """Lengths of clips, ms: from file headers, texts by their letters.

    A file is looked at once, however many items it is an example of. Of a large benchmark only the
    first files are opened: the others are as long as their size says, compared with those.

    Args:
        opened: How many files are opened at most.

    Attributes:
        opened: How many were.
        by_size: How many were not, and count by their size.
    """

    def __init__(self, opened: int = FILES_OPENED) -> None:
        self._left = opened
        self.opened = self.by_size = 0
        self._known: dict[Path, float] = {}
        self._bytes: dict[str, float] = {}
        self._ms: dict[str, float] = {}

    def __call__(self, item: Item) -> float:
        """Return the length of an item's clip.

        A file that is missing or broken counts as nothing: its trial takes no time.
        """
        total = sum(map(self._length, item.recipe))
        if item.shots_via == "history":
            return total  # examples leave before the question, all at once
        for shot in item.shots:
            total += sum(map(self._length, (*shot.question, *shot.answer))) + 2 * item.shot_gap_ms
        return total if item.keep_last_ms is None else min(total, item.keep_last_ms)

    def _length(self, part: Part) -> float:
        match part:
            case Gap(ms):
                return ms
            case Spoken(text):
                return MS_PER_LETTER * len(text)
        if part.path not in self._known:
            self._known[part.path] = self._of_file(part.path)
        return self._known[part.path]

    def _of_file(self, path: Path) -> float:
        if not path.is_file():  # a named pipe would be waited for
            return 0.0
        sort, size = path.suffix.lower(), path.stat().st_size
        if self._left <= 0 and self._bytes.get(sort):
            self.by_size += 1
            return size * self._ms[sort] / self._bytes[sort]
        self._left -= 1
        self.opened += 1
        ms = _duration_ms(path)
        if ms:
            self._ms[sort] = self._ms.get(sort, 0.0) + ms
            self._bytes[sort] = self._bytes.get(sort, 0.0) + size
        return ms


def _duration_ms(path: Path) -> float:
    import soundfile

    try:
        return float(soundfile.info(str(path)).duration) * 1000
    except (OSError, RuntimeError):
        return 0.0
