"""One served session: the user's turns in, a brain's replies out, either side breaking in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from voxmeter.client.audio import Samples, from_pcm16
from voxmeter.client.encodings import Decoder, decoder
from voxmeter.client.servers.answering import Answering, House, Wishes
from voxmeter.client.servers.brain import Terms
from voxmeter.client.servers.connection import Connection
from voxmeter.client.servers.gate import Change
from voxmeter.client.servers.hearing import Captured, Hearing, Piece
from voxmeter.client.servers.history import History
from voxmeter.endpoints.codec import Binary, Message
from voxmeter.endpoints.errors import ConnectionLostError, ProtocolError
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    FullDuplexCodec,
    HistoryAdded,
    HistoryRemoved,
    ReplyCancelled,
    ReplyRequested,
    ReplyTruncated,
    ServerCodec,
    SessionSet,
    TurnCommitted,
    UserAudio,
    UserCleared,
)

_SLICE_MS = 100  # speech cannot stop and start again within one
_PAUSE_MS = 1_500  # a longer silence before a reply is no pause within the turn
_NS = 1_000_000_000
_POLICY_CLOSE = 1008
_REASON_BYTES = 120  # a close frame has room for 123


class Conversation:
    """One session from the upgrade to its end.

    Args:
        number: Number of the session within its server, from 1.
        query: The query of its URL, with the server's defaults filled in.
    """

    def __init__(
        self,
        house: House,
        connection: Connection,
        codec: ServerCodec,
        *,
        terms: Terms,
        query: Mapping[str, str],
        number: int,
    ) -> None:
        self._house = house
        self._connection = connection
        self._codec = codec
        self._terms = terms
        self._wishes = Wishes(tag=query.get("tag", ""), query=query)
        self._endpoint_ms = terms.endpoint_ms
        self._history = History()
        self._hearing = self._listen()
        self._decoder: tuple[UserAudio, Decoder] | None = None
        self._waiting: Captured | None = None
        self._stopped_ms = 0
        self._answering = Answering(house, connection, codec, self._history, number)

    async def run(self) -> None:
        """Talk until the client leaves or the session must end.

        Raises:
            ExceptionGroup: For a protocol error of the client's or a fault of this program.
        """
        async with asyncio.TaskGroup() as group:
            self._answering.group = group
            try:
                await self._connection.send_messages(self._codec.open().messages)
                while await self._take(*await self._connection.receive()):
                    pass
            except ConnectionLostError:
                pass
            finally:
                await self._answering.stop("disconnected")
        await self._connection.close()

    async def _take(self, t_ns: int, message: Message) -> bool:
        """Handle one message; return whether the session goes on."""
        step = self._codec.receive(message)
        await self._connection.send_messages(step.messages)
        for event in step.events:
            if not await self._handle(event, t_ns):
                return False
        return True

    async def _handle(self, event: ClientEvent, t_ns: int) -> bool:
        match event:
            case UserAudio():
                return await self._hear(event, t_ns)
            case SessionSet():
                self._set(event)
            case UserCleared():
                self._hearing.clear()
            case TurnCommitted():
                self._close_turn()
                self._hearing.forget()
            case ReplyRequested(instructions):
                await self._request(t_ns, instructions)
            case ReplyCancelled():
                await self._answering.stop("cancelled")
            case ReplyTruncated(heard_ms):
                self._answering.truncate(heard_ms)
            case HistoryAdded():
                self._history.add(event, t_ns)
            case HistoryRemoved(item):
                self._history.remove(item)
            case ClientLeft():
                return False
        return True

    def _set(self, event: SessionSet) -> None:
        self._wishes = self._wishes.changed(event)
        if event.silence_ms is not None and not self._terms.endpoint_fixed:
            self._endpoint_ms = event.silence_ms
        detect = self._codec.turn_end == "silence"
        if (self._hearing.rate, self._hearing.detect) != (self._codec.input_rate, detect):
            self._hearing = self._listen()
        self._hearing.endpoint(self._endpoint_ms)

    def _listen(self) -> Hearing:
        return Hearing(
            self._codec.input_rate,
            self._endpoint_ms,
            limit_s=self._house.turn_limit_s,
            detect=self._codec.turn_end == "silence",
        )

    async def _hear(self, event: UserAudio, t_ns: int) -> bool:
        reason = self._impossible_delay() if self._hearing.detect else None
        if reason is not None:
            await self._refuse(reason)
            return False
        if event.rate != self._hearing.rate:
            self._hearing = self._listen()
        for number, piece in enumerate(_slices(self._decoded(event), event.rate, t_ns)):
            for change in self._hearing.hear(piece.samples, piece.t_ns):
                await self._turn_changed(change)
            if self._answering.mouth is not None:
                await self._answering.mouth.hear(len(piece.samples), event.rate)
            if number:
                await asyncio.sleep(0)  # minutes in one message must not hold up the others
        return True

    def _impossible_delay(self) -> str | None:
        """Return why replies cannot begin as early as they are to; None if they can."""
        least, quiet = self._terms.least_delay_ms, self._endpoint_ms
        if least is not None and least < quiet:
            return (
                f"delay_ms={least:g} is shorter than the {quiet} ms of quiet that end a turn; "
                "commit turns, or ask for a longer delay_ms or a shorter endpoint_ms"
            )
        steps = 2 * self._codec.frame_ms if isinstance(self._codec, FullDuplexCodec) else 0
        if least is not None and least < quiet + steps:
            return (
                f"delay_ms={least:g} is shorter than endpoint_ms={quiet} and two frames of "
                f"{steps // 2} ms; ask for a longer delay_ms or a shorter endpoint_ms"
            )
        return None

    def _decoded(self, event: UserAudio) -> Samples:
        """Return the samples that a piece completes; it may split one."""
        kind = UserAudio(b"", event.encoding, event.rate)
        if self._decoder is None or self._decoder[0] != kind:
            self._decoder = (kind, decoder(event.encoding, event.rate))
        try:
            samples = self._decoder[1].decode(event.data)
        except (ValueError, RuntimeError) as error:
            raise ProtocolError(event.encoding, str(error), Binary(event.data)) from None
        return samples.astype(np.float32) / np.float32(32768.0)

    async def _turn_changed(self, change: Change) -> None:
        audio_ms = change.sample * 1000 // self._hearing.rate
        if change.kind == "started":
            await self._connection.send_messages(self._codec.speech_started(audio_ms))
            if self._answering.silent and audio_ms - self._stopped_ms < _PAUSE_MS:
                await self._answering.withdraw()  # the pause was one within the turn
            elif self._wishes.interruptible:
                await self._answering.stop("cancelled")
            return
        await self._connection.send_messages(self._codec.speech_stopped(audio_ms))
        self._stopped_ms = audio_ms
        self._close_turn()
        if self._wishes.auto_reply:
            await self._answer(committed=False)
        else:
            self._hearing.forget()

    def _close_turn(self) -> None:
        captured = self._hearing.close()
        self._waiting = captured if self._waiting is None else self._waiting + captured

    async def _request(self, t_ns: int, instructions: str | None) -> None:
        """Answer the turns that were closed, or the question that came as a whole turn."""
        question = self._history.take_question() if self._waiting is None else None
        if question is not None:
            piece = Piece(0, from_pcm16(question[0]), question[1])
            self._waiting = Captured((piece,), self._codec.input_rate, at_once=True)
        await self._answer(committed=True, t_ns=t_ns, instructions=instructions)

    async def _answer(
        self, *, committed: bool, t_ns: int = 0, instructions: str | None = None
    ) -> None:
        captured = self._waiting or Captured((), self._codec.input_rate)
        self._waiting = None
        wishes = (
            self._wishes
            if instructions is None
            else replace(self._wishes, instructions=instructions)
        )
        await self._answering.start(
            captured,
            wishes,
            asked_ns=t_ns,
            committed=committed,
            settled=self._forget,
        )

    def _forget(self) -> None:
        self._hearing.forget()

    async def _refuse(self, reason: str) -> None:
        await self._connection.send_messages(self._codec.fault("policy", "session_refused", reason))
        await self._connection.close(_POLICY_CLOSE, reason[:_REASON_BYTES])


def _slices(samples: Samples, rate: int, t_ns: int) -> Iterator[Piece]:
    """Yield a message's audio in pieces of 100 ms, each with the moment its last sample arrived."""
    step = max(1, rate * _SLICE_MS // 1000)
    for start in range(0, len(samples), step):
        part = samples[start : start + step]
        after = len(samples) - start - len(part)
        yield Piece(start, part, t_ns - after * _NS // rate)
