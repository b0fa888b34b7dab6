"""A talk through the page, from `voxmeter live --web` to the run folder, with the metronome."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import soundfile
from live_web_world import FAKE_DEVICES, LIMIT_S, chromium, tab

from voxmeter.client.servers.voice import babble

RATE = 48_000
ROOT = Path(__file__).parent.parent
BENCH = """
[run]
out = "runs"
[[endpoint]]
name = "metronome"
kind = "openai-realtime"
builtin = "metronome?delay_ms=300"
[[suite]]
kind = "demo"
"""


async def test_a_talk_through_the_page_becomes_a_run_folder(tmp_path: Path) -> None:
    (tmp_path / "bench.toml").write_text(BENCH)
    quiet = np.zeros(3 * RATE)
    question = np.asarray(babble(RATE, 1.5), dtype=float)
    soundfile.write(tmp_path / "said.wav", np.concatenate([quiet, question, quiet, quiet]), RATE)
    capture = f"--use-file-for-fake-audio-capture={tmp_path / 'said.wav'}%noloop"
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "voxmeter", "live", "--web", "--no-open"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
    )
    try:
        assert program.stdout is not None
        url = (await program.stdout.readline()).decode().split()[1]
        async with asyncio.timeout(LIMIT_S), chromium(*FAKE_DEVICES, capture) as browser:
            page = await tab(browser)
            await page.start(url)
            await page.until("figures", "first audible")
            await page.page.keyboard.press("q")
            await page.until("gate-title", "The session is over")
            await page.until("notices", "Saved: 1 turn in ")
            assert page.problems == []
    finally:
        program.send_signal(signal.SIGINT)
        await program.wait()
    [folder] = (tmp_path / "runs").iterdir()
    [row] = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    assert row["latency_kind"] == "live"
    assert row["status"] == "ok"
    assert row["latency"]["first_audible_ms"] >= 300
