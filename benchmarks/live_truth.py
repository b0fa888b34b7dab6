"""How far a latency of `voxmeter live` is from the truth, on a virtual sound card.

A question is played into the microphone, the metronome answers after a known delay, and the room is
recorded with the user on the left and the reply on the right, sample for sample on one timeline.
The distance between the two in that recording is the truth; `first_audible_ms` of the run folder is
held against it. Run it on a machine that does nothing else:

    python benchmarks/live_truth.py --turns 20

The last line says how much of that is ours: how far the end of speech and the first audible sample
that voxmeter found lie from those in the room, found by laying its recordings over the room's. The
rest is the devices' stamps.

As root the sound server, the players and `voxmeter live` run at nice -15, as sound servers do; what
is printed says so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests")]

import numpy as np  # noqa: E402 - the tests' folder is found now
import room_talk  # noqa: E402
import soundfile  # noqa: E402
import soxr  # noqa: E402
from scipy.signal import correlate  # noqa: E402

from voxmeter.scoring.speech import find_sound  # noqa: E402


def main() -> None:
    """Talk, and print how far each turn was off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument(
        "--jack", action="store_true", help="JACK's card; the default is PulseAudio's"
    )
    parser.add_argument("--keep", type=Path, help="folder for the recording and the run folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = args.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        talk = room_talk.held(folder, args.turns, jack=args.jack)
        ours = [edges_ms(folder, number) for number in range(1, args.turns + 1)]
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
    ends, onsets = np.abs(np.array(ours)).max(axis=0)
    print(f"of it ours: end of speech {ends:.2f} ms at most, first audible {onsets:.2f} ms at most")


def edges_ms(folder: Path, number: int) -> tuple[float, float]:
    """Return how far our end of speech and our first audible sample lie from the room's, ms."""
    room, rate = soundfile.read(folder / "room.wav", dtype="float32")
    (run,) = (folder / "runs").iterdir()
    cell, name = "metronome~live~clean", f"turn-{number}~1~1"
    heard, heard_rate = soundfile.read(run / "audio" / cell / f"{name}.flac", dtype="float32")
    reply, reply_rate = soundfile.read(run / "audio" / cell / f"{name}.reply.flac", dtype="float32")
    log = (run / "events" / cell / f"{name}.jsonl").read_text().splitlines()
    end = int(find_sound(room[:, 0], rate).spans[number - 1][1])
    spans = find_sound(room[:, 1], rate).spans
    first = next(int(span[0]) for span in spans if span[0] > end)
    said = soxr.resample(heard[:, 0], heard_rate, rate)
    begin = max(0, end - 2 * rate)
    at = begin + place(room[begin : end + rate, 0], said)
    our_end = at + json.loads(log[0])["speech_end_sample"] * rate / heard_rate
    onset = int(find_sound(reply, reply_rate).spans[0][0]) * rate // reply_rate
    piece = soxr.resample(reply, reply_rate, rate)[onset : onset + rate // 50]
    begin = first - rate // 20
    our_first = begin + place(room[begin : first + rate // 10, 1], piece)
    return (our_end - end) * 1000 / rate, (our_first - first) * 1000 / rate


def place(room: np.ndarray, wanted: np.ndarray) -> float:
    """Return where in the room a sound begins, in samples; may be before its first."""
    alike = correlate(room, wanted, "full", "fft")
    return float(np.argmax(alike)) - (len(wanted) - 1)


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
