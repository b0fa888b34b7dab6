"""The google-genai package's own Live client, as it is, talks to our server side of Gemini Live."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from attempt_logs import joined, silence, voice
from needs import needs

from genuine.programs import HERE, python_of
from voxmeter.client.audio import Pcm, resample, to_pcm16
from voxmeter.client.servers.brain import Heard, Speech, Spoken, Terms, UserTurn, Words
from voxmeter.client.servers.door import HostSettings
from voxmeter.client.servers.host import serving
from voxmeter.endpoints.codec import Binary, Json, Message, Settings, Text, Turn
from voxmeter.endpoints.gemini_live import KIND, client
from voxmeter.endpoints.gemini_live_server import Server, server
from voxmeter.endpoints.gemini_live_wire import camel
from voxmeter.endpoints.serving import ServerCodec, ServerStep

KEY = "AIza-not-a-key"
PATIENCE_S = 120
SAID = np.linspace(0, 0.5, 12_000, dtype=np.float32)
TRANSCRIBED: dict[str, Any] = {"input_audio_transcription": {}, "output_audio_transcription": {}}
MANUAL = {"realtime_input_config": {"automatic_activity_detection": {"disabled": True}}}


def spoken() -> str:
    """Return a question of half a second with silence around it, 16 kHz, in base64."""
    sound = joined(silence(100), voice(500), silence(600))
    return base64.b64encode(to_pcm16(resample(Pcm(sound, 24_000), 16_000).samples)).decode()


class Told:
    """Keeps what it was told of each turn; answers with words and half a second of a ramp."""

    def __init__(self, *, endless: bool = False) -> None:
        self.turns: list[UserTurn] = []
        self._endless = endless

    def load(self) -> None:
        """Load nothing."""

    def admit(self, query: Mapping[str, str]) -> Terms:
        return Terms(endpoint_ms=200)

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        self.turns.append(turn)
        yield Heard("What is six?")
        yield Words("Half a ")
        yield Speech(SAID)
        if self._endless and len(self.turns) == 1:
            await asyncio.Event().wait()
        yield Words("dozen.")


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter that has the package."""
    return python_of("google_genai")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for this machine, and its key: the package speaks TLS alone."""
    folder = tmp_path_factory.mktemp("certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            *(needs("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", key, "-out", cert),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


@dataclass
class Home:
    """One of our servers, behind TLS.

    Attributes:
        url: What the package takes as its base URL.
        ca_file: The certificate that it has to trust.
        python: Where it is installed.
    """

    url: str
    ca_file: Path
    python: Path

    async def hold(self, steps: list[list[Any]], config: dict[str, Any]) -> list[dict[str, Any]]:
        """Let the package hold a session with an API key; return what it made of each message."""
        client = {"api_key": KEY, "http_options": {"base_url": self.url}}
        return await self.run({"client": client, "model": "m", "config": config, "steps": steps})

    async def run(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Run the program; return the lines it printed, each once it is JSON."""
        program = await asyncio.create_subprocess_exec(
            self.python,
            HERE / "google_genai_client.py",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"SSL_CERT_FILE": str(self.ca_file), "NO_PROXY": "*", "PATH": os.environ["PATH"]},
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                printed, _ = await program.communicate(json.dumps(asked).encode())
        finally:
            if program.returncode is None:
                program.kill()
                await program.wait()
        assert program.returncode == 0
        return [json.loads(line) for line in printed.decode().splitlines()]


@asynccontextmanager
async def home(
    brain: Told,
    certificate: tuple[Path, Path],
    python: Path,
    *,
    token: str = "",
    make: Callable[[], ServerCodec] = server,
) -> AsyncIterator[Home]:
    """Serve a brain over Gemini Live behind TLS."""
    settings = HostSettings(path=KIND.path, token=token, key_names=KIND.key_names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with serving(brain, make, settings) as url:
        port = urlsplit(url).port

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            inward, outward = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, outward))
                group.create_task(_pump(inward, writer))

        terminator = await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context)
        async with terminator:
            own = terminator.sockets[0].getsockname()[1]
            yield Home(f"https://localhost:{own}", certificate[0], python)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    except OSError:
        pass  # the other end has gone, which is what a closed session looks like
    finally:
        target.close()


def flags(messages: list[dict[str, Any]]) -> list[str]:
    """Return what the messages told, in order, without the repetitions of audio."""
    told: list[str] = []
    for message in messages:
        names = [*message.get("server_content", {}), *message]
        told += [one for one in names if one != "server_content" and told[-1:] != [one]]
    return told


def audio_of(messages: list[dict[str, Any]]) -> bytes:
    parts = [
        part["inline_data"]
        for message in messages
        for part in message.get("server_content", {}).get("model_turn", {}).get("parts", [])
    ]
    assert {part["mime_type"] for part in parts} == {"audio/pcm;rate=24000"}
    return b"".join(base64.urlsafe_b64decode(part["data"]) for part in parts)


def words_of(messages: list[dict[str, Any]]) -> str:
    told = [message.get("server_content", {}) for message in messages]
    return "".join(one.get("output_transcription", {}).get("text", "") for one in told)


async def test_a_turn_found_by_the_server_is_answered_with_audio_and_its_transcript(
    certificate: tuple[Path, Path], python: Path
) -> None:
    brain = Told()
    config = {
        "response_modalities": ["AUDIO"],
        "system_instruction": "Be brief.",
        "temperature": 0.5,
        "speech_config": {"voice_config": {"prebuilt_voice_config": {"voice_name": "Kore"}}},
        **TRANSCRIBED,
    }
    async with home(brain, certificate, python, token=KEY) as ours:
        began, *messages = await ours.hold([["audio", spoken()], ["receive"]], config)
    assert began["session_id"]
    assert flags(messages) == [
        "input_transcription",
        "output_transcription",
        "model_turn",
        "output_transcription",
        "generation_complete",
        "turn_complete",
        "usage_metadata",
    ]
    assert words_of(messages) == "Half a dozen."
    assert audio_of(messages) == to_pcm16(SAID)
    usage = messages[-1]["usage_metadata"]
    assert usage["response_tokens_details"][0] == {"modality": "AUDIO", "token_count": 12}
    (turn,) = brain.turns
    assert (turn.instructions, turn.voice, turn.temperature) == ("Be brief.", "Kore", 0.5)
    assert (turn.committed, turn.rate) == (False, 16_000)


async def test_bracketed_speech_and_what_was_said_before_it_reach_the_brain(
    certificate: tuple[Path, Path], python: Path
) -> None:
    brain = Told()
    turns = [
        {"role": "user", "parts": [{"text": "Two?"}]},
        {"role": "model", "parts": [{"text": "Two."}]},
    ]
    steps: list[list[Any]] = [
        ["content", turns, False],
        ["activity_start"],
        ["audio", spoken()],
        ["text", "In one word."],
        ["activity_end"],
        ["receive"],
    ]
    async with home(brain, certificate, python) as ours:
        _, *messages = await ours.hold(steps, {**MANUAL, "response_modalities": ["AUDIO"]})
    assert audio_of(messages) == to_pcm16(SAID)
    assert words_of(messages) == "", "nobody asked for them"
    (turn,) = brain.turns
    assert turn.committed
    assert len(turn.samples) == pytest.approx(1.2 * 16_000, abs=2)
    assert [(one.role, one.text) for one in turn.history] == [
        ("user", "Two?"),
        ("assistant", "Two."),
        ("user", "In one word."),
    ]


async def test_the_end_of_the_stream_and_questions_in_writing_are_answered(
    certificate: tuple[Path, Path], python: Path
) -> None:
    brain = Told()
    question = {"role": "user", "parts": [{"text": "Why?"}]}
    steps: list[list[Any]] = [
        ["audio", spoken()],
        ["audio_stream_end"],
        ["receive"],
        ["instructions", "Whisper."],
        ["content", [question], True],
        ["receive"],
        ["text", "Why not?"],
        ["receive"],
    ]
    async with home(brain, certificate, python) as ours:
        _, *messages = await ours.hold(steps, {"response_modalities": ["AUDIO"]})
    assert flags(messages).count("turn_complete") == 3
    assert audio_of(messages) == 3 * to_pcm16(SAID)
    assert [turn.instructions for turn in brain.turns] == ["", "Whisper.", "Whisper."]
    assert [one.text for one in brain.turns[-1].history if one.role == "user"][-1] == "Why not?"


async def test_speech_into_a_reply_interrupts_it(
    certificate: tuple[Path, Path], python: Path
) -> None:
    brain = Told(endless=True)
    speech: list[list[Any]] = [["activity_start"], ["audio", spoken()], ["activity_end"]]
    steps = [*speech, ["receive_audio"], ["activity_start"], ["receive"]]
    steps += [["audio", spoken()], ["activity_end"], ["receive"]]
    async with home(brain, certificate, python) as ours:
        _, *messages = await ours.hold(steps, {**MANUAL, "response_modalities": ["AUDIO"]})
    assert flags(messages) == [
        "model_turn",
        "interrupted",
        "turn_complete",
        "usage_metadata",
        "model_turn",
        "generation_complete",
        "turn_complete",
        "usage_metadata",
    ]


async def test_a_client_of_vertex_ai_shows_its_token_and_is_told_of_voice_activity(
    certificate: tuple[Path, Path], python: Path
) -> None:
    async with home(Told(), certificate, python, token="ya29.secret") as ours:  # noqa: S106 - none
        place = {"vertexai": True, "project": "p", "location": "us-central1"}
        began, *messages = await ours.run(
            {
                "client": {**place, "http_options": {"base_url": ours.url}},
                "token": "ya29.secret",
                "model": "gemini-live-2.5-flash-native-audio",
                "config": {"explicit_vad_signal": True, "session_resumption": {}},
                "steps": [["audio", spoken()], ["receive"]],
            }
        )
    assert began["session_id"]
    activity = [one["voice_activity"] for one in messages if "voice_activity" in one]
    kinds = [one["voice_activity_type"] for one in activity]
    assert kinds == ["ACTIVITY_START", "ACTIVITY_END"]
    assert flags(messages)[0] == "session_resumption_update"
    assert audio_of(messages) == to_pcm16(SAID)


async def test_what_cannot_be_is_an_error_of_the_package_with_our_words(
    certificate: tuple[Path, Path], python: Path
) -> None:
    async with home(Told(), certificate, python) as ours:
        resumed = await ours.hold([], {"session_resumption": {"handle": "old"}})
        _, bracketed = await ours.hold([["activity_start"], ["receive"]], {})
    (refused,) = resumed
    assert refused["error"]["code"] == 1008
    assert "session not found" in refused["error"]["message"]
    assert bracketed["error"]["code"] == 1007
    assert "Explicit activity control is not supported" in bracketed["error"]["message"]


class Listening(Server):
    """Keeps every message as it came, with its names in camel case."""

    def __init__(self, kept: list[Any]) -> None:
        super().__init__()
        self._kept = kept

    def receive(self, message: Message) -> ServerStep:
        if isinstance(message, Text | Binary):
            self._kept.append(camel(json.loads(message.data)))
        return super().receive(message)


def wanted(options: dict[str, Json], **settings: Any) -> list[Any]:
    """Return the messages of our own client for one turn."""
    codec = client(Settings(options=options, **settings))
    steps = [codec.open(), codec.turn(Turn("user", "Two?")), codec.turn(Turn("assistant", "Two."))]
    steps += [codec.audio(bytes(640)), codec.text("In one word."), codec.end_turn()]
    messages = [message for step in steps for message in step.messages]
    return [json.loads(message.data) for message in messages if isinstance(message, Text)]


TURN: list[list[Any]] = [
    ["content", [{"role": "user", "parts": [{"text": "Two?"}]}], False],
    ["content", [{"role": "model", "parts": [{"text": "Two."}]}], False],
    ["activity_start"],
    ["audio", base64.b64encode(bytes(640)).decode()],
    ["text", "In one word."],
    ["activity_end"],
]


async def test_the_package_sends_what_our_own_client_sends_for_the_same_session(
    certificate: tuple[Path, Path], python: Path
) -> None:
    detection = {
        "disabled": True,
        "start_of_speech_sensitivity": "START_SENSITIVITY_HIGH",
        "end_of_speech_sensitivity": "END_SENSITIVITY_LOW",
        "prefix_padding_ms": 20,
        "silence_duration_ms": 300,
    }
    speech = {
        "voice_config": {"prebuilt_voice_config": {"voice_name": "Kore"}},
        "language_code": "de-DE",
    }
    config = {
        "response_modalities": ["AUDIO"],
        "temperature": 0.5,
        "max_output_tokens": 500,
        "speech_config": speech,
        "thinking_config": {"thinking_budget": 0, "thinking_level": "LOW"},
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "realtime_input_config": {
            "automatic_activity_detection": detection,
            "activity_handling": "NO_INTERRUPTION",
            "turn_coverage": "TURN_INCLUDES_ALL_INPUT",
        },
        **TRANSCRIBED,
        "session_resumption": {},
        "context_window_compression": {"trigger_tokens": 9000, "sliding_window": {}},
        "proactivity": {"proactive_audio": True},
    }
    options: dict[str, Json] = {
        "language": "de-DE",
        "start_sensitivity": "high",
        "end_sensitivity": "low",
        "prefix_padding_ms": 20,
        "silence_duration_ms": 300,
        "activity_handling": "no_interruption",
        "turn_coverage": "all_input",
        "input_transcription": True,
        "session_resumption": True,
        "compression": {"triggerTokens": 9000, "slidingWindow": {}},
        "proactive_audio": True,
        "thinking_budget": 0,
        "thinking_level": "low",
        "max_output_tokens": 500,
    }
    kept: list[Any] = []
    async with home(Told(), certificate, python, make=lambda: Listening(kept)) as ours:
        await ours.hold([*TURN, ["receive"]], config)
    assert kept == wanted(
        options,
        model="m",
        instructions="Be brief.",
        voice="Kore",
        temperature=0.5,
        turn_end="commit",
    )


async def test_the_package_does_so_for_vertex_ai_and_for_history_in_the_setup(
    certificate: tuple[Path, Path], python: Path
) -> None:
    kept: list[Any] = []
    model = "projects/p/locations/l/publishers/google/models/m"
    async with home(Told(), certificate, python, make=lambda: Listening(kept)) as ours:
        await ours.run(
            {
                "client": {
                    "vertexai": True,
                    "project": "p",
                    "location": "l",
                    "http_options": {"base_url": ours.url},
                },
                "token": "ya29.secret",
                "model": "m",
                "config": {**MANUAL, "explicit_vad_signal": True},
                "steps": [*TURN, ["receive"]],
            }
        )
        options: dict[str, Json] = {"auth": "bearer", "output_transcription": False}
        options["explicit_vad_signal"] = True
        assert kept == wanted(options, model=model, turn_end="commit")
        kept.clear()
        history = {"initial_history_in_client_content": True}
        config = {"response_modalities": ["AUDIO"], "history_config": history}
        await ours.hold([*TURN[:2], ["content", None, True]], config)
    options = {"initial_history": True, "output_transcription": False}
    assert kept == wanted(options, model="m")[:4]
