"""Whole sessions with Rhasspy's own dialogue manager, over mosquitto."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from captures import attempt_in
from mosquitto import mosquitto

from genuine.programs import HERE, python_of, running
from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.finish import finish
from voxmeter.client.servers.voice import babble
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints.codec import Json, Settings

BRIEF = Patience(first_reply_timeout_s=10, reply_limit_s=20, quiet_ms=800)
REPLY_BYTES = 22_048


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (
        mosquitto(tmp_path_factory.mktemp("broker")) as broker,
        running(python_of("rhasspy"), HERE / "rhasspy_server.py", str(broker.port)),
    ):
        yield broker.url


def question(rate: int) -> Utterance:
    """400 ms of sound behind 300 ms of silence."""
    sound = babble(rate, 0.4)
    start = 3 * rate // 10
    return Utterance(bytes(2 * start) + to_pcm16(sound), rate, start, start + len(sound))


async def asked(url: str, way: str, **options: Json) -> Capture:
    target = Target("ours", "hermes", url, Settings(options=options), patience=BRIEF)
    return await attempt(target, question, tag=way)


def names(capture: Capture, way: str) -> list[str]:
    rows = [row for row in capture.rows if row["dir"] == way]
    kinds = {"message": "name", "note": "name"}
    said = [row.get(kinds.get(row["kind"], ""), row["kind"]) for row in rows]
    return [name.rpartition("/")[2] for name in said if "audioFrame" not in name]


async def test_a_skill_that_ends_the_session_is_heard_to_its_end(url: str, tmp_path: Path) -> None:
    capture = await asked(url, "end")
    assert (capture.outcome, capture.fault) == ("ended", None)
    assert names(capture, "in") == [
        "sessionStarted",
        "ready",
        "input_transcript",
        "speech_stopped",
        "intent",
        "reply_started",
        "reply_text",
        "reply_audio",
        "stopListening",
        "reply_ended",
    ]
    sent = [name for name in names(capture, "out") if name not in {"audio", "silence", "start"}]
    assert sent == ["startSession", "playFinished"]
    assert [len(data) for _, data in capture.audio] == [REPLY_BYTES]
    assert capture.reply_text == "It is noon."
    row = finish(capture, attempt_in(tmp_path))
    assert row["status"] == "ok"
    assert row["latency"]["reply_ms"] == pytest.approx(500, abs=30)


async def test_a_session_that_no_skill_ends_is_ended_by_us(url: str) -> None:
    capture = await asked(url, "forget")
    assert (capture.outcome, capture.fault) == ("ended", None)
    sent = names(capture, "out")
    assert sent[-1] == "endSession"
    assert "playFinished" in sent


async def test_an_assistant_that_asks_back_has_said_its_reply(url: str) -> None:
    capture = await asked(url, "go on")
    assert (capture.outcome, capture.reply_text) == ("ended", "Which city?")
    assert names(capture, "in")[-2:] == ["reply_audio", "reply_ended"]


async def test_words_that_are_no_intent_leave_the_question_unanswered(
    url: str, tmp_path: Path
) -> None:
    row = finish(await asked(url, "unknown"), attempt_in(tmp_path))
    assert (row["status"], row["fault"]) == ("no_reply", "the reply ended without any audio")


async def test_an_error_of_a_service_refuses_the_trial(url: str) -> None:
    capture = await asked(url, "fail")
    assert (capture.outcome, capture.fault) == ("refused", "server: asr: no model")


async def test_a_wake_word_starts_a_session(url: str) -> None:
    capture = await asked(url, "x", wake_word="hey", sites=["desk"])
    assert (capture.outcome, capture.reply_text) == ("ended", "It is noon.")


async def test_several_sites_are_asked_at_once(url: str) -> None:
    captures = await asyncio.gather(*(asked(url, f"end {number}") for number in range(4)))
    assert [capture.outcome for capture in captures] == ["ended"] * 4
    assert [len(capture.audio) for capture in captures] == [1] * 4
