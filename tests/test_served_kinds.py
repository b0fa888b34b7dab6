"""Every kind with a server side, as `voxmeter serve` and `voxmeter calibrate` run it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args
from urllib.parse import urlencode

import pytest
from captures import attempt_in
from needs import needs

from voxmeter.client.audio import to_pcm16
from voxmeter.client.builtin import serving
from voxmeter.client.calibrate import (
    DUPLEX_DELAY_MS,
    OPUS_SPREAD_MS,
    Budget,
    calibrate,
    folder_for,
)
from voxmeter.client.capture import Utterance
from voxmeter.client.cli import main
from voxmeter.client.finish import finish
from voxmeter.client.servers.voice import babble
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints import catalog
from voxmeter.endpoints.codec import Settings, TurnEnd
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.kind import MQTT_HOST

MS = 1_000_000
PATIENT = Patience(first_reply_timeout_s=20, reply_limit_s=40, quiet_ms=500)


def question(rate: int) -> Utterance:
    """400 ms of sound behind 300 ms of silence."""
    sound = babble(rate, 0.4)
    start = 3 * rate // 10
    return Utterance(bytes(2 * start) + to_pcm16(sound), rate, start, start + len(sound))


def ways() -> Iterator[tuple[str, TurnEnd]]:
    """Yield each kind that can be served, with each way in which it can close a turn."""
    for kind in catalog.served():
        for turn_end in get_args(TurnEnd):
            try:
                traits = target(kind, turn_end).traits()
            except UserError:
                continue
            if traits.turn_end == turn_end:
                yield kind, turn_end


def target(kind: str, turn_end: TurnEnd, url: str = "") -> Target:
    return Target("ours", kind, url, Settings(turn_end=turn_end), patience=PATIENT)


WAYS = list(ways())
USUAL = [*dict(reversed(WAYS)).items()][::-1]  # each kind's first


def installed(kind: str, turn_end: TurnEnd) -> None:
    """Skip a kind whose audio cannot be coded here, or which has no broker here."""
    if catalog.find(kind).host == MQTT_HOST:
        needs("mosquitto")
    if target(kind, turn_end).traits().input_encoding == "opus":
        pytest.importorskip("sphn")


def test_each_kind_that_can_be_served_is_tried_here() -> None:
    assert {kind for kind, _ in WAYS} == set(catalog.served())
    assert {"openai-realtime", "moshi", "http"} <= set(catalog.served())
    assert ("openai-realtime", "commit") in WAYS


@pytest.mark.parametrize(("kind", "turn_end"), WAYS)
async def test_a_served_metronome_is_heard_when_its_truth_says(
    kind: str, turn_end: TurnEnd, tmp_path: Path
) -> None:
    installed(kind, turn_end)
    truth = tmp_path / "truth.jsonl"
    traits = target(kind, turn_end).traits()
    delay_ms = DUPLEX_DELAY_MS if traits.full_duplex else 300
    query = {"delay_ms": delay_ms, "lead_ms": 100, "pacing": "burst", "tag": ""}
    with serving("metronome", kind=kind, options=("--truth", str(truth))) as url:
        ours = target(kind, turn_end, f"{url}?{urlencode(query)}")
        row = finish(await attempt(ours, question, tag="mine"), attempt_in(tmp_path))
    assert (row["status"], row["fault"]) == ("ok", None)
    (line,) = [json.loads(one) for one in truth.read_text().splitlines()]
    assert (line["tag"], line["session"], line["turn"]) == ("mine", 1, 1)
    assert line["outcome"] == "completed"
    assert line["reply_samples"] == line["reply_rate"] * 1700 // 1000
    assert line["first_packet_ns"] <= line["last_packet_ns"]
    spread = OPUS_SPREAD_MS * MS if traits.input_encoding == "opus" else 0
    due_ns = line["user_end_ns"] + delay_ms * MS
    marks = row["latency"]
    said_ns = line["first_audible_ns" if traits.full_duplex else "first_packet_ns"]
    assert due_ns <= said_ns <= line["first_audible_ns"]
    assert row["t0_ns"] + marks["first_audible_ms"] * MS >= due_ns - 2 * spread
    if traits.full_duplex:
        assert marks["first_packet_ms"] is None
    else:
        assert marks["first_audible_ms"] - marks["first_packet_ms"] == pytest.approx(100, abs=1)
    assert row["latency_kind"] == traits.latency_kind


@pytest.mark.parametrize(("kind", "turn_end"), [*USUAL, ("openai-realtime", "commit")])
def test_each_kind_that_can_be_served_can_be_calibrated(
    kind: str, turn_end: TurnEnd, tmp_path: Path
) -> None:
    installed(kind, turn_end)
    budget = Budget(1, seconds=0.1)
    with folder_for(tmp_path, [1], budget, kind, turn_end) as folder:
        found = calibrate(
            [question(24_000)],
            folder,
            sessions=[1],
            budget=budget,
            protocol=kind,
            turn_end=turn_end,
        )
    assert found.failed == 0
    traits = target(kind, turn_end).traits()
    assert (found.protocol, found.latency_kind) == (kind, traits.latency_kind)
    assert found.spread_ms == (OPUS_SPREAD_MS if traits.input_encoding == "opus" else 0)
    marks = {error.mark for error in found.errors}
    expected = (
        {"first_audible_ms"} if traits.full_duplex else {"first_packet_ms", "first_audible_ms"}
    )
    assert marks == (expected if not found.invalid else marks)


def test_a_way_of_closing_turns_that_a_kind_does_not_have_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["calibrate", "--json", "--protocol", "http", "--turn-end", "commit"]) == 2
    assert "turn_end: is commit, but a question to kind http is one" in capsys.readouterr().err


def test_a_kind_without_a_server_side_is_told_which_ones_have_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["serve", "metronome", "--protocol", "mini-omni"]) == 2
    told = capsys.readouterr().err
    assert "has no server side" in told
    assert f"use one of: {', '.join(catalog.served())}" in told
