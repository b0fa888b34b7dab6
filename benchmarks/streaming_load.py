"""What many sessions at a time cost the streaming process: share of a core, lateness, memory.

    .venv/bin/python benchmarks/streaming_load.py --sessions 50 --seconds 20

The metronome runs in a process of its own, attempts are finished in another: what is printed is
the streaming process alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from voxmeter.client.builtin import serving
from voxmeter.client.capture import Utterance
from voxmeter.client.event_loop import new_loop, undisturbed
from voxmeter.client.finish import Attempt
from voxmeter.client.finisher import Finisher
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.pacing import Spacing
from voxmeter.client.redaction import Redactor
from voxmeter.client.runfolder import AttemptPaths
from voxmeter.client.target import Target, attempt, new_tag

RATE, CLIP_S, FRAME_NS = 24_000, 4, 20_000_000


@cache
def question(rate: int) -> Utterance:
    """Return four seconds of a tone that comes and goes like words."""
    t = np.arange(rate * CLIP_S) / rate
    samples = 0.3 * np.sin(2 * np.pi * 220 * t) * (np.sin(2 * np.pi * 3 * t) > -0.8)
    pcm = (samples * 32767).astype("<i2").tobytes()
    return Utterance(pcm, rate, 0, len(pcm) // 2)


async def measure(url: str, sessions: int, seconds: float, folder: Path) -> list[dict[str, Any]]:
    """Keep so many sessions busy for a while; return the rows of their trials."""
    target = Target("metronome", "openai-realtime", url)
    rows: list[dict[str, Any]] = []
    async with LoopMonitor().watching() as monitor:
        with Finisher() as finisher:
            until = time.monotonic() + seconds
            spacing = Spacing(sessions)

            async def session(number: int) -> None:
                while time.monotonic() < until:
                    await spacing.turn()
                    tag = new_tag()
                    stagger = number * FRAME_NS // sessions
                    capture = await attempt(
                        target, question, tag=tag, stagger_ns=stagger, monitor=monitor
                    )
                    paths = AttemptPaths(
                        folder / f"{tag}.jsonl",
                        folder / f"{tag}.flac",
                        folder / f"{tag}.reply.flac",
                    )
                    rows.append(
                        await finisher.finish(capture, Attempt({"tag": tag}, paths, Redactor()))
                    )

            async with asyncio.TaskGroup() as group:
                for number in range(sessions):
                    group.create_task(session(number))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    query = "?delay_ms=300&tag="
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options = ("--truth", str(folder / "truth"))
        url = stack.enter_context(serving("metronome", options=options))
        question(RATE)
        began, cpu = time.monotonic(), time.process_time()
        with undisturbed(), asyncio.Runner(loop_factory=new_loop) as runner:
            rows = runner.run(measure(url + query, args.sessions, args.seconds, folder))
        wall, used = time.monotonic() - began, time.process_time() - cpu
        lines = [json.loads(line) for line in (folder / "truth").read_text().splitlines()]
    truth = {line["tag"]: line for line in lines}
    p99 = [row["audit"]["send_lateness_ms"]["p99"] for row in rows]
    valid = sum(row["audit"]["latency_valid"] for row in rows)
    off = [
        row["latency"]["first_packet_ms"] - _true_ms(truth[row["tag"]])
        for row in rows
        if row["status"] == "ok"
    ]
    print(f"{args.sessions} sessions, {len(rows)} trials, {wall:.0f} s")
    print(f"share of one core: {used / wall:.2f}")
    print(f"send lateness p99 of a trial: median {np.median(p99):.2f} ms, worst {max(p99):.2f} ms")
    print(f"trials with valid latency: {valid} of {len(rows)}")
    p99_off = np.quantile(np.abs(off), 0.99)
    print(f"first_packet_ms off the truth: median {np.median(off):+.2f} ms, p99 {p99_off:.2f} ms")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def _true_ms(line: dict[str, Any]) -> float:
    return float(line["first_packet_ns"] - line["user_end_ns"]) / 1e6


if __name__ == "__main__":
    main()
