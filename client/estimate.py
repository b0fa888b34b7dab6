"""How long a run will take and how much it will write, before it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    """Return the length of an item's clip, ms: from file headers, texts by their letters.

    A file that is missing or broken counts as nothing: its trial takes no time.
    """
    import soundfile

    from voxmeter.suites.suite import Gap, Spoken

    total = 0.0
    for part in item.recipe:
        match part:
            case Gap(ms):
                total += ms
            case Spoken(text):
                total += MS_PER_LETTER * len(text)
            case _:
                if not part.path.is_file():  # a named pipe would be waited for
                    continue
                try:
                    total += soundfile.info(str(part.path)).duration * 1000
                except (OSError, RuntimeError):
                    continue
    return total
