"""The page of live mode in a real Chromium, its microphone fed from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
from live_web_world import FAKE_DEVICES, chromium, served, tab

RATE = 48_000


def question(folder: Path) -> tuple[Path, np.ndarray]:
    """Write a file for the microphone: a second of silence, two of a sound, silence."""
    generator = np.random.default_rng(1)
    tone = np.sin(2 * np.pi * np.cumsum(np.linspace(200, 1500, 2 * RATE)) / RATE)
    sound = 0.4 * tone * (0.6 + 0.4 * np.repeat(generator.random(40), 2 * RATE // 40))
    padded = np.concatenate([np.zeros(3 * RATE // 2), sound, np.zeros(4 * RATE)])
    path = folder / "question.wav"
    soundfile.write(path, padded, RATE, subtype="PCM_16")
    return path, sound


def likeness(heard: np.ndarray, sound: np.ndarray) -> float:
    """Return the correlation of a sound with where it fits best in what was heard."""
    from scipy.signal import fftconvolve

    scores = fftconvolve(heard, sound[::-1], mode="valid")
    start = int(np.argmax(scores))
    return float(np.corrcoef(heard[start : start + len(sound)], sound)[0, 1])


async def test_what_is_said_arrives_and_the_reply_plays_to_its_end(tmp_path: Path) -> None:
    path, sound = question(tmp_path)
    options = (*FAKE_DEVICES, f"--use-file-for-fake-audio-capture={path}%noloop")
    async with served(enough=4 * RATE) as world, chromium(*options) as browser:
        page = await tab(browser)
        await page.start(world.url)
        talk = await world.talk()
        await talk.until(lambda: bool(talk.played) and end_of(talk.played[-1]) == 4 * RATE)
        heard = np.frombuffer(talk.heard, "<i2").astype(float)
        print("rho", likeness(heard, sound), talk.sound.facts, talk.troubles)
        print(talk.sound.paths_ms)
        print(page.problems, page.asked)
        await page.page.screenshot(path="/tmp/scratch/live-wide.png", full_page=True)


def end_of(played: object) -> int:
    return played.position + played.samples
