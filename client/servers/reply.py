"""One reply on its way to the client: each piece on time and stamped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from voxmeter.client.audio import Samples, to_pcm16
from voxmeter.client.servers.brain import (
    Brain,
    Drop,
    Heard,
    Raw,
    Speech,
    Spoken,
    UserTurn,
    Words,
)
from voxmeter.client.servers.connection import Connection
from voxmeter.client.servers.punctual import Punctual
from voxmeter.client.servers.truth import Delivery, Outcome, Packet
from voxmeter.endpoints.codec import Message
from voxmeter.endpoints.serving import ServerCodec

_OPEN_BEFORE_NS = 4_000_000
_KEPT_S = 60


@dataclass(slots=True)
class Reply:
    """A reply, from the end of the user's turn on.

    Attributes:
        number: Of the turn within its session, from 1.
        tag: The client's name for its session.
        delivery: The audio that was sent of it.
        settled: Called once, when the turn can no longer go on.
        end_ns: The user's end of speech, as far as it is known.
        committed: Whether the client asked for it, so that no speech takes it back.
        outcome: How it ended.
        opened: Whether the client was told that a reply began.
        closed: Whether the client was told that it ended.
        begun: Whether anything of it was sent that the user can hear or read.
        raw: Whether anything was sent past the protocol.
        dropped: Whether the brain cut the connection.
        withdrawn: Whether it was taken back, because the user had not finished.
        heard: What the user was understood to say.
        words: The reply's own text, as far as it was sent.
        searched: Whether its first audible sample is wanted, and known by nobody.
        speech: Then, the first minute of its samples, packet by packet.
        task: Whatever produces it.
    """

    number: int
    tag: str
    delivery: Delivery
    settled: Callable[[], None]
    end_ns: int = 0
    committed: bool = False
    outcome: Outcome = "failed"
    opened: bool = False
    closed: bool = False
    begun: bool = False
    raw: bool = False
    dropped: bool = False
    withdrawn: bool = False
    heard: str = ""
    words: list[str] = field(default_factory=list)
    searched: bool = False
    speech: list[Samples] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    def keep(self, samples: Samples) -> None:
        """Keep samples that were sent, if the first audible one is to be searched in them."""
        wanted = self.searched and self.delivery.onset is None
        if wanted and self.delivery.samples <= _KEPT_S * self.delivery.rate:
            self.speech.append(samples)

    def settle(self) -> None:
        """Let the next speech be a turn of its own."""
        if not self.begun:
            self.begun = True
            self.settled()


class Speaker:
    """Sends what a brain yields for one reply, each piece not before its time."""

    def __init__(
        self,
        connection: Connection,
        codec: ServerCodec,
        punctual: Punctual,
        reply: Reply,
    ) -> None:
        self._connection = connection
        self._codec = codec
        self._punctual = punctual
        self._reply = reply

    async def speak(self, brain: Brain, turn: UserTurn) -> None:
        """Let the brain answer and send all of it; stop where it cuts the connection.

        Raises:
            ConnectionLostError: If the client has gone.
            Exception: Whatever the brain raises.
        """
        async with aclosing(brain.answer(turn)) as pieces:
            async for piece in pieces:
                await self._say(piece)
                if self._reply.dropped:
                    return
        if not self._reply.raw:
            await self._open(None)  # a reply of nothing is a reply: nobody need wait for more
        await self.end("completed")

    async def end(self, reason: Literal["completed", "cancelled"]) -> None:
        """Tell the client that the reply is over, once, if it was told of it at all.

        Raises:
            ConnectionLostError: If the client has gone.
        """
        if self._reply.opened and not self._reply.closed:
            self._reply.closed = True
            await self._send(self._codec.reply_ended(reason))

    async def _say(self, piece: Spoken) -> None:
        match piece:
            case Heard(text, at_ns):
                await self._wait(at_ns)
                self._reply.heard = text
                await self._send(self._codec.input_transcript(text))
            case Words(text, at_ns):
                await self._open(at_ns)
                await self._wait(at_ns)
                await self._send(self._codec.reply_text(text))
                self._reply.words.append(text)
                self._reply.settle()
            case Speech():
                await self._speech(piece)
            case Raw(data, at_ns):
                await self._wait(at_ns)
                self._reply.raw = True
                await self._connection.send_raw(data)
            case Drop(at_ns):
                await self._wait(at_ns)
                self._reply.dropped = True
                self._connection.cut()

    async def _speech(self, piece: Speech) -> None:
        delivery = self._reply.delivery
        if piece.onset is not None and delivery.onset is None:
            delivery.onset = delivery.samples + piece.onset
        rate = self._codec.output_rate
        for start in range(0, max(1, len(piece.samples)), rate):
            await self._packet(
                piece.samples[start : start + rate], piece.at_ns if start == 0 else None
            )

    async def _packet(self, samples: Samples, at_ns: int | None) -> None:
        await self._open(at_ns)
        messages = self._codec.reply_audio(to_pcm16(samples))  # made before it is due
        await self._wait(at_ns)
        if not messages:
            return  # the client wants no audio
        stamp = self._connection.clock.now()
        try:
            stamp = await self._send(messages)
        except asyncio.CancelledError:
            self._sent(samples, stamp)  # cancelled while draining: it was written all the same
            raise
        self._sent(samples, stamp)

    def _sent(self, samples: Samples, stamp: int) -> None:
        self._reply.delivery.packets.append(Packet(stamp, len(samples)))
        self._reply.keep(samples)
        self._reply.settle()

    async def _open(self, at_ns: int | None) -> None:
        """Tell of the reply shortly before its first piece: until then the turn may go on."""
        if not self._reply.opened:
            if at_ns is not None:
                await self._connection.clock.sleep_until(at_ns - _OPEN_BEFORE_NS)
            self._reply.opened = True
            await self._send(self._codec.reply_started())

    async def _wait(self, at_ns: int | None) -> None:
        """Wait for the moment of a piece: exactly for the first, by the loop's timer for others."""
        if at_ns is None:
            await asyncio.sleep(0)  # a burst must not keep the other sessions waiting
        elif self._reply.begun:
            await self._connection.clock.sleep_until(at_ns)
        else:
            await self._punctual.until(at_ns)

    async def _send(self, messages: Sequence[Message]) -> int:
        return await self._connection.send_messages(messages)
