"""What waits to be sent to the page: sound first, then words; neither grows without end."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping

from voxmeter.client.live.web_wire import RATE, sound

MAX_SOUND = 120 * RATE
"""Samples that wait at most: two minutes of a reply."""

MAX_WORDS = 1000
"""Messages that wait at most; beyond it the oldest is forgotten and counted."""

_CHUNK = RATE // 10  # so that a ping never waits behind more than that


class Outbox:
    """Messages for one page, taken by whoever writes to its websocket.

    Attributes:
        forgotten: Messages of words that a slow page never got.
    """

    def __init__(self) -> None:
        self.forgotten = 0
        self._sound: deque[tuple[int, str | bytes]] = deque()
        self._words: deque[str] = deque()
        self._waiting = 0
        self._something = asyncio.Event()
        self._finished = False

    def sound(self, position: int, pcm: bytes) -> int:
        """Queue samples; return how many there was no room for: the last ones."""
        room = 2 * max(0, MAX_SOUND - self._waiting)
        for start in range(0, min(len(pcm), room), 2 * _CHUNK):
            piece = pcm[start : min(start + 2 * _CHUNK, room)]
            self._sound.append((len(piece) // 2, sound(position + start // 2, piece)))
            self._waiting += len(piece) // 2
        self._something.set()
        return max(0, len(pcm) - room) // 2

    def clear_sound(self) -> None:
        """Forget the sound that waits, and have the page forget what it has."""
        self._sound.clear()
        self._waiting = 0
        self._sound.append((0, json.dumps({"type": "clear"})))
        self._something.set()

    def say(self, words: Mapping[str, object]) -> None:
        """Queue a message of words."""
        if len(self._words) == MAX_WORDS:
            self._words.popleft()
            self.forgotten += 1
        self._words.append(json.dumps(words, allow_nan=False))
        self._something.set()

    def finish(self) -> None:
        """Let `take` return None behind what waits."""
        self._finished = True
        self._something.set()

    async def take(self) -> str | bytes | None:
        """Return the next message as soon as there is one; None when there will be none."""
        while not (self._sound or self._words):
            if self._finished:
                return None
            self._something.clear()
            await self._something.wait()
        if not self._sound:
            return self._words.popleft()
        samples, message = self._sound.popleft()
        self._waiting -= samples
        return message
