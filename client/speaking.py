"""The speaking half of a session: the question leaves frame by frame, each when it is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from voxmeter.client.capture import Recorder, Utterance, size_of
from voxmeter.client.clock import Clock
from voxmeter.client.encodings import Encoder, encoder
from voxmeter.client.pacing import Outgoing
from voxmeter.client.transport import Transport
from voxmeter.endpoints.codec import Codec, Step, Turn
from voxmeter.endpoints.events import Encoding

_NS = 1_000_000_000
_MS = 1_000_000

History = Sequence[Turn] | Callable[[int], Sequence[Turn]]
"""Earlier turns, or what returns them at a rate (samples a second); called off the event loop."""


MOST_MIB = 512
"""Most that an endpoint may send in one session, unless single messages may be larger."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a session waits; all of them are settings of the endpoint.

    Attributes:
        connect_timeout_s: For the connection and the protocol's handshake together.
        first_reply_timeout_s: From t0 to the first sign of a reply.
        reply_limit_s: From t0 to the end of the reply.
        greeting_timeout_s: For an endpoint that speaks first.
        drain_ms: Quiet that must follow the end of a reply, so that no tail is lost.
        quiet_ms: Quiet that ends a reply where nothing else does, and that follows a cancelled one.
        most_mib: Most that an endpoint may send in one session; all of it is held in memory.
    """

    connect_timeout_s: float = 10.0
    first_reply_timeout_s: float = 30.0
    reply_limit_s: float = 120.0
    greeting_timeout_s: float = 10.0
    drain_ms: int = 300
    quiet_ms: int = 1500
    most_mib: int = MOST_MIB


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to put to an endpoint.

    Attributes:
        question: Returns the utterance at a rate (samples a second); called off the event loop.
        history: Earlier turns, for protocols that carry them; at the rate of the question.
        text: Text that goes with the audio.
        commit_after_ms: Wait between the last voiced sample and the commit or the request.
        pacing: `fast` sends without waiting; no latency can be read from it.
        stagger_ns: Where its frames lie in the beat that all sessions share, so that those side by
            side do not send in step; 0: it begins at once, wherever that is.
        patience: Time-outs.
    """

    question: Callable[[int], Utterance]
    history: History = ()
    text: str = ""
    commit_after_ms: int = 0
    pacing: Literal["real-time", "fast"] = "real-time"
    stagger_ns: int = 0
    patience: Patience = field(default_factory=Patience)

    def turns(self, rate: int) -> Sequence[Turn]:
        """Return the earlier turns at a rate, samples a second."""
        return self.history(rate) if callable(self.history) else self.history


class Question:
    """Sends one question; the session says when to stop by cancelling it.

    Args:
        codec: The session's codec, whose handshake is done.
        transport: The open connection.
        ask: What to say and how.
        record: Where every send is noted.
        clock: The session's clock.
        greeted: Whether an endpoint that speaks first has finished its greeting.
        begun: Called once with the moment (ns) at which the first voiced sample left, and its place
            in the outgoing stream, s.
        spoken: Called once with t0 (ns), when the last voiced sample has left, and its place.
    """

    def __init__(
        self,
        codec: Codec,
        transport: Transport,
        ask: Ask,
        record: Recorder,
        clock: Clock,
        *,
        greeted: Callable[[], bool],
        begun: Callable[[int, float], None],
        spoken: Callable[[int, float], None],
    ) -> None:
        self._codec, self._transport, self._ask = codec, transport, ask
        self._record, self._clock = record, clock
        self._greeted, self._begun, self._spoken = greeted, begun, spoken

    async def put(
        self, utterance: Utterance, encoding: Encoding, history: Sequence[Turn] = ()
    ) -> None:
        """Send history, then the question; with server VAD, then silence without end.

        Args:
            utterance: The question at the rate that the peer takes.
            encoding: What the peer takes.
            history: Earlier turns at the same rate.

        Raises:
            ConnectionLostError: If the connection ends first.
        """
        for turn in history:
            await self._send(self._codec.turn(turn))
        if self._codec.traits.turn_end == "request":
            await self._request(utterance, encoder(encoding, utterance.rate))
        else:
            await self._stream(utterance, encoder(encoding, utterance.rate))

    async def _stream(self, utterance: Utterance, wire: Encoder) -> None:
        traits = self._codec.traits
        commit = traits.turn_end == "commit"
        sending = Outgoing(
            utterance.rate,
            self._start_ns(traits.frame_ms * _MS),
            utterance.rate * traits.frame_ms // 1000,
        )
        if traits.first_speaker == "endpoint":
            await self._sit_through_greeting(sending, wire)
        end = utterance.end_sample if commit else utterance.samples
        for _ in range(self._lead_in_frames(sending, end)):
            await self._frame(sending, wire, sending.silence)
        clip_start = sending.position
        self._header(utterance, sending.start_ns, clip_start, end)
        if self._ask.text:
            await self._send(self._codec.text(self._ask.text))
        sent_ns = self._clock.now()
        onset = clip_start + utterance.onset_sample
        left = clip_start + utterance.end_sample  # where the last voiced sample has left
        for first in range(0, 2 * end, 2 * sending.frame):
            piece = utterance.pcm[first : min(first + 2 * sending.frame, 2 * end)]
            if not commit:
                piece = piece.ljust(2 * sending.frame, b"\0")  # silence goes on without a seam
            before = sending.position
            sent_ns = await self._frame(sending, wire, piece)
            if before <= onset < sending.position:
                moment = sent_ns - (sending.position - onset) * _NS // utterance.rate
                self._begun(moment, onset / utterance.rate)
            if before < left <= sending.position:
                moment = sent_ns - (sending.position - left) * _NS // utterance.rate
                self._spoken(moment, left / utterance.rate)
        if commit:
            await self._commit(sent_ns)
            return
        if self._ask.pacing == "fast":
            sending.rebase(self._clock.now())
        while True:
            await self._frame(sending, wire, sending.silence, paced=True)

    def _start_ns(self, frame_ns: int) -> int:
        """Return when the stream begins: at this session's own place in the beat of all."""
        now, place = self._clock.now(), self._ask.stagger_ns
        return now + (place - now) % frame_ns if place else now

    async def _sit_through_greeting(self, sending: Outgoing, wire: Encoder) -> None:
        deadline = self._clock.now() + int(self._ask.patience.greeting_timeout_s * _NS)
        while not self._greeted() and self._clock.now() < deadline:
            await self._frame(sending, wire, sending.silence, paced=True)

    def _lead_in_frames(self, sending: Outgoing, samples: int) -> int:
        """Return the frames of silence before a clip, for protocols that need some."""
        traits = self._codec.traits
        wanted = traits.lead_in_ms * sending.rate // 1000
        if traits.turn_end == "commit":
            wanted = max(wanted, traits.min_turn_ms * sending.rate // 1000 - samples)
        return -(-wanted // sending.frame)

    async def _frame(
        self, sending: Outgoing, wire: Encoder, pcm: bytes, *, paced: bool = False
    ) -> int:
        """Send one frame when it is due; return the moment at which the send returned, ns."""
        samples = len(pcm) // 2
        due = sending.due(samples)
        data = wire.encode(pcm)  # takes some milliseconds in Opus, so it is done before
        messages = self._codec.audio(data).messages if data else ()
        size = sum(map(size_of, messages))
        if paced or self._ask.pacing == "real-time":
            await self._clock.sleep_until(due)
        for message in messages:
            await self._transport.send(message)
        now = self._clock.now()
        sending.position += samples
        self._record.frame(now, due, size, samples, burst=now >= sending.due(sending.frame))
        return now

    async def _commit(self, last_sent_ns: int) -> None:
        due = last_sent_ns + self._ask.commit_after_ms * _MS
        await self._clock.sleep_until(due)
        for message in self._codec.end_turn().messages:
            await self._transport.send(message)
            self._record.sent(self._clock.now(), "commit", message, due_ns=due)

    async def _request(self, utterance: Utterance, wire: Encoder) -> None:
        """Send the whole clip at once; t0 is the start of the send less `commit_after_ms`."""
        began = self._clock.now()
        self._header(utterance, began, 0, utterance.samples)
        self._record.sent(began, "request", None)
        self._spoken(began - self._ask.commit_after_ms * _MS, 0.0)
        await self._send(self._codec.audio(wire.encode(utterance.pcm)))
        if self._ask.text:
            await self._send(self._codec.text(self._ask.text))
        await self._send(self._codec.end_turn())

    def _header(self, utterance: Utterance, start_ns: int, clip_start: int, samples: int) -> None:
        traits = self._codec.traits
        self._record.header.update(
            t_ns=start_ns,
            input_rate=utterance.rate,
            frame_ms=traits.frame_ms,
            lead_in_samples=clip_start,
            clip_samples=samples,
            onset_sample=clip_start + utterance.onset_sample,
            speech_end_sample=clip_start + utterance.end_sample,
            end_kind=utterance.end_kind,
            latency_kind=traits.latency_kind,
            commit_after_ms=self._ask.commit_after_ms,
            pacing=self._ask.pacing,
        )

    async def _send(self, step: Step) -> None:
        for message in step.messages:
            await self._transport.send(message)
            self._record.sent(self._clock.now(), "message", message)
