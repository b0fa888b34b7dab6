"""Sessions with Moshi's own server, over a model of random weights: it hears and babbles for ever.

Too large for every run, as it stands on torch: `make conformance-moshi` installs and runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from genuine.programs import Program, python_of, running
from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.encodings import decoder
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt

OFFLINE = {"HF_HUB_OFFLINE": "1", "NO_TORCH_COMPILE": "1", "NO_CUDA_GRAPH": "1"}
SERVER = Path(__file__).with_name("moshi_server.py")
RATE, STEP_MS = 24_000, 80
PATIENCE = Patience(connect_timeout_s=3, first_reply_timeout_s=2, reply_limit_s=3)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    weights = tmp_path_factory.mktemp("moshi")
    python = python_of("moshi", heavy=True)
    with running(
        python, SERVER, weights, "0.05", ready=r"Running on http://[\d.]+:(\d+)"
    ) as program:
        yield program


def question(rate: int) -> Utterance:
    """One second of a tone."""
    tone = 0.3 * np.sin(np.arange(rate) * (2 * np.pi * 220 / rate))
    return Utterance(to_pcm16(tone), rate, 0, rate)


def target(server: Program) -> Target:
    return Target("moshi", "moshi", f"ws://127.0.0.1:{server.port}", patience=PATIENCE)


def came(capture: Capture, kind: str) -> int:
    return sum(row["kind"] == kind and row["dir"] == "in" for row in capture.rows)


async def test_a_frame_comes_back_for_each_that_is_sent_and_words_beside_it(
    server: Program,
) -> None:
    capture = await attempt(target(server), question)
    assert capture.fault is None
    assert capture.outcome in {
        "ended",
        "truncated",
        "timeout",
    }  # babble is neither speech nor quiet
    sent = sum(row["kind"] == "audio" for row in capture.rows)
    opus = decoder("opus", RATE)
    heard = sum(len(opus.decode(data)) for _, data in capture.audio)
    assert sent > 1000 / STEP_MS
    assert sent - 4 <= heard / (RATE / 1000 * STEP_MS) <= sent
    assert came(capture, "reply_text") > 0
    assert capture.reply_text


async def test_who_comes_second_waits_for_the_lock_and_is_told_so_when_it_takes_too_long(
    server: Program,
) -> None:
    first, second = await asyncio.gather(
        attempt(target(server), question), attempt(target(server), question)
    )
    held, waited = sorted((first, second), key=lambda one: one.outcome == "disconnected")
    assert held.fault is None
    assert waited.outcome == "disconnected"
    assert waited.fault is not None
    assert waited.fault == "connected, but no session within 3 s: busy?"
    assert came(waited, "reply_audio") == 0
    again = await attempt(target(server), question)
    assert again.fault is None, "the one that gave up still holds the lock"
