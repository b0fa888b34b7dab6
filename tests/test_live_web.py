"""The server of live mode's page, by a client that need not be a browser, nor well-behaved."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from live_web_world import LIMIT_S, World, served
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from voxmeter.client.clock import SystemClock
from voxmeter.client.live.sound import Sound
from voxmeter.client.live.updates import Show
from voxmeter.client.live.web import run
from voxmeter.client.live.web_access import FILES, PageAccess
from voxmeter.client.live.web_connection import FAILED, MAX_FAULTS
from voxmeter.endpoints.errors import UserError

DEVICES = {
    "type": "devices",
    "microphone": "a microphone",
    "speaker": "a speaker",
    "input_latency_ms": 10,
    "output_latency_ms": None,
    "processing": [],
}


class RawPage:
    """Does what the page's scripts do, as far as a test tells it to."""

    def __init__(self, line: ClientConnection) -> None:
        self.line = line
        self.heard: list[dict[str, Any]] = []
        self.sound = b""
        self.number = 0

    async def until(self, kind: str) -> dict[str, Any]:
        """Answer pings until a message of a kind comes; return it."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                data = await self.line.recv()
                if isinstance(data, bytes):
                    self.sound += data[24:]
                    continue
                message = json.loads(data)
                self.heard.append(message)
                if message["type"] == "ping":
                    pong = {"type": "pong", "number": message["number"], "page_ms": 1000.0}
                    await self.say(pong)
                if message["type"] == kind:
                    return dict(message)

    async def closed(self) -> tuple[int, str]:
        """Return code and reason of the websocket's end."""
        with pytest.raises(ConnectionClosed) as closed:
            await self.until("never")
        assert closed.value.rcvd is not None
        return closed.value.rcvd.code, closed.value.rcvd.reason

    async def say(self, message: Mapping[str, Any]) -> None:
        await self.line.send(json.dumps(message))

    async def talks(self) -> None:
        """Open the microphone and wait until the session is there."""
        await self.until("welcome")
        await self.say(DEVICES)
        await self.until("go")

    async def frame(self, samples: int = 960, number: int | None = None) -> None:
        number = self.number if number is None else number
        at = 0.02 * number
        header = struct.pack("<IIdd", number, samples, 5 + at, 1000 + 1e3 * at)
        await self.line.send(header + bytes(2 * samples))
        self.number = number + 1


@asynccontextmanager
async def raw_page(world: World) -> AsyncIterator[RawPage]:
    address = world.url.replace("http", "ws") + "ws"
    async with connect(address, origin=world.url[: world.url.index("/", 7)]) as line:  # type: ignore[arg-type]
        yield RawPage(line)


def headers(port: int = 80, **others: str) -> dict[str, str]:
    return {"host": f"127.0.0.1:{port}", **others}


def test_every_file_of_the_page_is_there_and_nothing_is_kept_or_told_on() -> None:
    access = PageAccess("token", 80)
    for name in FILES:
        answer = access.answer(f"/token/{name}", headers())
        assert answer is not None
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'; ")
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        text = answer.body.decode()
        assert "https://" not in text
        assert "innerHTML" not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("path", "given", "why"),
    [
        ("/", headers(), "the token"),
        ("/tokens/", headers(), "the token"),
        ("/toke/", headers(), "the token"),
        ("//[", headers(), "the token"),
        ("/\N{LATIN SMALL LETTER E WITH ACUTE}/", headers(), "the token"),
        ("/token/", {}, "127.0.0.1 only"),
        ("/token/", {"host": "evil.example:80"}, "127.0.0.1 only"),
        ("/token/", headers(81), "127.0.0.1 only"),
        ("/token/", headers(origin="http://evil.example"), "another origin"),
        ("/token/ws", headers(origin="null"), "another origin"),
        ("/token/ws", headers(origin="https://127.0.0.1:80"), "another origin"),
        ("/token/ws", headers(origin="http://localhost:80"), "another origin"),
        ("/token/ws", headers(), "no page"),
    ],
)
def test_whoever_is_not_the_page_is_refused(path: str, given: dict[str, str], why: str) -> None:
    answer = PageAccess("token", 80).answer(path, given)
    assert answer is not None
    assert answer.status == 403
    assert why in answer.body.decode()
    assert b"token/" not in answer.body


@pytest.mark.parametrize("name", ["../web.py", "page.html", "__init__.py", "%2e%2e/web.py"])
def test_only_the_files_of_the_page_are_served(name: str) -> None:
    answer = PageAccess("token", 80).answer(f"/token/{name}", headers())
    assert answer is not None
    assert answer.status == 404


def test_the_token_is_not_in_what_the_access_shows_of_itself() -> None:
    assert "secret" not in repr(PageAccess("secret", 80))


async def test_two_starts_have_two_tokens_and_the_page_comes_over_http() -> None:
    async with served() as one, served() as other:
        assert one.url.rsplit("/", 2)[1] != other.url.rsplit("/", 2)[1]
        assert b"voxmeter live" in await asyncio.to_thread(fetched, one.url)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            await asyncio.to_thread(fetched, one.url.replace("127.0.0.1", "127.0.0.1", 1)[:-3])


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:  # noqa: S310 - our own server
        return bytes(answer.read())


@pytest.mark.parametrize("origin", [None, "http://evil.example", "http://127.0.0.1:1"])
async def test_a_websocket_of_another_origin_is_refused(origin: str | None) -> None:
    async with served() as world:
        with pytest.raises(InvalidStatus, match="403"):
            async with connect(world.url.replace("http", "ws") + "ws", origin=origin):  # type: ignore[arg-type]
                pass
        assert world.talks == []


async def test_frames_become_blocks_and_what_is_played_goes_to_the_page() -> None:
    async with served() as world, raw_page(world) as page:
        await page.talks()
        talk = await world.talk()
        for _ in range(3):
            await page.frame()
        await talk.until(lambda: len(talk.blocks) == 3)
        assert talk.heard == bytes(3 * 1920)
        assert all(block.taken_ns <= block.came_ns - 20_000_000 for block in talk.blocks)
        talk.sound.play(bytes(range(200)))
        talk.sound.play(b"")
        talk.stop()
        assert await page.closed() == (4000, "the session is over")
        assert page.sound == bytes(range(200))
        assert talk.saves == 1


BAD: dict[str, str | bytes] = {
    "empty": b"",
    "short": b"\0" * 23,
    "no samples": struct.pack("<IIdd", 0, 0, 1, 1),
    "half a sample": struct.pack("<IIdd", 0, 1, 1, 1) + b"\0",
    "wrong length": struct.pack("<IIdd", 0, 960, 1, 1) + bytes(1918),
    "too long": struct.pack("<IIdd", 0, 4801, 1, 1) + bytes(9602),
    "nan": struct.pack("<IIdd", 0, 1, float("nan"), 1) + b"\0\0",
    "infinite": struct.pack("<IIdd", 0, 1, 1, float("inf")) + b"\0\0",
    "negative": struct.pack("<IIdd", 0, 1, -1, 1) + b"\0\0",
    "text for sound": "\0" * 1944,
    "not JSON": "{",
    "deep": "[" * 16000,
    "a list": "[]",
    "a number": "1",
    "no type": "{}",
    "a type that is a list": '{"type": []}',
    "unknown": '{"type": "open"}',
    "long": '"' + "a" * 20000 + '"',
    "a button that is not there": '{"type": "ask", "name": "delete"}',
    "a button without a name": '{"type": "ask", "name": {}}',
    "a pong of nothing": '{"type": "pong", "number": 1.5, "page_ms": 1}',
    "a pong at no time": '{"type": "pong", "number": 1, "page_ms": NaN}',
    "a pong at infinity": '{"type": "pong", "number": 1, "page_ms": 1e999}',
    "nothing played": '{"type": "played", "stretches": [], "context_s": 1, "page_ms": 1}',
    "never given": '{"type": "played", "stretches": [[0, 1, 1]], "context_s": 1, "page_ms": 1}',
    "played back": '{"type": "played", "stretches": [[0, -1, 1]], "context_s": 1, "page_ms": 1}',
    "strange stretches": '{"type": "played", "stretches": [7], "context_s": 1, "page_ms": 1}',
    "devices without names": '{"type": "devices", "microphone": 1}',
    "a pong of a huge number": '{"type": "pong", "number": 1, "page_ms": 1' + "0" * 400 + "}",
    "an underrun of a huge number": '{"type": "underrun", "samples": 1' + "0" * 400 + "}",
}


@pytest.mark.parametrize("name", BAD)
async def test_a_message_that_no_page_sends_ends_nothing(name: str) -> None:
    async with served() as world, raw_page(world) as page:
        await page.talks()
        talk = await world.talk()
        for _ in range(MAX_FAULTS):
            await page.line.send(BAD[name])
        await page.frame()
        await talk.until(lambda: len(talk.blocks) == 1)
        assert talk.troubles == []
        await page.line.send(BAD[name])
        code, reason = await page.closed()
        assert code == 1008
        assert "no page of ours sends" in reason
        await talk.until(talk.over.is_set)
        assert talk.saves == 1
        async with raw_page(world) as again:
            await again.until("welcome")


async def test_a_page_that_sends_without_end_is_sent_away_and_the_session_saved() -> None:
    async with served() as world, raw_page(world) as page:
        await page.talks()
        talk = await world.talk()
        flood = asyncio.create_task(flooding(page))
        code, reason = await page.closed()
        assert code == 1008
        assert "more messages" in reason
        await flood
        await talk.until(talk.over.is_set)
        assert talk.saves == 1


async def flooding(page: RawPage) -> None:
    try:
        while True:
            await page.frame()
    except ConnectionClosed:
        pass


async def test_a_message_of_megabytes_ends_the_page_and_saves_the_session() -> None:
    async with served() as world, raw_page(world) as page:
        await page.talks()
        talk = await world.talk()
        await page.line.send(bytes(2**20))
        assert (await page.closed())[0] == 1009
        await talk.until(talk.over.is_set)
        assert talk.saves == 1


async def test_a_page_that_takes_nothing_loses_the_end_of_what_is_played_and_it_is_counted() -> (
    None
):
    async with served() as world, raw_page(world) as page:
        await page.talks()
        talk = await world.talk()
        minute = bytes(2 * 48_000 * 60)
        for _ in range(5):
            talk.sound.play(minute)
        await talk.until(lambda: bool(talk.troubles))
        trouble = talk.troubles[0]
        assert trouble.problem == "dropped"
        assert trouble.count == 48_000 * 60
        assert "the page does not take the reply" in trouble.text
        assert talk.sound.clear() == 5 * 48_000 * 60
        await page.until("clear")
        talk.sound.play(b"\1\0" * 10)
        talk.stop()
        await page.closed()
        assert page.sound.endswith(b"\1\0" * 10)


async def test_another_tab_waits_until_it_asks_for_the_place_and_the_first_is_saved_before() -> (
    None
):
    async with served() as world, raw_page(world) as first:
        await first.talks()
        talk = await world.talk()
        async with raw_page(world) as second:
            await second.until("occupied")
            await second.say(DEVICES)  # is no way in
            await second.say({"type": "ask", "name": "take-over"})
            assert await first.closed() == (4001, "another tab has taken over")
            await second.until("go")
            assert talk.saves == 1
            assert len(world.talks) == 2


async def test_the_ninth_tab_is_told_that_there_are_too_many() -> None:
    async with served() as world, asyncio.timeout(LIMIT_S):
        lines = [await connect_raw(world) for _ in range(8)]
        for line in lines:
            await line.recv()  # each is inside
        async with raw_page(world) as ninth:
            assert await ninth.closed() == (1013, "too many tabs are open")
        for line in lines:
            await line.close()


async def connect_raw(world: World) -> ClientConnection:
    origin: Any = world.url[: world.url.index("/", 7)]
    return await connect(world.url.replace("http", "ws") + "ws", origin=origin)


async def test_what_a_session_cannot_do_is_told_to_the_page_and_ends_the_program() -> None:
    def fail(sound: Sound, show: Show) -> Any:
        raise UserError("bench.toml", "no endpoint", "name one")

    async with served(begin=fail) as world, raw_page(world) as page:
        await page.until("welcome")
        await page.say(DEVICES)
        notice = await page.until("notice")
        assert notice["text"] == "bench.toml: no endpoint; name one"
        assert (await page.closed())[0] == FAILED  # the page does not say that all is saved
        with pytest.raises(UserError, match="no endpoint"):
            await world.ended


async def test_a_save_that_fails_is_told_and_the_talk_goes_on() -> None:
    async with served() as world, raw_page(world) as page:
        await page.talks()
        talk = await world.talk()

        async def full() -> Path:
            raise UserError("runs", "no space left", "free some")

        saving, talk.save = talk.save, full  # type: ignore[method-assign]
        await page.say({"type": "ask", "name": "save"})
        notice = await page.until("notice")
        assert notice == {
            "type": "notice",
            "text": "runs: no space left; free some",
            "serious": True,
        }
        await page.frame()
        await talk.until(lambda: len(talk.blocks) == 1)
        talk.save = saving  # type: ignore[method-assign]


async def test_a_port_that_is_taken_is_one_line() -> None:
    async with served() as world:
        port = int(world.url.split(":")[2].split("/")[0])
        with pytest.raises(UserError, match=f"127.0.0.1:{port}: .*; choose another --port"):
            await run(world.begin, clock=SystemClock(), announce=world.announce, port=port)


async def test_a_fault_of_the_program_is_not_hidden() -> None:
    def fail(sound: Sound, show: Show) -> Any:
        raise ZeroDivisionError

    async with served(begin=fail) as world, raw_page(world) as page:
        await page.until("welcome")
        await page.say(DEVICES)
        with pytest.raises(ExceptionGroup) as caught:
            await world.ended
        assert caught.group_contains(ZeroDivisionError)


async def test_the_browser_is_opened_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = asyncio.Queue[str]()
    loop = asyncio.get_running_loop()
    put: Callable[[str], Any] = lambda url: loop.call_soon_threadsafe(opened.put_nowait, url)  # noqa: E731
    monkeypatch.setattr("webbrowser.open", put)
    async with served(open_page=True) as world:
        assert await opened.get() == world.url


def test_a_browser_that_stays_in_the_foreground_does_not_hold_up_the_end(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\nexec cat >/dev/null\n")
    browser.chmod(0o755)
    code = """
import asyncio
from live_web_world import served
async def briefly():
    async with served(open_page=True):
        pass
asyncio.run(briefly())
"""
    paths = os.pathsep.join(sys.path)
    environment = {**os.environ, "BROWSER": str(browser), "PYTHONPATH": paths}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE
    ) as program:  # the browser ends with the pipe, when the block ends
        assert program.wait(timeout=30) == 0
