"""The replies of one served session: one at a time, each logged as what it really was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np

from voxmeter.client.redaction import everything_read
from voxmeter.client.servers.brain import Brain, UserTurn
from voxmeter.client.servers.connection import Connection
from voxmeter.client.servers.duplex import DuplexSpeaker, Mouth
from voxmeter.client.servers.hearing import Captured
from voxmeter.client.servers.history import History
from voxmeter.client.servers.punctual import Punctual
from voxmeter.client.servers.reply import Reply, Speaker
from voxmeter.client.servers.truth import Delivery, Outcome, TruthLine, TruthLog
from voxmeter.client.terminal import warn
from voxmeter.endpoints.errors import ConnectionLostError, UserError
from voxmeter.endpoints.serving import FullDuplexCodec, ServerCodec, SessionSet
from voxmeter.scoring.speech import speech_bounds


@dataclass(frozen=True, slots=True)
class House:
    """What all sessions of one server share.

    Attributes:
        brain: What answers.
        punctual: Waits for the moments at which packets are due.
        executor: Threads for searching audio, away from the event loop.
        truth: Where turns are logged; None logs nothing.
        turn_limit_s: Longest turn that is kept, s.
    """

    brain: Brain
    punctual: Punctual
    executor: Executor
    truth: TruthLog | None
    turn_limit_s: float


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a client has asked for its session so far; the query's `tag` stands above the others."""

    query: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""
    instructions: str = ""
    voice: str = ""
    temperature: float | None = None
    auto_reply: bool = True
    interruptible: bool = True

    def changed(self, event: SessionSet) -> Wishes:
        """Return the wishes with what the client set now; what it left out stays."""
        names = ("instructions", "voice", "temperature", "auto_reply", "interruptible")
        new = {name: getattr(event, name) for name in names if getattr(event, name) is not None}
        if event.tag is not None and "tag" not in self.query:
            new["tag"] = event.tag
        return replace(self, **new)


class Answering:
    """Starts, stops and logs the replies of one session.

    Attributes:
        group: Where replies run; set before the first one.
        mouth: Where they are laid in a full-duplex session; None in others.
    """

    group: asyncio.TaskGroup

    def __init__(
        self,
        house: House,
        connection: Connection,
        codec: ServerCodec,
        history: History,
        session: int,
    ) -> None:
        self._house = house
        self._connection = connection
        self._codec = codec
        self._history = history
        self._session = session
        self.mouth = Mouth(connection, codec) if isinstance(codec, FullDuplexCodec) else None
        self._turns = 0
        self._reply: Reply | None = None
        self._last: Reply | None = None

    @property
    def silent(self) -> bool:
        """Whether the reply to a turn that quiet closed is on its way, and none of it was sent."""
        reply = self._reply
        return reply is not None and not reply.begun and not reply.committed

    async def start(
        self,
        captured: Captured,
        wishes: Wishes,
        *,
        asked_ns: int,
        committed: bool,
        settled: Callable[[], None],
    ) -> None:
        """Answer a turn; whatever was still being said ends first.

        Args:
            captured: The turn's audio, perhaps none.
            wishes: What the client wants of the reply.
            asked_ns: When the reply was asked for: the end of a turn that has no audio.
            committed: Whether the client closed the turn.
            settled: Called once the turn can no longer go on: its reply has begun or is over.
        """
        await self.stop("cancelled")
        self._turns += 1
        reply = Reply(self._turns, wishes.tag, Delivery(self._codec.output_rate), settled)
        reply.committed = committed
        reply.searched = self._house.truth is not None
        reply.end_ns = captured.pieces[-1].t_ns if captured.pieces else asked_ns
        turn = UserTurn(
            samples=np.zeros(0, np.float32),
            rate=captured.rate,
            output_rate=self._codec.output_rate,
            end_ns=reply.end_ns,
            session=self._session,
            number=reply.number,
            tag=wishes.tag,
            committed=committed,
            instructions=wishes.instructions,
            voice=wishes.voice,
            temperature=wishes.temperature,
            history=self._history.turns(),
            query=wishes.query,
        )
        self._reply = self._last = reply
        reply.task = self.group.create_task(
            self._run(reply, turn, captured), name=f"reply {reply.number}"
        )

    async def stop(self, outcome: Outcome) -> None:
        """Stop the present reply, if there is one; what was unsent stays unsent."""
        reply = self._reply
        if reply is None or reply.task is None:
            return
        reply.outcome = outcome
        reply.task.cancel()
        await asyncio.wait([reply.task])
        self._finish(reply)  # a task that was stopped before it began has not done so
        if outcome == "cancelled":
            await self._speaker(reply).end("cancelled")

    async def withdraw(self) -> None:
        """Take back a reply of which nothing was sent: the user had not finished."""
        reply = self._reply
        if reply is None or reply.task is None:
            return
        reply.withdrawn = True
        reply.task.cancel()
        await asyncio.wait([reply.task])
        self._finish(reply)  # a task that was stopped before it began has not done so
        self._turns -= 1
        await self._speaker(reply).end("cancelled")

    def truncate(self, heard_ms: int) -> None:
        """Take note of how much of the last reply the user heard."""
        if self._last is not None and self._last.delivery.samples:
            heard = heard_ms * self._last.delivery.rate / 1000
            self._history.cut(min(1.0, heard / self._last.delivery.samples))

    async def _run(self, reply: Reply, turn: UserTurn, captured: Captured) -> None:
        try:
            turn = await self._searched(turn, captured)
            reply.end_ns = turn.end_ns
            await self._speaker(reply).speak(self._house.brain, turn)
            reply.outcome = "dropped" if reply.dropped else "completed"
        except ConnectionLostError:
            reply.outcome = "disconnected"
        except Exception as error:  # noqa: BLE001 - a brain is foreign code; its fault ends a reply
            reply.outcome = "failed"
            await self._tell_fault(reply, error)
        finally:
            self._finish(reply)

    def _finish(self, reply: Reply) -> None:
        """Keep what there is to keep of a reply that is over; a second call does nothing."""
        if self._reply is not reply:
            return
        self._reply = None
        if not reply.withdrawn:
            reply.settle()
            self._history.exchange(reply.heard, "".join(reply.words))
            self._log(reply)
        self._connection.answered()

    async def _searched(self, turn: UserTurn, captured: Captured) -> UserTurn:
        """Return the turn with its audio and its exact end, found outside the event loop."""
        if not captured.pieces:
            return turn

        def search() -> UserTurn:
            samples = captured.samples()
            return replace(turn, samples=samples, end_ns=captured.end_ns(samples))

        return await asyncio.get_running_loop().run_in_executor(self._house.executor, search)

    def _speaker(self, reply: Reply) -> Speaker | DuplexSpeaker:
        if self.mouth is not None and isinstance(self._codec, FullDuplexCodec):
            return DuplexSpeaker(self._connection, self._codec, self.mouth, reply)
        return Speaker(self._connection, self._codec, self._house.punctual, reply)

    async def _tell_fault(self, reply: Reply, error: Exception) -> None:
        text = everything_read().text(f"{type(error).__name__}: {error}")  # clients are told
        warn(f"session {self._session}, turn {reply.number}: {text}")
        reply.closed = True
        try:
            await self._connection.send_messages(self._codec.fault("server", "server_error", text))
        except ConnectionLostError:
            reply.outcome = "disconnected"

    def _log(self, reply: Reply) -> None:
        truth = self._house.truth
        if truth is None:
            return
        if reply.delivery.onset is None and reply.speech:
            self._house.executor.submit(self._search_and_write, truth, reply)
        else:
            self._write(truth, reply)

    def _search_and_write(self, truth: TruthLog, reply: Reply) -> None:
        bounds = speech_bounds(np.concatenate(reply.speech), reply.delivery.rate)
        reply.speech.clear()
        reply.delivery.onset = None if bounds is None else bounds.onset_sample
        self._write(truth, reply)

    def _write(self, truth: TruthLog, reply: Reply) -> None:
        packets = reply.delivery.packets
        line = TruthLine(
            tag=reply.tag,
            session=self._session,
            turn=reply.number,
            user_end_ns=reply.end_ns,
            first_packet_ns=packets[0].sent_ns if packets else None,
            first_audible_ns=reply.delivery.first_audible_ns(),
            last_packet_ns=packets[-1].sent_ns if packets else None,
            reply_samples=reply.delivery.samples,
            reply_rate=reply.delivery.rate,
            outcome=reply.outcome,
        )
        try:
            truth.write(line)
        except UserError as error:
            warn(str(error))
