"""How far a latency of `voxmeter live` is from the truth, on a virtual sound card.

A question is played into the microphone, the metronome answers after a known delay, and the room is
recorded with the user on the left and the reply on the right, sample for sample on one timeline.
The distance between the two in that recording is the truth; `first_audible_ms` of the run folder is
held against it. Run it on a machine that does nothing else:

    python benchmarks/live_truth.py --turns 20

As root the sound server, the players and `voxmeter live` run at nice -15, as sound servers do; what
is printed says so. `--nice 0` leaves `voxmeter live` at the usual priority.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests")]

import numpy as np  # noqa: E402 - the tests' folder is found now
import room_talk  # noqa: E402


def main() -> None:
    """Talk, and print how far each turn was off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="folder for the recording and the run folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = args.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        talk = room_talk.held(folder, args.turns)
    errors = []
    for number, (told, truth) in enumerate(zip(talk.told_ms, talk.truth_ms, strict=True), 1):
        row = talk.rows[number - 1]
        troubles = ", ".join(one["problem"] for one in row["audit"]["troubles"]) or "no trouble"
        valid = "valid" if row["audit"]["latency_valid"] else "not valid, left out"
        hop = row["audit"]["hop_ms"]
        print(
            f"turn {number}: {told:.1f} ms told, {truth:.1f} ms in the room, "
            f"{told - truth:+.2f} ms; hop p99 {hop['p99']:.2f} ms; {valid}; {troubles}"
        )
        if row["audit"]["latency_valid"]:
            errors.append(told - truth)
    said(np.array(errors), args.turns)


def said(errors: np.ndarray, turns: int) -> None:
    """Print the spread of the errors, ms."""
    load = os.getloadavg()[0]
    first = "nice -15" if os.geteuid() == 0 else "the usual priority"
    size = np.abs(errors)
    p50, p99 = np.percentile(size, [50, 99])
    print(
        f"{len(errors)} of {turns} turns valid, load {load:.1f}, at {first}: "
        f"median {np.median(errors):+.2f} ms; size p50 {p50:.2f}, p99 {p99:.2f}, "
        f"max {size.max():.2f} ms ({size.max() / 5:.0%} of the 5 ms allowed)"
    )


if __name__ == "__main__":
    main()
