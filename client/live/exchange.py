"""One connection in use: who speaks, what is sent, what is played, and when a turn is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from voxmeter.client.audio import from_pcm16, to_pcm16
from voxmeter.client.clock import Clock, utc_now
from voxmeter.client.connection import Connection
from voxmeter.client.ear import ear_for
from voxmeter.client.live.cutting import Part, cut_out
from voxmeter.client.live.microphone import Effect, Frame, Microphone, Samples
from voxmeter.client.live.playback import Playback, Replies, dbfs
from voxmeter.client.live.saving import Finished
from voxmeter.client.live.sound import Block, Played, Sound, Trouble
from voxmeter.client.live.tape import Tape
from voxmeter.client.live.turn import REPLY, Question, Turn, Turns
from voxmeter.client.live.updates import Level, Notice, Phase, PhaseChanged, Show, Words
from voxmeter.client.live.way import LEAD_IN_MS, Ended, Streamed, Way, way_to
from voxmeter.client.servers.gate import Change, Gate
from voxmeter.client.target import Target
from voxmeter.endpoints.events import (
    Event,
    InputTranscript,
    Interrupted,
    ReplyAudio,
    ReplyEnded,
    ReplyText,
    SpeechStarted,
)

_NS = 1_000_000_000
STREAMED_QUIET_MS = 200
"""Quiet after which the user's speech is shown as over, where the endpoint decides what is."""
TURN_QUIET_MS = 700
"""Quiet that ends a turn where that is for us to say."""
_NOISE_MS = 250  # shorter speech that nobody answers was none
_CATCH_UP_MS = 200  # of a full-duplex stream may wait; more of its silence is left out
_SILENT = 10 ** (-60 / 20)
_KEPT_NS = 3 * _NS
_TIDY_FRAMES = 50

Over = Callable[[Turn, Finished], None]


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a turn that begins now is.

    Attributes:
        question: What it is kept as.
        condition: Name of what is done to the microphone.
        params: What was drawn for that.
    """

    question: Question
    condition: str
    params: dict[str, object]


class Exchange:
    """Everything between a `Sound` and one connection.

    Args:
        target: Whom to talk to.
        sound: The devices.
        playback: What plays on them; it outlives a connection.
        clock: The clock for everything.
        show: Who is told.
        spoken: Returns what the turn of a number is, when it begins.
        over: Called with every turn that is over.
        number: Of the last turn before this connection.
    """

    def __init__(
        self,
        target: Target,
        sound: Sound,
        playback: Playback,
        clock: Clock,
        show: Show,
        *,
        spoken: Callable[[int], Spoken],
        over: Over,
        number: int,
    ) -> None:
        self.turns = Turns()
        self.turns.number = number
        self.ready = False
        self.half_duplex = False  # whether the microphone hears nothing while a reply is played
        self._target, self._sound, self._playback = target, sound, playback
        self._clock, self._show, self._spoken, self._over = clock, show, spoken, over
        self._traits = target.traits()
        self._tape = Tape(self.turns.number_of)
        self._way: Way = way_to(target, clock, self._tape, self._heard)
        self._closes = self._traits.turn_end != "silence" and not self._traits.full_duplex
        self._quiet_ms = TURN_QUIET_MS if self._closes else STREAMED_QUIET_MS
        self._replies = Replies()
        self._microphone: Microphone | None = None
        self._gate: Gate | None = None
        self._ended_replies: list[str] = []
        self._phase: Phase = "connecting"
        self._frame_samples, self._frames, self._counted = 0, 0, dict[str, float]()

    async def run(self) -> Ended:
        """Connect and stay until the connection is lost; return how."""
        return await self._way.run(self._open)

    @property
    def _replying(self) -> bool:
        current = self.turns.current
        answered = current is not None and current.end is not None and current.begun
        return answered and self._playback.pending > 0

    def wait_longer(self, quiet_ms: int | None) -> None:
        """Let a turn go on over so much quiet; None: over what is usual."""
        if self._gate is not None:
            self._gate.endpoint(quiet_ms or self._quiet_ms)

    def lost(self, ended: Ended) -> None:
        """Take note that there is no connection any more."""
        self.ready = False
        self._playback.flush()
        for turn in self.turns.open:
            turn.outcome = turn.outcome or ended
            turn.end = self._end_of(turn) if turn.end is None else turn.end

    # The user's side

    def block(self, block: Block, effect: Effect | None, *, muted: bool) -> None:
        """Take a block of the microphone."""
        samples = from_pcm16(block.pcm)
        self._show(Level("user", dbfs(samples)))
        if self._microphone is None or not self.ready:
            return
        self._microphone.muted = muted or (self.half_duplex and self._replying)
        hop_ms = (self._clock.now() - block.came_ns) / 1e6
        for turn in self.turns.open:
            turn.hops_ms.append(hop_ms)
        for frame in self._microphone.take(block, self._sound.facts.rate, effect):
            self._way.frame(frame)
            self._follow(frame)
        self._tape.heard(self._microphone.taken)

    def trouble(self, trouble: Trouble) -> None:
        """Take note of what may spoil the latency of a turn that is under way."""
        for turn in self.turns.open:
            turn.troubles.append(trouble)
        self._playback.trouble(trouble.problem)

    def _open(self) -> None:
        rate = self._way.rate
        self._frame_samples = rate * self._traits.frame_ms // 1000
        self._microphone = Microphone(rate, self._traits.frame_ms)
        self._gate = Gate(rate, self._quiet_ms)
        self.ready = True
        self._say("listening")

    def _follow(self, frame: Frame) -> None:
        assert self._gate is not None  # noqa: S101 - made with the microphone
        for change in self._gate.hear(from_pcm16(frame.clean)):
            self._changed(change)
        self._frames += 1
        if self._frames % _TIDY_FRAMES == 0 and not self.turns.open:
            self._tidy(frame)

    def _tidy(self, frame: Frame) -> None:
        number = self.turns.number + (1 if self._traits.full_duplex else 0)
        first = frame.start - int(_KEPT_NS * self._way.rate / _NS)
        self._tape.forget(number, first, self._clock.now() - _KEPT_NS)

    def _changed(self, change: Change) -> None:
        current = self.turns.current
        if change.kind == "started":
            goes_on = current is not None and not current.begun and current.outcome is None
            if current is not None and goes_on and not (self._closes and current.end is not None):
                current.resumed()
            else:
                self._begin(change.sample, current)
            self._say("user")
        elif current is not None and current.end is None:
            self._end(current, change.sample)

    def _begin(self, onset: int, before: Turn | None) -> None:
        assert self._microphone is not None  # noqa: S101 - it was heard
        rate = self._way.rate
        first = onset - LEAD_IN_MS * rate // 1000
        if before is not None and before.end is not None:
            first = max(first, (before.end + onset) // 2)
        if before is not None and self._closes:
            self.interrupt()
        made = self._spoken(self.turns.number + 1)
        patience = self._target.patience
        turn = Turn(
            number=self.turns.number + 1,
            question=made.question,
            condition=made.condition,
            params=made.params,
            first=max(0, first),
            onset=onset,
            since_ns=self._microphone.taken_ns(max(0, first)),
            ear=ear_for(
                self._traits, drain_ms=patience.drain_ms, quiet_ms=patience.quiet_ms, fast=False
            ),
            started_at=utc_now().isoformat(timespec="milliseconds"),
        )
        turn.ear.question_began(self._microphone.taken_ns(onset), onset / rate)
        self.turns.begin(turn)
        self._way.began(turn)

    def _end(self, turn: Turn, end: int) -> None:
        assert self._microphone is not None  # noqa: S101 - it was heard
        flows = self._replies.samples if self._traits.full_duplex else None
        turn.ended(end, self._microphone.taken_ns(end), reply_from=flows)
        turn.ear.question_ended(turn.t0_ns or 0, end / self._way.rate)
        self._way.ended(turn)
        self._mark(turn)
        self._say("reply" if turn.begun else "waiting")

    def _end_of(self, turn: Turn) -> int:
        """Return where the speech of a turn ends that nobody heard the end of."""
        return turn.last or max(turn.onset + 1, self._frames * self._frame_samples)

    # The endpoint's side

    def _heard(self, t_ns: int, event: Event) -> None:
        if isinstance(event, SpeechStarted):
            self._talked_over()
        if not isinstance(event, (*REPLY, InputTranscript)):
            return
        turn = self.turns.of(event)
        match event:
            case ReplyAudio():
                self._sound_of(turn, t_ns, event)
            case ReplyText(text):
                self._show(Words("reply", turn.number if turn else self.turns.number, text))
            case InputTranscript(text):
                self._transcript(turn, text)
                return
            case Interrupted():
                self._playback.clear()
                self._ended_replies.clear()
            case ReplyEnded(reason, name):
                self._reply_ended(reason == "cancelled", name)
            case _:
                pass
        if turn is not None:
            if not isinstance(event, ReplyAudio):
                turn.hear(t_ns, event)
            self._mark(turn)
            if turn.begun and turn is self.turns.current and turn.end is not None:
                self._say("reply")

    def _sound_of(self, turn: Turn | None, t_ns: int, event: ReplyAudio) -> None:
        start = self._replies.samples
        try:
            samples = self._replies.decode(event)
        except (ValueError, RuntimeError) as error:
            self._way.sounded(start, b"")
            self._show(Notice(f"a piece of {event.encoding} could not be decoded: {error}"))
            return
        self._way.sounded(start, to_pcm16(samples))
        rate = self._replies.rate
        if turn is not None:
            turn.hear(t_ns, ReplyAudio(to_pcm16(samples), "pcm16", rate, event.reply))
            turn.sounds(start, samples, rate, self._playback.buffer_ms)
        dropped = turn is not None and turn.interrupted
        if not dropped and not self._may_skip(samples):
            self._playback.play(samples, rate, start)

    def _may_skip(self, samples: Samples) -> bool:
        """Return whether silence of a stream that never ends is left out, to catch up with it."""
        if not self._traits.full_duplex or self._playback.pending_ms < _CATCH_UP_MS:
            return False
        return not samples.size or float(np.abs(samples).max()) < _SILENT

    def _talked_over(self) -> None:
        """Stop a reply that came faster than it is heard: the endpoint believes it is over."""
        answered = next((one for one in reversed(self.turns.open) if one.begun), None)
        waiting = self._playback.pending > 0 and not self._traits.full_duplex
        if answered is not None and answered.reply_over and waiting:
            self.interrupt()

    def _transcript(self, turn: Turn | None, text: str) -> None:
        number = turn.number if turn is not None else self.turns.number
        if turn is not None:
            turn.transcript = text
        self._show(Words("user", number, text.strip(), whole=True))

    def _reply_ended(self, cancelled: bool, name: str) -> None:  # noqa: FBT001 - one of two ends
        if cancelled:
            self._playback.clear()
            self._ended_replies.clear()
            return
        self._playback.flush()
        self._ended_replies.append(name)

    # What was played, and the end of a turn

    def played(self, told: Played) -> None:
        """Take note of what the device put out."""
        now = self._clock.now()
        for put in self._playback.played(told):
            self._tape.played(put, now)
            for turn in self.turns.open:
                if turn.played(put):
                    self._mark(turn)
        self._show(Level("reply", self._playback.level))

    def interrupt(self) -> bool:
        """Cut the reply that is being played; return whether there was one."""
        turn = next((one for one in reversed(self.turns.open) if one.end is not None), None)
        if turn is None or turn.interrupted:
            return False
        heard_ms = turn.heard_ms(self._clock.now())
        turn.interrupted = True
        self._playback.clear()
        self._ended_replies.clear()
        self._tape.sent(self._clock.now(), "interrupt", None, heard_ms=heard_ms)
        self._way.cancel(turn, heard_ms)
        return True

    def tick(self) -> None:
        """Look whether a turn is over."""
        if self._playback.pending == 0:
            for name in self._ended_replies:
                self._way.played(name)
            self._ended_replies.clear()
        for turn in list(self.turns.open):
            if self._is_over(turn):
                self._close(turn)

    def close(self) -> None:
        """End every turn as it is now; one that waits for its reply is none of the endpoint's."""
        for turn in list(self.turns.open):
            if turn.outcome is None and not turn.begun:
                self.turns.open.remove(turn)
                continue
            turn.cut = turn.cut or turn.outcome is None
            turn.end = self._end_of(turn) if turn.end is None else turn.end
            self._close(turn)

    def _is_over(self, turn: Turn) -> bool:
        now, current = self._clock.now(), self.turns.current
        played = self._playback.pending == 0
        if turn.outcome is not None:
            return played
        if turn is not current:
            talked_over = current is not None and current.end is not None
            return talked_over or (played and (turn.reply_over or not turn.begun))
        if turn.end is None or turn.t0_ns is None:
            return False
        over_ns = turn.ear.over_at()
        lasts = isinstance(self._way, Streamed)  # else the session's own end is waited for
        if lasts and over_ns is not None and now >= over_ns:
            self._playback.flush()
            return self._playback.pending == 0 or self._traits.full_duplex
        waited_s = (now - turn.t0_ns) / _NS
        if not turn.ear.answering and waited_s >= self._target.patience.first_reply_timeout_s:
            turn.outcome = ("ended" if turn.begun else "timeout"), None
        if lasts and not turn.reply_over and waited_s >= self._target.patience.reply_limit_s:
            self.interrupt()
            turn.outcome = "truncated", None
        return turn.outcome == ("truncated", None)

    def _close(self, turn: Turn) -> None:
        self.turns.open.remove(turn)
        self._mark(turn, settled=True)
        spoken_ms = ((turn.end or turn.onset) - turn.onset) * 1000 / self._way.rate
        silent = turn.outcome is not None and turn.outcome[0] == "timeout"
        if silent and spoken_ms < _NOISE_MS and turn.number == self.turns.number:
            self.turns.number -= 1  # a cough: what comes next takes its place
        else:
            line = self._way.line if isinstance(self._way, Streamed) else None
            part = self._part(line)
            last = self._frames * self._frame_samples
            made = cut_out(turn, self._tape, part, last, line, self._way.tag, self._sound.facts)
            self._over(turn, made)
        self._tape.forget(turn.number, (turn.end or turn.first), self._clock.now() - _KEPT_NS)
        if not self.turns.open and self.ready:
            self._say("listening")

    def _part(self, line: Connection | None) -> Part:
        counted = {} if line is None else dict(line.usage)
        usage = {name: count - self._counted.get(name, 0) for name, count in counted.items()}
        self._counted = counted
        return Part(self._traits, self._way.rate, self._replies.rate, self._quiet_ms, usage)

    def _mark(self, turn: Turn, *, settled: bool = False) -> None:
        for mark in turn.new_marks(settled=settled):
            self._show(mark)

    def _say(self, phase: Phase) -> None:
        if phase != self._phase:
            self._phase = phase
            self._show(PhaseChanged(phase))
