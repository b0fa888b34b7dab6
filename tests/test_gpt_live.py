"""GPT-Live: sessions written down from its types, odd servers, and whole attempts with a peer."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from agent_world import (
    CLIP_MS,
    FRAME_MS,
    ONSET_MS,
    PATIENCE,
    T0_MS,
    World,
    held,
    lead_in_ms,
    listening,
    row_of,
    silence,
    voice,
)
from hypothesis import given
from hypothesis import strategies as st
from openai.types.live import ClientEvent
from openai.types.live.connect_server_event import ConnectServerEvent
from pydantic import BaseModel, TypeAdapter
from ws_play import ANYTHING, garbage, heard, nothing, play, recordings, sent, stands, told

from voxmeter.client.capture import Capture
from voxmeter.endpoints import g711
from voxmeter.endpoints.codec import Ended, Json, Message, Settings, Text
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Closed, Fault, Usage
from voxmeter.endpoints.gpt_live import Client, client

STARTED = told("session.started", session={"id": "live_1", "model": "gpt-live-1"})
TYPES: tuple[str, ...] = (
    "session.started",
    "session.output_audio.delta",
    "session.output_transcript.delta",
    "session.input_transcript.delta",
    "session.usage.updated",
    "session.closed",
    "session.delegation.created",
    "error",
)
NAMES: tuple[str, ...] = (
    "session",
    "audio",
    "format",
    "rate",
    "delta",
    "usage",
    "seconds",
    "reason",
)
NAMES += ("delegation", "target", "id", "error", "code", "message", "client_event_id", "model")


@pytest.mark.parametrize("path", recordings("gpt_live"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


@given(st.lists(ANYTHING, max_size=6))
def test_any_messages_give_events_or_a_protocol_error(messages: list[Message]) -> None:
    stands(client(Settings()), [STARTED, *messages])
    stands(client(Settings()), messages)


@given(st.lists(garbage(TYPES, NAMES), max_size=6))
def test_known_messages_with_anything_in_them_give_events_or_a_protocol_error(
    messages: list[Text],
) -> None:
    stands(client(Settings()), messages)
    stands(client(Settings()), [STARTED, *messages])


def test_the_key_goes_into_a_header_and_nothing_into_the_query() -> None:
    codec = client(Settings(model="gpt-live-1"))
    bare = codec.address("https://api.openai.com", "sk-1")
    assert bare.url == "wss://api.openai.com/v1/live/sessions"
    assert bare.headers == {"Authorization": "Bearer sk-1"}
    assert codec.address("ws://127.0.0.1:9/own", None).headers == {}
    assert codec.address("ws://127.0.0.1:9/own", None).url == "ws://127.0.0.1:9/own"
    azure = client(Settings(options={"key_header": "api-key"}))
    assert azure.address("wss://h/openai/v1/live/sessions", "k").headers == {"api-key": "k"}


@pytest.mark.parametrize(("url", "key"), [("ftp://h", None), ("wss://", None), ("wss://h", "a\nb")])
def test_what_is_no_url_or_no_key_is_the_users_mistake(url: str, key: str | None) -> None:
    with pytest.raises(UserError):
        client(Settings()).address(url, key)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(options={"encodings": "pcmu"}), "did you mean encoding"),
        (Settings(options={"encoding": "opus"}), "use 'pcm16' or 'pcmu' or 'pcma'"),
        (Settings(options={"frame_ms": 30}), "use 20, 40, 80 or 100"),
        (Settings(options={"lead_in_ms": -1}), "a whole number from 0 to 60000"),
        (Settings(options={"session": "store"}), "use a table"),
        (Settings(temperature=0.5), "has no place for it"),
        (Settings(turn_end="commit"), "no turn is ever closed"),
        (Settings(input_rate=48_000), "pcm16 can have 24000 or 16000"),
        (Settings(output_rate=8000), "pcm16 can have 24000 or 16000"),
        (Settings(input_rate=16_000, output_rate=24_000), "there is one for both"),
        (Settings(input_rate=16_000, options={"encoding": "pcma"}), "pcma can have 8000"),
    ],
)
def test_a_wrong_setting_is_one_line(settings: Settings, words: str) -> None:
    with pytest.raises(UserError, match=words):
        client(settings)


def test_traits_follow_from_the_settings() -> None:
    plain = client(Settings()).traits
    assert (plain.input_rate, plain.input_encoding, plain.frame_ms) == (24_000, "pcm16", 20)
    assert (plain.full_duplex, plain.reply_end, plain.latency_kind) == (True, "quiet", "duplex")
    assert (plain.first_speaker, plain.takes_text, plain.history) == ("user", False, False)
    assert client(Settings(output_rate=16_000)).traits.input_rate == 16_000
    options: dict[str, Json] = {"encoding": "pcma", "frame_ms": 100, "lead_in_ms": 240}
    other = client(Settings(options={**options, "greeting": "Hello!"})).traits
    assert (other.input_rate, other.input_encoding, other.frame_ms) == (8000, "pcma", 100)
    assert (other.first_speaker, other.lead_in_ms) == ("endpoint", 240)


def test_what_it_has_no_word_for_is_nothing() -> None:
    nothing(client(Settings()), "turn", "text", "end_turn", "played", "cancel")


@pytest.mark.parametrize(
    ("error", "kind", "fatal"),
    [
        ({"code": "invalid_api_key", "message": "no"}, "auth", True),
        ({"code": "insufficient_quota", "message": "no"}, "quota", True),
        ({"code": "session_expired", "message": "no"}, "server", True),
        ({"code": "rate_limit_exceeded", "message": "Try again in 2s."}, "busy", False),
        (
            {"code": "invalid_audio", "message": "no", "client_event_id": "append-7"},
            "request",
            True,
        ),
        ({"code": "odd", "message": "no", "client_event_id": "theirs-7"}, "request", False),
        ({}, "request", False),
    ],
)
def test_errors_are_sorted_by_whose_rule_was_met(
    error: dict[str, Any], kind: str, fatal: bool
) -> None:
    (fault,) = heard(client(Settings()), [STARTED, told("error", error=error)])[1:]
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.fatal) == (kind, fatal)
    assert fault.retry_after_s == (2 if kind == "busy" else None)


@pytest.mark.parametrize("reason", ["expired", "connection_lost", "remote_hangup", "content"])
def test_a_session_that_the_service_ended_says_why(reason: str) -> None:
    events = heard(client(Settings()), [STARTED, told("session.closed", reason=reason)])
    (fault,) = events[1:]
    assert isinstance(fault, Fault)
    assert reason in fault.message


def test_a_close_that_says_why_before_the_start_is_a_fault() -> None:
    fault, closed = client(Settings()).receive(Ended(1008, "insufficient_quota")).events
    assert isinstance(fault, Fault)
    assert fault.kind == "quota"
    assert closed == Closed(1008, "insufficient_quota")
    started = client(Settings())
    started.receive(STARTED)
    assert started.receive(Ended(1008, "x")).events == [Closed(1008, "x")]


def test_usage_adds_up_to_what_the_service_counts_from_the_start() -> None:
    counts = [3, 7, 7, 12.5]
    messages = [told("session.usage.updated", usage={"seconds": n}) for n in counts]
    found = heard(client(Settings()), messages)
    assert all(isinstance(one, Usage) for one in found)
    assert sum(one.counts["seconds"] for one in found if isinstance(one, Usage)) == 12.5


# The types of the openai package


def test_what_is_recorded_of_the_server_fits_the_types_of_the_openai_package() -> None:
    form: Any = ConnectServerEvent
    server: TypeAdapter[Any] = TypeAdapter(form)
    partial = {"greeting_and_g711", "delegated", "wrong_format"}  # fields left out on purpose
    known = 0
    for path in recordings("gpt_live"):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if isinstance(row.get("text"), dict) and path.stem not in partial:
                server.validate_python(row["text"])
                known += 1
    assert known >= 10


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(instructions="Be brief.", voice="marin", input_rate=16_000),
        Settings(voice="voice_123", options={"encoding": "pcma", "session": {"store": True}}),
    ],
)
def test_what_we_send_fits_the_types_of_the_openai_package_to_the_field(settings: Settings) -> None:
    codec = client(settings)
    messages = [*sent(codec.open()), *sent(codec.audio(b"\0\1"))]
    codec.receive(STARTED)
    delegated = told("session.delegation.created", delegation={"id": "d1", "target": "client"})
    messages += [*sent(codec.receive(delegated)), *sent(codec.close())]
    greets = client(Settings(options={"greeting": "Hello!"}))
    messages += sent(greets.receive(STARTED))
    form: Any = ClientEvent
    ours: TypeAdapter[Any] = TypeAdapter(form)
    for message in messages:
        event = ours.validate_python(message)
        assert event.to_dict(mode="json", exclude_unset=True) == message
        assert not _unknown(event), message


def _unknown(model: BaseModel) -> list[str]:
    """Return fields that a type does not have; the service refuses them."""
    found = list(model.model_extra or {})
    for name in type(model).model_fields:
        value = getattr(model, name)
        found += _unknown(value) if isinstance(value, BaseModel) else []
    return found


# Whole attempts: the peer says a frame for each that it hears, as the service does


class Live:
    """A model whose sound is known: (place in its output in ms, how long it speaks there)."""

    def __init__(self, *spoken: tuple[float, float], law: str = "", rate: int = 24_000) -> None:
        self.spoken, self.law, self.rate = spoken, law, rate
        self.started: dict[str, Any] = {}
        self.heard = b""
        self.said_ms = 0.0
        self.closed = False

    async def hear(self, world: World, message: Any) -> None:
        match message["type"]:
            case "session.start":
                self.started = message["session"]
                session = {"id": "live_1", **message["session"]}
                await world.say({"type": "session.started", "session": session})
            case "session.input_audio.append":
                data = base64.b64decode(message["audio"])
                self.heard += data
                await self.say(world, len(data) * (1 if self.law else 0.5) * 1000 / self.rate)
            case "session.close":
                self.closed = True

    async def say(self, world: World, ms: float) -> None:
        now = self.said_ms
        speaking = any(at <= now < at + length for at, length in self.spoken)
        pcm = voice(ms, self.rate) if speaking else silence(ms, self.rate)
        data = g711.encode_ulaw(pcm) if self.law else pcm
        words = [" Par", "is."] if any(now == at for at, _ in self.spoken) else []
        self.said_ms += ms
        for word in words:
            await world.say({"type": "session.output_transcript.delta", "delta": word})
        delta = base64.b64encode(data).decode()
        await world.say({"type": "session.output_audio.delta", "delta": delta})


async def session(live: Live, settings: Settings) -> tuple[Capture, World]:
    world = World(live.hear)
    codec: Client = client(settings)
    async with listening(world) as url:
        return await held(world, codec, codec.address(url, "sk-1")), world


ANSWER_MS = 1200.0


@pytest.mark.parametrize(("rate", "frame_ms"), [(24_000, 20), (16_000, 40)])
async def test_an_answer_is_found_in_the_sound(tmp_path: Path, rate: int, frame_ms: int) -> None:
    live = Live((ANSWER_MS, 600), rate=rate)
    capture, world = await session(
        live, Settings(input_rate=rate, options={"frame_ms": frame_ms}, instructions="Be brief.")
    )
    row = row_of(capture, tmp_path)
    assert (row["status"], row["fault"], row["latency_kind"]) == ("ok", None, "duplex")
    assert [one["role"] for one in row["segments"]] == ["answer"]
    latency = row["latency"]
    assert latency["stream_first_audible_ms"] == pytest.approx(ANSWER_MS - T0_MS, abs=6)
    # A frame of output comes when the same frame of input has left, and is heard from then on.
    assert latency["first_audible_ms"] == pytest.approx(ANSWER_MS - T0_MS + frame_ms, abs=6)
    assert latency["reply_ms"] == pytest.approx(600, abs=12)
    assert row["reply_text"] == "Paris."
    assert world.path == "/v1/live/sessions"
    assert world.request_headers["Authorization"] == "Bearer sk-1"
    assert live.started["instructions"] == "Be brief."
    assert live.closed
    clip = silence(ONSET_MS, rate) + voice(T0_MS - ONSET_MS, rate)
    assert live.heard.startswith(clip)
    assert len(live.heard) > 2 * rate * CLIP_MS // 1000  # silence goes on behind the clip


async def test_g711_goes_both_ways(tmp_path: Path) -> None:
    live = Live((ANSWER_MS, 600), law="u", rate=8000)
    capture, _ = await session(live, Settings(options={"encoding": "pcmu"}))
    row = row_of(capture, tmp_path)
    assert (row["status"], row["fault"]) == ("ok", None)
    assert row["latency"]["stream_first_audible_ms"] == pytest.approx(ANSWER_MS - T0_MS, abs=6)
    assert live.started["audio"]["format"] == {"type": "audio/pcmu", "rate": 8000}


async def test_a_greeting_is_heard_out_before_the_question(tmp_path: Path) -> None:
    live = Live((100, 300), (2400, 600))
    capture, _ = await session(live, Settings(options={"greeting": "Say hello."}))
    row = row_of(capture, tmp_path)
    assert row["status"] == "ok"
    assert [one["role"] for one in row["segments"]] == ["greeting", "answer"]
    assert lead_in_ms(capture) >= 100 + 300 + PATIENCE.quiet_ms
    assert lead_in_ms(capture) <= 100 + 300 + PATIENCE.quiet_ms + 2 * FRAME_MS


async def test_a_model_that_stays_silent_gave_no_reply(tmp_path: Path) -> None:
    live = Live()
    capture, world = await session(live, Settings())
    row = row_of(capture, tmp_path)
    assert row["status"] == "no_reply"
    assert world.t_ns - capture.rows[0]["t_ns"] >= PATIENCE.first_reply_timeout_s * 1e9


async def test_a_refusal_at_the_start_is_a_refused_attempt(tmp_path: Path) -> None:
    async def hear(world: World, message: Any) -> None:
        error = {"code": "insufficient_quota", "type": "quota", "message": "You are out of money."}
        await world.say({"type": "error", "event_id": "e", "error": error})

    world = World(hear)
    codec = client(Settings())
    async with listening(world) as url:
        capture = await held(world, codec, codec.address(url, None))
    row = row_of(capture, tmp_path)
    assert row["status"] == "refused"
    assert row["fault"] == "quota: insufficient_quota: You are out of money."


def test_a_delegation_is_answered_with_its_own_id() -> None:
    codec = client(Settings())
    codec.receive(STARTED)
    delegated = told("session.delegation.created", delegation={"id": "d1", "target": "client"})
    (answer,) = sent(codec.receive(delegated))
    assert answer["delegation_id"] == "d1"
    assert answer["content"]
