"""ElevenLabs Agents: sessions written down from its package, odd servers, whole attempts."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_world import FRAME_MS, PATIENCE, World, held, lead_in_ms, listening, row_of, voice
from http_peer import Peer, serving
from hypothesis import given
from hypothesis import strategies as st
from ws_play import ANYTHING, garbage, heard, nothing, play, recordings, stands, told

from voxmeter.client.capture import Capture
from voxmeter.client.speaking import Patience
from voxmeter.endpoints import g711
from voxmeter.endpoints.codec import Ended, Json, Message, Settings, Text
from voxmeter.endpoints.elevenlabs import client
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import Closed, Fault, ReplyAudio

TYPES = (
    "conversation_initiation_metadata",
    "ping",
    "audio",
    "agent_response",
    "user_transcript",
    "interruption",
    "client_tool_call",
    "error",
    "client_error",
    "guardrail_triggered",
)
NAMES = (
    "conversation_initiation_metadata_event",
    "agent_output_audio_format",
    "user_input_audio_format",
    "ping_event",
    "event_id",
    "audio_event",
    "audio_base_64",
    "agent_response_event",
    "agent_response",
    "interruption_event",
    "client_tool_call",
    "tool_name",
    "tool_call_id",
    "error_event",
    "message",
    "code",
)
AGENT = {"agent_id": "agent_1"}


def metadata(output: str = "pcm_16000", input_: str = "pcm_16000") -> Text:
    event = {
        "conversation_id": "conv_1",
        "agent_output_audio_format": output,
        "user_input_audio_format": input_,
    }
    kind = "conversation_initiation_metadata"
    return told(kind, conversation_initiation_metadata_event=event)


@pytest.mark.parametrize("path", recordings("elevenlabs"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


@given(st.lists(ANYTHING, max_size=6))
def test_any_messages_give_events_or_a_protocol_error(messages: list[Message]) -> None:
    stands(client(Settings()), messages)
    stands(client(Settings()), [metadata(), *messages])


@given(st.lists(garbage(TYPES, NAMES), max_size=6))
def test_known_messages_with_anything_in_them_give_events_or_a_protocol_error(
    messages: list[Text],
) -> None:
    stands(client(Settings()), messages)
    stands(client(Settings()), [metadata(), *messages])


def test_a_key_buys_a_signed_url_first() -> None:
    address = client(Settings(options={**AGENT})).address("wss://api.elevenlabs.io", "xi-1")
    assert address.url == (
        "https://api.elevenlabs.io/v1/convai/conversation/get-signed-url?agent_id=agent_1"
    )
    assert address.headers == {"xi-api-key": "xi-1"}
    assert address.invitation is not None
    assert (address.invitation.request.method, address.invitation.field) == ("GET", "signed_url")
    own = client(Settings()).address("https://h/get-signed-url/?agent_id=a", "xi-1")
    assert own.url == "https://h/get-signed-url?agent_id=a"


def test_a_public_agent_is_reached_at_once() -> None:
    address = client(Settings(options={**AGENT})).address("https://api.elevenlabs.io", None)
    assert address.url == "wss://api.elevenlabs.io/v1/convai/conversation?agent_id=agent_1"
    assert (address.headers, address.invitation) == ({}, None)
    direct = client(Settings(options={**AGENT, "signed_url": False}))
    address = direct.address("wss://h/own?agent_id=theirs", "xi-1")
    assert address.url == "wss://h/own?agent_id=theirs"
    assert (address.headers, address.invitation) == ({"xi-api-key": "xi-1"}, None)


def test_an_agent_must_be_named() -> None:
    for url in ("wss://api.elevenlabs.io", "wss://h/?agent_id="):
        with pytest.raises(UserError, match="agent_id: is missing"):
            client(Settings()).address(url, None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(options={"agent": "a"}), "did you mean agent_id"),
        (Settings(options={"frame_ms": 500}), "from 10 to 250"),
        (Settings(options={"signed_url": "no"}), "use true or false"),
        (Settings(options={"first_message": 5}), "use a string"),
        (Settings(temperature=0.5), "set it in the agent"),
        (Settings(turn_end="commit"), "finds out when a turn is over"),
    ],
)
def test_a_wrong_setting_is_one_line(settings: Settings, words: str) -> None:
    with pytest.raises(UserError, match=words):
        client(settings)


def test_traits_follow_from_the_settings() -> None:
    plain = client(Settings()).traits
    assert (plain.input_rate, plain.frame_ms, plain.reply_end) == (16_000, 20, "quiet")
    assert (plain.first_speaker, plain.takes_text, plain.turn_end) == ("endpoint", True, "silence")
    options: dict[str, Json] = {"first_message": "", "frame_ms": 250}
    other = client(Settings(input_rate=8000, options=options)).traits
    assert (other.input_rate, other.frame_ms, other.first_speaker) == (8000, 250, "user")
    assert client(Settings(options={"first_speaker": "user"})).traits.first_speaker == "user"


def test_what_it_has_no_word_for_is_nothing() -> None:
    nothing(client(Settings()), "turn", "end_turn", "played", "cancel", "close")


@pytest.mark.parametrize(
    ("output", "input_", "words"),
    [
        ("mp3_44100", "pcm_16000", "agent_output_audio_format is 'mp3_44100'; set it to pcm_16000"),
        ("pcm_16000", "opus_16000", "user_input_audio_format is 'opus_16000'"),
        ("pcm", "pcm_16000", "agent_output_audio_format is 'pcm'"),
        ("pcm_1", "pcm_16000", "agent_output_audio_format is 'pcm_1'"),
        ("pcm_99999999999999", "pcm_16000", "agent_output_audio_format"),
        ("ulaw_16000", "pcm_16000", "G.711 is at 8000"),
        ("pcm_24000", "pcm_16000", "is 'pcm_24000', not at 16000: leave the rate out"),
    ],
)
def test_a_format_that_cannot_be_is_told_with_its_cure(
    output: str, input_: str, words: str
) -> None:
    with pytest.raises(ProtocolError) as raised:
        client(Settings(output_rate=16_000)).receive(metadata(output, input_))
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("error", "kind", "fatal"),
    [
        ({"error_event": {"error_type": "max_duration_exceeded", "message": "x"}}, "server", True),
        ({"error_event": {"code": 1011, "reason": "Unauthorized"}}, "auth", True),
        ({"message": "Concurrency limit reached"}, "busy", True),
        ({}, "server", True),
    ],
)
def test_errors_are_sorted_by_whose_rule_was_met(
    error: dict[str, Any], kind: str, fatal: bool
) -> None:
    codec = client(Settings())
    codec.receive(metadata())
    (fault,) = codec.receive(told("error", **error)).events
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.fatal) == (kind, fatal)
    assert codec.receive(Ended(1008, "x")).events == [Closed(1008, "x")]


def test_a_clients_error_ends_the_session_only_where_it_cannot_go_on() -> None:
    codec = client(Settings())
    (early,) = codec.receive(told("client_error", message="bad")).events
    codec.receive(metadata())
    (late,) = codec.receive(told("client_error", message="bad")).events
    (money,) = codec.receive(told("client_error", message="no credits left")).events
    assert [one.fatal for one in (early, late, money) if isinstance(one, Fault)] == [
        True,
        False,
        True,
    ]


def test_an_interruption_drops_only_what_came_before_it() -> None:
    codec = client(Settings())
    stopped = told("interruption", interruption_event={"event_id": 5})
    pieces = [
        told("audio", audio_event={"audio_base_64": "AQA=", "event_id": number})
        for number in (4, 5, 6)
    ]
    events = heard(codec, [metadata(), pieces[0], stopped, *pieces])
    assert len([one for one in events if isinstance(one, ReplyAudio)]) == 2


# Whole attempts


class Agent:
    """An agent that greets, and answers after ten silent frames with its text ahead."""

    def __init__(
        self, rate: int = 16_000, law: str = "", answers: tuple[str, ...] = ("Paris.",)
    ) -> None:
        self.rate, self.law, self.answers = rate, law, answers
        self.begun: dict[str, Any] = {}
        self.quiet = 0
        self.voiced = False
        self.pongs: list[int] = []
        self.written: list[str] = []
        self.events = 0

    async def hear(self, world: World, message: Any) -> None:
        match message.get("type", "audio"):
            case "conversation_initiation_client_data":
                self.begun = message
                kind = "ulaw_8000" if self.law else f"pcm_{self.rate}"
                await world.say(json.loads(metadata(kind, kind).data))
                await world.say({"type": "ping", "ping_event": {"event_id": 7}})
                await self.speak(world, "Hello!", 300)
            case "pong":
                self.pongs.append(message["event_id"])
            case "user_message":
                self.written.append(message["text"])
            case _:
                await self.listen(world, base64.b64decode(message["user_audio_chunk"]))

    async def listen(self, world: World, frame: bytes) -> None:
        pcm = g711.decode_ulaw(frame) if self.law else frame
        loud = any(abs(value - 256 if value > 127 else value) > 8 for value in pcm[1::2])
        self.quiet = 0 if loud else self.quiet + 1
        self.voiced = self.voiced or loud
        if self.voiced and self.quiet == 10:
            for answer in self.answers:
                await self.speak(world, answer, 500)

    async def speak(self, world: World, text: str, ms: float) -> None:
        await world.say(
            {"type": "agent_response", "agent_response_event": {"agent_response": text}}
        )
        sound = voice(ms, self.rate)
        sound = g711.encode_ulaw(sound) if self.law else sound
        for piece in (sound[:2401], sound[2401:]):
            self.events += 1
            data = base64.b64encode(piece).decode()
            event = {"audio_base_64": data, "event_id": self.events}
            await world.say({"type": "audio", "audio_event": event})


async def session(
    agent: Agent, settings: Settings, patience: Patience = PATIENCE, text: str = ""
) -> tuple[Capture, World]:
    world = World(agent.hear)
    codec = client(settings)
    async with listening(world) as url:
        return await held(world, codec, codec.address(url, None), patience, text), world


async def test_a_greeting_is_heard_out_and_the_answer_measured(tmp_path: Path) -> None:
    agent, patience = Agent(), replace(PATIENCE, quiet_ms=1500)
    settings = Settings(instructions="Be brief.", options={**AGENT})
    capture, world = await session(agent, settings, patience)
    row = row_of(capture, tmp_path)
    assert (row["status"], row["fault"], row["latency_kind"]) == ("ok", None, "server-vad")
    assert [one["role"] for one in row["segments"]] == ["greeting", "answer"]
    assert row["latency"]["reply_ms"] == pytest.approx(500, abs=12)
    assert row["latency"]["first_audible_ms"] == pytest.approx(10 * FRAME_MS, abs=6)
    assert row["reply_text"] == "Paris."
    # 300 ms of greeting and the quiet behind it, long before the patience for a greeting ends
    assert 300 + 1500 <= lead_in_ms(capture) <= 300 + 1500 + 2 * FRAME_MS
    prompt = agent.begun["conversation_config_override"]["agent"]["prompt"]
    assert prompt == {"prompt": "Be brief."}
    assert agent.pongs == [7]
    assert world.path == "/v1/convai/conversation?agent_id=agent_1"


async def test_g711_and_its_rate_are_what_the_agent_says(tmp_path: Path) -> None:
    capture, _ = await session(Agent(8000, law="u"), Settings(options={**AGENT}))
    row = row_of(capture, tmp_path)
    assert (row["status"], row["fault"]) == ("ok", None)
    assert capture.rows[0]["input_rate"] == 8000
    assert row["reply_text"] == "Paris."


async def test_an_agent_that_only_greets_gave_no_answer(tmp_path: Path) -> None:
    brief = replace(PATIENCE, first_reply_timeout_s=0.3)
    capture, _ = await session(Agent(answers=()), Settings(options={**AGENT}), brief)
    assert row_of(capture, tmp_path)["status"] == "timeout"


async def test_a_question_in_writing_goes_with_the_audio() -> None:
    agent = Agent()
    await session(agent, Settings(options={**AGENT}), text="What is the capital of France?")
    assert agent.written == ["What is the capital of France?"]


async def test_a_private_agent_is_joined_by_a_signed_url(tmp_path: Path) -> None:
    agent = Agent()
    world = World(agent.hear)
    codec = client(Settings(options={**AGENT}))
    asked: list[Any] = []
    async with listening(world) as room:

        async def service(peer: Peer) -> None:
            request = await peer.request()
            asked.append((request.method, request.target, request.headers["xi-api-key"]))
            signed = (
                f"{room}/v1/convai/conversation?agent_id=agent_1&conversation_signature=cvtkn_1"
            )
            await peer.whole(json.dumps({"signed_url": signed}).encode())

        async with serving(service) as url:
            capture = await held(world, codec, codec.address(url, "xi-1"))
    row = row_of(capture, tmp_path)
    assert row["status"] == "ok"
    path = "/v1/convai/conversation"
    assert asked == [("GET", f"{path}/get-signed-url?agent_id=agent_1", "xi-1")]
    assert world.path == f"{path}?agent_id=agent_1&conversation_signature=cvtkn_1"
    assert "xi-api-key" not in world.request_headers
    assert "cvtkn_1" not in (tmp_path / "events" / "one.jsonl").read_text()


@pytest.mark.parametrize(
    ("detail", "fault"),
    [
        ({"status": "invalid_api_key", "message": "No."}, "auth: HTTP 401: invalid_api_key: No."),
        ({"status": "quota_exceeded", "message": "No."}, "quota: HTTP 401: quota_exceeded: No."),
        ({"type": "x", "code": "missing_permissions", "message": "No."}, "auth: HTTP 401: "),
    ],
)
async def test_a_refused_key_is_a_refused_attempt(
    detail: dict[str, str], fault: str, tmp_path: Path
) -> None:
    async def service(peer: Peer) -> None:
        await peer.request()
        await peer.whole(json.dumps({"detail": detail}).encode(), "401 Unauthorized")

    world = World(Agent().hear)
    codec = client(Settings(options={**AGENT}))
    async with serving(service) as url:
        capture = await held(world, codec, codec.address(url, "xi-1"))
    row = row_of(capture, tmp_path)
    assert row["status"] == "refused"
    assert row["fault"].startswith(fault)
    assert row["fault"].endswith(": No.")
