"""How long the embedded assistant thinks: `python benchmarks/cascade_latency.py`.

Asks the cascade, in this process and without a wire, the demo's questions (shortest first), and
prints what lies between the closed turn and the first audio: wall time and processor time, whose
ratio says how busy the machine was.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from voxmeter.client.audio import read
from voxmeter.client.servers.brain import Heard, Speech, UserTurn
from voxmeter.client.servers.cascade import Cascade, CascadeSettings
from voxmeter.suites import demo


@dataclass(frozen=True)
class Timing:
    """Seconds from the closed turn: wall until heard and until the first audio, processor."""

    heard_s: float
    first_s: float
    cpu_s: float


def main() -> None:
    """Print medians over the items, and the time of loading."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voice", default="hibari")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--items", type=int, default=8)
    args = parser.parse_args()
    brain = Cascade(CascadeSettings(voice=args.voice, threads=args.threads))
    start = time.perf_counter()
    brain.load()
    print(f"load and warm up: {time.perf_counter() - start:.1f} s")
    files = {path for item in demo.load("demo", {}, Path()).items for path in item.files()}
    shortest = sorted(files, key=lambda path: path.stat().st_size)[: args.items]
    timings = asyncio.run(_ask_all(brain, shortest))
    for name in ("heard_s", "first_s", "cpu_s"):
        values = [getattr(timing, name) for timing in timings]
        print(f"{name}: median {statistics.median(values):.2f}, most {max(values):.2f}")
    print(f"n = {len(timings)}")


async def _ask_all(brain: Cascade, files: Sequence[Path]) -> Sequence[Timing]:
    timings = [await _ask(brain, path) for path in files]
    return [timing for timing in timings if timing is not None]


async def _ask(brain: Cascade, path: Path) -> Timing | None:
    pcm = read(path)
    turn = UserTurn(pcm.samples, pcm.rate, 24_000, 0)
    start, cpu, heard = time.perf_counter(), time.process_time(), 0.0
    async for spoken in brain.answer(turn):
        if isinstance(spoken, Heard):
            heard = time.perf_counter() - start
        if isinstance(spoken, Speech):
            return Timing(heard, time.perf_counter() - start, time.process_time() - cpu)
    return None  # it had nothing to say


if __name__ == "__main__":
    main()
