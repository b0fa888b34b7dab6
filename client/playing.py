"""When what a peer has said would have been played, for peers that wait to hear of it."""

from __future__ import annotations

import asyncio

from voxmeter.client.clock import Clock
from voxmeter.client.ear import play_ns
from voxmeter.endpoints.events import Event, Interrupted, ReplyAudio


class Playout:
    """A listener's loudspeaker: pieces play one after another, each from its arrival on."""

    def __init__(self) -> None:
        self._came = asyncio.Event()
        self._reply = ""
        self._until_ns = 0

    def hear(self, t_ns: int, event: Event) -> None:
        """Take one event of a reply."""
        if isinstance(event, ReplyAudio):
            self._reply = event.reply
            self._until_ns = max(self._until_ns, t_ns) + play_ns(event)
            self._came.set()
        elif isinstance(event, Interrupted):
            self._until_ns = t_ns

    async def over(self, clock: Clock) -> str:
        """Return the name of the reply of which all that has come since has been played."""
        await self._came.wait()
        while clock.now() < self._until_ns:
            await clock.sleep_until(self._until_ns)
        self._came.clear()
        return self._reply
