"""Whole sessions with genuine Gradio, of the version that GLM-4-Voice's demo asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from attempt_logs import voice
from captures import attempt_in

from genuine.programs import HERE, Program, python_of, running
from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Utterance
from voxmeter.client.finish import finish
from voxmeter.client.http import HttpTransport
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints import glm_4_voice
from voxmeter.endpoints.codec import Json, Settings, Step
from voxmeter.endpoints.events import Event, Fault, Ready, ReplyAudio, ReplyEnded, ReplyText

BRIEF = Patience(first_reply_timeout_s=20, reply_limit_s=30)
PASSWORD = "not-a-secret"  # noqa: S105 - of a server that lives as long as a test


@dataclass
class Gates:
    """What the server waits for before each piece of an answer.

    Attributes:
        folder: Where it looks.
    """

    folder: Path

    def open(self, *names: str) -> None:
        """Let the server go on."""
        for name in names:
            (self.folder / f"go-{name}").touch()

    def open_all(self) -> None:
        """Let the server go through."""
        self.open("0", "1", "2", "end")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gates")


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Yield what keeps Gradio from asking anyone else anything, and its files in one place."""
    place = str(tmp_path_factory.mktemp("gradio"))
    return {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1", "GRADIO_TEMP_DIR": place}


@pytest.fixture(scope="module")
def app(folder: Path, quiet: dict[str, str]) -> Iterator[Program]:
    program = (HERE / "gradio_server.py", folder)
    with running(python_of("gradio"), *program, environment=quiet) as server:
        yield server


@pytest.fixture
def url(app: Program) -> str:
    return f"http://127.0.0.1:{app.port}"


@pytest.fixture
def gates(folder: Path) -> Gates:
    for one in folder.iterdir():
        one.unlink()
    return Gates(folder)


@dataclass
class Heard:
    """What a session led to."""

    row: dict[str, Any]
    events: list[Event] = field(default_factory=list)

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)


async def ask(
    url: str,
    folder: Path,
    kind: str = "gradio",
    text: str = "",
    key: str | None = None,
    listen: Callable[[Event], None] = lambda _: None,
    patience: Patience = BRIEF,
    **options: Json,
) -> Heard:
    """Hold one session through the driver, as a run does."""
    events: list[Event] = []

    def question(rate: int) -> Utterance:
        pcm = to_pcm16(voice(500))
        return Utterance(pcm, rate, 0, len(pcm) // 2)

    def both(event: Event) -> None:
        events.append(event)
        listen(event)

    settings = Settings(options=options)
    target = Target("app", kind, url, settings, patience=patience, api_key=key)
    capture = await attempt(target, question, text=text, listen=both)
    return Heard(finish(capture, attempt_in(folder)), events)


async def test_each_piece_of_streamed_sound_is_heard_before_the_next_is_made(
    url: str, gates: Gates, tmp_path: Path
) -> None:
    names = iter(["1", "2", "end"])

    def go_on(event: Event) -> None:
        if isinstance(event, ReplyAudio):
            gates.open(next(names))

    gates.open("0")
    heard = await ask(url, tmp_path, "glm-4-voice", listen=go_on)
    assert (heard.row["status"], heard.row["fault"]) == ("ok", None)
    assert heard.count(ReplyAudio) == 3
    assert heard.row["reply_text"] == "Turn 1, at 0.2."
    # 1200 ms of tones, each of the three pieces with what AAC puts before and behind it: the file
    # that holds them once more was left alone.
    assert 1200 <= heard.row["latency"]["reply_ms"] <= 1200 + 3 * 2048 / 22.05
    assert heard.row["latency"]["first_audible_ms"] < heard.row["latency"]["first_text_ms"]


async def test_a_session_that_leaves_ends_its_call_and_the_next_one_is_served(
    app: Program, url: str, gates: Gates, tmp_path: Path
) -> None:
    gates.open("0")
    before = len(app.lines)
    short = Patience(first_reply_timeout_s=20, reply_limit_s=1)
    heard = await ask(url, tmp_path, "glm-4-voice", patience=short)
    assert (heard.row["status"], heard.count(ReplyAudio)) == ("truncated", 1)
    gates.open_all()
    heard = await ask(url, tmp_path, "glm-4-voice")
    assert (heard.row["status"], heard.row["reply_text"]) == ("ok", "Turn 1, at 0.2.")
    made = [line for line in app.lines[before:] if line.startswith("made piece")]
    # Gradio sees that nobody listens when the call gives its next piece, and asks for no other.
    assert made == [f"made piece {number}" for number in (0, 1, 0, 1, 2)]


async def test_the_tokens_of_a_turn_are_passed_back_for_the_next(url: str, gates: Gates) -> None:
    gates.open_all()
    codec = glm_4_voice.client(Settings(session_tag="two turns", temperature=0.5))
    transport = HttpTransport(TransportSettings())
    await transport.connect(codec.address(url, None))
    said: list[str] = []

    async def send(step: Step) -> None:
        for message in step.messages:
            await transport.send(message)

    await send(codec.open())
    async with asyncio.timeout(BRIEF.reply_limit_s):
        async for arrival in transport.receive():
            step = codec.receive(arrival.message)
            await send(step)
            said += [event.text for event in step.events if isinstance(event, ReplyText)]
            assert not [event for event in step.events if isinstance(event, Fault)]
            over = any(isinstance(event, ReplyEnded) for event in step.events)
            if over and len(said) == 2:
                break
            if over or any(isinstance(event, Ready) for event in step.events):
                codec.audio(to_pcm16(voice(200)))
                await send(codec.end_turn())
    await transport.close()
    assert said == ["Turn 1, at 0.5.", "Turn 2, at 0.5."]


async def test_a_failure_that_is_not_for_users_is_told_as_one(
    url: str, gates: Gates, tmp_path: Path
) -> None:
    heard = await ask(url, tmp_path, "glm-4-voice", text="boom", input_mode="text")
    assert heard.row["status"] == "refused"
    assert "keeps the reason to itself" in heard.row["fault"]


async def test_a_file_and_words_come_from_the_outputs_that_are_named(
    url: str, tmp_path: Path
) -> None:
    heard = await ask(
        url,
        tmp_path,
        text="hello",
        api_name="/whole",
        data=["{text}", "{audio}"],
        text_output=0,
        audio_output=1,
    )
    assert (heard.row["status"], heard.row["reply_text"]) == ("ok", "You said hello.")
    assert heard.row["latency"]["reply_ms"] == pytest.approx(500, abs=12)


async def test_words_are_heard_as_they_grow(url: str, gates: Gates, tmp_path: Path) -> None:
    names = iter(["1", "2", "end"])

    def go_on(event: Event) -> None:
        if isinstance(event, ReplyText):
            gates.open(next(names))

    gates.open("0")
    heard = await ask(
        url,
        tmp_path,
        listen=go_on,
        api_name="/words",
        data=["", "{audio}"],
        text_output=0,
    )
    assert heard.row["reply_text"] == "One two three."
    assert heard.count(ReplyText) == 3


async def test_state_belongs_to_a_session_and_every_question_has_its_own(
    url: str, tmp_path: Path
) -> None:
    for _ in range(2):
        heard = await ask(url, tmp_path, api_name="/count", data=["{audio}"], text_output=0)
        assert heard.row["reply_text"] == "question 1"


async def test_an_error_for_users_keeps_its_words(url: str, tmp_path: Path) -> None:
    heard = await ask(url, tmp_path, api_name="/fail", data=["{audio}"], text_output=0)
    assert heard.row["status"] == "refused"
    assert heard.row["fault"] == "server: no audio tokens extracted"


async def test_inputs_that_do_not_fit_are_told_before_the_question(
    url: str, tmp_path: Path
) -> None:
    heard = await ask(url, tmp_path, api_name="/fail", data=["{audio}", 1], text_output=0)
    assert "2 inputs are given, the function takes 1: audio" in heard.row["fault"]
    heard = await ask(url, tmp_path, api_name="/nothing", data=["{audio}"], text_output=0)
    assert "it has /inference_fn, /whole, /words, /count, /fail" in heard.row["fault"]


async def test_the_apps_own_login_lets_in_who_knows_the_password(
    folder: Path, quiet: dict[str, str], gates: Gates, tmp_path: Path
) -> None:
    gates.open_all()
    program = (HERE / "gradio_server.py", folder, f"alice:{PASSWORD}")
    with running(python_of("gradio"), *program, environment=quiet) as server:
        url = f"http://127.0.0.1:{server.port}"
        heard = await ask(url, tmp_path, "glm-4-voice", key=PASSWORD, login="alice")
        assert (heard.row["status"], heard.row["reply_text"]) == ("ok", "Turn 1, at 0.2.")
        heard = await ask(url, tmp_path, "glm-4-voice", key="wrong", login="alice")
        assert heard.row["fault"] == "auth: login: HTTP 400: Incorrect credentials."
        heard = await ask(url, tmp_path, "glm-4-voice")
        assert heard.row["fault"].startswith("auth: HTTP 401: Not authenticated; set api_key_env")
