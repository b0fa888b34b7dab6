"""A page of live mode for tests: the server, a session that answers by echo, and a real browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from needs import needs

from voxmeter.client.clock import SystemClock
from voxmeter.client.live.sound import Block, Played, Sound, SoundEvent, Trouble
from voxmeter.client.live.updates import (
    Mark,
    Notice,
    PhaseChanged,
    Running,
    Saved,
    Show,
    TurnOver,
    Words,
)
from voxmeter.client.live.web import run
from voxmeter.client.live.web_visit import BeginWith

LIMIT_S = 60


class EchoTalk:
    """Answers with what was said, once `enough` samples of it are there.

    Attributes:
        over: Is set when `run` has returned, after saving.
    """

    endpoint = "echo"
    conditions: tuple[str, ...] = ("clean", "noisy")
    advice: tuple[str, ...] = ("Wear a headset.",)

    def __init__(self, sound: Sound, show: Show, *, enough: int) -> None:
        self.sound = sound
        self.show = show
        self.enough = enough
        self.blocks: list[Block] = []
        self.played: list[Played] = []
        self.troubles: list[Trouble] = []
        self.controls: list[str] = []
        self.reply_samples: int | None = None
        self.saves = 0
        self.over = asyncio.Event()
        self._stopped = asyncio.Event()
        self._news = asyncio.Condition()

    @property
    def heard(self) -> bytes:
        return b"".join(block.pcm for block in self.blocks)

    async def run(self) -> None:
        self.show(PhaseChanged("listening"))
        reading = asyncio.create_task(self._read())
        stopping = asyncio.create_task(self._stopped.wait())
        await asyncio.wait([reading, stopping], return_when=asyncio.FIRST_COMPLETED)
        for task in (reading, stopping):
            task.cancel()
        await asyncio.gather(reading, stopping, return_exceptions=True)
        await self.save()
        self.over.set()
        async with self._news:
            self._news.notify_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looked at whenever the page has sent something."""
        async with asyncio.timeout(LIMIT_S), self._news:
            await self._news.wait_for(holds)

    async def _read(self) -> None:
        async for event in self.sound.events():
            self._take(event)
            async with self._news:
                self._news.notify_all()

    def _take(self, event: SoundEvent) -> None:
        match event:
            case Block():
                self.blocks.append(event)
                if self.reply_samples is None and 960 * len(self.blocks) >= self.enough:
                    self.answer()
            case Played():
                self.played.append(event)
            case Trouble():
                self.troubles.append(event)

    def answer(self) -> None:
        pcm = self.heard[: 2 * self.enough]
        self.reply_samples = len(pcm) // 2
        self.sound.play(pcm)
        self.show(PhaseChanged("reply"))
        self.show(Words("user", 1, "What is <b>two</b> plus two?"))
        self.show(Words("reply", 1, "Four, I "))
        self.show(Words("reply", 1, "believe."))
        for name, ms in (("speech_end", 0.0), ("first_packet", 310.0), ("first_audible", 425.0)):
            self.show(Mark(1, name, ms))  # type: ignore[arg-type]
        self.show(Mark(1, "reply_end", 2100.0))
        latency = {"first_packet_ms": 310.0, "first_audible_ms": 425.0, "reply_ms": None}
        self.show(TurnOver(1, "ok", latency))
        self.show(Running({"first_packet_ms": (1, 310.0, 310.0)}))

    def mute(self, *, muted: bool) -> None:
        self.controls.append("mute" if muted else "unmute")

    def interrupt(self) -> None:
        self.controls.append("interrupt")
        self.sound.clear()

    def next_condition(self) -> str:
        self.controls.append("next")
        return "noisy"

    async def save(self) -> Path:
        self.saves += 1
        self.show(Saved(Path("runs/live-1"), 1))
        self.show(Notice("A sentence that is <i>data</i>."))
        return Path("runs/live-1")

    def stop(self) -> None:
        self.controls.append("stop")
        self._stopped.set()


class World:
    """A served page; `talks` grows by one for each page that opens its microphone."""

    def __init__(self, enough: int) -> None:
        self.url = ""
        self.ended: asyncio.Task[None]
        self.talks: list[EchoTalk] = []
        self._enough = enough
        self._news = asyncio.Event()
        self._announced = asyncio.Event()

    def begin(self, sound: Sound, show: Show) -> EchoTalk:
        talk = EchoTalk(sound, show, enough=self._enough)
        self.talks.append(talk)
        self._news.set()
        return talk

    def announce(self, url: str) -> None:
        self.url = url
        self._announced.set()

    async def announced(self) -> None:
        await self._announced.wait()

    async def talk(self, number: int = 1) -> EchoTalk:
        async with asyncio.timeout(LIMIT_S):
            while len(self.talks) < number:
                self._news.clear()
                await self._news.wait()
        return self.talks[number - 1]


@asynccontextmanager
async def served(
    *, enough: int = 10**9, begin: BeginWith | None = None, **settings: Any
) -> AsyncIterator[World]:
    """Serve a page on a free port; end it with the block, as Ctrl-C would."""
    world = World(enough)
    task = asyncio.create_task(
        run(begin or world.begin, clock=SystemClock(), announce=world.announce, **settings)
    )
    announced = asyncio.create_task(world.announced())
    await asyncio.wait([task, announced], return_when=asyncio.FIRST_COMPLETED)
    announced.cancel()
    world.ended = task
    try:
        yield world
    finally:
        task.cancel()
        await asyncio.wait([task])


FAKE_DEVICES = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@asynccontextmanager
async def chromium(*options: str) -> AsyncIterator[Any]:
    """Start the system's Chromium without a window; yields Playwright's browser."""
    program = needs("chromium")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=str(program),
            args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required", *options],
        )
        try:
            yield browser
        finally:
            await browser.close()


class Watched:
    """A page of the browser, what its console complained of, and what it asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.problems: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(LIMIT_S * 1000)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("websocket", lambda socket: self.asked.append(socket.url))

    def _console(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.problems.append(message.text)

    async def text(self, name: str) -> str:
        return str(await self.page.inner_text(f"#{name}"))

    async def until(self, name: str, text: str) -> None:
        """Wait until an element shows a text."""
        await self.page.wait_for_function(
            "([name, text]) => document.getElementById(name).checkVisibility() && "
            "document.getElementById(name).innerText.includes(text)",
            arg=[name, text],
        )

    async def start(self, url: str) -> None:
        """Open the page and allow it the microphone."""
        await self.page.goto(url)
        await self.until("gate-title", "Ready")
        await self.page.click("#gate-button")


async def tab(browser: Any, **settings: Any) -> Watched:
    """Open an empty tab in a context of its own."""
    context = await browser.new_context(**settings)
    return Watched(await context.new_page())
