"""Questions of a suite asked aloud: a loudspeaker says them into the room, a microphone hears them.

So the whole acoustic path is measured. While a reply is played the microphone hears nothing, since
nobody who might interrupt it is there, and the reply itself would.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from voxmeter.client.clock import Clock
from voxmeter.client.live.microphone import Samples
from voxmeter.client.live.playback import Playback
from voxmeter.client.live.turn import Question

if TYPE_CHECKING:
    from voxmeter.client.live.exchange import Exchange

NOT_HEARD = (
    "the microphone did not hear the question: use a loudspeaker, no headset, and turn it up"
)
_NS = 1_000_000_000
_WHILE_ASKING_MS = 5_000  # quiet inside of a question that is played does not end it
_HEARD_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that is asked aloud.

    Attributes:
        question: What its turn is kept as.
        clip: Returns its samples, shape (n,), in [-1, 1], and their rate; blocks.
    """

    question: Question
    clip: Callable[[], tuple[Samples, int]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Aloud:
    """Asks one question after another.

    Attributes:
        playback: What plays on the loudspeaker.
        exchange: Returns the connection in use, None before there is one.
        until: Waits until something is so.
        clock: The clock for everything.
    """

    playback: Playback
    exchange: Callable[[], Exchange | None]
    until: Callable[[Callable[[], bool]], Awaitable[None]]
    clock: Clock

    async def ask(self, asked: Asked) -> bool:
        """Play one question and wait for the end of its turn; return whether it was heard.

        Raises:
            ClipError: If its clip cannot be made.
        """
        import asyncio

        samples, rate = await asyncio.to_thread(asked.clip)
        await self.until(self._is_quiet)
        exchange = self.exchange()
        assert exchange is not None  # noqa: S101 - it is quiet
        before = exchange.turns.number
        exchange.half_duplex = True
        exchange.wait_longer(_WHILE_ASKING_MS)
        self.playback.play(samples, rate, None)
        self.playback.flush()
        await self.until(lambda: self.playback.pending == 0 or not exchange.ready)
        exchange.wait_longer(None)
        limit_ns = self.clock.now() + int(_HEARD_WITHIN_S * _NS)
        await self.until(lambda: exchange.turns.number > before or self.clock.now() >= limit_ns)
        heard = exchange.turns.number > before
        await self.until(lambda: not exchange.turns.open)
        return heard

    def _is_quiet(self) -> bool:
        exchange = self.exchange()
        quiet = exchange is not None and exchange.ready and not exchange.turns.open
        return quiet and self.playback.pending == 0
