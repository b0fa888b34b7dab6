"""A microphone and a speaker from the moment they are opened until one of them is gone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from types import ModuleType

from voxmeter.client.clock import Clock
from voxmeter.client.live import card_streams, portaudio
from voxmeter.client.live.card_streams import Captured, Emitted
from voxmeter.client.live.device_clock import DeviceClock
from voxmeter.client.live.device_rate import RATE, Incoming, Outgoing
from voxmeter.client.live.devices import Device
from voxmeter.client.live.even_stamps import EvenStamps
from voxmeter.client.live.playout_buffer import Stretch
from voxmeter.client.live.sound import Block, Played, SoundEvent, SoundFacts
from voxmeter.client.live.troubles import STEP_NS, Found, Tally, Watch

QUEUE_BLOCKS = 100
"""Two seconds: what may wait for the event loop before blocks of the microphone are dropped."""

GONE_NS = 1_000_000_000
_STEADY_BLOCKS = 10
_STEADY_NS = 5_000_000
_SAME_REPLY_NS = 1_000_000_000
_NO_STAMPS = "the device gives no stamps: moments are reckoned from the latency that it states"


@dataclass(slots=True)
class _Last:
    """Where the last stretch that was played ended, in frames put in and in frames put out."""

    position: int
    frame: int


class Opening:
    """Both streams, what their callbacks have brought, and what is made of it.

    The methods of `Taker` run in PortAudio's threads, everything else on the event loop.

    Attributes:
        outgoing: What is to be played.
    """

    def __init__(
        self,
        library: ModuleType,
        microphone: Device,
        speaker: Device,
        *,
        clock: Clock,
        wake: Callable[[], None],
        given: int = 0,
    ) -> None:
        """Open both; may take long.

        Args:
            library: The module of `portaudio.load`.
            microphone: Where from.
            speaker: Where to.
            clock: The session's.
            wake: Is called, from any thread, when there is something to collect.
            given: How many samples were given to play before.

        Raises:
            Exception: PortAudio's own, if a device cannot be had.
        """
        self._clock, self._wake = clock, wake
        self._captured: deque[Captured] = deque()
        self._emitted: deque[Emitted] = deque()
        self._dropped = 0
        self._gone = self._closing = self._stampless = False
        self._in = card_streams.capture(library, microphone, self, clock)
        try:
            self._out = card_streams.emit(library, speaker, self, clock)
        except BaseException:
            self._in.raw.close()
            raise
        self._in_clock = DeviceClock(self._in.time, clock)
        self._out_clock = DeviceClock(self._out.time, clock)
        self._incoming = Incoming(self._in.rate, self._in.channels)
        self.outgoing = Outgoing(self._out.rate, self._out.channels, given)
        self._last: _Last | None = None
        self._frame = 0
        self._steady = 0
        self._last_in_ns = self._last_out_ns = clock.now()
        self._watch()

    def start(self) -> None:
        """Let sound flow.

        Raises:
            Exception: PortAudio's own, if a device does not start; both are given back then.
        """
        self._last_in_ns = self._last_out_ns = self._clock.now()
        try:
            self._out.raw.start()
            self._in.raw.start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop both and give them back; may hang with a system that hangs."""
        self._closing = True
        for stream in (self._in, self._out):
            stream.raw.abort()
            stream.raw.close()

    # In PortAudio's threads.

    def captured(self, block: Captured) -> None:
        """Queue a block, or count it as dropped where nobody took one for two seconds."""
        if self._closing:
            return
        self._last_in_ns = block.came_ns
        if len(self._captured) >= QUEUE_BLOCKS:
            self._dropped += 1
            return
        self._captured.append(block)
        self._wake()

    def emit(self, buffer: memoryview) -> list[Stretch]:
        """Fill a buffer of the speaker."""
        return self.outgoing.buffer.fill(buffer)

    def emitted(self, block: Emitted) -> None:
        """Queue the record of what was played."""
        if self._closing:
            return
        self._last_out_ns = block.came_ns
        if len(self._emitted) < 2 * QUEUE_BLOCKS or block.stretches:
            self._emitted.append(block)
        if block.stretches:
            self._wake()

    def ended(self) -> None:
        """Learn that a stream has stopped; by itself, unless we are closing it."""
        if not self._closing:
            self._gone = True
            self._wake()

    # On the event loop.

    @property
    def gone(self) -> bool:
        """Whether a stream has ended, or nothing has come from it for a second."""
        silent_ns = self._clock.now() - min(self._last_in_ns, self._last_out_ns)
        return self._gone or silent_ns > GONE_NS

    def steady(self) -> bool:
        """Throw away what came so far; return whether it has come evenly for some 200 ms.

        A device that was idle hands over up to 2 s at once at first, with stamps that are far off.
        """
        while self._captured:
            block = self._captured.popleft()
            taken_ns = self._taken_ns(block)
            even = not [*self._in_watch.look(block.frames, taken_ns, block.came_ns, flagged=False)]
            self._steady = self._steady + 1 if even else 0
        self._frame += sum(block.frames for block in self._taken_emitted())
        if self._steady < _STEADY_BLOCKS or not self._frame:
            return False
        self._dropped = 0
        self._watch()
        return True

    def collect(self, tally: Tally) -> Iterator[SoundEvent]:
        """Yield what came since the last time, and count the trouble in it."""
        dropped, self._dropped = self._dropped, 0
        if dropped:
            tally.add([Found("dropped", dropped)], self._clock.now())
        while self._captured:
            yield from self._blocks(self._captured.popleft(), tally)
        for block in self._taken_emitted():
            yield from self._played(block, tally)
        self.outgoing.flush()

    def _taken_emitted(self) -> Iterator[Emitted]:
        while self._emitted:
            yield self._emitted.popleft()

    def _blocks(self, block: Captured, tally: Tally) -> Iterator[Block]:
        taken_ns = self._taken_ns(block, tally)
        found = self._in_watch.look(block.frames, taken_ns, block.came_ns, flagged=block.flagged)
        tally.add(found, block.came_ns)
        even_ns = self._in_even.even(block.frames, taken_ns)
        tally.add(_apart(taken_ns, even_ns), block.came_ns)
        for pcm, first_ns, came_ns in self._incoming.push(block.data, even_ns, block.came_ns):
            yield Block(pcm, first_ns, came_ns)

    def _taken_ns(self, block: Captured, tally: Tally | None = None) -> int:
        if block.current_s <= 0 or block.adc_s <= 0:
            self._stampless = True
            return block.came_ns - round(self._in.latency_ms * 1e6)
        _follow(self._in_clock, block.current_s, block.came_ns, tally)
        return self._in_clock.ns(block.adc_s, block.current_s, block.came_ns)

    def _played(self, block: Emitted, tally: Tally) -> Iterator[Played]:
        heard_ns = self._heard_ns(block, tally)
        found = self._out_watch.look(block.frames, heard_ns, block.came_ns, flagged=block.flagged)
        tally.add(found, block.came_ns)
        even_ns = self._out_even.even(block.frames, heard_ns)
        tally.add(_apart(heard_ns, even_ns), block.came_ns)
        for stretch in block.stretches:
            frame = self._frame + stretch.at
            tally.add(self._starved(stretch, frame), block.came_ns)
            self._last = _Last(stretch.position + stretch.frames, frame + stretch.frames)
            position, samples = self.outgoing.played(stretch)
            yield Played(position, samples, even_ns + round(stretch.at * 1e9 / self._out.rate))
        self._frame += block.frames

    def _heard_ns(self, block: Emitted, tally: Tally) -> int:
        if block.current_s <= 0 or block.dac_s <= 0:
            self._stampless = True
            return block.came_ns + round(self._out.latency_ms * 1e6)
        _follow(self._out_clock, block.current_s, block.came_ns, tally)
        return self._out_clock.ns(block.dac_s, block.current_s, block.came_ns)

    def _starved(self, stretch: Stretch, frame: int) -> Iterator[Found]:
        """Yield a hole in a reply; one that lasts long was the end of it."""
        if self._last is None or stretch.position != self._last.position:
            return
        hole_ms = 1000 * (frame - self._last.frame) / self._out.rate
        if 0 < hole_ms < _SAME_REPLY_NS / 1e6:
            yield Found("starved", max(1, round(hole_ms)))

    def _watch(self) -> None:
        """Begin anew to look at what comes."""
        self._in_even, self._out_even = EvenStamps(self._in.rate), EvenStamps(self._out.rate)
        self._in_watch = Watch("input", self._in.rate, self._in.latency_ms)
        self._out_watch = Watch("output", self._out.rate, self._out.latency_ms)

    @property
    def facts(self) -> SoundFacts:
        """What is known of the devices."""
        microphone, speaker = self._in.device, self._out.device
        hosts = dict.fromkeys((microphone.host, speaker.host))
        return SoundFacts(
            rate=RATE,
            microphone=microphone.name,
            speaker=speaker.name,
            host=" and ".join(hosts),
            stamps="device",
            input_latency_ms=round(self._in.latency_ms, 3) or None,
            output_latency_ms=round(self._out.latency_ms, 3) or None,
            notes=(
                *_notes("microphone", self._in),
                *_notes("speaker", self._out),
                *([_NO_STAMPS] if self._stampless else []),
            ),
        )


class Handover:
    """Hands an opening from the thread that makes it to whoever waits, who may have gone."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._abandoned = False
        self._opening: Opening | None = None

    def give(self, opening: Opening) -> Opening:
        """Hand it over, or close it where nobody waits any more; for the thread."""
        with self._lock:
            self._opening = opening
            if not self._abandoned:
                return opening
        opening.close()
        return opening

    def abandon(self) -> Opening | None:
        """Wait no longer; return what has been handed over already, for the caller to close."""
        with self._lock:
            self._abandoned = True
            return self._opening


def _apart(stamp_ns: int, even_ns: int) -> Iterator[Found]:
    """Yield stamps that have crept away from the even flow of samples, too slowly for a step."""
    if abs(stamp_ns - even_ns) > STEP_NS:
        yield Found("time-step", round(abs(stamp_ns - even_ns) / 1e6))


def _follow(device: DeviceClock, current_s: float, came_ns: int, tally: Tally | None) -> None:
    try:
        stepped_ns = device.check(current_s, came_ns)
    except portaudio.load().PortAudioError:  # the stream has ended; the last offset still holds
        return
    if stepped_ns and tally is not None:
        tally.add([Found("clock-step", round(abs(stepped_ns) / 1e6))], came_ns)


def _notes(side: str, stream: card_streams.Stream) -> Iterator[str]:
    if stream.rate != RATE:
        yield f"the {side} runs at {stream.rate} samples a second, resampled from or to {RATE}"
    if stream.channels != 1:
        what = "their mean is taken" if side == "microphone" else "all play the same"
        yield f"the {side} is opened with {stream.channels} channels: {what}"
