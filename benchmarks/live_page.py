"""How far what a page measures is from the truth: mouth to ear on a virtual sound card.

One PulseAudio sink is the room: Chromium plays into it and has its monitor as a microphone, so one
recording of it holds both sides on one clock. A tone on the left is the question, one on both sides
the reply. The truth is the gap between them in the recording, the page's figure that of
`PageSound`'s stamps.

    python benchmarks/live_page.py [--turns 20]

Needs chromium, pulseaudio, pulseaudio-utils (Debian's names), and Playwright.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.clock import SystemClock
from voxmeter.client.live.page_sound import PageSound
from voxmeter.client.live.sound import Block, Played, Sound, Trouble
from voxmeter.client.live.updates import Show
from voxmeter.client.live.web import run

RATE = 48_000
TONE_S, PAUSE_S = 0.3, 1.5
QUIET_S, DEAF_S = 0.2, 0.9
LOUD = 1000
CARD = """
load-module module-native-protocol-unix auth-anonymous=1
load-module module-null-sink sink_name=card rate=48000 channels=2 format=s16le
load-module module-remap-source source_name=mic master=card.monitor channels=1 channel_map=mono \
master_channel_map=front-left remix=no
set-default-sink card
set-default-source mic
"""


@contextmanager
def program(*command: str, **settings: object) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program; end it with the block."""
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, **settings) as process:  # type: ignore[call-overload]  # noqa: S603
        try:
            yield process
        finally:
            process.terminate()


def card(stack: ExitStack, folder: Path) -> dict[str, str]:
    """Start a sound card that is kept awake; return the environment that reaches it."""
    folder.chmod(0o700)
    (folder / "card.pa").write_text(CARD, encoding="utf-8")
    names = ("PULSE_RUNTIME_PATH", "PULSE_STATE_PATH", "XDG_RUNTIME_DIR")
    env = {**os.environ, **dict.fromkeys(names, str(folder))}
    options = ("--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1", "--disable-shm=yes")
    stack.enter_context(
        program("pulseaudio", "-n", "-F", str(folder / "card.pa"), *options, env=env)
    )
    env["PULSE_SERVER"] = f"unix:{folder}/native"
    while subprocess.run(["pactl", "info"], env=env, capture_output=True, check=False).returncode:  # noqa: S607
        pass
    awake = ("pacat", "-p", "--device=card", "--latency-msec=20", "--raw", "/dev/zero")
    stack.enter_context(program(*awake, env=env))
    return env


@dataclass
class Answering:
    """A session that answers each tone with another one.

    Attributes:
        gaps_ms: From the end of each question to the beginning of its reply, by the page's stamps.
    """

    sound: Sound
    show: Show
    turns: int
    endpoint: str = "a tone"
    conditions: tuple[str, ...] = ("clean",)
    advice: tuple[str, ...] = ()
    gaps_ms: list[float] = field(default_factory=list)
    paths_ms: list[tuple[float | None, float | None]] = field(default_factory=list)

    async def run(self) -> None:
        """Answer until there were enough turns."""
        end_ns, quiet, given, deaf = None, 0, 0, 0
        waiting: dict[int, int] = {}
        async for event in self.sound.events():
            if isinstance(event, Played) and event.position in waiting:
                self.gaps_ms.append((event.heard_ns - waiting[event.position]) / 1e6)
                assert isinstance(self.sound, PageSound)  # noqa: S101 - what `run` hands over
                self.paths_ms.append(self.sound.paths_ms)
            if isinstance(event, Trouble):
                print(f"after {len(self.gaps_ms)} turns: {event.problem}: {event.text}")
            if isinstance(event, Block) and deaf > 0:
                deaf -= len(event.pcm) // 2  # our own reply is in the room
            elif isinstance(event, Block):
                loud = np.flatnonzero(np.abs(np.frombuffer(event.pcm, "<i2").astype(int)) > LOUD)
                quiet = 0 if loud.size else quiet + len(event.pcm) // 2
                if loud.size:
                    end_ns = event.taken_ns + (int(loud[-1]) + 1) * 1_000_000_000 // RATE
                if end_ns is not None and quiet >= QUIET_S * RATE:
                    waiting[given] = end_ns
                    self.sound.play(tone(900))
                    given += round(TONE_S * RATE)
                    end_ns, deaf = None, round(DEAF_S * RATE)
            if len(self.gaps_ms) == self.turns:
                return

    def mute(self, *, muted: bool) -> None:
        """Do nothing, as all below."""

    def interrupt(self) -> None:
        """Do nothing."""

    def next_condition(self) -> str:
        """Return the only one."""
        return "clean"

    async def save(self) -> Path:
        """Save nothing."""
        return Path()

    def stop(self) -> None:
        """Do nothing."""


def tone(hertz: float) -> bytes:
    """Return a tone that is loud from its first sample to its last."""
    time = np.arange(round(TONE_S * RATE)) / RATE
    return (12_000 * np.cos(2 * np.pi * hertz * time)).astype("<i2").tobytes()


def edges(channel: NDArray[np.int16]) -> list[tuple[int, int]]:
    """Return first sample and end of each tone."""
    loud = np.flatnonzero(np.abs(channel.astype(int)) > LOUD)
    cuts = np.flatnonzero(np.diff(loud) > RATE // 10)
    firsts, lasts = loud[np.r_[0, cuts + 1]], loud[np.r_[cuts, loud.size - 1]]
    return [(int(first), int(last) + 1) for first, last in zip(firsts, lasts, strict=True)]


def truth_ms(recording: bytes) -> list[float]:
    """Return the gaps between each question on the left and the reply on the right."""
    both = np.frombuffer(recording[: len(recording) // 4 * 4], "<i2").reshape(-1, 2)
    replies = edges(both[:, 1])
    found = []
    for first, _ in replies:
        end = max(until for _, until in edges(both[:, 0]) if until < first)
        found.append((first - end) / RATE * 1e3)
    return found


async def measure(turns: int) -> tuple[list[float], list[float], Answering]:
    """Return the page's gaps and the true ones, ms, of as many turns."""
    from playwright.async_api import async_playwright

    talks: list[Answering] = []
    address: asyncio.Queue[str] = asyncio.Queue()

    def begin(sound: Sound, show: Show) -> Answering:
        talks.append(Answering(sound, show, turns))
        return talks[-1]

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        env = card(stack, folder)
        heard = folder / "heard"
        with heard.open("wb") as file:
            listen = (
                "parec",
                "--device=card.monitor",
                "--channels=2",
                "--latency-msec=20",
                "--raw",
            )
            form = ("--rate=48000", "--format=s16le")
            stack.enter_context(program(*listen, *form, env=env, stdout=file))
            serving = asyncio.create_task(
                run(begin, clock=SystemClock(), announce=address.put_nowait, stay=False)
            )
            url = await address.get()
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(
                    executable_path="/usr/bin/chromium",
                    args=["--no-sandbox", "--use-fake-ui-for-media-stream"],
                    ignore_default_args=["--mute-audio"],
                    env={**env},
                )
                page = await browser.new_page()
                await page.goto(url)
                await page.click("#gate-button")
                question = folder / "question"
                mono = np.frombuffer(tone(500) + bytes(round(2 * PAUSE_S * RATE)), "<i2")
                left = np.stack([mono, np.zeros_like(mono)], axis=1).tobytes()
                question.write_bytes(bytes(8 * RATE) + left * (turns + 2))
                say = ("pacat", "-p", "--device=card", "--latency-msec=60", "--raw", "--channels=2")
                stack.enter_context(program(*say, *form, str(question), env=env))
                await serving
                await page.wait_for_timeout(1000 * TONE_S + 500)
                await browser.close()
        return talks[0].gaps_ms, truth_ms(heard.read_bytes()), talks[0]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=20)
    turns = parser.parse_args().turns
    page, truth, talk = asyncio.run(measure(turns))
    truth = truth[: len(page)]  # the last reply may be heard before the page's word of it comes
    if len(truth) < len(page):
        print(f"{len(page)} replies by the page, {len(truth)} in the recording", file=sys.stderr)
        return 1
    less = np.array(truth) - np.array(page)
    facts = talk.sound.facts
    print(
        f"devices: {facts.microphone} ({facts.input_latency_ms} ms), {facts.output_latency_ms} ms"
    )
    print("by turn, ms:", " ".join(f"{one:.0f}" for one in less))
    print(f"ways as the page sees them, ms: {talk.paths_ms[-1]}")
    print(f"page-measured, ms: p50 {np.median(page):.1f}; true, ms: p50 {np.median(truth):.1f}")
    low, high = less.min(), less.max()
    print(
        f"the page reports less by {np.median(less):.1f} ms at the median ({low:.1f} to {high:.1f})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
