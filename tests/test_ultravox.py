"""Ultravox: calls written down from its documentation, odd servers, whole attempts with a peer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_world import FRAME_MS, World, held, listening, row_of, voice
from http_peer import Peer, serving
from hypothesis import given
from hypothesis import strategies as st
from ws_play import ANYTHING, garbage, heard, nothing, play, recordings, stands, told

from voxmeter.client.capture import Capture
from voxmeter.endpoints.codec import Ended, Json, Message, Settings, Text
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Closed, Fault, ReplyText
from voxmeter.endpoints.ultravox import client

TYPES: tuple[str, ...] = (
    "call_started",
    "state",
    "transcript",
    "playback_clear_buffer",
    "client_tool_invocation",
)
TYPES += ("user_started_speaking", "user_stopped_speaking")
NAMES: tuple[str, ...] = (
    "callId",
    "state",
    "role",
    "text",
    "delta",
    "final",
    "ordinal",
    "toolName",
    "invocationId",
)
RATE = 24_000


@pytest.mark.parametrize("path", recordings("ultravox"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


@given(st.lists(ANYTHING, max_size=6))
def test_any_messages_give_events_or_a_protocol_error(messages: list[Message]) -> None:
    stands(client(Settings()), messages)


@given(st.lists(garbage(TYPES, NAMES), max_size=6))
def test_known_messages_with_anything_in_them_give_events_or_a_protocol_error(
    messages: list[Text],
) -> None:
    stands(client(Settings()), messages)


def call(settings: Settings, url: str = "https://api.ultravox.ai") -> tuple[str, dict[str, Any]]:
    """Return the URL and the body of the request that makes a call."""
    address = client(settings).address(url, "uv-1")
    assert address.headers == {"X-API-Key": "uv-1"}
    assert address.invitation is not None
    request = address.invitation.request
    assert (request.method, address.invitation.field) == ("POST", "joinUrl")
    assert request.headers == {"Content-Type": "application/json"}
    body: dict[str, Any] = json.loads(request.body)
    return address.url, body


def test_a_call_is_made_with_all_that_the_settings_say() -> None:
    url, body = call(
        Settings(
            model="ultravox-v0.7",
            instructions="Be brief.",
            voice="Mark",
            temperature=0,
            input_rate=16_000,
            session_tag="t1",
            options={"client_buffer_ms": 60, "call": {"medium": {"x": 1}, "languageHint": "de"}},
        )
    )
    assert url == "https://api.ultravox.ai/api/calls"
    assert body == {
        "model": "ultravox-v0.7",
        "systemPrompt": "Be brief.",
        "voice": "Mark",
        "temperature": 0,
        "medium": {
            "serverWebSocket": {
                "inputSampleRate": 16_000,
                "outputSampleRate": RATE,
                "clientBufferSizeMs": 60,
                "dataMessages": {"userStartedSpeaking": True, "userStoppedSpeaking": True},
            },
            "x": 1,
        },
        "firstSpeakerSettings": {"user": {}},
        "metadata": {"tag": "t1"},
        "languageHint": "de",
    }


def test_an_agent_of_the_account_is_called_by_its_id() -> None:
    url, body = call(Settings(options={"agent_id": "a/b"}), "wss://127.0.0.1:9")
    assert url == "https://127.0.0.1:9/api/agents/a%2Fb/calls"
    assert set(body) == {"medium", "firstSpeakerSettings"}


@pytest.mark.parametrize(
    ("options", "first", "asked"),
    [
        ({}, "user", {"user": {}}),
        ({"first_speaker": "endpoint"}, "endpoint", {"agent": {}}),
        ({"greeting": "Hello!"}, "endpoint", {"agent": {"text": "Hello!"}}),
    ],
)
def test_who_speaks_first_is_part_of_the_call(
    options: dict[str, Json], first: str, asked: dict[str, Any]
) -> None:
    settings = Settings(options=options)
    assert client(settings).traits.first_speaker == first
    assert call(settings)[1]["firstSpeakerSettings"] == asked


def test_without_a_key_there_is_no_header() -> None:
    assert client(Settings()).address("http://127.0.0.1:1", None).headers == {}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(options={"agent": "a"}), "did you mean agent_id"),
        (Settings(options={"client_buffer_ms": 0}), "from 1 to 600000"),
        (Settings(options={"greeting": "Hi", "first_speaker": "user"}), "or no greeting"),
        (Settings(options={"agent_id": "a"}, voice="Mark"), "voice: kind ultravox has no place"),
        (Settings(options={"agent_id": "a"}, temperature=0), "temperature: kind ultravox"),
        (Settings(turn_end="request"), "finds out when a turn is over"),
        (Settings(input_rate=4000), "input_rate: 4000; use 8000 to 48000"),
        (Settings(output_rate=96_000), "output_rate: 96000"),
    ],
)
def test_a_wrong_setting_is_one_line(settings: Settings, words: str) -> None:
    with pytest.raises(UserError, match=words):
        client(settings)


def test_what_it_has_no_word_for_is_nothing() -> None:
    nothing(client(Settings()), "open", "turn", "end_turn", "played", "cancel", "close")


def test_words_come_once_however_they_are_told() -> None:
    codec = client(Settings())
    pieces: list[dict[str, Any]] = [
        {"delta": "One"},
        {"delta": " two"},
        {"text": "One two three"},
        {"text": "One two three", "final": True},
        {"delta": " four", "text": None},
    ]
    messages = [told("transcript", role="agent", ordinal=3, **one) for one in pieces]
    said = [one.text for one in heard(codec, messages) if isinstance(one, ReplyText)]
    assert said == ["One", " two", " three", " four"]


def test_a_call_of_very_many_utterances_holds_few() -> None:
    codec = client(Settings())
    for ordinal in range(1000):
        codec.receive(told("transcript", role="agent", ordinal=ordinal, delta="x"))
    assert len(codec._words) <= 257


def test_a_close_says_why_before_anything_was_said() -> None:
    fault, closed = client(Settings()).receive(Ended(4001, "call not found")).events
    assert isinstance(fault, Fault)
    assert (fault.kind, closed) == ("request", Closed(4001, "call not found"))


# Whole attempts


class Agent:
    """An agent that answers after ten silent frames, its sound paced or in one burst."""

    def __init__(self, *, greets: bool = False) -> None:
        self.greets = greets
        self.hung_up = False
        self.quiet = 0
        self.voiced = False
        self.written: list[str] = []

    async def greet(self, world: World) -> None:
        await world.say({"type": "call_started", "callId": "c1"})
        if self.greets:
            await self.speak(world, "Hello!", 300)
        await world.say({"type": "state", "state": "listening"})

    async def hear(self, world: World, message: Any) -> None:
        if not isinstance(message, bytes):
            self.hung_up = self.hung_up or message["type"] == "hang_up"
            self.written += [message["text"]] if "text" in message else []
            return
        self.quiet = 0 if any(message) else self.quiet + 1
        self.voiced = self.voiced or not self.quiet
        if self.voiced and self.quiet == 10:
            await world.say({"type": "user_stopped_speaking"})
            await world.say({"type": "state", "state": "thinking"})
            await self.speak(world, "Paris.", 500)
            await world.say({"type": "state", "state": "listening"})

    async def speak(self, world: World, text: str, ms: float) -> None:
        await world.say({"type": "state", "state": "speaking"})
        transcript = {
            "type": "transcript",
            "role": "agent",
            "medium": "voice",
            "ordinal": self.quiet,
        }
        await world.say({**transcript, "text": text[:3], "final": False})
        sound = voice(ms, RATE)
        await world.say(sound[:4801], sound[4801:])
        await world.say({**transcript, "text": text, "final": True})


async def session(
    agent: Agent, settings: Settings, text: str = ""
) -> tuple[Capture, World, list[Any]]:
    """Hold one call, made over HTTP and joined where the answer says."""
    world = World(agent.hear, agent.greet)
    codec = client(settings)
    asked: list[Any] = []
    async with listening(world) as room:

        async def service(peer: Peer) -> None:
            request = await peer.request()
            asked.append((request.method, request.target, request.headers["x-api-key"]))
            asked.append(json.loads(request.body))
            join = {"callId": "c1", "joinUrl": f"{room}/calls/c1-joining-secret"}
            await peer.whole(json.dumps(join).encode(), "201 Created")

        async with serving(service) as url:
            capture = await held(world, codec, codec.address(url, "uv-1"), text=text)
    return capture, world, asked


async def test_a_whole_attempt_from_the_call_to_the_answer(tmp_path: Path) -> None:
    agent = Agent()
    capture, world, asked = await session(agent, Settings(instructions="Be brief."))
    row = row_of(capture, tmp_path)
    assert (row["status"], row["fault"], row["latency_kind"]) == ("ok", None, "server-vad")
    assert row["latency"]["first_audible_ms"] == pytest.approx(10 * FRAME_MS, abs=6)
    assert row["latency"]["endpointing_ms"] == pytest.approx(10 * FRAME_MS, abs=1)
    assert row["latency"]["reply_ms"] == pytest.approx(500, abs=12)
    assert row["reply_text"] == "Paris."
    assert asked[0] == ("POST", "/api/calls", "uv-1")
    assert asked[1]["systemPrompt"] == "Be brief."
    assert world.path == "/calls/c1-joining-secret"
    assert "X-API-Key" not in world.request_headers
    assert agent.hung_up
    log = (tmp_path / "events" / "one.jsonl").read_text()
    assert "call_started" in log
    assert "joining-secret" not in log


async def test_a_greeting_is_heard_out_before_the_question(tmp_path: Path) -> None:
    capture, _, _ = await session(Agent(greets=True), Settings(options={"greeting": "Hello!"}))
    row = row_of(capture, tmp_path)
    assert row["status"] == "ok"
    assert [one["role"] for one in row["segments"]] == ["greeting", "answer"]
    assert row["reply_text"] == "Paris."


async def test_a_question_in_writing_goes_with_the_audio() -> None:
    agent = Agent()
    await session(agent, Settings(), text="What is the capital of France?")
    assert agent.written == ["What is the capital of France?"]


async def test_an_account_without_minutes_is_a_refused_attempt(tmp_path: Path) -> None:
    async def service(peer: Peer) -> None:
        await peer.request()
        await peer.whole(b'{"detail": "No minutes left."}', "402 Payment Required")

    world = World(Agent().hear)
    codec = client(Settings())
    async with serving(service) as url:
        capture = await held(world, codec, codec.address(url, "uv-1"))
    row = row_of(capture, tmp_path)
    assert (row["status"], row["fault"]) == ("refused", "quota: HTTP 402: No minutes left.")
