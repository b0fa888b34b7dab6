"""How many real-time sessions one core can send for: lateness and processor time of each frame.

    .venv/bin/python benchmarks/streaming_sweep.py --sessions 50,200,400,600

Each step keeps so many sessions busy against `sink.py`, which runs on the other core with whatever
finishes the attempts; the streaming process has one core to itself, as far as the machine's other
work leaves it one, and no special priority (`nice` before the command gives it some). Frames are
late from the moment at which they were due to the moment at which their send had returned.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from voxmeter.client.capture import Utterance
from voxmeter.client.event_loop import new_loop, undisturbed
from voxmeter.client.finish import Attempt
from voxmeter.client.finisher import Finisher
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.pacing import Spacing
from voxmeter.client.redaction import Redactor
from voxmeter.client.runfolder import AttemptPaths
from voxmeter.client.target import Target, attempt, new_tag

FRAME_NS, CLIP_S, REPLY_S = 20_000_000, 3, 6


@cache
def question(rate: int) -> Utterance:
    """Return three seconds of a tone that comes and goes like words."""
    t = np.arange(rate * CLIP_S) / rate
    samples = 0.3 * np.sin(2 * np.pi * 220 * t) * (np.sin(2 * np.pi * 3 * t) > -0.8)
    pcm = (samples * 32767).astype("<i2").tobytes()
    return Utterance(pcm, rate, 0, len(pcm) // 2)


@dataclass
class Found:
    """What one step showed.

    Attributes:
        late_ms: Of every frame that left while all sessions were open.
        outcomes: How sessions ended, counted.
        cpu_us: Processor time of the streaming process a frame, microseconds.
    """

    late_ms: list[float] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)
    cpu_us: float = 0.0
    share: float = 0.0


@contextmanager
def sink(core: int | None) -> Iterator[str]:
    """Yield the address of a sink in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("sink.py")), "--reply-s", str(REPLY_S)]
    if core is not None:
        command += ["--core", str(core)]
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None  # noqa: S101 - asked for above
    assert process.stdout is not None  # noqa: S101 - asked for above
    try:
        yield f"ws://127.0.0.1:{process.stdout.readline().strip()}/v1/realtime"
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@contextmanager
def whisper() -> Iterator[Callable[[], str]]:
    """Have replies read meanwhile, as a run does; yield what ends it and says how many."""
    command = [sys.executable, str(Path(__file__).with_name("scoring_speed.py")), "--read-on"]
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None  # noqa: S101 - asked for above
    process.stdout.readline()

    def stop() -> str:
        return process.communicate()[0].strip()

    try:
        yield stop
    finally:
        process.wait()


async def step(url: str, sessions: int, seconds: float, folder: Path, core: int | None) -> Found:
    """Keep so many sessions busy; look at what left between the opening of the last and the end."""
    target, found = Target("sink", "openai-realtime", url), Found()
    async with LoopMonitor().watching() as monitor:
        with Finisher() as finisher:
            await asyncio.wrap_future(finisher._worker.submit(os.getpid))  # noqa: SLF001 - starts it on its own core
            if core is not None:
                os.sched_setaffinity(0, {core})
            began = time.perf_counter_ns()
            opened, until = began + 1_500_000_000, began + int((1.5 + seconds) * 1e9)
            spacing, frames = Spacing(sessions), 0
            cpu_began = 0.0

            async def watch() -> None:
                nonlocal cpu_began
                await asyncio.sleep((opened - time.perf_counter_ns()) / 1e9)
                cpu_began = time.process_time()
                await asyncio.sleep((until - time.perf_counter_ns()) / 1e9)
                found.share = (time.process_time() - cpu_began) / seconds

            async def session(number: int) -> None:
                nonlocal frames
                while time.perf_counter_ns() < until:
                    await spacing.turn()
                    stagger = number * FRAME_NS // sessions
                    capture = await attempt(target, question, stagger_ns=stagger, monitor=monitor)
                    name = capture.outcome
                    found.outcomes[name] = found.outcomes.get(name, 0) + 1
                    for row in capture.rows:
                        if row["kind"] == "audio" and opened <= row["due_ns"] <= until:
                            found.late_ms.append((row["t_ns"] - row["due_ns"]) / 1e6)
                    tag = new_tag()
                    paths = AttemptPaths(
                        *(folder / f"{tag}.{end}" for end in ("jsonl", "flac", "reply.flac"))
                    )
                    await finisher.finish(capture, Attempt({"tag": tag}, paths, Redactor()))

            async with asyncio.TaskGroup() as group:
                group.create_task(watch())
                for number in range(sessions):
                    group.create_task(session(number))
    found.cpu_us = found.share * seconds * 1e6 / max(1, len(found.late_ms))
    return found


def measure(sessions: int, seconds: float, own: int | None, other: int | None) -> Found:
    """Run one step in this process."""
    with tempfile.TemporaryDirectory() as folder, sink(other) as url:
        if other is not None:
            os.sched_setaffinity(0, {other})  # what is started from here on stays there
        with undisturbed(), asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(step(url, sessions, seconds, Path(folder), own))


def main() -> None:
    """Measure and print, each step in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", default="50,200,400,600")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--whisper", action="store_true", help="each step also beside Whisper")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    own, other = (cores[-1], cores[0]) if len(cores) > 1 else (None, None)
    steps = [int(number) for number in args.sessions.split(",")]
    question(24_000)
    if len(steps) == args.rounds == 1 and not args.whisper:
        found = measure(steps[0], args.seconds, own, other)
        p50, p99 = np.quantile(found.late_ms, [0.5, 0.99])
        print(
            f"{steps[0]:5} sessions: send lateness p50 {p50:6.2f} ms, p99 {p99:7.2f} ms; "
            f"{found.cpu_us:5.1f} us of processor a frame, {found.share:.2f} of a core; "
            f"{found.outcomes}; load {os.getloadavg()[0]:.1f}"
        )
        return
    for _ in range(args.rounds):
        for number in steps:
            command = [sys.executable, __file__, "--sessions", str(number)]
            command += ["--seconds", str(args.seconds)]
            subprocess.run(command, check=True)  # noqa: S603 - ourselves
            if args.whisper:
                with whisper() as stop:
                    subprocess.run(command, check=True)  # noqa: S603 - ourselves
                    print(f"      … beside Whisper, which read {stop()} replies")


if __name__ == "__main__":
    main()
