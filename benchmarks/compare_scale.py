"""How long and how large a comparison of big runs is: `python benchmarks/compare_scale.py`.

Builds two run folders of synthetic trials and compares them by the command, in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from summary_scale import build_run


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--cells", type=int, default=2)
    count = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        folders = [Path(parent) / name for name in ("base", "new")]
        for seed, folder in enumerate(folders):
            folder.mkdir()
            build_run(folder, count.trials, count.cells, seed)
        found = Path(parent) / "found.json"
        command = [sys.executable, "-m", "voxmeter", "compare", *map(str, folders)]
        start = time.perf_counter()
        done = subprocess.run(  # noqa: S603 - our own command
            [*command, "--json", str(found)], check=False, stdout=subprocess.DEVNULL
        )
        seconds = time.perf_counter() - start
        if done.returncode == 2 or not found.exists():
            raise SystemExit(f"the comparison ended with {done.returncode}")
        metrics = sum(len(cell["metrics"]) for cell in json.loads(found.read_text())["cells"])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"two runs of {count.trials} trials in {count.cells} cells, {metrics} differences")
    print(
        f"{seconds:.1f} s ({used.ru_utime:.1f} s of processor), peak {used.ru_maxrss / 1000:.0f} MB"
    )


if __name__ == "__main__":
    main()
