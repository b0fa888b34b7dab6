"""The page of live mode in a real Chromium, its microphone fed from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from live_web_world import FAKE_DEVICES, EchoTalk, World, chromium, served, tab
from numpy.typing import NDArray
from scipy.signal import fftconvolve

RATE = 48_000
SECOND = np.zeros(RATE)


def question(folder: Path) -> tuple[Path, NDArray[np.float64]]:
    """Write a file for the microphone: silence, two seconds of a sound that is like no other."""
    generator = np.random.default_rng(1)
    sweep = np.sin(2 * np.pi * np.cumsum(np.linspace(200, 1500, 2 * RATE)) / RATE)
    sound = 0.4 * sweep * (0.6 + 0.4 * np.repeat(generator.random(40), 2 * RATE // 40))
    path = folder / "question.wav"
    padded = np.concatenate([SECOND, SECOND, sound, SECOND, SECOND])
    soundfile.write(path, padded, RATE, subtype="PCM_16")
    return path, sound


def likeness(pcm: bytes, sound: NDArray[np.float64]) -> float:
    """Return the correlation of a sound with where it fits best in what was heard."""
    heard = np.frombuffer(pcm, "<i2").astype(float)
    start = int(np.argmax(fftconvolve(heard, sound[::-1], mode="valid")))
    return float(np.corrcoef(heard[start : start + len(sound)], sound)[0, 1])


def put_out(talk: EchoTalk) -> int:
    """Return how many samples the page has reported, having checked that none is missing."""
    position = 0
    for played in talk.played:
        assert played.position == position
        position += played.samples
    return position


async def test_what_is_said_arrives_and_the_reply_plays_to_its_last_sample(tmp_path: Path) -> None:
    path, sound = question(tmp_path)
    capture = f"--use-file-for-fake-audio-capture={path}%noloop"
    length = 5 * RATE
    async with served(enough=length) as world, chromium(*FAKE_DEVICES, capture) as browser:
        page = await tab(browser)
        await page.start(world.url)
        talk = await world.talk()
        await talk.until(lambda: put_out(talk) == length)

        assert likeness(talk.heard, sound) > 0.99
        assert all(block.taken_ns < block.came_ns for block in talk.blocks)
        heard = [played.heard_ns for played in talk.played]
        assert heard == sorted(heard)
        microphone_ms, speaker_ms = talk.sound.paths_ms  # type: ignore[attr-defined]
        assert microphone_ms > 0
        assert speaker_ms > 0
        facts = talk.sound.facts
        assert (facts.host, facts.stamps, facts.rate) == ("browser", "page", RATE)
        assert "Fake" in facts.microphone
        assert any("RTT" in note for note in facts.notes)
        assert any("no processing" in note for note in facts.notes)

        assert page.problems == []
        assert all("//127.0.0.1:" in address for address in page.asked)


async def test_the_page_shows_words_as_text_and_latencies_with_where_they_were_measured() -> None:
    async with served(enough=RATE) as world, chromium(*FAKE_DEVICES) as browser:
        page = await tab(browser)
        await page.start(world.url)
        await page.until("transcript", "Four, I believe.")
        assert "<b>two</b>" in await page.text("transcript")
        await page.until("figures", "425")
        figures = [line.split("\t") for line in (await page.text("figures")).splitlines()]
        assert [cells[0] for cells in figures] == ["first packet", "first audible"]
        assert figures[0][1] == figures[0][3] == "310"
        assert float(figures[0][2]) < 310
        assert figures[1][3] == "\N{EN DASH}"
        heads = await page.page.inner_text("thead")
        assert "page-measured" in heads
        assert "at the server" in heads
        assert "425 ms" in str(await page.page.text_content("#timeline"))
        assert await page.text("endpoint") == "echo"
        assert await page.text("phase") == "reply"
        assert page.problems == []


async def test_buttons_and_keys_reach_the_session() -> None:
    async with served() as world, chromium(*FAKE_DEVICES) as browser:
        page = await tab(browser)
        await page.start(world.url)
        talk = await world.talk()
        await page.page.wait_for_selector("#mute:enabled")
        await page.page.keyboard.press("m")
        await page.until("mute", "Muted")
        await page.page.click("#mute")
        await page.page.wait_for_selector("#mute[aria-pressed=false]")
        await page.page.keyboard.press("i")
        await page.page.keyboard.press("Control+s")  # the browser's own
        await page.page.keyboard.press("c")
        await page.until("condition", "noisy")
        await page.page.keyboard.press("s")
        await page.until("notices", "Saved: 1 turn in runs/live-1")
        await page.until("notices", "A sentence that is <i>data</i>.")
        assert talk.controls == ["mute", "unmute", "interrupt", "next"]
        await page.page.keyboard.press("q")
        await page.until("gate-title", "The session is over")
        assert talk.controls[-1] == "stop"
        assert talk.saves == 2
        await page.page.click("#gate-button")
        await page.until("gate-title", "Ready")
        await page.page.click("#gate-button")
        assert await world.talk(2) is not talk
        assert page.problems == []


async def test_a_second_tab_is_told_of_the_first_and_may_take_its_place() -> None:
    async with served() as world, chromium(*FAKE_DEVICES) as browser:
        first, second = await tab(browser), await tab(browser)
        await first.start(world.url)
        talk = await world.talk()
        await second.page.goto(world.url)
        await second.until("gate-title", "Another tab is talking already")
        assert not talk.over.is_set()
        await second.page.click("#gate-button")
        await first.until("gate-title", "Another tab has taken over")
        await second.until("gate-title", "Ready")
        assert talk.saves == 1
        await second.page.click("#gate-button")
        other = await world.talk(2)
        await other.until(lambda: len(other.blocks) > 5)
        assert first.problems == second.problems == []


async def test_a_browser_closed_in_the_middle_of_a_reply_loses_nothing_and_may_come_back() -> None:
    async with served(enough=RATE) as world, chromium(*FAKE_DEVICES) as browser:
        page = await tab(browser)
        await page.start(world.url)
        talk = await world.talk()
        await talk.until(lambda: bool(talk.played))
        await page.page.close()
        await talk.until(talk.over.is_set)
        assert talk.saves == 1
        again = await tab(browser)
        await again.start(world.url)
        other = await world.talk(2)
        await other.until(lambda: len(other.blocks) > 5)


async def test_a_page_says_that_the_program_has_ended() -> None:
    async with chromium(*FAKE_DEVICES) as browser:
        async with served() as world:
            page = await tab(browser)
            await page.start(world.url)
            talk = await world.talk()
            await talk.until(lambda: len(talk.blocks) > 5)
        assert talk.saves == 1
        await page.until("gate-title", "The program has ended")
        await page.until("phase", "over")


async def test_a_wrong_token_gives_a_plain_page() -> None:
    async with served() as world, chromium() as browser:
        page = await tab(browser)
        answer = await page.page.goto(world.url[:-2] + "/")
        assert answer.status == 403
        assert "Open the address that `voxmeter live --web` printed" in await answer.text()


TAKEN_AWAY = {
    "insecure": "Object.defineProperty(globalThis, 'isSecureContext', { value: false })",
    "worklet": "delete globalThis.AudioWorkletNode",
    "broken": "AudioWorklet.prototype.addModule = () => Promise.reject(new Error('no module'))",
    "busy": "navigator.mediaDevices.getUserMedia = () => "
    "Promise.reject(new DOMException('taken', 'NotReadableError'))",
    "strange": "navigator.mediaDevices.getUserMedia = () => Promise.reject(new Error('<b>so</b>'))",
}


@pytest.mark.parametrize(
    ("taken", "title", "text"),
    [
        ("insecure", "The browser gives no microphone to this address", "127.0.0.1"),
        ("worklet", "The browser cannot handle the sound", "AudioWorklet"),
        ("broken", "The browser cannot handle the sound", "AudioWorklet"),
        ("busy", "The microphone cannot be opened", "Another program may have it for itself"),
        ("strange", "The microphone cannot be opened", "The browser says: <b>so</b>"),
    ],
)
async def test_what_a_browser_lacks_is_said_in_plain_words(
    taken: str, title: str, text: str
) -> None:
    async with served() as world, chromium(*FAKE_DEVICES) as browser:
        page = await tab(browser)
        await page.page.add_init_script(TAKEN_AWAY[taken])
        await page.start(world.url)
        await page.until("gate-title", title)
        await page.until("gate-text", text)
        await page.until("gate-button", "Try again")
        assert world.talks == []


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ((FAKE_DEVICES[0],), "The microphone is not allowed"),
        ((), "There is no microphone"),
    ],
)
async def test_a_microphone_that_is_refused_or_missing_is_said(
    options: tuple[str, ...], title: str
) -> None:
    async with served() as world, chromium(*options) as browser:
        page = await tab(browser, permissions=[] if options else ["microphone"])
        await page.start(world.url)
        await page.until("gate-title", title)
        assert world.talks == []


async def test_comfort_is_off_until_switched_on_and_what_the_browser_does_is_shown() -> None:
    async with served() as world, chromium(*FAKE_DEVICES) as browser:
        page = await tab(browser)
        await page.start(world.url)
        await page.until("device-facts", "the browser says that it changes nothing")
        talk = await world.talk()
        await page.page.check("#comfort")
        await page.until("device-facts", "the browser applies")
        await talk.until(lambda: [one.problem for one in talk.troubles][:1] == ["back"])
        before = len(talk.blocks)
        await talk.until(lambda: len(talk.blocks) > before + 5)
        assert any("echo cancellation" in note for note in talk.sound.facts.notes)
        assert page.problems == []


async def test_a_microphone_that_ends_is_reported_and_survived() -> None:
    async with served() as world, chromium(*FAKE_DEVICES) as browser:
        page = await tab(browser)
        await page.page.add_init_script(
            "const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);"
            "navigator.mediaDevices.getUserMedia = async (wish) =>"
            " (globalThis.held = await open(wish));"
        )
        await page.start(world.url)
        talk = await world.talk()
        await talk.until(lambda: len(talk.blocks) > 5)
        await page.page.evaluate("held.getAudioTracks()[0].dispatchEvent(new Event('ended'))")
        await page.until("gate-title", "The sound is gone")
        await page.page.click("#gate-button")
        await talk.until(lambda: [one.problem for one in talk.troubles][:2] == ["lost", "back"])
        before = len(talk.blocks)
        await talk.until(lambda: len(talk.blocks) > before + 5)


async def test_another_speaker_is_noted_and_the_microphone_goes_on() -> None:
    async with served() as world, chromium(*FAKE_DEVICES) as browser:
        page = await tab(browser)
        await page.start(world.url)
        talk = await world.talk()
        await talk.until(lambda: len(talk.blocks) > 5)
        await page.page.evaluate(
            "const speakers = document.getElementById('speakers');"
            "speakers.replaceChildren(new Option('the other speaker', 'default'));"
            "speakers.dispatchEvent(new Event('change'));"
        )
        await talk.until(lambda: talk.facts.speaker == "the other speaker")
        before = len(talk.blocks)
        await talk.until(lambda: len(talk.blocks) > before + 5)
        assert "back" not in [one.problem for one in talk.troubles]
        assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_fits_a_phone(scheme: str, tmp_path: Path) -> None:
    async with served(enough=RATE) as world, chromium(*FAKE_DEVICES) as browser:
        phone: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme}
        page = await tab(browser, **phone)
        await page.start(world.url)
        await page.until("figures", "425")
        assert await page.page.evaluate("document.documentElement.scrollWidth") == 360
        ground = await page.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(20, 23, 27)") == (scheme == "dark")
        picture = tmp_path / f"{scheme}.png"
        await page.page.screenshot(path=picture, full_page=True)
        assert picture.stat().st_size > 0
        assert page.problems == []


async def test_a_session_that_ends_with_its_page_ends_the_program_where_that_is_wanted() -> None:
    world: World
    async with chromium(*FAKE_DEVICES) as browser, served(stay=False) as world:
        page = await tab(browser)
        await page.start(world.url)
        talk = await world.talk()
        await page.page.close()
        await talk.until(talk.over.is_set)
        await world.ended
