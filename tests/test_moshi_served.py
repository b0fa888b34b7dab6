"""Our own servers over Moshi, as a run meets them: sockets, Opus and time are real."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attempt_logs import joined, silence, voice
from captures import attempt_in
from test_calibrate import row, truth

from voxmeter.client import encodings
from voxmeter.client.audio import to_pcm16
from voxmeter.client.calibrate import OPUS_SPREAD_MS, compare
from voxmeter.client.calibration import keep, lines
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.cli import main
from voxmeter.client.finish import finish
from voxmeter.client.servers.brain import Brain
from voxmeter.client.servers.echo import Echo
from voxmeter.client.servers.host import HostSettings, serving
from voxmeter.client.servers.metronome import Metronome
from voxmeter.client.servers.truth import TruthLog
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints.errors import MissingExtraError
from voxmeter.endpoints.moshi import KIND
from voxmeter.endpoints.moshi_server import server

pytest.importorskip("sphn")

MS = 1_000_000
BRIEF = Patience(first_reply_timeout_s=10, reply_limit_s=20, quiet_ms=500)


def question(rate: int) -> Utterance:
    pcm = to_pcm16(joined(silence(100), voice(500)))
    return Utterance(pcm, rate, 2400, 14_400)


async def ask(brain: Brain, query: str, log: TruthLog | None = None) -> Capture:
    settings = HostSettings(
        path=KIND.path, query={"endpoint_ms": "200"}, client_keys=frozenset(KIND.query_keys)
    )
    async with serving(brain, server, settings, truth=log) as url:
        target = Target("ours", "moshi", f"{url}?{query}", patience=BRIEF)
        return await attempt(target, question, tag="mine")


async def test_a_metronome_answers_over_opus_and_tells_the_truth(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    log = TruthLog(file)
    capture = await ask(Metronome(), "delay_ms=500&lead_ms=80&tag=&text_temperature=0.7", log)
    log.close()
    found = finish(capture, attempt_in(tmp_path))
    assert (found["status"], found["fault"]) == ("ok", None)
    assert [segment["role"] for segment in found["segments"]] == ["answer"]
    (line,) = [json.loads(one) for one in file.read_text().splitlines()]
    assert (line["tag"], line["outcome"], line["reply_rate"]) == ("mine", "completed", 24_000)
    assert line["reply_samples"] == 24_000 * 1680 // 1000
    parts = 4  # of the lead, each rounded to a whole nanosecond
    assert line["first_audible_ns"] - line["first_packet_ns"] >= 80 * MS - parts
    # Nothing is heard before it was said, but for what Opus spreads.
    heard_ns = found["t0_ns"] + found["latency"]["first_audible_ms"] * MS
    assert heard_ns >= line["first_audible_ns"] - 2 * OPUS_SPREAD_MS * MS


async def test_an_echo_says_the_question_back_within_the_stream(tmp_path: Path) -> None:
    found = finish(await ask(Echo(), "tag="), attempt_in(tmp_path))
    assert found["status"] == "ok"
    assert found["latency"]["reply_ms"] == pytest.approx(500, abs=60)


async def test_a_delay_that_cannot_be_kept_is_refused_in_words() -> None:
    capture = await ask(Metronome(), "delay_ms=300")
    assert capture.outcome == "refused"
    assert "two frames of 80 ms" in str(capture.fault)


@pytest.mark.parametrize("name", ["metronome", "echo"])
def test_a_server_that_cannot_encode_says_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> Any:
        raise MissingExtraError("Opus audio", "sphn", "opus")

    monkeypatch.setattr(encodings, "_sphn", missing)
    assert main(["serve", name, "--protocol", "moshi"]) == 2
    assert "pip install 'voxmeter[opus]'" in capsys.readouterr().err


def test_in_full_duplex_moments_are_compared_not_each_sides_end_of_speech() -> None:
    t0_ns = truth("a")["a"]["user_end_ns"] - 12 * MS  # Opus made the server hear it 12 ms longer
    trial = row("a", None, 513.0, latency_kind="duplex", t0_ns=t0_ns)
    (found,) = compare([trial], truth("a"), 1.0).errors
    assert (found.mark, found.p50_ms) == ("first_audible_ms", 1.0)


def test_what_opus_spreads_is_allowed_and_said_and_not_kept_as_this_machines_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plain = compare([row("a", None, 502.5)], truth("a"), 1.0)
    assert not plain.good
    spread = replace(plain, spread_ms=OPUS_SPREAD_MS)
    assert spread.good
    assert "Opus moves where a sound begins by up to 3 ms" in "\n".join(lines(spread))
    assert keep(spread, tmp_path, for_reports=False)["good"] is True
    assert not (tmp_path / "cache").exists()
    assert (tmp_path / "calibration.json").exists()


def test_opus_moves_a_sharp_onset_by_no_more_than_is_said() -> None:
    from voxmeter.client.servers.voice import babble
    from voxmeter.scoring.speech import speech_bounds

    rate = 24_000
    for lead in range(12_000, 13_920, 480):
        sent = np.concatenate([np.zeros(lead, np.float32), babble(rate, 0.4), silence(600)])
        writer, reader = encodings.encoder("opus", rate), encodings.decoder("opus", rate)
        pcm = to_pcm16(sent[: len(sent) // 1920 * 1920])
        came = [
            reader.decode(writer.encode(pcm[at : at + 3840])) for at in range(0, len(pcm), 3840)
        ]
        bounds = speech_bounds(np.concatenate(came).astype(np.float32) / np.float32(32768), rate)
        assert bounds is not None
        assert abs(bounds.onset_sample - lead) * 1000 / rate <= OPUS_SPREAD_MS
