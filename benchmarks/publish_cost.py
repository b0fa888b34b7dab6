"""What publishing costs the frames of a run: how late they leave with it and without it.

    .venv/bin/python benchmarks/publish_cost.py --sessions 50 --events 50

Needs mosquitto (`apt-get install mosquitto`). Stretches with and without publishing take turns, so
that what else the machine does falls on both alike; the ratios are of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from streaming_load import RATE, measure, question

from voxmeter.client.bench import Mqtt
from voxmeter.client.builtin import serving
from voxmeter.client.event_loop import new_loop, undisturbed
from voxmeter.client.mqtt_connection import MqttSettings
from voxmeter.client.publish import Publication
from voxmeter.client.publish_process import Publisher
from voxmeter.client.publish_topics import Post
from voxmeter.client.publish_wire import Setup
from voxmeter.client.redaction import Redactor
from voxmeter.scoring.definitions import LATENCY

Row = dict[str, Any]


@contextmanager
def broker(folder: Path) -> Iterator[int]:
    """Run mosquitto; give its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    config = folder / "mosquitto.conf"
    user = "user root\n" if os.geteuid() == 0 else ""
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n{user}")
    process = subprocess.Popen(  # noqa: S603 - what this script is for
        [program, "-c", str(config)], stderr=subprocess.DEVNULL
    )
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def row(number: int) -> Row:
    """Return a row of trials.jsonl as a run has them."""
    latency = dict.fromkeys(LATENCY, 300.0 + number % 50)
    return {
        "endpoint": "bot",
        "suite": "demo",
        "item": f"q{number % 200}",
        "condition": "clean",
        "trial": 1,
        "attempt": 1,
        "status": "ok",
        "latency": latency,
        "audit": {"latency_valid": True},
    }


async def stretch(
    url: str, args: argparse.Namespace, folder: Path, told: Publication | None
) -> list[Row]:
    """Keep the sessions busy for a while, with events beside them or without."""
    async with asyncio.TaskGroup() as group:
        telling = group.create_task(_tell(told, args.events))
        rows = await measure(url, args.sessions, args.seconds, folder)
        telling.cancel()
    return rows


async def _tell(told: Publication | None, each_second: float) -> None:
    if told is None:
        return
    loop, number = asyncio.get_running_loop(), 0
    began = loop.time()
    while True:
        number += 1
        await asyncio.sleep(began + number / each_second - loop.time())
        await asyncio.to_thread(told.trial, row(number))  # as a run does


def lateness(rows: list[Row], at: str) -> float:
    """Return a figure of send lateness, ms, at the median trial."""
    return float(np.median([one["audit"]["send_lateness_ms"][at] for one in rows]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=8, help="of each stretch")
    parser.add_argument("--rounds", type=int, default=3, help="stretches of either kind")
    parser.add_argument("--events", type=float, default=50, help="events a second")
    args = parser.parse_args()
    found: dict[bool, list[Row]] = {False: [], True: []}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = stack.enter_context(broker(folder))
        options = ("--truth", str(folder / "truth"))
        url = stack.enter_context(serving("metronome", options=options)) + "?delay_ms=300&tag="
        question(RATE)
        will = Post("voxmeter/cost/status", "offline", retain=True)
        settings = MqttSettings("127.0.0.1", port, identifier="cost")
        publisher = Publisher(Setup(settings, will), print)
        told = Publication(publisher, Mqtt(host="127.0.0.1"), "cost", Redactor())
        with undisturbed(), asyncio.Runner(loop_factory=new_loop) as runner:
            for number in range(2 * args.rounds):
                on = number % 2 == 1
                began = time.monotonic()
                rows = runner.run(stretch(url, args, folder, told if on else None))
                found[on].extend(rows)
                took, kind = time.monotonic() - began, "with" if on else "without"
                print(f"{kind:<8}{len(rows)} trials in {took:.0f} s", flush=True)
        delivery = publisher.end()
    print(f"messages delivered: {delivery.delivered}, not: {delivery.undelivered}")
    for at in ("p50", "p99"):
        without, with_it = (lateness(found[on], at) for on in (False, True))
        print(
            f"send lateness {at} of the median trial: {without:.3f} ms without, "
            f"{with_it:.3f} ms with; ratio {with_it / without:.2f}"
        )
    for on, kind in ((False, "without"), (True, "with")):
        valid = sum(one["audit"]["latency_valid"] for one in found[on])
        print(f"trials with valid latency {kind}: {valid} of {len(found[on])}")


if __name__ == "__main__":
    main()
