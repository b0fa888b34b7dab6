"""Memory of the streaming process with a plan of many items, just before its first session.

.venv/bin/python benchmarks/plan_memory.py --items 20000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

_CHILD = """
import resource, sys
from pathlib import Path
from voxmeter.client import config, run
prepared = run.prepare(config.load(Path(sys.argv[1])))
folder = run.create(prepared, {})
with folder:
    left = sum(prepared.plan.count_remaining(name, folder.newest())
               for name in prepared.plan.endpoints)
print(left, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> None:
    """Write a suite of texts, plan it in a process of its own, and print that one's peak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=20_000)
    count = parser.parse_args().items
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        bench, peak = _planned(place, count), {}
        for name, path in {"plan": bench, "one item": _planned(place / "one", 1)}.items():
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-c", _CHILD, str(path)],
                check=True,
                capture_output=True,
                text=True,
            )
            left, mib = done.stdout.split()
            peak[name] = float(mib)
            print(f"{name}: {left} trials planned, peak {float(mib):.0f} MiB")
    print(f"per item: {(peak['plan'] - peak['one item']) * 1024 / count:.1f} KiB")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def _planned(place: Path, count: int) -> Path:
    place.mkdir(exist_ok=True)
    with (place / "items.jsonl").open("w", encoding="utf-8") as file:
        for number in range(count):
            item = {
                "id": f"item-{number}",
                "text": f"What is {number} plus {number % 97}, if you have a moment?",
                "question": f"What is {number} plus {number % 97}?",
                "kind": "number",
                "reference": str(number + number % 97),
                "groups": ["sums", f"group {number % 40}"],
            }
            file.write(json.dumps(item) + "\n")
    bench = place / "bench.toml"
    bench.write_text(
        f'[run]\nout = "{place}/runs"\n[[endpoint]]\nname = "m"\nbuiltin = "metronome"\n'
        '[[suite]]\nkind = "jsonl"\npath = "items.jsonl"\n',
        encoding="utf-8",
    )
    return bench


if __name__ == "__main__":
    main()
