"""How long it takes from a finished stream to a finished report, and whether a core is idle then.

    .venv/bin/python benchmarks/scoring_speed.py --replies 100 --rounds 3

Scores the same run with one process of one thread, one of a thread a core, and one process a core,
in turn, and prints ratios: what else the machine does meets them all. Replies are one spoken
sentence, each with noise of its own, so that no transcript is found in a cache.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from voxmeter.client import affinity, config, keys, transcribe
from voxmeter.client.audio import Pcm, write_flac
from voxmeter.client.cores import cores
from voxmeter.client.report import write_reports
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.score import score_run
from voxmeter.client.speakers import speaker
from voxmeter.scoring.asr import AsrSettings
from voxmeter.scoring.definitions import LATENCY

BENCH = config.parse(
    {
        "endpoint": [{"name": "bot", "url": "ws://127.0.0.1:1"}],
        "suite": [{"kind": "demo"}],
    },
    "benchmark",
)


def build(parent: Path, replies: int) -> RunFolder:
    """Return a run whose replies all say the same, each a little differently."""
    voice = speaker("hibari")
    spoken = np.concatenate([*voice.speak("The answer is B.")])
    run = {"planned": [], "config": config.resolved(BENCH), "suites": {}}
    folder = RunFolder.create(parent, "scoring", run)
    folder.write_items(_item(number) for number in range(replies))
    for number in range(replies):
        row = _trial(number)
        path = folder.attempt_paths(row).reply
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(number).normal(0, 1e-3, len(spoken))
        write_flac(path, (spoken + noise).astype(np.float32), voice.rate)
        folder.append("trials", row)
    return folder


def _item(number: int) -> dict[str, Any]:
    return {
        "suite": "demo",
        "item": f"q{number}",
        "cluster": f"q{number}",
        "groups": ["all"],
        "kind": "choice",
        "question": "Which?",
        "reference": "B",
        "options": ["Venus", "Mars", "Jupiter", "Saturn"],
        "language": "en",
        "question_via": None,
    }


def _trial(number: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "endpoint": "bot",
        "suite": "demo",
        "item": f"q{number}",
        "condition": "clean",
        "trial": 1,
        "turn": None,
        "attempt": 1,
        "warmup": False,
        "status": "ok",
        "fault": None,
        "started_at": "2026-01-02T03:04:05+00:00",
        "t0_ns": 1_000_000_000,
        "clip": {"sha256": "ab" * 32, "ms": 2000, "speech_end_ms": 1800, "end_kind": "speech"},
        "latency_kind": "server-vad",
        "latency": dict.fromkeys(LATENCY) | {"first_audible_ms": 300.0 + number % 7},
        "audit": {
            "send_lateness_ms": {"p50": 0.3, "p99": 1.5, "max": 2.0},
            "loop_lag_ms": {"p50": 0.2, "p99": 1.0, "max": 3.0},
            "latency_valid": True,
            "host": "here",
        },
        "reply_channel": "speech",
        "reply_text": "",
    }
    row["key"] = keys.key("bot", "demo", row["item"], "clean", 1)
    return row


def scored(replies: int, workers: int, threads: int, priority: Any) -> tuple[float, float, float]:  # noqa: ANN401 - a literal
    """Score a fresh run; return seconds on the clock, seconds of processor, and the accuracy."""
    with tempfile.TemporaryDirectory() as temporary:
        with build(Path(temporary), replies) as folder:
            began, cpu = time.monotonic(), _cpu_s()
            cache = Path(temporary) / "cache"
            settings = AsrSettings(beam_size=BENCH.transcribe.beam_size)
            transcribe.__dict__["cores"] = lambda: workers * threads
            with transcribe.TranscriberPool(
                "tiny.en", settings, workers=workers, cache=cache, priority=priority
            ) as pool:
                summary = score_run(folder, BENCH, transcriber=pool)
            write_reports(folder, summary)
            wall, used = time.monotonic() - began, _cpu_s() - cpu
        return wall, used, summary["cells"][0]["metrics"]["accuracy"]["value"]


def read_on() -> None:
    """Read replies as a run does while it streams, until standard input ends."""
    voice = speaker("hibari")
    spoken = np.concatenate([*voice.speak("The answer is B.")])
    rng = np.random.default_rng(0)
    workers = max(1, cores() - 1)
    affinity.confine_all(affinity.split(affinity.allowed(), of=1).others)
    pool = transcribe.TranscriberPool("tiny.en", workers=workers, use_cache=False, priority="idle")
    read = 0

    def more(_: object = None) -> None:
        nonlocal read
        read += 1
        with suppress(RuntimeError):  # it is closed
            noise = rng.normal(0, 1e-3, len(spoken))
            pcm = Pcm((spoken + noise).astype(np.float32), voice.rate)
            pool.submit(pcm).add_done_callback(more)

    for _ in range(workers):
        pool.warm().result()
    for _ in range(2 * workers):
        more()
    print("reading", flush=True)
    sys.stdin.read()
    pool.close()
    print(read - 2 * workers)


def _cpu_s() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(kind)[:2]) for kind in kinds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--priority", choices=("idle", "nice", "normal"), default="idle")
    parser.add_argument("--whole", action="store_true", help="one process a core alone")
    parser.add_argument("--read-on", action="store_true", help="read until input ends")
    args = parser.parse_args()
    if args.read_on:
        read_on()
        return
    there = cores()
    whole = (there, 1)
    ways = (whole,) if args.whole else ((1, 1), (1, there), whole)
    told: dict[tuple[int, int], list[float]] = {way: [] for way in ways}
    for _ in range(args.rounds):
        for workers, threads in ways:
            wall, used, accuracy = scored(args.replies, workers, threads, args.priority)
            told[workers, threads].append(wall)
            print(
                f"{args.replies} replies, processes {workers}, threads of each {threads}: "
                f"{wall:.1f} s to the report, {wall / args.replies * 1e3:.0f} ms a reply, "
                f"{used / wall / there:.2f} of {there} cores used, accuracy {accuracy}; "
                f"load {os.getloadavg()[0]:.1f}"
            )
    for workers, threads in ways[:-1]:
        ratios = np.divide(told[workers, threads], told[whole])
        print(
            f"{there} processes are {np.median(ratios):.2f} times as fast as {workers} of "
            f"{threads} thread(s): {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
        )


if __name__ == "__main__":
    main()
