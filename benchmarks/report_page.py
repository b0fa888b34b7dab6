"""How long the page of a big run takes to write and to open: `python benchmarks/report_page.py`.

Builds a run folder of made-up trials, each with a recording and a log, writes its page in a fresh
process, and has a fresh Chromium load it from the disk each time: until the table and the list can
be used, and until all is drawn, beside the same for an empty page.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from voxmeter.client import keys
from voxmeter.client.audio import write_flac
from voxmeter.client.runfolder import RunFolder
from voxmeter.scoring.definitions import LATENCY

_WRITE = """
import json, resource, sys, time
from pathlib import Path
from voxmeter.client.report import summarised
from voxmeter.client.report_html import write_page
from voxmeter.client.runfolder import RunFolder
folder = RunFolder.open(Path(sys.argv[1]))
summary = summarised(folder)
start = time.perf_counter()
page = write_page([folder], [summary], folder.path / "report.html")
print(json.dumps({
    "page": str(page),
    "seconds": time.perf_counter() - start,
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
}))
"""
_RATE = 24_000
_SECONDS = 6


def main() -> None:
    """Build, write, open, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=5, help="how often it is opened")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        path = _build(Path(parent), wanted.trials)
        command = [sys.executable, "-c", _WRITE, str(path)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603
        page = Path(found["page"])
        beside = sum(one.stat().st_size for one in page.with_name("report_data").iterdir())
        print(f"written in {found['seconds']:.1f} s, {found['peak_mb']:.0f} MB at most")
        print(f"page {page.stat().st_size / 1e6:.1f} MB, details beside it {beside / 1e6:.1f} MB")
        browser = shutil.which("chromium")
        if browser is None:
            print("not opened: apt-get install -y chromium")
            return
        empty = Path(parent) / "empty.html"
        empty.write_text("<!doctype html><title>empty</title>")
        for name, opened in (("empty page", empty), ("report", page)):
            found_s = [_open(browser, opened) for _ in range(wanted.times)]
            load = os.getloadavg()[0]
            for what, times in zip(("usable", "drawn"), zip(*found_s, strict=True), strict=True):
                middle = sorted(times)[len(times) // 2]
                print(
                    f"{name}, {what}: {middle:.2f} s, {max(times):.2f} s at most, load {load:.1f}"
                )


def _open(browser: str, page: Path) -> tuple[float, float]:
    """Return how long a browser takes from its start until a page can be used, and is drawn, in s.

    An empty page is both once it is loaded.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        start = time.perf_counter()
        with playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu"]
        ) as chromium:
            tab = chromium.new_page()
            tab.goto(page.as_uri())
            if page.name != "report.html":
                return (time.perf_counter() - start,) * 2
            tab.wait_for_selector("html[data-ready=true]")
            usable = time.perf_counter() - start
            tab.wait_for_selector("html[data-drawn=true]")
            return usable, time.perf_counter() - start


def _build(parent: Path, count: int) -> Path:
    draw = random.Random(1)  # noqa: S311 - made-up trials
    items = count // 4
    config = {
        "endpoint": [{"name": name, "url": "ws://127.0.0.1:1"} for name in ("one", "two")],
        "suite": [{"kind": "demo"}],
    }
    with RunFolder.create(parent, "big", {"config": config}) as folder:
        folder.write_items(_item(number) for number in range(items))
        sound, log = _files(parent)
        for endpoint in ("one", "two"):
            for condition in ("clean", "noisy"):
                for number in range(items):
                    row = _trial(endpoint, condition, number, draw)
                    _add(folder, row, draw, sound, log)
        return folder.path


def _item(number: int) -> dict[str, Any]:
    return {
        "suite": "demo",
        "item": f"q{number:05}",
        "groups": ["odd" if number % 2 else "even", f"subject {number % 20}"],
        "kind": "choice",
        "question": f"Question {number}, as long as questions are?",
        "reference": "B",
        "options": ["Venus", "Mars", "Jupiter", "Saturn"],
    }


def _trial(endpoint: str, condition: str, number: int, draw: random.Random) -> dict[str, Any]:
    audible = draw.gauss(500, 80)
    latency = dict.fromkeys(LATENCY) | {
        "first_packet_ms": audible - 30,
        "first_audible_ms": audible,
        "first_text_ms": audible - 100,
        "reply_ms": 1500.0,
        "reply_end_ms": audible + 1500,
        "stall_ms": 0.0,
        "stalls": 0,
    }
    lateness = {"p50": 0.3, "p99": 1.5, "max": 2.0}
    return {
        "key": keys.key(endpoint, "demo", f"q{number:05}", condition, 1),
        "endpoint": endpoint,
        "suite": "demo",
        "item": f"q{number:05}",
        "condition": condition,
        "trial": 1,
        "attempt": 1,
        "warmup": False,
        "status": "ok",
        "t0_ns": 3_000_000_000,
        "latency_kind": "server-vad",
        "latency": latency,
        "audit": {
            "send_lateness_ms": lateness,
            "loop_lag_ms": lateness,
            "latency_valid": True,
            "host": "made up",
        },
        "reply_channel": "speech",
    }


def _add(
    folder: RunFolder, row: dict[str, Any], draw: random.Random, sound: Path, log: Path
) -> None:
    folder.append("trials", row)
    mine = {"key": row["key"], "attempt": 1}
    text = "The answer is B, as everybody knows who has looked at the sky at night."
    about = {"language": "en", "model": "tiny.en", "model_hash": "00", "settings": {}}
    folder.append("transcripts", mine | about | {"text": text})
    detail = {"answer": "B", "rule": "stated:letter", "span": [14, 15], "channel": "speech"}
    verdict = {"metric": "accuracy", "version": "1", "unscored": None, "detail": detail}
    folder.append("scores", mine | verdict | {"value": float(draw.random() < 0.7)})
    paths = folder.attempt_paths(row)
    for found, target in ((sound, paths.audio), (log, paths.events)):
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(found, target)


def _files(parent: Path) -> tuple[Path, Path]:
    """Write one recording and one log, which all trials share."""
    noise = np.random.default_rng(1).normal(0, 0.1, (_RATE * _SECONDS, 2)).astype(np.float32)
    sound, log = parent / "sound.flac", parent / "log.jsonl"
    write_flac(sound, noise.clip(-1, 1), _RATE)
    rows = [{"t_ns": 0, "dir": "out", "kind": "start", "bytes": 0}]
    rows += [
        {"t_ns": n * 20_000_000, "dir": "out", "kind": "audio", "bytes": 960} for n in range(150)
    ]
    words = ({"t_ns": 3_400_000_000 + n, "dir": "in", "kind": "reply_text"} for n in range(20))
    log.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *words]))
    return sound, log


if __name__ == "__main__":
    main()
