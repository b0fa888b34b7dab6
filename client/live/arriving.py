"""What comes from the endpoint in a talk: decoded, played, shown, and noted for its turn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from voxmeter.client.audio import to_pcm16
from voxmeter.client.live.microphone import Samples
from voxmeter.client.live.playback import Playback, Replies
from voxmeter.client.live.turn import REPLY, Turn, Turns
from voxmeter.client.live.turn_protocol import TurnProtocol
from voxmeter.client.live.updates import Notice, Show, Words
from voxmeter.endpoints.codec import Traits
from voxmeter.endpoints.events import (
    Event,
    InputTranscript,
    Interrupted,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
)

_CATCH_UP_MS = 200  # of a full-duplex stream may wait; more of its silence is left out
_SILENT = 10 ** (-60 / 20)


class Arriving:
    """Takes every event of one connection.

    Args:
        traits: The protocol's.
        protocol: Over which it comes.
        turns: Those that are open.
        playback: What plays it.
        show: Who is told.
        interrupt: Cuts the reply that is being played.
        changed: Called with a turn that something was noted for.
    """

    def __init__(
        self,
        traits: Traits,
        protocol: TurnProtocol,
        turns: Turns,
        playback: Playback,
        show: Show,
        *,
        interrupt: Callable[[], object],
        changed: Callable[[Turn], None],
    ) -> None:
        self.replies = Replies()
        self._traits, self._protocol, self._turns = traits, protocol, turns
        self._playback, self._show = playback, show
        self._interrupt, self._changed = interrupt, changed
        self._ended: list[str] = []
        self._sounding: Turn | None = None  # whose audio came last

    def event(self, t_ns: int, event: Event) -> None:
        """Take one event, and when it came."""
        if isinstance(event, SpeechStarted):
            self._talked_over()
        if not isinstance(event, (*REPLY, InputTranscript)):
            return
        turn = self._turns.of(event)
        match event:
            case ReplyAudio():
                self._sound_of(turn, t_ns, event)
            case ReplyText(text):
                self._show(Words("reply", turn.number if turn else self._turns.number, text))
            case InputTranscript(text):
                self._transcript(turn, text)
                return
            case ReplyStarted():
                self._rest()
            case Interrupted():
                self._playback.clear()
                self.forget()
            case ReplyEnded(reason, name):
                self._reply_ended(reason == "cancelled", name)
            case _:
                pass
        if turn is not None:
            if not isinstance(event, ReplyAudio):
                turn.hear(t_ns, event)
            self._changed(turn)

    def forget(self) -> None:
        """Take note that what has come will not be played."""
        self._ended.clear()
        self.replies.forget()

    def played_out(self) -> list[str]:
        """Return the names of replies that are over, now that all is played; once."""
        ended, self._ended = self._ended, []
        return ended

    def _sound_of(self, turn: Turn | None, t_ns: int, event: ReplyAudio) -> None:
        start = self.replies.samples
        try:
            samples = self.replies.decode(event)
        except (ValueError, RuntimeError) as error:
            self._protocol.sounded(start, b"")
            self._show(Notice(f"a piece of {event.encoding} could not be decoded: {error}"))
            return
        self._protocol.sounded(start, to_pcm16(samples))
        self._sounding = turn
        rate = self.replies.rate
        if turn is not None:
            turn.hear(t_ns, ReplyAudio(to_pcm16(samples), "pcm16", rate, event.reply))
        self._play(turn, start, samples)

    def _rest(self) -> None:
        """Play what a filter held back of the reply that has ended."""
        start = self.replies.samples
        samples = self.replies.finish()
        if samples.size:
            self._protocol.sounded_more(to_pcm16(samples))
            self._play(self._sounding, start, samples)

    def _play(self, turn: Turn | None, start: int, samples: Samples) -> None:
        rate = self.replies.rate
        if turn is not None:
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
        answered = next((one for one in reversed(self._turns.open) if one.begun), None)
        waiting = self._playback.pending > 0 and not self._traits.full_duplex
        if answered is not None and answered.reply_over and waiting:
            self._interrupt()

    def _transcript(self, turn: Turn | None, text: str) -> None:
        number = turn.number if turn is not None else self._turns.number
        if turn is not None:
            turn.transcript = text
        self._show(Words("user", number, text.strip(), whole=True))

    def _reply_ended(self, cancelled: bool, name: str) -> None:  # noqa: FBT001 - one of two ends
        if cancelled:
            self._playback.clear()
            self.forget()
            return
        self._rest()
        self._playback.flush()
        self._ended.append(name)
