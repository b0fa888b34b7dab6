"""One page that is connected, from its first message to its last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from websockets.exceptions import ConnectionClosed

from voxmeter.client.clock import Clock
from voxmeter.client.live.page_sound import PageSound
from voxmeter.client.live.updates import BeginWith, LiveTalk, Update
from voxmeter.client.live.web_clock import ROUND_S, PageClock, Reading
from voxmeter.client.live.web_outbox import Outbox
from voxmeter.client.live.web_show import shown
from voxmeter.client.live.web_wire import (
    Asked,
    Asking,
    DeviceGone,
    Devices,
    FromPage,
    Malformed,
    MicrophoneFrame,
    PlayedReport,
    Pong,
    SpeakerChanged,
    Underrun,
    read,
)
from voxmeter.client.servers.stamped import StampedServerConnection
from voxmeter.endpoints.codec import Binary, Text
from voxmeter.endpoints.errors import ConnectionLostError, UserError

MAX_FAULTS = 20
"""Messages that no page of ours sends; with one more the page is sent away."""

_PER_SECOND = 250  # frames come 50 times a second, reports and answers less often
_BURST = 500  # a page that was asleep sends what it held all at once
_PONG_LIMIT_S = 2.0
_NS = 1_000_000_000
ENDED, REPLACED, FAILED, POLICY = 4000, 4001, 4002, 1008
"""Codes that the websocket is closed with; the page has a sentence for each."""


class Quota:
    """How many messages a page may send: so many a second, and some more at once."""

    def __init__(self, now_ns: int) -> None:
        self._left = float(_BURST)
        self._seen_ns = now_ns

    def allows(self, now_ns: int) -> bool:
        """Count one message; return whether it is within the quota."""
        passed = max(0, now_ns - self._seen_ns) * _PER_SECOND / _NS
        self._left = min(float(_BURST), self._left + passed)
        self._seen_ns = now_ns
        if self._left < 1:
            return False
        self._left -= 1
        return True


class PageConnection:
    """A page, its websocket, and the one session that is talked through it.

    Attributes:
        error: What the session raised; the page has been told.
        replaced: Whether the page went because another took its place.
    """

    def __init__(self, connection: StampedServerConnection, clock: Clock, begin: BeginWith) -> None:
        self.error: UserError | None = None
        self.replaced = False
        self._connection = connection
        self._clock = clock
        self._begin = begin
        self._outbox = Outbox()
        self._page = PageClock()
        self._pings: dict[int, int] = {}
        self._answered = asyncio.Event()
        self._clock_known = asyncio.Event()
        self._devices: asyncio.Future[Devices] = asyncio.get_running_loop().create_future()
        self._taking_over = asyncio.Event()
        self._over = asyncio.Event()
        self._close = (ENDED, "the session is over")
        self._sound: PageSound | None = None
        self._talk: LiveTalk | None = None
        self._saving: asyncio.Task[None] | None = None
        self._faults = 0

    async def run(self, admit: Callable[[PageConnection], Awaitable[None]]) -> None:
        """Serve the page until it goes or its session is over, and has been saved.

        Args:
            admit: Waits until this page may talk.
        """
        try:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._write(), name="page: out")
                pinging = group.create_task(self._ping(), name="page: clock")
                talking = group.create_task(self._host(admit), name="page: session")
                await self._listen(group)
                pinging.cancel()
                if self._talk is None:
                    talking.cancel()
                await asyncio.wait([talking])  # the session saves what was said
                self._outbox.finish()
                await asyncio.wait([writing])
        finally:
            self._over.set()

    async def replace(self) -> None:
        """Send the page away because another takes its place; return when all is saved."""
        self.replaced = True
        self._send_away(REPLACED, "another tab has taken over")
        await self._over.wait()

    async def taking_over(self) -> None:
        """Tell the page that another one is there; return when it asks to take its place."""
        self._taking_over.clear()
        self._outbox.say({"type": "occupied"})
        await self._taking_over.wait()

    def show(self, update: Update) -> None:
        """Send an update of the session to the page."""
        paths = (None, None) if self._sound is None else self._sound.paths_ms
        message = shown(update, paths)
        if message is not None:
            self._outbox.say(message)

    async def _host(self, admit: Callable[[PageConnection], Awaitable[None]]) -> None:
        await admit(self)
        await self._clock_known.wait()
        self._outbox.say({"type": "welcome"})
        devices = await self._devices
        self._sound = PageSound(self._clock, self._page, self._outbox, devices)
        try:
            self._talk = self._begin(self._sound, self.show)
            self._outbox.say(_beginning(self._talk))
            await self._talk.run()
        except UserError as error:
            self.error = error
            self._close = (FAILED, "the session could not go on")
            self._outbox.say({"type": "notice", "text": str(error), "serious": True})
        finally:
            self._sound.end()
        self._outbox.finish()

    async def _write(self) -> None:
        try:
            while (message := await self._outbox.take()) is not None:
                await self._connection.send(message)
            await self._connection.close(*self._close)
        except ConnectionClosed:
            return  # `_listen` sees it too

    async def _listen(self, group: asyncio.TaskGroup) -> None:
        quota = Quota(self._clock.now())
        while True:
            try:
                came_ns, message = await self._connection.receive()
            except ConnectionLostError:
                break
            if not isinstance(message, Text | Binary):
                continue
            if quota.allows(came_ns):
                wrong = self._take(came_ns, read(message.data), group)
            else:
                wrong = "more messages than a page sends"
            if wrong is not None:
                self._fault(wrong)
        if self._sound is not None:
            self._sound.end()

    def _take(self, came_ns: int, message: FromPage, group: asyncio.TaskGroup) -> str | None:
        """Take one message; return what is wrong with it."""
        sound = self._sound
        match message:
            case Malformed(why):
                return why
            case Pong(number, page_ms):
                return self._pong(came_ns, number, page_ms)
            case Asking(name):
                self._asked(name, group)
            case Devices() if sound is not None:
                sound.device_back(message)
            case Devices() if not self._devices.done():
                self._devices.set_result(message)
            case SpeakerChanged(speaker, output_latency_ms) if sound is not None:
                sound.speaker_changed(speaker, output_latency_ms)
            case MicrophoneFrame() if sound is not None:
                return sound.frame(came_ns, message)
            case PlayedReport() if sound is not None:
                return sound.played(message)
            case Underrun(samples) if sound is not None:
                sound.underrun(samples)
            case DeviceGone(why) if sound is not None:
                sound.device_gone(why)
            case _:
                pass  # of a microphone that is open before its session is
        return None

    def _asked(self, name: Asked, group: asyncio.TaskGroup) -> None:
        talk = self._talk
        if name == "take-over":
            self._taking_over.set()
        if talk is None:
            return
        match name:
            case "mute" | "unmute":
                talk.mute(muted=name == "mute")
                self._outbox.say({"type": "muted", "muted": name == "mute"})
            case "interrupt":
                talk.interrupt()
            case "next-condition":
                self._outbox.say({"type": "condition", "name": talk.next_condition()})
            case "save" if self._saving is None or self._saving.done():
                self._saving = group.create_task(self._save(talk), name="page: save")
            case "stop":
                talk.stop()
            case _:
                pass  # it is being saved

    async def _save(self, talk: LiveTalk) -> None:
        try:
            await talk.save()
        except UserError as error:
            self._outbox.say({"type": "notice", "text": str(error), "serious": True})

    async def _ping(self) -> None:
        number = 0
        while True:
            number += 1
            self._answered.clear()
            self._pings = {number: self._clock.now()}
            try:
                await self._connection.send(f'{{"type": "ping", "number": {number}}}')
                async with asyncio.timeout(_PONG_LIMIT_S):
                    await self._answered.wait()
            except ConnectionClosed:
                return
            except TimeoutError:
                continue  # a page that is busy gives no good reading anyway
            if self._clock_known.is_set() and self._page.between_rounds:
                await asyncio.sleep(ROUND_S)

    def _pong(self, came_ns: int, number: int, page_ms: float) -> str | None:
        sent_ns = self._pings.pop(number, None)
        if sent_ns is None:
            return None  # too late to be of use
        step_ms = self._page.note(Reading(sent_ns, page_ms, came_ns))
        if step_ms is not None and self._sound is not None:
            self._sound.clock_set(step_ms)
        if self._page.known:
            self._clock_known.set()
        self._answered.set()
        return None

    def _fault(self, why: str) -> None:
        self._faults += 1
        if self._faults > MAX_FAULTS:
            self._send_away(POLICY, f"the page sent what no page of ours sends: {why}")

    def _send_away(self, code: int, why: str) -> None:
        self._close = (code, why)
        self._outbox.finish()


def _beginning(talk: LiveTalk) -> Mapping[str, object]:
    return {
        "type": "go",
        "endpoint": talk.endpoint,
        "conditions": list(talk.conditions),
        "advice": list(talk.advice),
    }
