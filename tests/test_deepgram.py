"""Deepgram's voice agent: sessions written down from its types, odd servers, whole attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_world import (
    CLIP_MS,
    FRAME_MS,
    T0_MS,
    World,
    held,
    listening,
    row_of,
    voice,
)
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from ws_play import ANYTHING, garbage, heard, nothing, play, recordings, sent, stands, told

from voxmeter.client.capture import Capture
from voxmeter.endpoints.codec import Ended, Message, Settings, Text
from voxmeter.endpoints.deepgram import client
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Closed, Fault

TYPES: tuple[str, ...] = (
    "Welcome",
    "SettingsApplied",
    "UserStartedSpeaking",
    "ConversationText",
    "AgentStartedSpeaking",
    "AgentAudioDone",
    "FunctionCallRequest",
    "InjectionRefused",
    "Error",
    "Warning",
)
NAMES: tuple[str, ...] = (
    "request_id",
    "role",
    "content",
    "functions",
    "id",
    "name",
    "client_side",
    "code",
)
NAMES += ("description", "message")
RATE = 24_000


@pytest.mark.parametrize("path", recordings("deepgram"), ids=lambda path: path.stem)
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


def test_the_key_is_a_token() -> None:
    codec = client(Settings())
    address = codec.address("https://agent.deepgram.com", "dg-1")
    assert address.url == "wss://agent.deepgram.com/v1/agent/converse"
    assert address.headers == {"Authorization": "Token dg-1"}
    assert codec.address("ws://127.0.0.1/own", None).headers == {}
    temporary = client(Settings(options={"auth_scheme": "Bearer"}))
    assert temporary.address("wss://h", "t").headers == {"Authorization": "Bearer t"}
    with pytest.raises(UserError, match="the API key"):
        codec.address("wss://h", "dg\n1")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(options={"greetings": "Hi"}), "did you mean greeting"),
        (Settings(options={"input_encoding": "opus"}), "'linear16' or 'mulaw' or 'alaw'"),
        (Settings(options={"first_speaker": "agent"}), "'user' or 'endpoint'"),
        (Settings(turn_end="commit"), "finds out when a turn is over"),
        (Settings(input_rate=4000), "use 8000 to 48000"),
        (Settings(output_rate=96_000), "use 8000 to 48000"),
        (Settings(input_rate=16_000, options={"input_encoding": "mulaw"}), "mulaw is at 8000"),
        (Settings(voice="x", options={"agent_id": "a"}), "voice: kind deepgram has no place for"),
        (Settings(temperature=0, options={"agent_id": "a"}), "temperature: kind deepgram"),
        (Settings(options={"agent_id": "a", "greeting": "Hi"}), "options.greeting"),
    ],
)
def test_a_wrong_setting_is_one_line(settings: Settings, words: str) -> None:
    with pytest.raises(UserError, match=words):
        client(settings)


def test_traits_follow_from_the_settings() -> None:
    plain = client(Settings()).traits
    assert (plain.input_rate, plain.input_encoding, plain.turn_end) == (RATE, "pcm16", "silence")
    assert (plain.first_speaker, plain.reply_end, plain.takes_text) == ("user", "told", True)
    assert plain.latency_kind == "server-vad"
    greets = client(Settings(input_rate=16_000, options={"greeting": "Hello!"})).traits
    assert (greets.input_rate, greets.first_speaker) == (16_000, "endpoint")
    assert client(Settings(options={"agent_id": "a"})).traits.first_speaker == "user"


def test_tables_are_laid_over_the_settings() -> None:
    options: dict[str, Any] = {
        "think_provider": "anthropic",
        "agent": {"think": {"functions": []}, "context": {"messages": []}},
        "settings": {"tags": ["bench"], "mip_opt_out": True},
    }
    codec = client(Settings(model="claude", voice="flux-kit-en", options=options))
    (made,) = sent(codec.receive(told("Welcome")))
    assert made["tags"] == ["bench"]
    assert made["mip_opt_out"] is True
    assert made["agent"] == {
        "think": {"provider": {"type": "anthropic", "model": "claude"}, "functions": []},
        "speak": {"provider": {"type": "deepgram", "model": "flux-kit-en", "version": "v2"}},
        "context": {"messages": []},
    }


def test_what_it_has_no_word_for_is_nothing() -> None:
    nothing(client(Settings()), "open", "turn", "end_turn", "played", "cancel", "close")


@pytest.mark.parametrize(
    ("code", "words", "kind", "retryable"),
    [
        ("USER_AUDIO_FORMAT", "not linear16", "request", False),
        ("CLIENT_MESSAGE_TIMEOUT", "we waited too long", "request", False),
        ("INTERNAL_SERVER_ERROR", "oh no", "server", True),
        ("FAILED_TO_THINK", "the provider said: insufficient_quota", "quota", False),
        ("FAILED_TO_SPEAK", "Too many requests", "busy", True),
        ("FAILED_TO_THINK", "401 Unauthorized", "auth", False),
        ("", "", "server", True),
    ],
)
def test_errors_are_sorted_by_whose_rule_was_met(
    code: str, words: str, kind: str, retryable: bool
) -> None:
    error = told("Error", code=code, description=words)
    (fault,) = client(Settings()).receive(error).events
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retryable, fault.fatal) == (kind, retryable, True)
    assert fault.message == f"{code or 'no code'}: {words or 'no description'}"


def test_a_close_with_a_reason_is_a_fault_before_anything_was_said() -> None:
    (fault, closed) = client(Settings()).receive(Ended(1008, "no")).events
    assert isinstance(fault, Fault)
    assert (fault.kind, closed) == ("policy", Closed(1008, "no"))
    busy = client(Settings()).receive(Ended(1011, "Concurrency limit, try again in 3s")).events[0]
    assert isinstance(busy, Fault)
    assert (busy.kind, busy.retry_after_s) == ("busy", 3)
    answered = client(Settings())
    heard(answered, [told("AgentStartedSpeaking")])
    assert answered.receive(Ended(1008, "no")).events == [Closed(1008, "no")]


# Whole attempts


class Agent:
    """An agent that answers so long after the question's voice has ended, in one burst."""

    def __init__(self, *, greets: bool = False, answers: bool = True) -> None:
        self.greets, self.answers = greets, answers
        self.settings: dict[str, Any] = {}
        self.written: list[str] = []
        self.voiced = self.quiet = 0

    async def greet(self, world: World) -> None:
        await world.say({"type": "Welcome", "request_id": "r1"})

    async def hear(self, world: World, message: Any) -> None:
        if isinstance(message, bytes):
            await self.listen(world, message)
        elif message["type"] == "Settings":
            self.settings = message
            await world.say({"type": "SettingsApplied"})
            if self.greets:
                await self.speak(world, "Hello!", 300)
        else:
            self.written.append(message["content"])

    async def listen(self, world: World, frame: bytes) -> None:
        if any(frame):
            self.voiced += 1
            if self.voiced == 1:
                await world.say({"type": "UserStartedSpeaking"})
            self.quiet = 0
            return
        self.quiet += 1
        if self.answers and self.voiced and self.quiet == 10:  # 200 ms of silence
            text = "What is the capital of France?"
            await world.say({"type": "ConversationText", "role": "user", "content": text})
            await self.speak(world, "Paris.", 500)

    async def speak(self, world: World, text: str, ms: float) -> None:
        await world.say({"type": "ConversationText", "role": "assistant", "content": text})
        sound = voice(ms, RATE)
        await world.say(sound[:4801], sound[4801:])
        await world.say({"type": "AgentAudioDone"})


async def session(agent: Agent, settings: Settings, text: str = "") -> tuple[Capture, World]:
    world = World(agent.hear, agent.greet)
    codec = client(settings)
    async with listening(world) as url:
        return await held(world, codec, codec.address(url, "dg-1"), text=text), world


async def test_a_whole_attempt_from_the_welcome_to_the_answer(tmp_path: Path) -> None:
    agent = Agent()
    capture, world = await session(agent, Settings(instructions="Be brief."))
    row = row_of(capture, tmp_path)
    assert (row["status"], row["fault"], row["latency_kind"]) == ("ok", None, "server-vad")
    # The voice ends amid no frame; ten frames of silence later the agent speaks.
    assert row["latency"]["first_audible_ms"] == pytest.approx(10 * FRAME_MS, abs=6)
    assert row["latency"]["reply_ms"] == pytest.approx(500, abs=12)
    assert row["reply_text"] == "Paris."
    assert agent.settings["agent"]["think"]["prompt"] == "Be brief."
    assert world.request_headers["Authorization"] == "Token dg-1"
    assert world.path == "/v1/agent/converse"


async def test_a_greeting_is_heard_out_before_the_question(tmp_path: Path) -> None:
    capture, _ = await session(Agent(greets=True), Settings(options={"greeting": "Hello!"}))
    row = row_of(capture, tmp_path)
    assert row["status"] == "ok"
    assert [one["role"] for one in row["segments"]] == ["greeting", "answer"]
    assert row["reply_text"] == "Paris."


async def test_a_question_in_writing_goes_with_the_audio() -> None:
    agent = Agent()
    await session(agent, Settings(), text="What is the capital of France?")
    assert agent.written == ["What is the capital of France?"]


async def test_an_agent_that_leaves_without_an_answer_is_a_lost_connection(tmp_path: Path) -> None:
    async def leaves(world: World, message: Any) -> None:
        if not isinstance(message, bytes):
            await world.say({"type": "SettingsApplied"})
        world.frames += 1
        if world.frames == (T0_MS + CLIP_MS) // FRAME_MS:
            await world.leave(1000, "bye")

    world = World(leaves, Agent().greet)
    codec = client(Settings())
    async with listening(world) as url:
        capture = await held(world, codec, codec.address(url, None))
    row = row_of(capture, tmp_path)
    assert (row["status"], row["fault"]) == ("disconnected", "closed with code 1000: bye")


async def test_an_error_in_place_of_the_settings_is_a_refused_attempt(tmp_path: Path) -> None:
    async def hear(world: World, message: Any) -> None:
        code = "INVALID_SETTINGS"
        await world.say({"type": "Error", "description": "no such voice", "code": code})

    world = World(hear, Agent().greet)
    codec = client(Settings(voice="nobody"))
    async with listening(world) as url:
        capture = await held(world, codec, codec.address(url, None))
    row = row_of(capture, tmp_path)
    assert (row["status"], row["fault"]) == ("refused", "request: INVALID_SETTINGS: no such voice")


async def test_a_refused_key_is_a_refused_attempt_with_the_services_words(tmp_path: Path) -> None:
    body = b'{"err_code": "INVALID_AUTH", "err_msg": "Invalid credentials.", "request_id": "r"}'

    def refuse(connection: ServerConnection, request: Request) -> Response:
        head = Headers([("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return Response(401, "Unauthorized", head, body)

    world = World(Agent().hear)
    codec = client(Settings())
    async with serve(world.serve, "127.0.0.1", 0, process_request=refuse) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        capture = await held(world, codec, codec.address(f"ws://127.0.0.1:{port}", "dg-1"))
    row = row_of(capture, tmp_path)
    said = "HTTP 401 on the upgrade: INVALID_AUTH: Invalid credentials."
    assert (row["status"], row["fault"]) == ("refused", said)
