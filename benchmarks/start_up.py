"""How long `voxmeter --help` takes above bare Python, as a difference and a ratio.

.venv/bin/python benchmarks/start_up.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 20


def main() -> None:
    """Run both commands in turns and print their medians."""
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "help": [sys.executable, "-m", "voxmeter", "--help"],
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS + 1):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
            took[name].append((time.perf_counter() - began) * 1000)
    bare, shown = (
        statistics.median(times[1:]) for times in took.values()
    )  # the first one warms up
    print(f"bare Python {bare:.0f} ms, voxmeter --help {shown:.0f} ms")
    print(f"above bare: {shown - bare:.0f} ms, ratio {shown / bare:.1f}")


if __name__ == "__main__":
    main()
