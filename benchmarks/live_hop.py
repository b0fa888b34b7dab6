"""How long a block of the microphone takes from PortAudio's callback to the session's loop.

Plays through a virtual sound card (PulseAudio), counts the hop of every block, and holds the
devices' stamps against a recording of the room, where question and reply stand on one timeline.
Run it on a machine that does nothing else:

    python benchmarks/live_hop.py --seconds 60 --talks 5
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests")]

import numpy as np  # noqa: E402 - the tests' folder is found now
import test_card  # noqa: E402
from virtual_card import RATE, VirtualCard, virtual_card  # noqa: E402


def hops_ms(card: VirtualCard, folder: Path, seconds: float) -> list[float]:
    """Return the hop of every block of so many seconds, with a reply being played meanwhile."""
    with test_card.program(card, folder, limit_s=seconds + 30) as running:
        running.event("listening")
        running.play(np.zeros(round(seconds * RATE), np.int16))
        running.played(round(seconds * RATE))
        running.quit()
    return [event["hop"] / 1e6 for event in running.all("block")]


def stamp_errors_ms(card: VirtualCard, folder: Path, talks: int) -> list[float]:
    """Return by how much question-to-reply by the stamps differs from the room's own timeline."""
    errors = []
    for number in range(talks):
        own = folder / f"talk-{number}"
        own.mkdir()
        talk = test_card.Talk(card, own)
        if talk.whole:
            errors.append(talk.by_stamps_ms - talk.in_the_room_ms)
    return errors


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--talks", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, virtual_card(Path(name) / "pulse") as card:
        hops = hops_ms(card, Path(name) / "hops", args.seconds)
        p50, p99 = np.percentile(hops, [50, 99])
        print(f"callback to loop, {len(hops)} blocks: p50 {p50:.2f} ms, p99 {p99:.2f} ms, ", end="")
        print(f"max {max(hops):.2f} ms, p99 is {p99 / 20:.1%} of a block")
        errors = stamp_errors_ms(card, Path(name), args.talks)
    shown = ", ".join(f"{error:+.1f}" for error in errors)
    print(
        f"stamps against the room, {len(errors)} of {args.talks} talks without a hole: {shown} ms"
    )
    if errors:
        print(f"median {statistics.median(errors):+.1f} ms, allowed 5 ms either way")


if __name__ == "__main__":
    main()
