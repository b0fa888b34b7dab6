"""`voxmeter live` as it is typed, and a talk with one of our own servers in real time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from live_world import FakeSound, SteppedClock, silence, tone

from voxmeter.client.audio import to_pcm16
from voxmeter.client.cli import main
from voxmeter.client.clock import Clock
from voxmeter.client.live.sound import Block, Played, Sound, SoundEvent, SoundFacts

BENCH = """
[[endpoint]]
name = "metronome"
builtin = "metronome?delay_ms=300"
[[suite]]
kind = "demo"
"""


def test_an_unknown_endpoint_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = tmp_path / "bench.toml"
    bench.write_text(BENCH)
    assert main(["live", str(bench), "--endpoint", "metronom"]) == 2
    assert 'did you mean "metronome"?' in capsys.readouterr().err


def test_help_loads_no_sound_card() -> None:
    code = (
        "import sys; from voxmeter.client.cli import main; main(['live', '--help']);"
        "sys.exit(bool({'sounddevice', 'textual', 'numpy'} & set(sys.modules)))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=_environment(), check=False
    )
    assert made.returncode == 0, made.stderr


# A device in real time: it says one question again and again, and plays what it is given.
DEVICE = """
import sys
import test_live_command
sys.exit(test_live_command.held(sys.argv[1:]))
"""


class Robot:
    """A user in real time who asks one question again and again and hears every reply out."""

    def __init__(self, clock: Clock, every_ms: int = 3000) -> None:
        self.clock = clock
        self._fake = FakeSound(SteppedClock())
        said = np.concatenate((silence(500, 48_000), tone(400, 48_000)))
        self._loop = np.concatenate((said, silence(every_ms - 900, 48_000)))

    @property
    def facts(self) -> SoundFacts:
        return self._fake.facts

    def play(self, pcm: bytes) -> None:
        self._fake.play(pcm)

    def clear(self) -> int:
        return self._fake.clear()

    async def close(self) -> None:
        self._fake.end()

    async def events(self) -> AsyncIterator[SoundEvent]:
        began = self.clock.now()
        number = 0
        while True:
            number += 1
            due = began + number * 20_000_000
            await self.clock.sleep_until(due)
            first = (number - 1) * 960 % self._loop.size
            pcm = to_pcm16(self._loop[first : first + 960])
            yield Block(pcm, due - 20_000_000, self.clock.now())
            queue = self._fake._queue
            count = min(960, len(queue))
            if count:
                del queue[:count]
                yield Played(self._fake._over, count, due)
                self._fake._over += count


@asynccontextmanager
async def open_robot(
    microphone: str | None, speaker: str | None, *, clock: Clock, echo: bool
) -> AsyncIterator[Sound]:
    yield Robot(clock)


def check_robot(microphone: str | None, speaker: str | None, *, echo: bool) -> None:
    """There is always a robot."""


def held(argv: list[str]) -> int:
    """Run the command with a robot for a sound card."""
    from voxmeter.client.commands import live

    live._CARD = "test_live_command:open_robot"
    live._CHECK = "test_live_command:check_robot"
    return main(["live", *argv])


def _environment() -> dict[str, str]:
    here = Path(__file__).parent
    paths = [str(here), str(here.parent / "src")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@asynccontextmanager
async def command(folder: Path, *, bench: str = BENCH) -> AsyncIterator[asyncio.subprocess.Process]:
    path = folder / "bench.toml"
    path.write_text(bench)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DEVICE, str(path), "--plain", "-o", str(folder / "runs")),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
    )
    try:
        async with asyncio.timeout(90):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def until(process: asyncio.subprocess.Process, words: str) -> list[str]:
    """Return what a command says up to a line with these words."""
    assert process.stdout is not None
    assert process.stderr is not None
    lines: list[str] = []
    while line := (await process.stdout.readline()).decode():
        lines.append(line.rstrip("\n"))
        if words in line:
            return lines
    raise AssertionError("\n".join([*lines, (await process.stderr.read()).decode()]))


def rows(folder: Path) -> list[dict[str, object]]:
    (run,) = (folder / "runs").iterdir()
    return [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]


async def test_a_talk_in_real_time_finds_the_delay_of_the_metronome(tmp_path: Path) -> None:
    async with command(tmp_path) as process:
        await until(process, "2 ok")
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        rest = (await process.stdout.read()).decode().splitlines()
        assert await process.wait() == 130
    first, second = rows(tmp_path)[:2]
    assert (first["status"], second["status"]) == ("ok", "ok")
    (run,) = (tmp_path / "runs").iterdir()
    assert rest[-1] == str(run)
    assert (run / "report.html").is_file()
    for row in (first, second):
        latency = row["latency"]
        assert isinstance(latency, dict)
        assert 200 < latency["first_packet_ms"] < latency["reply_end_ms"]


async def test_turns_stay_when_the_command_is_killed(tmp_path: Path) -> None:
    from voxmeter.client.runfolder import RunFolder

    async with command(tmp_path) as process:
        await until(process, "1 ok")
        process.kill()
        await process.wait()
    (run,) = (tmp_path / "runs").iterdir()
    with RunFolder.open(run, write=True) as folder:
        (row, *_) = folder.newest_trials()
        assert (row["item"], row["status"]) == ("turn-1", "ok")
        assert folder.attempt_paths(row).reply.is_file()
    assert await asyncio.to_thread(main, ["score", str(run), "--quiet"]) == 0
