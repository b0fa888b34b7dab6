"""Python functions as endpoints: called off the event loop, their exceptions are their own."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.python_transport import OPTIONS, Functions, PythonTransport
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.client.target import Target, attempt
from voxmeter.client.transport import Launch, TransportSettings
from voxmeter.endpoints.codec import Address, Published, Settings, Turn
from voxmeter.endpoints.errors import UserError

PATIENCE = Patience(connect_timeout_s=20, first_reply_timeout_s=20, reply_limit_s=20)
SHORT = replace(PATIENCE, first_reply_timeout_s=0.2, reply_limit_s=0.4)
SOUND = b"\1\2" * 1_600

FUNCTIONS = """
import array, asyncio, json, sys, threading, time
from pathlib import Path

import beside

closed = threading.Event()
stop = threading.Event()
threads = []

def echo(question, rate):
    waveform, own = question
    threads.append(threading.current_thread().name)
    return waveform, rate

def stream(question, rate):
    yield "one "
    yield [0.0, 0.5], 8000
    yield "two"

async def later(question, rate):
    await asyncio.sleep(0)
    return "later"

def fields(question, rate, text=None, instructions=None, history=None, voice=None):
    turns = [(turn["text"], turn["audio"] and len(turn["audio"][0])) for turn in history]
    return json.dumps([text, instructions, turns, voice])

def fail(question, rate):
    raise ValueError("boom\\n\\x1b[31m")

def leave(question, rate):
    sys.exit(3)

def wrong(question, rate):
    return object()

def missing(question, rate):
    return {"audio": b"RIFFxxxxWAVE"}

def named(question, rate):
    return "reply.wav"

def encoded(question, rate):
    return Path(beside.FOLDER, "reply.wav").read_bytes()

def hang(question, rate):
    stop.wait(60)

def forever(question, rate):
    try:
        while not stop.is_set():
            yield [0.0, 0.5] * 800
            time.sleep(0.001)
    finally:
        closed.set()

def flood(question, rate):
    while True:
        yield bytes(1 << 20)

def nothing(question, rate):
    return None

number = 3
"""


def question(rate: int) -> Utterance:
    return Utterance(SOUND, rate, 10, 1_590)


@dataclass(frozen=True)
class Made:
    """A function as an endpoint."""

    target: Target
    functions: Functions

    async def ask(self, patience: Patience = PATIENCE, **settings: Any) -> Capture:
        target = replace(self.target, settings=Settings(**settings), patience=patience)
        return await attempt(target, question)

    @property
    def module(self) -> Any:
        return sys.modules["served_functions"]


@contextmanager
def function(folder: Path, name: str, **more: Any) -> Iterator[Made]:
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "beside.py").write_text(f"FOLDER = {str(folder)!r}\n")
    whole = io.BytesIO()
    with wave.open(whole, "wb") as file:
        file.setparams((1, 2, 8_000, 0, "NONE", ""))
        file.writeframes(SOUND)
    (folder / "reply.wav").write_bytes(whole.getvalue())
    options = {"callable": name, "waveform": "list"}
    made = Functions(Launch("bench.toml", folder, options=options, **more))
    with made as carrier:
        yield Made(Target("f", "python", "", carrier=carrier), made)
    if "served_functions" in sys.modules:
        sys.modules["served_functions"].stop.set()


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("served_functions", "beside", "broken", "functions"):
        monkeypatch.delitem(sys.modules, name, raising=False)


async def test_a_function_is_called_in_one_thread_off_the_event_loop(tmp_path: Path) -> None:
    with function(tmp_path, "functions.py:echo") as made:
        captures = [await made.ask() for _ in range(2)]
        assert [capture.outcome for capture in captures] == ["ended", "ended"]
        assert captures[0].audio[0][1] == SOUND
        assert set(made.module.threads) == {"python functions.py:echo"}
        assert threading.current_thread().name not in made.module.threads


async def test_what_it_yields_comes_in_order(tmp_path: Path) -> None:
    with function(tmp_path, "functions.py:stream") as made:
        capture = await made.ask()
    assert capture.reply_text == "one two"
    ((index, data),) = capture.audio
    assert (capture.rows[index]["rate"], data) == (8_000, b"\0\0\0\x40")


async def test_a_function_with_async_has_a_loop_of_its_own(tmp_path: Path) -> None:
    with function(tmp_path, "functions.py:later") as made:
        assert (await made.ask()).reply_text == "later"


async def test_a_module_is_found_in_the_folder_or_where_python_looks(tmp_path: Path) -> None:
    with function(tmp_path, "functions:later") as made:
        assert (await made.ask()).reply_text == "later"
    with function(tmp_path, "json:dumps") as made:
        assert "JSON" not in ((await made.ask()).fault or "")


async def test_it_gets_what_it_has_parameters_for(tmp_path: Path) -> None:
    with function(tmp_path, "functions.py:fields") as made:
        settings = Settings(instructions="Be brief.", voice="ann")
        codec = replace(made.target, settings=settings).codec("t")
        ask = Ask(
            question,
            history=[Turn("user", "One?", b"\0\0" * 7), Turn("assistant", "Two.")],
            text="Three?",
            patience=PATIENCE,
        )
        capture = await converse(codec, made.target.transport(), Address(""), ask)
    assert capture.reply_text == '["Three?", "Be brief.", [["One?", 7], ["Two.", null]], "ann"]'


@pytest.mark.parametrize("how", ["named", "encoded"])
async def test_audio_files_are_read(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with function(tmp_path, f"functions.py:{how}") as made:
        monkeypatch.chdir(tmp_path)  # a path starts where the process runs, as always in Python
        capture = await made.ask()
    assert capture.outcome == "ended"
    ((index, data),) = capture.audio
    assert (capture.rows[index]["rate"], data) == (8_000, SOUND)


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("fail", r"server: ValueError: boom\n\x1b[31m (functions.py, line 3"),
        ("leave", "server: SystemExit: 3 (functions.py, line "),
        ("wrong", "server: returned object, not a list of numbers; sound must be floats from -1"),
        ("missing", "the bytes that it returned"),
    ],
)
async def test_its_exceptions_refuse_the_trial_and_leave_it_usable(
    tmp_path: Path, how: str, fault: str
) -> None:
    with function(tmp_path, f"functions.py:{how}") as made:
        for _ in range(2):
            capture = await made.ask()
            assert capture.outcome == "refused"
            assert fault in (capture.fault or "")
            assert (capture.fault or "").isprintable()


async def test_nothing_at_all_is_an_empty_reply(tmp_path: Path) -> None:
    with function(tmp_path, "functions.py:nothing") as made:
        capture = await made.ask()
    assert (capture.outcome, capture.audio, capture.reply_text) == ("ended", [], "")


async def test_one_that_hangs_times_out_and_the_next_question_gets_another_thread(
    tmp_path: Path,
) -> None:
    with function(tmp_path, "functions.py:hang") as made:
        for _ in range(2):
            assert (await made.ask(SHORT)).outcome == "timeout"


async def test_one_that_does_not_end_is_truncated_and_closed(tmp_path: Path) -> None:
    with function(tmp_path, "functions.py:forever") as made:
        capture = await made.ask(SHORT)
        assert capture.outcome == "truncated"
        assert len(capture.audio) > 1
        assert await asyncio.to_thread(made.module.closed.wait, 20)


async def test_one_that_speaks_faster_than_memory_allows_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voxmeter.client.python_transport._MOST_BYTES", 2**20)
    with function(tmp_path, "functions.py:forever") as made:
        capture = await made.ask()
        assert (capture.outcome, len(capture.audio) > 1) == ("protocol_error", True)
        assert "more than 1 MiB in one reply" in (capture.fault or "")
        assert await asyncio.to_thread(made.module.closed.wait, 20)


async def test_one_that_floods_is_stopped(tmp_path: Path) -> None:
    wire = TransportSettings(max_message_mib=1)
    with function(tmp_path, "functions.py:flood", wire=wire) as made:
        transport = made.target.transport()
        assert isinstance(transport, PythonTransport)
        await transport.connect(Address(""))
        codec = made.target.codec("t")
        codec.audio(SOUND)
        for message in codec.end_turn().messages:
            await transport.send(message)
        assert transport._call is not None
        await asyncio.wrap_future(transport._call)
        await transport.close()


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("raise RuntimeError('no GPU')", "RuntimeError: no GPU (broken.py, line 1)"),
        ("import no_such_module_here", "No module named 'no_such_module_here'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("f = 3", "broken.py: f is not a function"),
        ("", "broken.py: f is missing"),
    ],
)
async def test_a_module_that_cannot_be_imported_is_disconnected(
    tmp_path: Path, source: str, fault: str
) -> None:
    (tmp_path / "broken.py").write_text(source)
    with function(tmp_path, "broken.py:f") as made:
        for _ in range(2):
            capture = await made.ask()
            assert capture.outcome == "disconnected"
            assert fault in (capture.fault or "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, r"options\.callable: is missing; write callable = "),
        ({"callable": 3}, r"options\.callable: is not text"),
        ({"callable": "nowhere.py:f"}, r"there is no file nowhere\.py; paths start from"),
        ({"callable": "no_such_module:f"}, "there is no module no_such_module; install it"),
        ({"callable": "not a module"}, "there is no module not a module"),
        ({"callable": "json:f", "waveform": "tape"}, r"options\.waveform: is 'tape'; known: auto"),
    ],
)
def test_what_is_not_there_is_the_users_one_line(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words) as caught:
        Functions(Launch("bench.toml", tmp_path, options=options))
    assert "\n" not in str(caught.value)
    assert set(OPTIONS) == {"callable", "waveform", "output_modalities"}


async def test_what_cannot_be_sent_is_our_own_mistake(tmp_path: Path) -> None:
    with function(tmp_path, "functions.py:echo") as made:
        transport = made.target.transport()
        with pytest.raises(TypeError, match="Published"):
            await transport.send(Published("topic", b""))
        assert await transport.rtt_ms() is None
        await transport.close()
