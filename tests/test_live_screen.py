"""The terminal screen, driven by scripted updates and keys."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import pytest
from needs import needs_extra

from voxmeter.client.live.sound import SoundFacts
from voxmeter.client.live.updates import (
    Level,
    Mark,
    Notice,
    PhaseChanged,
    Running,
    Saved,
    Show,
    TurnOver,
    Update,
    Words,
)
from voxmeter.endpoints.errors import UserError

needs_extra("textual", "live")
needs_extra("rich", "live")

from textual.widgets import Static  # noqa: E402

from voxmeter.client.live import screen, screen_state  # noqa: E402
from voxmeter.client.live.screen import LiveScreen  # noqa: E402

FACTS = SoundFacts(
    rate=48_000,
    microphone="Headset [USB]",
    speaker="Headset [USB]",
    host="ALSA",
    stamps="device",
    input_latency_ms=40.0,
    output_latency_ms=40.0,
    notes=("the microphone runs at 16000 samples a second",),
)
TURN: list[Update] = [
    PhaseChanged("reply"),
    Level("user", -18.0),
    Level("reply", -6.0),
    Words("user", 1, "What is the capital of Japan?", whole=True),
    Words("reply", 1, "The capital "),
    Words("reply", 1, "is Tokyo."),
    Mark(1, "speech_end", 0.0),
    Mark(1, "first_packet", 310.4),
    Mark(1, "first_audible", 352.0),
    Mark(1, "reply_end", 2105.0),
    TurnOver(1, "ok", {"first_audible_ms": 352.0}),
    Running({"first_audible_ms": (3, 352.0, 410.0), "first_packet_ms": (3, 310.0, 370.0)}),
]


class ScriptedTalk:
    """A session that shows what it is told to and writes down what it is asked."""

    endpoint = "mine"
    facts = FACTS
    conditions: tuple[str, ...] = ("clean", "noise")
    advice = ("wear a headset",)

    def __init__(self, show: Show, failure: Exception | None = None) -> None:
        self.show = show
        self.asked: list[str] = []
        self.failure = failure
        self.saving: Exception | None = None
        self._stopped = asyncio.Event()

    def mute(self, *, muted: bool) -> None:
        self.asked.append(f"mute {muted}")

    def interrupt(self) -> None:
        self.asked.append("interrupt")

    def next_condition(self) -> str:
        self.asked.append("condition")
        return "noise"

    async def save(self) -> Path:
        self.asked.append("save")
        if self.saving is not None:
            raise self.saving
        self.show(Saved(Path("runs/live"), 3, {"first_audible_ms": (3, 350.0, 400.0)}))
        return Path("runs/live")

    def stop(self) -> None:
        self.asked.append("stop")
        self._stopped.set()

    async def run(self) -> None:
        if self.failure is not None:
            raise self.failure
        await self._stopped.wait()


class Shown:
    """The screen under test with its session."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.talk: ScriptedTalk
        self.failure = failure
        self.app = LiveScreen(self.begin)

    def begin(self, show: Show) -> ScriptedTalk:
        self.talk = ScriptedTalk(show, self.failure)
        return self.talk

    def show(self, *updates: Update) -> None:
        for update in updates:
            self.talk.show(update)
        self.app.draw()

    def text(self, name: str) -> str:
        return str(self.app.query_one(f"#{name}", Static).content)

    def words(self) -> str:
        return "\n".join(
            str(line.content) for line in self.app.query("#words Static").results(Static)
        )


async def test_a_turn_shows_levels_words_marks_and_figures() -> None:
    shown = Shown()
    async with shown.app.run_test(size=(110, 30)) as pilot:
        shown.show(*TURN)
        await pilot.pause()
        assert "-18 dB" in shown.text("user")
        assert "-6 dB" in shown.text("reply")
        assert shown.words() == (
            "1 you: What is the capital of Japan?\n1 reply: The capital is Tokyo."
        )
        lines = shown.text("marks").splitlines()
        assert lines[0] == "turn 1: ok"
        assert lines[1].count("●") >= 3
        assert [line.split()[-2] for line in lines[2:]] == ["0", "310", "352", "2105"]
        assert "first audible" in shown.text("figures")
        assert shown.text("figures").splitlines()[1].split()[-3:] == ["3", "352", "410"]
        assert "wear a headset" in shown.text("notices")


async def test_the_devices_and_what_a_latency_means_stand_beside_it() -> None:
    shown = Shown()
    async with shown.app.run_test(size=(110, 30)) as pilot:
        shown.app.draw()
        await pilot.pause()
        line = shown.text("facts")
        assert line.startswith("Headset [USB] (ALSA), device 40 + 40 ms")
        assert "mouth to ear, by the converters' stamps" in line
        assert "16000 samples a second" in line


@pytest.mark.parametrize(
    ("key", "asked"),
    [("m", "mute True"), ("i", "interrupt"), ("c", "condition"), ("s", "save"), ("q", "stop")],
)
async def test_a_key_asks_the_session(key: str, asked: str) -> None:
    shown = Shown()
    async with shown.app.run_test(size=(110, 30)) as pilot:
        await pilot.press(key)
        await pilot.pause()
        assert asked in shown.talk.asked


async def test_mute_is_shown_and_taken_back() -> None:
    shown = Shown()
    async with shown.app.run_test(size=(110, 30)) as pilot:
        await pilot.press("m")
        shown.app.draw()
        assert "MUTED" in shown.text("head")
        await pilot.press("m")
        shown.app.draw()
        assert "MUTED" not in shown.text("head")
        assert shown.talk.asked == ["mute True", "mute False"]


@pytest.mark.parametrize(
    "error", [UserError("disk", "no space left", "free some"), OSError("gone")]
)
async def test_a_save_that_fails_is_told_and_the_session_goes_on(error: Exception) -> None:
    shown = Shown()
    async with shown.app.run_test(size=(110, 30)) as pilot:
        shown.talk.saving = error
        await pilot.press("s")
        await pilot.pause()
        shown.app.draw()
        assert f"not saved: {error}" in shown.text("notices")
        assert "stop" not in shown.talk.asked


async def test_what_was_saved_replaces_the_provisional_figures() -> None:
    shown = Shown()
    async with shown.app.run_test(size=(110, 30)) as pilot:
        shown.show(*TURN)
        await pilot.press("s")
        await pilot.pause()
        shown.app.draw()
        assert "read again from the log: runs/live" in shown.text("notices")
        assert shown.text("figures").splitlines()[1].split()[-2:] == ["350", "400"]


HOSTILE: list[tuple[str, Callable[[str], bool]]] = [
    ("[red]alarm[/red] [@click=app.action_stop()]x[/]", lambda text: "[red]alarm[/red]" in text),
    ("\x1b[2J\x1b]0;title\x07gone", lambda text: "\x1b" not in text and "gone" in text),
    ("abc\u202edef\u2066", lambda text: "\u202e" not in text and "\\u202e" in text),
    ("שלום עולם", lambda text: "שלום עולם" in text),
    ("[/]", lambda text: "[/]" in text),
    ("x" * 100_000, lambda text: len(text) == 4_000),
    ("a\nb\r\nc", lambda text: "\n" not in text),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_hostile_words_are_shown_as_what_they_are(number: int) -> None:
    text, right = HOSTILE[number]
    shown = Shown()
    async with shown.app.run_test(size=(60, 24)) as pilot:
        shown.show(Words("reply", 1, text, whole=True), Notice(text), PhaseChanged("reply", text))
        await pilot.pause()
        assert right(shown.words().removeprefix("1 reply: "))
        assert "\x1b" not in shown.text("notices") + shown.text("head")
        assert "stop" not in shown.talk.asked


async def test_forty_columns_hold_every_part() -> None:
    shown = Shown()
    async with shown.app.run_test(size=(40, 30)) as pilot:
        shown.show(*TURN)
        await pilot.pause()
        shown.app.draw()
        await pilot.pause()
        for name in ("head", "user", "reply", "words", "marks", "figures"):
            region = shown.app.query_one(f"#{name}").region
            assert region.width > 0, name
            assert region.height > 0, name
            assert region.right <= 40, name
        assert max(map(len, shown.text("figures").splitlines())) <= 38
        assert max(map(len, shown.text("user").splitlines())) <= 38


async def test_a_terminal_that_shrinks_to_almost_nothing_and_grows_again_shows_every_part() -> None:
    shown = Shown()
    async with shown.app.run_test(size=(20, 10)) as pilot:
        shown.show(*TURN)
        for size in ((20, 10), (8, 3), (100, 30)):
            await pilot.resize_terminal(*size)
            shown.app.draw()
            await pilot.pause()
        for name in ("head", "user", "reply", "words", "marks", "figures"):
            assert shown.app.query_one(f"#{name}").region.width > 20, name


async def test_a_long_session_keeps_the_latest_words_only() -> None:
    shown = Shown()
    async with shown.app.run_test(size=(60, 24)) as pilot:
        shown.show(*(Words("user", turn, f"turn {turn}") for turn in range(1, 200)))
        await pilot.pause()
        shown.show(Words("user", 200, "the last"))
        await pilot.pause()
        lines = shown.words().splitlines()
        assert len(lines) == screen_state.KEPT_LINES
        assert lines[-1] == "200 you: the last"


async def test_the_screen_goes_when_the_session_has_ended() -> None:
    shown = Shown()
    async with shown.app.run_test(size=(60, 24)):
        shown.talk.stop()
        await asyncio.wait_for(shown.app.over.wait(), 10)
    assert shown.app.failure is None


async def test_what_ended_the_session_is_kept_for_the_command() -> None:
    shown = Shown(UserError("disk", "no space left", "free some"))
    async with shown.app.run_test(size=(60, 24)):
        await asyncio.wait_for(shown.app.over.wait(), 10)
    assert shown.app.failure is shown.failure


async def test_run_raises_what_ended_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = UserError("disk", "no space left", "free some")

    async def without_a_terminal(app: LiveScreen) -> None:
        async with app.run_test():
            await app.over.wait()

    monkeypatch.setattr(LiveScreen, "run_async", without_a_terminal)
    with pytest.raises(UserError, match="no space left"):
        await screen.run(lambda show: ScriptedTalk(show, failure))


def test_a_level_beyond_the_scale_fills_the_bar_and_no_more() -> None:
    state = screen_state.ScreenState()
    for dbfs, dots in ((3.0, 0), (float("-inf"), 25), (-60.0, 25)):
        state.take(Level("user", dbfs))
        bar = screen_state.meter(state, "user", 39).plain
        assert bar.count("·") == dots
        assert len(bar) == 39


ON_A_TERMINAL = """
import asyncio, os
from test_live_screen import ScriptedTalk
from voxmeter.client.live import screen
from voxmeter.client.live.portaudio import complaints_kept
from voxmeter.client.live.updates import PhaseChanged

class Talk(ScriptedTalk):
    async def run(self):
        os.write(2, b"underrun occurred" + bytes([10]))
        self.show(PhaseChanged("listening", "drawn on the terminal"))
        await self._stopped.wait()

with complaints_kept() as kept:
    asyncio.run(screen.run(Talk))
    print("kept:", kept.take())
"""


def test_the_screen_is_drawn_on_a_terminal_and_libraries_do_not_scribble_on_it() -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TERM": "xterm-256color",
            "COLUMNS": "80",
            "LINES": "24",
        },
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    limit = Timer(60, process.kill)
    limit.start()
    drawn = b""
    try:
        while chunk := os.read(ours, 65_536):
            drawn += chunk
            if b"drawn on the terminal" in drawn and b"ending" not in drawn:
                os.write(ours, b"q")
    except OSError:  # a terminal whose program has gone
        pass
    finally:
        limit.cancel()
        os.close(ours)
    assert process.stdout is not None
    with process.stdout as printed:
        told = printed.read()
    assert process.wait() == 0
    assert b"drawn on the terminal" in drawn
    assert b"underrun" not in drawn
    assert told.strip().endswith(b"kept: ['underrun occurred']")
