"""Whole sessions with genuine pipecat: its transports, serializer, voice activity and RTVI."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import wave
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import attempt_in
from spoken import Spoken, utterances

from genuine.programs import HERE, python_of, running
from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.finish import finish
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.client.transport import TransportSettings
from voxmeter.client.websocket import WebSocketTransport
from voxmeter.endpoints import pipecat_frames as frames
from voxmeter.endpoints import protobuf_wire as wire
from voxmeter.endpoints.codec import Binary, Json, Settings
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Event,
    InputTranscript,
    Interrupted,
    Note,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
    SpeechStopped,
    Usage,
)
from voxmeter.endpoints.pipecat import client

RATE = 16_000
UVICORN = r"running on http://[^:]+:(\d+)"
BRIEF = Patience(first_reply_timeout_s=10, reply_limit_s=20)
RNG = random.Random(20_241_130)  # noqa: S311 - any draw will do


def said(number: int) -> Spoken:
    """Return one short sentence."""
    return utterances("hibari")[number]


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with what the agents of this module say, two seconds of speech."""
    spoken = said(0)
    path = tmp_path_factory.mktemp("pipecat") / "answer.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(spoken.rate)
        file.writeframes(to_pcm16(spoken.samples))
    return path


@pytest.fixture(scope="module")
def agents(answer: Path) -> Iterator[str]:
    """Yield the URL of a server that makes an agent for every session."""
    program = (HERE / "pipecat_server.py", answer)
    with running(python_of("pipecat"), *program, ready=UVICORN) as server:
        yield f"ws://127.0.0.1:{server.port}/ws"


@dataclass
class Heard:
    """What a session leaves behind, and the events that it was made of."""

    capture: Capture
    events: list[Event]
    row: dict[str, Any]

    def order(self, *kinds: type[Event]) -> list[str]:
        """Return the names of all events of these kinds, in order, repeats left out."""
        names = [type(event).__name__ for event in self.events if isinstance(event, kinds)]
        return [name for name, before in zip(names, ["", *names], strict=False) if name != before]


def question(*pauses_s: float) -> Utterance:
    """Return two sentences and more, with pauses between them, as one utterance."""
    import soxr

    spoken = said(7)
    voice = np.asarray(soxr.resample(spoken.samples, spoken.rate, RATE), dtype=np.float32)
    lead = RATE // 2
    parts = [np.zeros(lead, np.float32), voice]
    for pause_s in pauses_s:
        parts += [np.zeros(int(pause_s * RATE), np.float32), voice]
    whole = np.concatenate(parts)
    return Utterance(to_pcm16(whole), RATE, lead, len(whole))


async def ask(
    url: str,
    folder: Path,
    *pauses_s: float,
    text: str = "",
    patience: Patience = BRIEF,
    **options: Json,
) -> Heard:
    """Hold one session through the driver, as a run does."""
    events: list[Event] = []
    asked = question(*pauses_s)
    capture = await attempt(
        Target("agent", "pipecat", url, Settings(options=options), patience=patience),
        lambda _: asked,
        tag="mine",
        text=text,
        listen=events.append,
    )
    return Heard(capture, events, finish(capture, attempt_in(folder)))


def pcm_of(heard: Heard, reply: str) -> bytes:
    return b"".join(
        event.data
        for event in heard.events
        if isinstance(event, ReplyAudio) and event.reply == reply
    )


def pcm_in(path: Path) -> bytes:
    with wave.open(str(path)) as file:
        pcm: bytes = file.readframes(file.getnframes())
        return pcm


async def test_a_question_is_heard_and_its_answer_comes_to_the_last_sample(
    agents: str, answer: Path, tmp_path: Path
) -> None:
    heard = await ask(agents, tmp_path)
    assert (heard.row["status"], heard.row["fault"]) == ("ok", None)
    assert heard.order(Ready, SpeechStarted, InputTranscript, SpeechStopped) == [
        "Ready",
        "SpeechStarted",
        "InputTranscript",
        "SpeechStopped",
    ]
    assert heard.order(ReplyStarted, ReplyAudio, ReplyEnded, Interrupted) == [
        "ReplyStarted",
        "ReplyAudio",
        "ReplyEnded",
    ]
    assert heard.events[-1] == ReplyEnded("completed", "1")
    spoken, came = pcm_in(answer), pcm_of(heard, "1")
    assert came[: len(spoken)] == spoken
    assert not came[len(spoken) :].strip(b"\0")  # the last frame is filled up with silence
    assert {event.rate for event in heard.events if isinstance(event, ReplyAudio)} == {24_000}
    assert heard.capture.reply_text == "I was told: what was spoken."
    assert heard.capture.usage["characters"] == len("I was told: what was spoken.")
    assert heard.row["latency_kind"] == "server-vad"


async def test_output_comes_in_frames_of_40_ms(agents: str, answer: Path, tmp_path: Path) -> None:
    heard = await ask(agents, tmp_path)
    sizes = [len(event.data) for event in heard.events if isinstance(event, ReplyAudio)]
    assert sizes == [1920] * -(-len(pcm_in(answer)) // 1920)


async def test_each_stage_tells_its_own_time_in_the_log(agents: str, tmp_path: Path) -> None:
    heard = await ask(agents, tmp_path)
    told = [row["text"] for row in heard.capture.rows if row.get("name") == "metrics"]
    stages = {one["processor"].split("#")[0] for text in told if text for one in _ttfb(text)}
    assert stages == {"Ears", "Mind", "Voice"}


def _ttfb(text: str) -> list[dict[str, Any]]:
    return list(json.loads(text).get("ttfb", []))


async def test_a_question_in_writing_reaches_the_model_with_what_is_spoken(
    agents: str, tmp_path: Path
) -> None:
    heard = await ask(agents, tmp_path, text="Choose B.")
    assert heard.row["status"] == "ok"
    assert heard.capture.reply_text == "I was told: Choose B. and what was spoken."


async def test_a_greeting_is_heard_out_and_is_no_answer(agents: str, tmp_path: Path) -> None:
    heard = await ask(f"{agents}?greet=1", tmp_path, first_speaker="endpoint")
    assert heard.row["status"] == "ok"
    assert heard.capture.reply_text == "I was told: what was spoken."
    kinds = (SpeechStarted, ReplyStarted, ReplyEnded)
    assert heard.order(*kinds) == [
        *("ReplyStarted", "ReplyEnded"),
        *("SpeechStarted", "ReplyStarted", "ReplyEnded"),
    ]


async def test_two_turns_of_one_session_are_answered_and_the_second_answer_counts(
    agents: str, answer: Path, tmp_path: Path
) -> None:
    heard = await ask(agents, tmp_path, 5.0)
    assert heard.row["status"] == "ok"
    ended = [event for event in heard.events if isinstance(event, ReplyEnded)]
    assert ended == [ReplyEnded("completed", "1"), ReplyEnded("completed", "2")]
    assert not any(isinstance(event, Interrupted) for event in heard.events)
    spoken = pcm_in(answer)
    assert all(pcm_of(heard, reply)[: len(spoken)] == spoken for reply in "12")
    assert heard.capture.reply_text == "I was told: what was spoken."


async def test_a_user_who_goes_on_cuts_the_reply_and_the_next_one_counts(
    agents: str, answer: Path, tmp_path: Path
) -> None:
    heard = await ask(agents, tmp_path, 1.5)
    assert heard.row["status"] == "ok"
    ended = [event for event in heard.events if isinstance(event, ReplyEnded)]
    assert ended == [ReplyEnded("cancelled", "1"), ReplyEnded("completed", "2")]
    assert sum(isinstance(event, Interrupted) for event in heard.events) == 1
    assert 0 < len(pcm_of(heard, "1")) < len(pcm_in(answer)) <= len(pcm_of(heard, "2"))
    assert heard.capture.reply_text == "I was told: what was spoken and what was spoken."


async def test_a_model_that_fails_is_told_in_its_own_words(agents: str, tmp_path: Path) -> None:
    patience = Patience(first_reply_timeout_s=3)
    heard = await ask(f"{agents}?fail=1", tmp_path, patience=patience)
    assert heard.row["status"] == "timeout"
    assert "the model is out of memory" in heard.row["fault"]


async def test_a_bot_without_rtvi_is_heard_until_it_is_quiet(
    agents: str, answer: Path, tmp_path: Path
) -> None:
    heard = await ask(f"{agents}?plain=1", tmp_path, rtvi=False)
    assert heard.row["status"] == "ok"
    assert pcm_of(heard, "")[: len(pcm_in(answer))] == pcm_in(answer)
    assert not any(isinstance(event, ReplyEnded | Note) for event in heard.events)


async def test_a_server_of_one_session_takes_them_one_after_another_and_refuses_a_second(
    answer: Path, tmp_path: Path
) -> None:
    program = (HERE / "pipecat_server.py", answer, "single")
    with running(python_of("pipecat"), *program) as server:
        url = f"ws://127.0.0.1:{server.port}"
        async with connected(url):
            refused = await ask(url, tmp_path)
        assert refused.capture.outcome == "refused"
        assert "already has a connected client" in str(refused.capture.fault)
        for _ in range(2):
            heard = await ask(url, tmp_path)
            assert heard.row["status"] == "ok"
            assert pcm_of(heard, "1")[: len(pcm_in(answer))] == pcm_in(answer)


@dataclass
class Talk:
    """A session that a test leads by itself."""

    transport: WebSocketTransport
    events: asyncio.Queue[Event] = field(default_factory=asyncio.Queue)

    async def until(self, kind: type[Event]) -> list[Event]:
        """Return what comes, up to the first event of a kind; notes are left out."""
        found: list[Event] = []
        async with asyncio.timeout(20):
            while not found or not isinstance(found[-1], kind):
                event = await self.events.get()
                found += [] if isinstance(event, Note) else [event]
        return found


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Talk]:
    """Yield a session that is ready."""
    codec = client(Settings())
    talk = Talk(WebSocketTransport(TransportSettings()))

    async def listen() -> None:
        async for _, message in talk.transport.receive():
            for event in codec.receive(message).events:
                talk.events.put_nowait(event)

    await talk.transport.connect(codec.address(url, None))
    async with asyncio.TaskGroup() as group:
        listener = group.create_task(listen(), name="listen")
        try:
            for message in codec.open().messages:
                await talk.transport.send(message)
            await talk.until(Ready)
            yield talk
        finally:
            await talk.transport.close()
            listener.cancel()


async def test_a_reply_that_we_stop_is_cut_and_the_next_one_is_whole(agents: str) -> None:
    written: dict[str, Json] = {"content": "Hello?"}
    (stop,) = client(Settings()).cancel(0).messages
    async with connected(agents) as talk:
        await talk.transport.send(frames.rtvi("send-text", written, "1"))
        before = await talk.until(ReplyAudio)
        kinds = [type(one) for one in before if not isinstance(one, ReplyText | Usage)]
        assert kinds == [ReplyStarted, ReplyAudio]
        await talk.transport.send(stop)
        cut = await talk.until(ReplyEnded)
        assert cut[-2:] == [Interrupted(), ReplyEnded("cancelled", "1")]
        await talk.transport.send(frames.rtvi("send-text", written, "2"))
        whole = await talk.until(ReplyEnded)
        assert whole[-1] == ReplyEnded("completed", "2")
        assert not any(isinstance(event, Interrupted) for event in whole)


READER = """
import json, sys
import pipecat.frames.protobufs.frames_pb2 as frames_pb2
from google.protobuf.message import DecodeError
for line in sys.stdin:
    frame = frames_pb2.Frame()
    try:
        frame.ParseFromString(bytes.fromhex(line))
    except DecodeError:
        print(json.dumps(None))
        continue
    kind = frame.WhichOneof("frame")
    found = getattr(frame, kind) if kind else None
    values = {one.name: getattr(found, one.name) for one in found.DESCRIPTOR.fields} if kind else {}
    values = {k: v.hex() if isinstance(v, bytes) else v for k, v in values.items()}
    print(json.dumps([kind, values]))
"""
KINDS: dict[int, tuple[str, dict[str, int]]] = {
    1: ("text", {"id": 1, "name": 2, "text": 3}),
    2: (
        "audio",
        {"id": 1, "name": 2, "audio": 3, "sample_rate": 4, "num_channels": 5, "pts": 6},
    ),
    3: ("transcription", {"id": 1, "name": 2, "text": 3, "user_id": 4, "timestamp": 5}),
    4: ("message", {"data": 1}),
    5: ("interruption", {"id": 1, "name": 2}),
}
WHOLE = {"id": 64, "sample_rate": 32, "num_channels": 32, "pts": 64}


def ours(data: bytes) -> list[Any] | None:
    """Return what our reader finds in a frame, in the shape of the genuine one's findings."""
    try:
        found = wire.WireFields("pipecat", Binary(data), data).one_of(KINDS)
        if found is None:
            return [None, {}]
        kind, names = KINDS[found[0]]
        return [kind, {name: _value(found[1], name, number) for name, number in names.items()}]
    except ProtocolError:
        return None


def _value(fields: wire.WireFields, name: str, number: int) -> object:
    if name in WHOLE:
        return fields.whole(number, WHOLE[name])
    return fields.data(number).hex() if name == "audio" else fields.text(number)


def drawn() -> bytes:
    """Return a frame with any fields, known and unknown, and sometimes with a flaw."""
    pieces = [_drawn_field(depth=0) for _ in range(RNG.randint(0, 4))]
    data = bytearray(b"".join(pieces))
    for _ in range(RNG.choice([0, 0, 0, 1, 2])):
        if data:
            data[RNG.randrange(len(data))] = RNG.randrange(256)
    return bytes(data[: RNG.randint(0, len(data))] if RNG.random() < 0.2 else data)


def _drawn_field(depth: int) -> bytes:
    number = RNG.choice([1, 2, 3, 4, 5, 6, 9, 300])
    match RNG.randrange(5):
        case 0:
            return wire.field(number, RNG.getrandbits(RNG.choice([7, 32, 64])))
        case 1:
            return wire.varint(number << 3 | 1) + RNG.randbytes(8)
        case 2:
            return wire.varint(number << 3 | 5) + RNG.randbytes(4)
        case _ if depth == 0:
            inner = b"".join(_drawn_field(depth=1) for _ in range(RNG.randint(0, 4)))
            return wire.field(number, inner)
        case _:
            return wire.field(number, RNG.choice([b"", b"word", "é".encode(), b"\xff", b"\0\1"]))


def test_our_reader_finds_in_every_frame_what_the_genuine_protobuf_finds() -> None:
    messages = [drawn() for _ in range(5_000)]
    messages += [
        message.data
        for message in (
            frames.audio(b"\1\0\2\0", 48_000),
            frames.interruption(),
            frames.rtvi("client-ready", {"version": "2.0.0"}, "1"),
        )
    ]
    done = subprocess.run(
        [python_of("pipecat"), "-c", READER],
        input="\n".join(data.hex() or " " for data in messages),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    genuine = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", "null"))
    ]
    found = [ours(data) for data in messages]
    assert len(genuine) == len(messages)
    for data, theirs, mine in zip(messages, genuine, found, strict=True):
        if theirs is not None:  # a flaw in a field that nobody asks for is none to us
            assert mine == theirs, data.hex()
    read = sum(theirs is not None and theirs[0] is not None for theirs in genuine)
    refused = [theirs is None for theirs in genuine]
    both = sum(theirs is None and mine is None for theirs, mine in zip(genuine, found, strict=True))
    assert read > 1_000
    assert both > 0.9 * sum(refused) > 500
