"""How long and how large the summary of a big run is: `python benchmarks/summary_scale.py`.

Builds a run folder of synthetic trials, summarises it in a fresh process, and prints the time per
trial and the peak memory beside that of a process that only imports the same modules.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from voxmeter.client import keys
from voxmeter.scoring.definitions import LATENCY

_MEASURE = """
import json, resource, sys, time
from pathlib import Path
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.summary import summarise
from scipy import special
before = resource.getrusage(resource.RUSAGE_SELF)
start = time.perf_counter()
if sys.argv[1] != "-":
    summarise(RunFolder.open(Path(sys.argv[1])))
after = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "seconds": time.perf_counter() - start,
    "cpu_seconds": after.ru_utime - before.ru_utime,
    "peak_mb": after.ru_maxrss / 1000,
}))
"""


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--cells", type=int, default=2)
    count = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent)
        rows = build_run(folder, count.trials, count.cells)
        base, found = _measured("-"), _measured(parent)
    print(f"{count.trials} trials in {count.cells} cells, {rows} score rows")
    print(f"{found['seconds']:.1f} s ({found['cpu_seconds']:.1f} s of processor)")
    print(f"{found['cpu_seconds'] / count.trials * 1e6:.0f} us of processor a trial")
    print(f"peak {found['peak_mb']:.0f} MB, {base['peak_mb']:.0f} MB of it before any row was read")


def _measured(argument: str) -> dict[str, float]:
    command = [sys.executable, "-c", _MEASURE, argument]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    found: dict[str, float] = json.loads(out)
    return found


def build_run(folder: Path, trials: int, cells: int, seed: int = 0) -> int:
    """Write the files of a run of made-up trials, four items a cluster.

    Args:
        folder: An empty folder.
        trials: How many, over all cells.
        cells: Endpoints, each of which is asked every item.
        seed: Of what is drawn.

    Returns:
        The number of rows in `scores.jsonl`.
    """
    draw = random.Random(seed)  # noqa: S311 - made-up data
    (folder / "run.json").write_text(json.dumps({"schema": 1, "run": "scale"}))
    rows = 0
    with (
        (folder / "items.jsonl").open("w") as items,
        (folder / "trials.jsonl").open("w") as written,
        (folder / "scores.jsonl").open("w") as scores,
        (folder / "transcripts.jsonl").open("w") as transcripts,
    ):
        for number in range(trials // cells):
            items.write(_line(_item(number)))
            for cell in range(cells):
                trial = _trial(number, f"bot{cell}", draw)
                written.write(_line(trial))
                transcripts.write(_line(_transcript(trial)))
                for score in _scores(trial, draw):
                    scores.write(_line(score))
                    rows += 1
    return rows


def _line(row: object) -> str:
    return json.dumps(row, separators=(",", ":")) + "\n"


def _item(number: int) -> dict[str, object]:
    return {
        "suite": "big",
        "item": f"item-{number}",
        "cluster": f"cluster-{number // 4}",
        "groups": [f"area{number % 4}", f"subject{number % 56}"],
        "kind": "choice",
        "question": "What is the question here, spoken by four voices?",
        "reference": "B",
        "options": ["one", "two", "three", "four"],
        "language": "en",
        "question_via": None,
    }


def _trial(number: int, endpoint: str, draw: random.Random) -> dict[str, object]:
    return {
        "key": keys.key(endpoint, "big", f"item-{number}", "clean", 1),
        "endpoint": endpoint,
        "suite": "big",
        "item": f"item-{number}",
        "condition": "clean",
        "trial": 1,
        "attempt": 1,
        "warmup": False,
        "status": "ok" if draw.random() < 0.97 else "timeout",
        "clip": {"sha256": f"{number:064x}", "ms": 2000.0, "speech_end_ms": 1800.0},
        "latency_kind": "server-vad",
        "latency": {name: round(draw.lognormvariate(6.5, 0.4), 3) for name in LATENCY},
        "audit": {
            "send_lateness_ms": {"p50": 0.3, "p99": 1.1, "max": 1.9},
            "loop_lag_ms": {"p50": 0.2, "p99": 1.0, "max": 3.0},
            "latency_valid": True,
            "host": "here",
        },
        "reply_channel": "speech",
        "reply_text": "The answer is B, because of everything that was said before.",
    }


def _transcript(trial: dict[str, object]) -> dict[str, object]:
    return {
        "key": trial["key"],
        "attempt": 1,
        "text": "The answer is B, because of everything that was said before.",
        "language": "en",
        "model": "tiny.en",
        "model_hash": "ab" * 32,
        "settings": {"beam_size": 1, "compute_type": "int8", "language": "en"},
    }


def _scores(trial: dict[str, object], draw: random.Random) -> list[dict[str, object]]:
    values = {
        "accuracy": float(draw.random() < 0.6),
        "accuracy_strict": 0.0,
        "text_accuracy": float(draw.random() < 0.7),
        "speech_text_disagreement": float(draw.random() < 0.1),
        "speech_text_wer": draw.random() / 5,
        "reply_words": float(draw.randrange(5, 60)),
        "reply_characters": float(draw.randrange(30, 300)),
        "words_per_second": draw.uniform(2, 3.5),
        "repetition": 0.0,
        **{name: round(draw.lognormvariate(6.5, 0.4), 3) for name in LATENCY},
    }
    base = {"key": trial["key"], "attempt": 1, "version": "1", "unscored": None, "detail": {}}
    return [{**base, "metric": name, "value": value} for name, value in values.items()]


if __name__ == "__main__":
    main()
