"""Runs of answers made elsewhere: the same every time, with no server and no recogniser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from voxmeter.client.audio import write_flac
from voxmeter.client.cli import main

Json = dict[str, Any]
ITEMS = 14
BENCH = """
[run]
name = "made"
warmup = 0
trials = 2
seed = 5
concurrency = 2
loop_lag_limit_ms = 3600000  # nothing here is timed, and the machine may be busy
send_lateness_limit_ms = 3600000
[[endpoint]]
name = "a"
kind = "import"
[endpoint.options]
path = "a.jsonl"
output_modalities = "text"
[[endpoint]]
name = "b"
kind = "import"
[endpoint.options]
path = "b.jsonl"
output_modalities = "text"
[[suite]]
kind = "jsonl"
name = "mine"
path = "items.jsonl"
[[condition]]
name = "noisy"
chain = [{effect = "gaussian-noise", snr_db = 10}]
"""


def write_bench(folder: Path) -> Path:
    """Write questions, two sets of answers and a bench.toml; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    tone = 0.3 * np.sin(2 * np.pi * 200 * np.arange(4_000) / 16_000)
    write_flac(folder / "q.flac", tone.astype(np.float32), 16_000)
    items, first, second = [], [], []
    for number in range(ITEMS):
        name = f"q{number}"
        items.append(
            {
                "id": name,
                "audio": "q.flac",
                "kind": "choice",
                "question": "Which?",
                "options": ["Venus", "Mars", "Jupiter", "Saturn"],
                "reference": "ABCD"[number % 4],
                "cluster": f"c{number // 3}",
                "groups": ["odd" if number % 2 else "even"],
            }
        )
        for condition in ("clean", "noisy"):
            said = {"id": name, "condition": condition}
            first.append(said | {"text": f"The answer is {'ABCD'[number % 3]}."})
            second.append(said | {"text": "The answer is B."})
    for file, rows in (("items", items), ("a", first), ("b", second)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{file}.jsonl").write_text(text)
    (folder / "bench.toml").write_text(BENCH)
    return folder / "bench.toml"


def made(bench: Path, name: str, *options: str, status: int = 0) -> Path:
    """Run a bench; return the run folder."""
    out = bench.parent / "runs" / name
    assert main(["run", str(bench), "--quiet", "--out", str(out), *options]) == status
    (folder,) = out.iterdir()
    return folder


def rows(folder: Path, name: str) -> list[Json]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def files(folder: Path) -> set[str]:
    """Every log and sound of a run folder."""
    return {
        str(path.relative_to(folder))
        for kind in ("events", "audio")
        for path in (folder / kind).rglob("*")
        if path.is_file()
    }


def summary(folder: Path) -> Json:
    """The summary of a run, without what names the run or its own timing."""
    found: Json = json.loads((folder / "summary.json").read_text())
    for name in ("run", "audit"):
        del found[name]
    return found
