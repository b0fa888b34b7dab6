"""Our own servers over Gemini Live, as a run meets them: sockets and time are real."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attempt_logs import joined, silence, voice
from captures import attempt_in

from voxmeter.client.audio import Pcm, resample, to_pcm16
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.finish import finish
from voxmeter.client.servers.brain import Brain, Heard, Speech, Spoken, Terms, UserTurn, Words
from voxmeter.client.servers.door import HostSettings
from voxmeter.client.servers.echo import Echo
from voxmeter.client.servers.host import serving
from voxmeter.client.servers.metronome import Metronome
from voxmeter.client.servers.truth import TruthLog
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints.codec import Binary, Json, Message, Settings, Turn, TurnEnd
from voxmeter.endpoints.gemini_live import KIND
from voxmeter.endpoints.gemini_live_server import Server, server

RATE = 24_000
BRIEF = Patience(first_reply_timeout_s=10, reply_limit_s=20)
KEY = "AIza/not+a key"
WAYS: list[tuple[TurnEnd, dict[str, Json]]] = [
    ("silence", {}),
    ("commit", {}),
    ("commit", {"commit_with": "stream_end"}),
]


def question(rate: int) -> Utterance:
    """Half a second of voice after a tenth of silence, at the rate that is asked for."""
    sound = resample(Pcm(joined(silence(100), voice(500)), RATE), rate).samples
    return Utterance(to_pcm16(sound), rate, rate // 10, rate * 6 // 10)


def here(**settings: Any) -> HostSettings:
    return HostSettings(
        path=KIND.path,
        client_keys=frozenset(KIND.query_keys),
        key_names=KIND.key_names,
        **settings,
    )


async def ask(
    brain: Brain,
    settings: Settings | None = None,
    query: str = "",
    *,
    make: type[Server] = Server,
    log: TruthLog | None = None,
) -> Capture:
    wanted = settings or Settings()
    async with serving(brain, make, here(query={"endpoint_ms": "200"}), truth=log) as url:
        target = Target("ours", "gemini-live", f"{url}{query}", wanted, patience=BRIEF)
        return await attempt(target, question, tag="mine")


class Told(Brain):
    """Keeps what it was told of each turn; answers in words and half a second of voice."""

    def __init__(self) -> None:
        self.turns: list[UserTurn] = []

    def load(self) -> None:
        """Load nothing."""

    def admit(self, query: Mapping[str, str]) -> Terms:
        return Terms(endpoint_ms=200)

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        self.turns.append(turn)
        yield Heard("What is six?")
        yield Words("Half a ")
        yield Speech(voice(500))
        yield Words("dozen.")


@pytest.mark.parametrize(("turn_end", "options"), WAYS)
async def test_a_metronome_answers_in_every_way_to_close_a_turn_and_tells_the_truth(
    turn_end: TurnEnd, options: dict[str, Json], tmp_path: Path
) -> None:
    file = tmp_path / "truth.jsonl"
    log = TruthLog(file)
    settings = Settings(turn_end=turn_end, options=options)
    query = "?delay_ms=300&lead_ms=80&pacing=burst&tag="
    found = finish(await ask(Metronome(), settings, query, log=log), attempt_in(tmp_path))
    log.close()
    assert (found["status"], found["fault"]) == ("ok", None)
    (line,) = [json.loads(one) for one in file.read_text().splitlines()]
    assert (line["tag"], line["outcome"], line["reply_rate"]) == ("mine", "completed", RATE)
    assert found["usage"]["responseTokensDetails.AUDIO"] == line["reply_samples"] * 25 // RATE
    assert found["latency"]["first_audible_ms"] > found["latency"]["first_packet_ms"]


async def test_an_echo_says_the_question_back(tmp_path: Path) -> None:
    found = finish(await ask(Echo(), query="?tag="), attempt_in(tmp_path))
    assert found["status"] == "ok"
    assert found["latency"]["reply_ms"] == pytest.approx(500, abs=60)


async def test_a_brain_hears_all_that_was_asked_of_it_and_its_words_come_back() -> None:
    brain = Told()
    options: dict[str, Json] = {"input_transcription": True, "explicit_vad_signal": True}
    settings = Settings("m", "Be brief.", "Kore", 0.5, options=options)
    capture = await ask(brain, settings)
    assert (capture.outcome, capture.fault) == ("ended", None)
    assert capture.reply_text == "Half a dozen."
    kinds = [row["kind"] for row in capture.rows if row["dir"] == "in"]
    assert [kind for kind in kinds if kind != "reply_audio"] == [
        "ready",
        "speech_started",
        "speech_stopped",
        "input_transcript",
        "reply_started",
        "reply_text",
        "reply_text",
        "reply_ended",
        "usage",
    ]
    (turn,) = brain.turns
    assert (turn.instructions, turn.voice, turn.temperature) == ("Be brief.", "Kore", 0.5)
    assert (turn.rate, turn.committed) == (16_000, False)


async def test_history_and_a_question_in_writing_reach_the_brain_in_order() -> None:
    brain = Told()
    history = (Turn("user", "Two?"), Turn("assistant", "Two."))
    async with serving(brain, server, here()) as url:
        target = Target("ours", "gemini-live", url, Settings(turn_end="commit"))
        codec = target.codec()
        asked = Ask(question, history, "In one word.", patience=BRIEF)
        capture = await converse(codec, target.transport(), target.address(codec, ""), asked)
    assert capture.outcome == "ended"
    (turn,) = brain.turns
    assert [one.text for one in turn.history] == ["Two?", "Two.", "In one word."]
    assert turn.committed


@pytest.mark.parametrize("auth", ["query", "header", "bearer", "access_token"])
async def test_a_server_takes_its_token_wherever_a_client_of_this_protocol_shows_it(
    auth: str, tmp_path: Path
) -> None:
    async with serving(Told(), server, here(token=KEY)) as url:
        settings = Settings(options={"auth": auth})
        target = Target("ours", "gemini-live", url, settings, patience=BRIEF, api_key=KEY)
        capture = await attempt(target, question)
        found = finish(capture, attempt_in(tmp_path, [KEY]))
        assert found["status"] == "ok"
        wrong = Target("ours", "gemini-live", url, settings, patience=BRIEF, api_key="AIzawrong")
        refused = await attempt(wrong, question)
    assert refused.outcome == "refused"
    assert "401" in str(refused.fault)
    assert "AIzawrong" not in str(refused.fault)
    written = (tmp_path / "events" / "one.jsonl").read_text()
    assert not any(spelled in written for spelled in (KEY, "AIza%2F", "AIza/not"))


async def test_a_key_in_the_url_is_in_no_message_of_a_connection_that_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    target = Target("ours", "gemini-live", f"ws://127.0.0.1:{port}", api_key=KEY)
    capture = await attempt(target, question)
    assert capture.outcome == "disconnected"
    assert str(port) in str(capture.fault)
    assert "AIza" not in str(capture.fault)


async def test_a_delay_that_cannot_be_kept_is_refused_in_words() -> None:
    capture = await ask(Metronome(), query="?delay_ms=50")
    assert capture.outcome == "refused"
    assert "policy: closed with 1008: FAILED_PRECONDITION: delay_ms=50" in str(capture.fault)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [("garbage", "protocol_error"), ("drop", "disconnected"), ("refuse", "refused")],
)
async def test_a_server_that_misbehaves_is_found_out(fault: str, outcome: str) -> None:
    assert (await ask(Metronome(), query=f"?fault={fault}&pacing=burst")).outcome == outcome


async def test_a_brain_that_fails_ends_the_session_with_what_it_said() -> None:
    class Broken(Told):
        async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
            raise ValueError("no idea")
            yield Words("")

    capture = await ask(Broken())
    assert capture.outcome == "refused"
    expected = "server: closed with 1011: INTERNAL: ValueError: no idea (server_error)"
    assert capture.fault == expected


async def test_what_a_server_announces_is_in_the_log(tmp_path: Path) -> None:
    class Announcing(Server):
        def reply_started(self) -> Sequence[Message]:
            update = {"newHandle": "h-1", "resumable": True}
            told = ({"goAway": {"timeLeft": "50s"}}, {"sessionResumptionUpdate": update})
            future = {"hologram": {"x": 1}}
            messages = [Binary(json.dumps(one).encode()) for one in (*told, future)]
            return [*messages, *super().reply_started()]

    found = finish(await ask(Told(), make=Announcing), attempt_in(tmp_path))
    assert found["status"] == "ok"
    written = (tmp_path / "events" / "one.jsonl").read_text()
    rows = [json.loads(line) for line in written.splitlines()]
    notes = {row["name"]: row["text"] for row in rows if row["kind"] == "note"}
    assert notes == {"goAway": "50s left", "sessionResumptionUpdate": "h-1"}
    assert "hologram" in written
