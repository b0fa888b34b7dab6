"""What a full-duplex server says: one frame for every frame it hears, with replies laid into it.

The stream goes on as long as the client feeds it, and is silent where nothing was laid. A piece
that is due at a moment is laid so that a listener hears it then, to the sample, as far as it was
laid in time; what was laid too late is heard at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from voxmeter.client.audio import Samples, to_pcm16
from voxmeter.client.encodings import encoder
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
from voxmeter.client.servers.reply import Reply
from voxmeter.client.servers.truth import Packet
from voxmeter.endpoints.serving import FullDuplexCodec

_NS = 1_000_000_000
_SEAM_MS = 1  # pieces that follow each other may be rounded apart by less


@dataclass(slots=True)
class _Laid:
    """A piece that is still to be said: sound, or words that come at their place in it."""

    reply: Reply
    samples: Samples
    at_ns: int | None
    words: str = ""


class _Part(NamedTuple):
    """Samples of one reply within a frame; those before its first audible one are quiet."""

    start: int
    samples: Samples
    reply: Reply
    quiet: bool


class Mouth:
    """The output of one session."""

    def __init__(self, connection: Connection, codec: FullDuplexCodec) -> None:
        self._connection = connection
        self._codec = codec
        self._rate = codec.output_rate
        self._frame = codec.frame_ms * self._rate // 1000
        self._held_back = codec.held_back
        self._wire = encoder(codec.output_encoding, self._rate)
        self._queue: deque[_Laid] = deque()
        self._changed = asyncio.Event()
        self._before: Reply | None = None
        self._heard_ms = 0.0
        self._made = 0
        self._free_ns = 0

    def lay(self, reply: Reply, piece: Speech | Words) -> None:
        """Take a piece of a reply; it is said behind what was laid before."""
        if isinstance(piece, Words):
            silence = np.zeros(0, np.float32)
            self._queue.append(_Laid(reply, silence, piece.at_ns, piece.text))
            return
        if piece.onset is not None and reply.delivery.onset is None:
            waiting = sum(len(laid.samples) for laid in self._queue if laid.reply is reply)
            reply.delivery.onset = reply.delivery.samples + waiting + piece.onset
        self._queue.append(_Laid(reply, piece.samples, piece.at_ns))

    def drop(self, reply: Reply) -> None:
        """Throw away what has not been said of a reply."""
        self._queue = deque(laid for laid in self._queue if laid.reply is not reply)
        self._changed.set()

    async def said(self, reply: Reply) -> None:
        """Wait until all of a reply has been said; it may wait as long as the client is silent."""
        while any(laid.reply is reply for laid in self._queue):
            self._changed.clear()
            await self._changed.wait()

    async def hear(self, samples: int, rate: int) -> None:
        """Say as much as has been heard by now.

        Raises:
            ConnectionLostError: If the client has gone.
        """
        self._heard_ms += samples * 1000 / rate
        while self._heard_ms >= (self._made + 1 + self._held_back) * self._codec.frame_ms - 1e-6:
            self._made += 1
            await self._say()

    async def _say(self) -> None:
        now = self._connection.clock.now()
        # One who hears silence drops as much of it as this frame came too early.
        begins_ns = now if self._before is None else max(now, self._free_ns)
        parts, words = self._fill(begins_ns)
        sound = np.zeros(self._frame, np.float32)
        for part in parts:
            sound[part.start : part.start + len(part.samples)] = part.samples
        messages = [*self._codec.reply_audio(self._wire.encode(to_pcm16(sound)))]
        for laid in words:
            messages += self._codec.reply_text(laid.words)
        sent_ns = await self._connection.send_messages(messages)
        self._listen(sent_ns, parts)
        for laid in words:
            laid.reply.words.append(laid.words)
            laid.reply.settle()
        self._changed.set()

    def _fill(self, begins_ns: int) -> tuple[list[_Part], list[_Laid]]:
        """Return what goes into the frame that a listener begins to hear at a moment."""
        parts: list[_Part] = []
        words: list[_Laid] = []
        place = 0
        while self._queue and place < self._frame:
            laid = self._queue[0]
            place = self._place(laid, begins_ns, place)
            if place >= self._frame:
                break
            if laid.words:
                words.append(self._queue.popleft())
                continue
            for samples, quiet in self._pieces(laid, self._frame - place, parts):
                parts.append(_Part(place, samples, laid.reply, quiet))
                place += len(samples)
            self._before = laid.reply
            if not len(laid.samples):
                self._queue.popleft()
        if place < self._frame:
            self._before = None
        return parts, words

    def _place(self, laid: _Laid, begins_ns: int, place: int) -> int:
        """Return where in the frame a piece is to begin; beyond it if it is for a later one."""
        if laid.at_ns is None:
            return place
        due = round((laid.at_ns - begins_ns) * self._rate / _NS)
        follows = self._before is laid.reply
        seam = _SEAM_MS * self._rate // 1000 if follows else 0
        return place if due <= place + seam else due

    def _pieces(self, laid: _Laid, room: int, parts: list[_Part]) -> list[tuple[Samples, bool]]:
        """Take what has room from a piece, parted at its reply's first audible sample."""
        taken, laid.samples = laid.samples[:room], laid.samples[room:]
        onset = laid.reply.delivery.onset
        if onset is None:
            return [(taken, False)]
        before = laid.reply.delivery.samples
        before += sum(len(part.samples) for part in parts if part.reply is laid.reply)
        quiet = min(max(0, onset - before), len(taken))
        both = ((taken[:quiet], True), (taken[quiet:], False))
        return [(samples, silent) for samples, silent in both if len(samples)]

    def _listen(self, sent_ns: int, parts: list[_Part]) -> None:
        """Note when each part is heard by one who drops silence to catch up.

        Opus delays sound by 6.5 ms and smears an onset by as much: what is audible first is where
        it was laid, within 3 ms.
        """
        late = max(0, self._free_ns - sent_ns)
        head = max(self._free_ns, sent_ns)
        place = 0
        for part in parts:
            head, late = self._pass(head, late, part.start - place)
            heard_ns = head
            place = part.start + len(part.samples)
            if part.quiet:
                head, late = self._pass(head, late, len(part.samples))
            else:
                head += len(part.samples) * _NS // self._rate
            self._sent(part, sent_ns, heard_ns)
        self._free_ns, _ = self._pass(head, late, self._frame - place)

    def _pass(self, head: int, late: int, silent: int) -> tuple[int, int]:
        """Return where silence ends, and how late the listener is then, ns."""
        long = silent * _NS // self._rate
        dropped = min(late, long)
        return head + long - dropped, late - dropped

    def _sent(self, part: _Part, sent_ns: int, heard_ns: int) -> None:
        reply = part.reply
        reply.delivery.packets.append(Packet(sent_ns, len(part.samples), heard_ns))
        reply.keep(part.samples)
        reply.settle()


class DuplexSpeaker:
    """Lets a brain answer into a stream that never stops; see `Speaker`."""

    def __init__(
        self,
        connection: Connection,
        codec: FullDuplexCodec,
        mouth: Mouth,
        reply: Reply,
    ) -> None:
        self._connection = connection
        self._codec = codec
        self._mouth = mouth
        self._reply = reply

    async def speak(self, brain: Brain, turn: UserTurn) -> None:
        """Let the brain answer, and wait until all of it has been said.

        Raises:
            ConnectionLostError: If the client has gone.
            Exception: Whatever the brain raises.
        """
        try:
            async with aclosing(brain.answer(turn)) as pieces:
                async for piece in pieces:
                    await self._say(piece)
                    if self._reply.dropped:
                        return
            await self._mouth.said(self._reply)
        finally:
            self._mouth.drop(self._reply)

    async def end(self, reason: Literal["completed", "cancelled"]) -> None:
        """Nobody is told: the sound stops."""

    async def _say(self, piece: Spoken) -> None:
        match piece:
            case Heard(text):
                self._reply.heard = text
                await self._connection.send_messages(self._codec.input_transcript(text))
            case Words() | Speech():
                self._mouth.lay(self._reply, piece)
            case Raw(data, at_ns):
                await self._mouth.said(self._reply)
                await self._wait(at_ns)
                await self._connection.send_raw(data)
            case Drop(at_ns):
                await self._mouth.said(self._reply)
                await self._wait(at_ns)
                self._reply.dropped = True
                self._connection.cut()

    async def _wait(self, at_ns: int | None) -> None:
        if at_ns is not None:
            await self._connection.clock.sleep_until(at_ns)
