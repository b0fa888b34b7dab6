"""What threads have to say to one session on the event loop: in order, stamped where it came."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from voxmeter.client.transport import Arrival
from voxmeter.endpoints.codec import Binary, Message, Text
from voxmeter.endpoints.errors import ProtocolError


class Mailbox:
    """Any thread puts, one task at a time takes; it may outlive the loop of the task.

    Args:
        limit: Most bytes that may lie unread.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._letters: deque[tuple[Arrival | ProtocolError, int]] = deque()
        self._held = 0
        self._bell: Callable[[], object] | None = None

    def put(self, letter: Arrival | ProtocolError, size: int = 0) -> bool:
        """Add what came; an error is raised where it is taken.

        Args:
            letter: With its stamp.
            size: Its size, bytes.

        Returns:
            Whether there is room for more.
        """
        with self._lock:
            self._letters.append((letter, size))
            self._held += size
            bell, self._bell = self._bell, None
            room = self._held <= self._limit
        if bell is not None:
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                bell()
        return room

    async def take(self) -> Arrival:
        """Return the oldest letter; wait for one if there is none.

        Raises:
            ProtocolError: If that is what was put.
        """
        loop = asyncio.get_running_loop()
        while True:
            waiting: asyncio.Future[None] = loop.create_future()
            with self._lock:
                if self._letters:
                    letter, size = self._letters.popleft()
                    self._held -= size
                    break
                self._bell = partial(loop.call_soon_threadsafe, _ring, waiting)
            await waiting
        if isinstance(letter, ProtocolError):
            raise letter
        return letter


def size_of(message: Message) -> int:
    """Return how many bytes or characters a message has."""
    return len(message.data) if isinstance(message, Text | Binary) else 0


def _ring(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
