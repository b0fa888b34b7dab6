"""How soon a large run asks its first question, how its memory goes, how soon --dry-run answers.

    .venv/bin/python benchmarks/plan_start.py --items 20000

Synthetic recordings in four conditions, asked of the built-in metronome; a plan of one item beside
it shows what the program takes by itself. The load of the machine is printed, as it counts.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile

RATE, DISTINCT, CLIP_S = 24_000, 64, 0.6
LOOK_S = 0.02
LIMIT_S = 300.0


class Started(NamedTuple):
    """What was seen of one run.

    Attributes:
        first_s: From the start of the program to the start of its first question.
        first_mib: Peak memory when that question was answered.
        later_mib: Peak memory after `trials` more.
        trials: Lines of trials.jsonl at the end.
    """

    first_s: float
    first_mib: float
    later_mib: float
    trials: int


def main() -> None:
    """Print figures of a small and a large plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--trials", type=int, default=40, help="asked before memory is read again")
    wanted = parser.parse_args()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"load of the last 1, 5 and 15 minutes: {load} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        large = write(Path(folder) / "large", wanted.items)
        small = write(Path(folder) / "small", 1)
        base = started(small, 1)
        print(f"1 item: first question after {base.first_s:.1f} s, peak {base.first_mib:.0f} MiB")
        found = started(large, wanted.trials)
        print(
            f"{wanted.items} items x 4 conditions: first question after {found.first_s:.1f} s "
            f"(+{found.first_s - base.first_s:.1f} s), peak {found.first_mib:.0f} MiB, "
            f"{found.later_mib:.0f} MiB after {found.trials} trials"
        )
        took, told = dry_run(large)
        print(f"--dry-run: {took:.1f} s for {told['turns']} turns, {told['streaming_s']:.0f} s")


def write(place: Path, count: int) -> Path:
    """Write a suite of recordings and its bench; return the bench."""
    (place / "audio").mkdir(parents=True)
    t = np.arange(int(RATE * CLIP_S)) / RATE
    for number in range(min(count, DISTINCT)):
        tone = 0.3 * np.sin(2 * np.pi * (150 + number) * t) * (np.sin(2 * np.pi * 4 * t) > -0.7)
        soundfile.write(place / "audio" / f"{number}.mp3", tone, RATE)
    with (place / "suite.jsonl").open("w", encoding="utf-8") as file:
        for number in range(count):
            audio = f"audio/{number}.mp3"
            if number >= DISTINCT:  # another file for the plan, no more bytes on the disk
                (place / audio).hardlink_to(place / f"audio/{number % DISTINCT}.mp3")
            row = {
                "id": f"item-{number}",
                "audio": audio,
                "question": f"What is {number} plus {number % 97}?",
                "kind": "number",
                "reference": str(number + number % 97),
                "groups": [f"field {number % 4}", f"subject {number % 56}"],
            }
            file.write(json.dumps(row) + "\n")
    conditions = "".join(
        f'[[condition]]\nname = "noise-{level}"\n'
        f'chain = [{{effect = "gaussian-noise", snr_db = {level}}}]\n'
        for level in (5, 10, 20)
    )
    bench = place / "bench.toml"
    bench.write_text(
        f'[run]\nout = "{place}/runs"\nwarmup = 0\n[[endpoint]]\nname = "m"\n'
        'builtin = "metronome?delay_ms=250"\n'
        f'[[suite]]\nkind = "jsonl"\npath = "suite.jsonl"\n{conditions}',
        encoding="utf-8",
    )
    return bench


def started(bench: Path, more: int) -> Started:
    """Run a bench until some questions are answered, then stop it as Ctrl-C does."""
    command = [sys.executable, "-m", "voxmeter", "run", str(bench), "--quiet"]
    began = datetime.datetime.now(datetime.UTC)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        first = wait(bench.parent, 1, process)[0]
        first_mib = peak_mib(process.pid)
        rows = wait(bench.parent, more, process)
        later_mib = peak_mib(process.pid)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait()
    asked = datetime.datetime.fromisoformat(first["started_at"])
    return Started((asked - began).total_seconds(), first_mib, later_mib, len(rows))


def wait(place: Path, count: int, process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """Return the trials once there are so many, or all when the run has ended."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        ended = process.poll() is not None
        for path in place.glob("runs/*/trials.jsonl"):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            rows = [json.loads(line) for line in lines if line.endswith("\n")]
            if len(rows) >= count or (ended and rows):
                return rows
        if ended:
            raise SystemExit(f"the run ended with {process.returncode} and asked nothing")
        time.sleep(LOOK_S)
    raise SystemExit(f"no {count} trials within {LIMIT_S:.0f} s")


def peak_mib(pid: int) -> float:
    """Return the most memory that a process has had, MiB; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return 0.0
    found = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(found[0].split()[1]) / 1024 if found else 0.0


def dry_run(bench: Path) -> tuple[float, dict[str, Any]]:
    """Return how long --dry-run takes, s, and what it says."""
    command = [sys.executable, "-m", "voxmeter", "run", str(bench), "--dry-run", "--json"]
    began = time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return time.monotonic() - began, json.loads(done.stdout)


if __name__ == "__main__":
    main()
