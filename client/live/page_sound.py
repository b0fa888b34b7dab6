"""The microphone and the speaker of a page in a browser, behind the seam of live mode.

All stamps are the page's: of its script and of its sound, brought to the session's clock. What lies
before the page (the microphone's way into the browser) and behind it (the speaker's own) is known
to the page only by what the browser says of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import replace
from statistics import median

from voxmeter.client.clock import Clock
from voxmeter.client.live.sound import (
    Block,
    Played,
    Problem,
    SoundEvent,
    SoundFacts,
    Trouble,
)
from voxmeter.client.live.web_clock import PageClock, SoundClock
from voxmeter.client.live.web_outbox import Outbox
from voxmeter.client.live.web_wire import RATE, Devices, MicrophoneFrame, PlayedReport

_MAX_EVENTS = 200
_LATE_MS = 200.0
_QUIET_NS = 1_000_000_000  # one trouble of a kind a second is enough to read
_NS = 1_000_000_000
_PATHS = 100


class PageSound:
    """One page's sound, from the moment it has a microphone until the page goes."""

    def __init__(self, clock: Clock, page: PageClock, outbox: Outbox, devices: Devices) -> None:
        self._clock = clock
        self._page = page
        self._outbox = outbox
        self._devices = devices
        self._sound_clock = SoundClock()
        self._next_frame: int | None = None
        self._events: deque[SoundEvent] = deque()
        self._news = asyncio.Event()
        self._over = False
        self._unread = 0
        self._said: dict[Problem, tuple[int, int]] = {}
        self._given = self._reported = self._cleared = 0
        self._last: Played | None = None
        self._begun: deque[tuple[int, int]] = deque(maxlen=_PATHS)
        self._microphone_ms: deque[float] = deque(maxlen=_PATHS)
        self._speaker_ms: deque[float] = deque(maxlen=_PATHS)

    @property
    def facts(self) -> SoundFacts:
        """What the browser says of its devices, and how well its clock is known."""
        processing = ", ".join(self._devices.processing) or "no processing"
        return SoundFacts(
            rate=RATE,
            microphone=self._devices.microphone,
            speaker=self._devices.speaker,
            host="browser",
            stamps="page",
            input_latency_ms=self._devices.input_latency_ms,
            output_latency_ms=self._devices.output_latency_ms,
            notes=(
                "page-measured: less than from mouth to ear",
                f"page clock offset {self._page.offset_ns / 1e6:.3f} ms"
                f" (RTT {self._page.rtt_ns / 1e6:.3f} ms)",
                f"browser applies {processing} to the microphone",
            ),
        )

    @property
    def paths_ms(self) -> tuple[float | None, float | None]:
        """Medians of how long sound takes between the devices, as the page sees them, and us.

        First from the last sample of a block at the microphone to its arrival here, then from the
        first sample given to an idle speaker to when it is heard. None before there is one.
        """
        return (
            median(self._microphone_ms) if self._microphone_ms else None,
            median(self._speaker_ms) if self._speaker_ms else None,
        )

    async def events(self) -> AsyncIterator[SoundEvent]:
        """Yield what the page handed over, in order, until it is gone or `close`."""
        while True:
            while self._events:
                yield self._events.popleft()
            if self._over:
                return
            self._news.clear()
            await self._news.wait()

    def play(self, pcm: bytes) -> None:
        """Queue samples for the page; what there is no room for is dropped and told."""
        now = self._clock.now()
        if self._put_out(now) >= self._given:
            self._begun.append((self._given, now))
        dropped = self._outbox.sound(self._given, pcm)
        self._given += len(pcm) // 2
        if dropped:
            self._trouble(
                "dropped", "the page does not take the reply: its end is dropped", dropped
            )

    def clear(self) -> int:
        """Throw away what is not played yet; return how many samples, by the last report."""
        thrown = self._given - self._put_out(self._clock.now())
        self._outbox.clear_sound()
        self._cleared = self._given
        return thrown

    async def close(self) -> None:
        """End `events`; the page keeps its devices until its websocket is closed."""
        self.end()

    def end(self) -> None:
        """Take note that the page has gone for good."""
        self._over = True
        self._news.set()

    def frame(self, came_ns: int, frame: MicrophoneFrame) -> str | None:
        """Take a frame of the microphone; return what is wrong with it, if it cannot be taken."""
        expected = frame.number if self._next_frame is None else self._next_frame
        if frame.number < expected:
            return "a frame of the microphone that came before"
        samples = len(frame.pcm) // 2
        if missing := frame.number - expected:
            text = f"the page lost {missing} blocks of the microphone"
            self._trouble("dropped", text, missing)
        self._next_frame = frame.number + 1
        self._check_times(frame, samples)
        taken_ms = self._sound_clock.page_ms(frame.context_s)
        taken_ms -= self._devices.input_latency_ms or 0.0
        length_ns = samples * _NS // RATE
        taken_ns = min(self._page.t_ns(taken_ms), came_ns - length_ns)  # never before it was
        self._microphone_ms.append((came_ns - taken_ns - length_ns) / 1e6)
        self._put(Block(frame.pcm, taken_ns, came_ns))
        return None

    def played(self, report: PlayedReport) -> str | None:
        """Take the page's report; return what is wrong with it, if it cannot be true."""
        if report.output_latency_ms:
            self._devices = replace(self._devices, output_latency_ms=report.output_latency_ms)
        for stretch in report.stretches:
            end = stretch.position + stretch.samples
            if stretch.position < self._reported or end > self._given or not stretch.samples:
                return "a report of samples that were played before or never given"
            self._reported = end
            heard_ms = report.page_ms + (stretch.context_s - report.context_s) * 1e3
            heard = Played(stretch.position, stretch.samples, self._page.t_ns(heard_ms))
            self._note_path(heard)
            self._last = heard
            self._put(heard)
        return None

    def underrun(self, samples: int) -> None:
        """Take note that the page had nothing to play in the middle of a reply."""
        text = f"nothing of the reply was there for {1e3 * samples / RATE:.0f} ms"
        self._trouble("starved", text, samples)

    def device_gone(self, why: str) -> None:
        """Take note that the page looks for another microphone."""
        self._trouble("lost", f"the page lost its sound: {why}")

    def device_back(self, devices: Devices) -> None:
        """Take note of the devices that the page has now."""
        self._devices = devices
        self._sound_clock = SoundClock()
        self._trouble("back", f"the page has a microphone: {devices.microphone}")

    def clock_set(self, step_ms: float) -> None:
        """Take note that the page's clock does not go with what it was before."""
        self._sound_clock = SoundClock()
        self._trouble("clock-step", f"the page's clock moved by {step_ms:.1f} ms")

    def _check_times(self, frame: MicrophoneFrame, samples: int) -> None:
        end_s = frame.context_s + samples / RATE
        behind = self._sound_clock.note(end_s, frame.page_ms)
        if behind is not None:
            text = f"the browser stopped its sound for {behind:.0f} ms"
            self._trouble("time-step", text, round(behind))
            self._outbox.say({"type": "reopen-microphone"})  # what it held back is late from now on
        late_ms = frame.page_ms - self._sound_clock.page_ms(end_s)
        if late_ms > _LATE_MS:
            text = f"the page was busy: a block waited {late_ms:.0f} ms in it"
            self._trouble("late-callback", text, round(late_ms))

    def _put_out(self, now: int) -> int:
        """Return where the page must be by now: what was reported, and what has passed since."""
        position = max(self._reported, self._cleared)
        if self._last is not None and self._last.position >= self._cleared:
            since = (now - self._last.heard_ns) * RATE // _NS
            position = max(position, self._last.position + since)
        return min(position, self._given)

    def _note_path(self, heard: Played) -> None:
        while self._begun and self._begun[0][0] <= heard.position:
            position, given_ns = self._begun.popleft()
            if position == heard.position:
                self._speaker_ms.append((heard.heard_ns - given_ns) / 1e6)

    def _trouble(self, problem: Problem, text: str, count: int = 1) -> None:
        now = self._clock.now()
        quiet_until, held = self._said.get(problem, (0, 0))
        if problem not in ("lost", "back") and now < quiet_until:
            self._said[problem] = (quiet_until, held + count)
            return
        self._said[problem] = (now + _QUIET_NS, 0)
        self._put(Trouble(problem, text, now, count + held))

    def _put(self, event: SoundEvent) -> None:
        if self._over:
            return
        if len(self._events) >= _MAX_EVENTS:
            self._unread += 1
            return
        if self._unread:
            text = f"the session was busy: {self._unread} blocks or reports of the page were lost"
            self._events.append(Trouble("dropped", text, self._clock.now(), self._unread))
            self._unread = 0
        self._events.append(event)
        self._news.set()
