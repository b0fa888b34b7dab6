"""`voxmeter live` on a virtual sound card, and what was recorded in the room meanwhile."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from jack_room import DEVICES, JackRoom, jack_room
from live_world import silence, tone
from numpy.typing import NDArray
from virtual_card import FIRST, RATE, VirtualCard, virtual_card

from voxmeter.scoring.speech import find_sound

SOURCE = str(Path(__file__).parent.parent / "src")
METRONOME = """
[[endpoint]]
name = "metronome"
builtin = "metronome?delay_ms=300"
[[suite]]
kind = "demo"
"""


@dataclass(frozen=True)
class Held:
    """A talk that is over.

    Attributes:
        rows: The lines of `trials.jsonl`.
        truth_ms: Of each turn, from the end of the question to the answer's beginning, in the room.
    """

    rows: list[dict[str, Any]]
    truth_ms: list[float]
    status: int

    @property
    def told_ms(self) -> list[float]:
        """First audible of each turn, as the run folder has it."""
        return [row["latency"]["first_audible_ms"] for row in self.rows]


@contextmanager
def live(
    card: VirtualCard | JackRoom, folder: Path, *more: str, bench: str = METRONOME
) -> Iterator[subprocess.Popen[str]]:
    """Run `voxmeter live` with lines on a card; it is ended with the block."""
    path = folder / "bench.toml"
    path.write_text(bench)
    process = subprocess.Popen(
        [
            *FIRST,
            *(sys.executable, "-m", "voxmeter", "live", str(path), "--plain"),
            *("-o", str(folder / "runs"), *more),
        ],
        env={**card.environment, "PYTHONPATH": SOURCE},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], words: str) -> list[str]:
    """Return what it says up to a line with these words."""
    assert process.stdout is not None
    assert process.stderr is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if words in line:
            return seen
    raise AssertionError("".join(seen) + process.stderr.read())


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the turns of the only talk below a folder."""
    (run,) = (folder / "runs").iterdir()
    return [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]


def held(folder: Path, turns: int, *, jack: bool = False) -> Held:
    """Ask the metronome so often, and record the room, on a card of PulseAudio's or of JACK's."""
    question = folder / "question.wav"
    sound = np.concatenate((silence(300, RATE), tone(600, RATE), silence(300, RATE)))
    soundfile.write(question, sound, RATE, subtype="PCM_16")
    room_of, devices = (jack_room, DEVICES) if jack else (virtual_card, ())
    with room_of(folder / "card") as card, live(card, folder, *devices) as process:
        until(process, "listening")
        with card.hear() as room:
            for number in range(1, turns + 1):
                card.say(question)
                until(process, f"{number} ok")
            pcm = room.further(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    heard = (np.frombuffer(pcm, dtype="<i2").reshape(-1, 2) / 32768).astype(np.float32)
    soundfile.write(folder / "room.wav", heard, RATE, subtype="PCM_16")
    return Held(rows(folder), gaps_ms(heard, turns), process.returncode)


def gaps_ms(heard: NDArray[np.float32], turns: int) -> list[float]:
    """Return the times between the end of a question and the first sound of its answer.

    Args:
        heard: Shape (n, 2): the user and the reply.
        turns: How many there are.
    """
    said = find_sound(heard[:, 0], RATE).spans
    answered = find_sound(heard[:, 1], RATE).spans
    return [_gap_ms(int(said[number][1]), answered) for number in range(turns)]


def _gap_ms(end: int, answered: NDArray[np.int64]) -> float:
    first = next(int(span[0]) for span in answered if span[0] > end)
    return (first - end) * 1000 / RATE
