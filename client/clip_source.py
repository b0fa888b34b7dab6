"""Clips for a run: rendered when they are wanted, the last few kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from voxmeter.client import clips
from voxmeter.client.conditions import CLEAN, seed_of

if TYPE_CHECKING:
    from voxmeter.client.clips import Clip, SpeakerFor
    from voxmeter.suites.suite import Item

KEPT_BYTES = 64 * 2**20
"""Memory for clips that may be asked for again: a demo suite whole, a few minutes of speech."""


Alter = Callable[["Clip", str], "Clip"]
"""Makes the clip of a condition from the clean one; the text seeds whatever is drawn for it."""


class ClipSource:
    """Gives the clip of an item in a condition; blocking; any thread may ask.

    Clips are kept by their size, not their number: 256 clips of half a minute would be a gigabyte.

    Args:
        speaker_for: Gives the voice for a text that was never spoken before.
        alter: What the conditions do, by name; others leave the clip as it is.
        seed: The run's; each item draws its own from it in each condition.
        kept_bytes: How much is kept besides the newest clip.
    """

    def __init__(
        self,
        speaker_for: SpeakerFor,
        alter: Mapping[str, Alter] | None = None,
        seed: int = 0,
        *,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._speaker_for = speaker_for
        self._alter = alter or {}
        self._seed = seed
        self._room = kept_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, str], Clip] = OrderedDict()

    def __call__(self, item: Item, condition: str = CLEAN) -> Clip:
        """Return an item's clip.

        Args:
            item: As it is asked in the condition.
            condition: Its name.

        Raises:
            ClipError: As `clips.render`.
            UserError: Likewise.
        """
        name = (item.suite, item.item, condition)
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        # Without the lock: other threads go on, and at worst two of them render the same clip.
        clip = self._made(item, condition)
        with self._lock:
            if name not in self._kept:
                self._kept[name] = clip
                self._room -= _bytes(clip)
            while self._room < 0 and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._room += _bytes(oldest)
            return self._kept[name]

    def _made(self, item: Item, condition: str) -> Clip:
        clip = clips.render(item, self._speaker_for)
        alter = self._alter.get(condition)
        if alter is None:
            return clip
        return alter(clip, seed_of(self._seed, condition, item))


def _bytes(clip: Clip) -> int:
    """Return what a clip takes: its samples, and about as much again as it is sent."""
    return 2 * clip.pcm.samples.nbytes
