"""Relatives of OpenAI Realtime from end to end: settings of a preset, driver, websocket, a peer.

The peers are written from what the servers' sources and pages say that they do, and take nothing
that these would not take.
"""

from __future__ import annotations

import base64
import json
import wave
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from realtime_rows import endpoint_of, settings_of
from websockets.asyncio.server import ServerConnection, serve
from websockets.typing import Subprotocol

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.encodings import decoder, encoder
from voxmeter.client.finish import decode
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.client.transport import TransportSettings
from voxmeter.client.websocket import WebSocketTransport
from voxmeter.endpoints.openai_realtime import client
from voxmeter.scoring import marks

LOUD = 1000
PATIENCE = Patience(
    connect_timeout_s=10, first_reply_timeout_s=10, reply_limit_s=15, drain_ms=200, quiet_ms=200
)
Peer = Callable[["Wire"], Awaitable[None]]
Samples = NDArray[np.int16]


class Wire:
    """The peer's end of one session; everything that came is kept."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.came: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(await self.connection.recv())
        self.came.append(event)
        return event

    async def say(self, kind: str, **fields: object) -> None:
        await self.connection.send(json.dumps({"type": kind, **fields}))


def tone(ms: int, rate: int) -> Samples:
    return (8000 * np.sin(np.arange(rate * ms // 1000) * 2 * np.pi * 300 / rate)).astype("<i2")


def question(rate: int) -> Utterance:
    """300 ms of sound, 100 ms of silence."""
    pcm = np.concatenate([tone(300, rate), np.zeros(rate // 10, "<i2")]).tobytes()
    return Utterance(pcm, rate, 0, rate * 300 // 1000)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@asynccontextmanager
async def listening(peer: Peer, wires: list[Wire], subprotocol: str | None) -> AsyncIterator[str]:
    """Yield the URL of a peer; one that has a sub-protocol refuses clients that do not offer it."""
    offered = None if subprotocol is None else [Subprotocol(subprotocol)]

    async def session(connection: ServerConnection) -> None:
        wires.append(Wire(connection))
        await peer(wires[-1])
        await connection.wait_closed()

    async with serve(session, "127.0.0.1", 0, subprotocols=offered) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/v1/realtime"


async def asked(preset: str, peer: Peer, **own: Any) -> tuple[Capture, Wire]:
    table = endpoint_of(preset, **own)
    wires: list[Wire] = []
    async with listening(peer, wires, "realtime" if preset == "unmute" else None) as url:
        codec = client(settings_of(table))
        capture = await converse(
            codec,
            WebSocketTransport(TransportSettings()),
            codec.address(url, None),
            Ask(question, patience=PATIENCE),
        )
    return capture, wires[0]


def marked(capture: Capture) -> tuple[marks.Marks, int]:
    """What the log says of an attempt, and how many samples of its reply there are."""
    rate, stream, notes = decode(capture)
    assert notes == []
    capture.rows[0]["output_rate"] = rate
    return marks.latency(capture.rows, stream), len(stream)


async def unmute(wire: Wire) -> None:
    """Greets once it has instructions and hears something; answers a turn that it found itself."""
    ears, mouth = decoder("opus", 24000), encoder("opus", 24000)

    async def reply(words: str, ms: int) -> None:
        await wire.say("response.created", response={"status": "in_progress", "voice": "v"})
        await wire.say("unmute.response.text.delta.ready", delta=words)
        await wire.say("response.text.done", text=words)
        sound = tone(ms, 24000)
        for at in range(0, len(sound), 480):
            pages = mouth.encode(sound[at : at + 480].tobytes())
            if pages:
                await wire.say("response.audio.delta", delta=encoded(pages))
        await wire.say("response.text.delta", delta=words)
        await wire.say("unmute.additional_outputs", args={"debug_dict": {}})
        await wire.say("response.audio.done")

    update = (await wire.next())["session"]
    assert set(update) == {"instructions", "allow_recording"}
    await wire.say("session.updated", session=update)
    first = base64.b64decode((await wire.next())["audio"])
    assert first[:4] == b"OggS"
    assert first[5] & 2
    ears.decode(first)
    await reply("Hi there!", 200)
    spoke, quiet = False, 0
    while quiet < 2400:
        samples = ears.decode(base64.b64decode((await wire.next())["audio"]))
        loud = samples.size > 0 and bool(np.abs(samples).max() > LOUD)
        if loud and not spoke:
            await wire.say("input_audio_buffer.speech_started")
        spoke, quiet = spoke or loud, quiet + samples.size if spoke and not loud else 0
    await wire.say("input_audio_buffer.speech_stopped")
    await reply("Paris.", 400)


async def test_unmute_is_heard_out_asked_in_opus_and_its_second_reply_is_the_answer() -> None:
    capture, wire = await asked("unmute", unmute, greeting_timeout_s=10)
    assert (capture.outcome, capture.fault) == ("ended", None)
    assert capture.reply_text == "Paris."
    assert wire.connection.subprotocol == "realtime"
    kinds = [event["type"] for event in wire.came]
    assert kinds[0] == "session.update"
    assert set(kinds[1:]) == {"input_audio_buffer.append"}
    found, samples = marked(capture)
    assert [segment["role"] for segment in found.segments] == ["greeting", "answer"]
    ((start, end),) = found.answer
    assert samples > end - start > 24000 * 3 // 10
    assert found.status == "ok"


async def vllm_omni(wire: Wire) -> None:
    """One generation: opened by a commit, fed, closed by another; takes nothing else."""
    await wire.say("session.created", id="sess-1", created=0)
    update = await wire.next()
    assert (update["type"], update["model"]) == ("session.update", "org/model")
    assert set(update) == {"type", "event_id", "model"}
    assert (await wire.next())["final"] is False
    while (event := await wire.next())["type"] == "input_audio_buffer.append":
        pass
    assert (event["type"], event["final"]) == ("input_audio_buffer.commit", True)
    await wire.say("transcription.delta", delta="Paris.")
    sound = tone(300, 24000).tobytes()
    for at in range(0, len(sound), 4801):  # no piece ends where a sample does
        piece = {"audio": encoded(sound[at : at + 4801]), "format": "pcm16"}
        await wire.say("response.output_audio.delta", **piece, sample_rate_hz=24000)
    usage = {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3}
    await wire.say("transcription.done", text="Paris.", usage=usage)
    await wire.say("response.output_audio.done", has_audio=True)


async def test_vllm_omni_is_asked_between_two_commits() -> None:
    own = {"model": "org/model"}
    capture, wire = await asked("vllm-omni-realtime-turns", vllm_omni, **own)
    assert (capture.outcome, capture.fault) == ("ended", None)
    assert (capture.reply_text, capture.usage["total_tokens"]) == ("Paris.", 3)
    appended = [one["audio"] for one in wire.came if one["type"] == "input_audio_buffer.append"]
    heard = b"".join(map(base64.b64decode, appended))
    assert heard == tone(300, 16000).tobytes()  # up to the last voiced sample, not a sample more
    found, samples = marked(capture)
    assert [segment["role"] for segment in found.segments] == ["answer"]
    assert samples == 24000 * 300 // 1000


async def glm(wire: Wire) -> None:
    """Takes files; tells the end of a reply before the rest of its audio; beats all the time."""
    update = (await wire.next())["session"]
    await wire.say("session.created", session={})
    await wire.say("heartbeat")
    await wire.say("session.updated", session=update)
    spoke, quiet, stamps = False, 0, []
    while quiet < 2400:
        event = await wire.next()
        stamps.append(event["client_timestamp"])
        with wave.open(BytesIO(base64.b64decode(event["audio"]))) as file:
            assert file.getframerate() == 16000
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        loud = bool(np.abs(samples).max() > LOUD)
        spoke, quiet = spoke or loud, quiet + samples.size if spoke and not loud else 0
    assert stamps == [40 * number for number in range(len(stamps))]
    for kind in ("speech_started", "speech_stopped", "committed"):
        await wire.say(f"input_audio_buffer.{kind}")
    await wire.say("heartbeat")
    sound = tone(300, 24000).tobytes()
    half = len(sound) // 2
    piece = {"response_id": "r", "output_index": 0, "content_index": 0}
    await wire.say("response.audio.delta", **piece, delta=encoded(sound[:half]))
    await wire.say("response.created", response={"id": "r", "status": "in_progress"})
    await wire.say("response.done", response={"id": "r", "status": "completed"})
    await wire.say("response.audio_transcript.delta", **piece, delta="Paris.")
    await wire.say("response.audio.delta", **piece, delta=encoded(sound[half:]))


async def test_glm_is_fed_files_and_heard_to_the_end_in_whatever_order_it_tells() -> None:
    capture, _ = await asked("glm-realtime", glm)
    assert (capture.outcome, capture.fault) == ("ended", None)
    assert capture.reply_text == "Paris."
    found, samples = marked(capture)
    assert [segment["role"] for segment in found.segments] == ["answer"]
    assert samples == 24000 * 300 // 1000


async def full(wire: Wire) -> None:
    """Has no place left, and says so as Unmute does."""
    error = {"type": "fatal", "message": "Too many people are connected!"}
    await wire.say("error", error=error)
    await wire.connection.close(1011, "Too many people are connected!")


async def test_a_server_without_a_place_left_is_no_answer_that_is_empty() -> None:
    capture, _ = await asked("unmute", full)
    assert capture.outcome == "refused"
    assert capture.fault == "server: fatal: Too many people are connected!"
