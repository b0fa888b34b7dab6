"""One connection in use: who speaks, what is sent, what is played, and when a turn is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from voxmeter.client.audio import from_pcm16
from voxmeter.client.clock import Clock, utc_now
from voxmeter.client.connection import Connection
from voxmeter.client.ear import ear_for
from voxmeter.client.live.arriving import Arriving
from voxmeter.client.live.cutting import WATCHED_NS, Part, cut_out
from voxmeter.client.live.microphone import Effect, Frame, Microphone
from voxmeter.client.live.playback import Playback, dbfs
from voxmeter.client.live.saving import Finished
from voxmeter.client.live.sound import Block, Played, Sound, Trouble
from voxmeter.client.live.tape import Tape
from voxmeter.client.live.turn import Question, Turn, Turns
from voxmeter.client.live.turn_protocol import LEAD_IN_MS, Ended, turn_protocol
from voxmeter.client.live.updates import Level, Phase, PhaseChanged, Show
from voxmeter.client.servers.gate import Change, Gate
from voxmeter.client.target import Target
from voxmeter.endpoints.events import Event

_NS = 1_000_000_000
STREAMED_QUIET_MS = 200
"""Quiet after which the user's speech is shown as over, where the endpoint decides what is."""
TURN_QUIET_MS = 700
"""Quiet that ends a turn where that is for us to say."""
_NOISE_MS = 250  # shorter speech that nobody answers was none
_KEPT_NS = 3 * _NS
_TIDY_FRAMES = 50

Over = Callable[[Turn, Finished], None]


@dataclass(frozen=True, slots=True)
class TurnPlan:
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
        plan: Returns what the turn of a number is, when it begins.
        over: Called with every turn that is over.
        number: Of the last turn before this connection.
        recent: What the devices said of late, before this connection too.
    """

    def __init__(
        self,
        target: Target,
        sound: Sound,
        playback: Playback,
        clock: Clock,
        show: Show,
        *,
        plan: Callable[[int], TurnPlan],
        over: Over,
        number: int,
        recent: Sequence[Trouble] = (),
    ) -> None:
        self.turns = Turns()
        self.turns.number = number
        self.ready = False
        self.half_duplex = False  # whether the microphone hears nothing while a reply is played
        self._target, self._sound, self._playback = target, sound, playback
        self._clock, self._show, self._plan, self._over = clock, show, plan, over
        self._recent = recent
        self._traits = target.traits()
        self._tape = Tape(self.turns.number_of)
        self._protocol = turn_protocol(target, clock, self._tape, self._event)
        self._arriving = Arriving(
            self._traits,
            self._protocol,
            self.turns,
            playback,
            show,
            interrupt=self.interrupt,
            changed=self._changed_by_reply,
        )
        self._closes = self._traits.turn_end != "silence" and not self._traits.full_duplex
        self._quiet_ms = TURN_QUIET_MS if self._closes else STREAMED_QUIET_MS
        self._microphone: Microphone | None = None
        self._gate: Gate | None = None
        self._phase: Phase = "connecting"
        self._frame_samples, self._frames, self._counted = 0, 0, dict[str, float]()

    async def run(self) -> Ended:
        """Connect and stay until the connection is lost; return how."""
        return await self._protocol.run(self._open)

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
            self._protocol.frame(frame)
            self._follow(frame)
        self._tape.spoken(self._microphone.taken)

    def trouble(self, trouble: Trouble) -> None:
        """Take note of what may spoil the latency of a turn that is under way."""
        for turn in self.turns.open:
            turn.troubles.append(trouble)
        self._playback.trouble(trouble.problem)

    def _open(self) -> None:
        rate = self._protocol.rate
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
        first = frame.start - int(_KEPT_NS * self._protocol.rate / _NS)
        self._tape.forget(number, first, self._clock.now() - _KEPT_NS)
        self._tape.thin_out()

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
        rate = self._protocol.rate
        first = onset - LEAD_IN_MS * rate // 1000
        if before is not None and before.end is not None:
            first = max(first, (before.end + onset) // 2)
        if before is not None and self._closes:
            self.interrupt()
        plan = self._plan(self.turns.number + 1)
        patience = self._target.patience
        turn = Turn(
            number=self.turns.number + 1,
            question=plan.question,
            condition=plan.condition,
            params=plan.params,
            first=max(0, first),
            onset=onset,
            since_ns=self._microphone.taken_ns(max(0, first)),
            ear=ear_for(
                self._traits, drain_ms=patience.drain_ms, quiet_ms=patience.quiet_ms, fast=False
            ),
            started_at=utc_now().isoformat(timespec="milliseconds"),
        )
        watched_ns = self._microphone.taken_ns(onset) - WATCHED_NS
        turn.troubles += [one for one in self._recent if one.last_ns >= watched_ns]
        turn.ear.question_began(self._microphone.taken_ns(onset), onset / rate)
        self.turns.begin(turn)
        self._protocol.began(turn)

    def _end(self, turn: Turn, end: int) -> None:
        assert self._microphone is not None  # noqa: S101 - it was heard
        flows = self._arriving.replies.samples if self._traits.full_duplex else None
        turn.ended(end, self._microphone.taken_ns(end), reply_from=flows)
        turn.ear.question_ended(turn.t0_ns or 0, end / self._protocol.rate)
        self._protocol.ended(turn)
        self._mark(turn)
        self._say("reply" if turn.begun else "waiting")

    def _end_of(self, turn: Turn) -> int:
        """Return where the speech of a turn ends that nobody heard the end of."""
        return turn.last or max(turn.onset + 1, self._sent_samples)

    @property
    def _sent_samples(self) -> int:
        return self._frames * self._frame_samples

    def _event(self, t_ns: int, event: Event) -> None:
        self._arriving.event(t_ns, event)

    def _changed_by_reply(self, turn: Turn) -> None:
        self._mark(turn)
        if turn.begun and turn is self.turns.current and turn.end is not None:
            self._say("reply")

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
        played_ms = turn.played_ms(self._clock.now())
        turn.interrupted = True
        self._playback.clear()
        self._arriving.forget()
        self._tape.sent(self._clock.now(), "interrupt", None, heard_ms=played_ms)
        self._protocol.cancel(turn, played_ms)
        return True

    def tick(self) -> None:
        """Look whether a turn is over."""
        if self._playback.pending == 0:
            for name in self._arriving.played_out():
                self._protocol.played(name)
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
        if self._protocol.ends_turns:
            return False
        if turn is not current:
            talked_over = current is not None and current.end is not None
            return talked_over or (played and (turn.reply_over or not turn.begun))
        if turn.end is None or turn.t0_ns is None:
            return False
        over_ns = turn.ear.over_at()
        if over_ns is not None and now >= over_ns:
            self._playback.flush()
            return self._playback.pending == 0 or self._traits.full_duplex
        waited_s = (now - turn.t0_ns) / _NS
        if not turn.ear.answering and waited_s >= self._target.patience.first_reply_timeout_s:
            turn.outcome = ("ended" if turn.begun else "timeout"), None
        if not turn.reply_over and waited_s >= self._target.patience.reply_limit_s:
            self.interrupt()
            turn.outcome = "truncated", None
        return turn.outcome == ("truncated", None)

    def _close(self, turn: Turn) -> None:
        self.turns.open.remove(turn)
        self._mark(turn, settled=True)
        spoken_ms = ((turn.end or turn.onset) - turn.onset) * 1000 / self._protocol.rate
        silent = turn.outcome is not None and turn.outcome[0] == "timeout"
        if silent and spoken_ms < _NOISE_MS and turn.number == self.turns.number:
            self.turns.number -= 1  # a cough: what comes next takes its place
        else:
            self._over(turn, self._cut_out(turn))
        first = min([turn.end or turn.first, *(one.first for one in self.turns.open)])
        before = min([turn.number + 1, *(one.number for one in self.turns.open)])
        self._tape.forget(before - 1, first, self._clock.now() - _KEPT_NS)
        if not self.turns.open and self.ready:
            self._say("listening")

    def _cut_out(self, turn: Turn) -> Finished:
        protocol, facts = self._protocol, self._sound.facts
        part = self._part(protocol.line)
        last = self._sent_samples
        return cut_out(turn, self._tape, part, last, protocol.line, protocol.tag, facts)

    def _part(self, line: Connection | None) -> Part:
        counted = {} if line is None else dict(line.usage)
        usage = {name: count - self._counted.get(name, 0) for name, count in counted.items()}
        self._counted = counted
        return Part(
            self._traits, self._protocol.rate, self._arriving.replies.rate, self._quiet_ms, usage
        )

    def _mark(self, turn: Turn, *, settled: bool = False) -> None:
        for mark in turn.new_marks(settled=settled):
            self._show(mark)

    def _say(self, phase: Phase) -> None:
        if phase != self._phase:
            self._phase = phase
            self._show(PhaseChanged(phase))
