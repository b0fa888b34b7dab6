"""The `openai` package's own realtime client talks to our server over a real websocket."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI
from realtime_rows import endpoint_of, settings_of
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from voxmeter.client.servers.brain import Heard, Speech, Spoken, Terms, UserTurn, Words
from voxmeter.client.servers.host import HostSettings, serving
from voxmeter.endpoints.openai_realtime import KIND, client
from voxmeter.endpoints.openai_realtime_server import server

RATE = 24000
HERE = HostSettings(path="/v1", client_keys=frozenset(KIND.query_keys))
QUIET = bytes(2 * RATE // 2)
TONE = (8000 * np.sin(np.arange(RATE) * 0.05)).astype("<i2").tobytes()


class Parrot:
    """Says what kind of turn it heard, and one second of a ramp."""

    def __init__(self) -> None:
        self.turns: list[UserTurn] = []

    def load(self) -> None:
        """Load nothing."""

    def admit(self, query: Mapping[str, str]) -> Terms:
        return Terms(endpoint_ms=200)

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        self.turns.append(turn)
        yield Heard("hello")
        yield Words("Good ")
        yield Speech(np.linspace(0, 0.5, RATE // 2, dtype=np.float32))
        yield Words("day.")
        yield Speech(np.linspace(0.5, 0, RATE // 2, dtype=np.float32))


@asynccontextmanager
async def connected(brain: Parrot) -> AsyncIterator[Any]:
    """Yield a connection of the package's own client to our server."""
    async with asyncio.timeout(20), serving(brain, server, HERE) as url:
        base = url.replace("ws://", "http://")
        async with (
            AsyncOpenAI(base_url=base, api_key="x", max_retries=0) as openai,
            openai.realtime.connect(model="gpt-realtime-2.1") as connection,
        ):
            yield connection


async def until(connection: Any, last: str) -> list[Any]:
    events = []
    async for event in connection:
        events.append(event)
        if event.type == last:
            return events
    pytest.fail(f"the connection ended before {last}: {[event.type for event in events]}")


def audio_of(events: list[Any]) -> bytes:
    deltas = [event.delta for event in events if event.type == "response.output_audio.delta"]
    return b"".join(map(base64.b64decode, deltas))


def text_of(events: list[Any]) -> str:
    name = "response.output_audio_transcript.delta"
    return "".join(event.delta for event in events if event.type == name)


def encoded(pcm: bytes) -> str:
    return base64.b64encode(pcm).decode()


async def test_a_committed_turn_is_answered_with_audio_and_its_transcript() -> None:
    brain = Parrot()
    async with connected(brain) as connection:
        assert (await connection.recv()).type == "session.created"
        transcription = {"model": "whisper-1"}
        audio = {"input": {"turn_detection": None, "transcription": transcription}}
        session = {"type": "realtime", "instructions": "Be brief.", "audio": audio}
        await connection.session.update(session=session)
        (updated,) = await until(connection, "session.updated")
        assert updated.session.instructions == "Be brief."
        assert updated.session.audio.input.turn_detection is None
        content = [{"type": "input_text", "text": "Good morning."}]
        item = {"type": "message", "role": "user", "content": content}
        await connection.conversation.item.create(item=item)
        await connection.input_audio_buffer.append(audio=encoded(TONE))
        await connection.input_audio_buffer.commit()
        await connection.response.create()
        events = await until(connection, "response.done")
    kinds = [event.type for event in events]
    assert kinds.index("input_audio_buffer.committed") < kinds.index("response.created")
    assert "conversation.item.input_audio_transcription.completed" in kinds
    assert text_of(events) == "Good day."
    assert len(audio_of(events)) == 2 * RATE
    response = events[-1].response
    assert response.status == "completed"
    assert response.output[0].content[0].transcript == "Good day."
    assert response.usage.output_token_details.audio_tokens == 20
    (turn,) = brain.turns
    assert (turn.committed, turn.instructions) == (True, "Be brief.")
    assert len(turn.samples) == RATE
    assert [one.text for one in turn.history] == ["Good morning."]


async def test_a_turn_found_by_the_server_is_answered_unasked() -> None:
    brain = Parrot()
    async with connected(brain) as connection:
        for piece in (QUIET, TONE, QUIET, QUIET):
            for at in range(0, len(piece), 4800):
                await connection.input_audio_buffer.append(audio=encoded(piece[at : at + 4800]))
        events = await until(connection, "response.done")
    kinds = [event.type for event in events]
    assert kinds.count("input_audio_buffer.speech_started") == 1
    assert kinds.index("input_audio_buffer.speech_stopped") < kinds.index("response.created")
    assert len(audio_of(events)) == 2 * RATE
    assert [turn.committed for turn in brain.turns] == [False]


async def test_errors_reach_the_client_and_the_session_goes_on() -> None:
    async with connected(Parrot()) as connection:
        await connection.send({"type": "no.such.event", "event_id": "mine"})
        error = (await until(connection, "error"))[-1].error
        assert (error.code, error.event_id) == ("invalid_value", "mine")
        await connection.input_audio_buffer.commit()
        error = (await until(connection, "error"))[-1].error
        assert error.code == "input_audio_buffer_commit_empty"
        await connection.response.cancel()
        error = (await until(connection, "error"))[-1].error
        assert error.code == "response_cancel_not_active"
        await connection.session.update(session={"type": "realtime", "instructions": "Go on."})
        assert (await until(connection, "session.updated"))[-1].session.instructions == "Go on."


async def test_a_reply_is_cancelled_and_truncated_by_the_client() -> None:
    class Endless(Parrot):
        async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
            yield Words("On and on")
            yield Speech(np.zeros(RATE, np.float32))
            await asyncio.Event().wait()

    async with connected(Endless()) as connection:
        await connection.response.create()
        delta = (await until(connection, "response.output_audio.delta"))[-1]
        await connection.response.cancel()
        done = (await until(connection, "response.done"))[-1].response
        assert (done.status, done.status_details.reason) == ("cancelled", "client_cancelled")
        await connection.conversation.item.truncate(
            item_id=delta.item_id, content_index=0, audio_end_ms=400
        )
        truncated = (await until(connection, "conversation.item.truncated"))[-1]
        assert truncated.audio_end_ms == 400
        await connection.conversation.item.delete(item_id=delta.item_id)
        assert (await until(connection, "conversation.item.deleted"))[-1].item_id == delta.item_id


async def test_the_preview_of_azure_is_addressed_as_the_package_addresses_it() -> None:
    seen: list[tuple[str, str, str]] = []

    async def note(connection: ServerConnection) -> None:
        assert connection.request is not None
        headers = connection.request.headers
        seen.append((connection.request.path, headers["api-key"], headers["OpenAI-Beta"]))

    async with asyncio.timeout(20), serve(note, "127.0.0.1", 0) as peer:
        host = f"ws://127.0.0.1:{next(iter(peer.sockets)).getsockname()[1]}"
        azure = AsyncAzureOpenAI(
            azure_endpoint="https://mine.openai.azure.com",
            api_key="KEY",
            api_version="2025-04-01-preview",
            websocket_base_url=f"{host}/openai",
        )
        async with azure, azure.beta.realtime.connect(model="mine"):
            pass
        table = endpoint_of("azure-openai-preview", url=f"{host}/openai/realtime", model="mine")
        ours = client(settings_of(table)).address(table["url"], "KEY")
        async with connect(ours.url, additional_headers=dict(ours.headers)):
            pass
    assert seen[0] == seen[1]
    assert seen[0][0] == "/openai/realtime?api-version=2025-04-01-preview&deployment=mine"


async def test_the_older_client_of_the_package_is_answered_in_the_older_names() -> None:
    async with (
        asyncio.timeout(20),
        serving(Parrot(), server, HERE) as url,
        AsyncOpenAI(websocket_base_url=url, api_key="x") as openai,
        openai.beta.realtime.connect(model="gpt-4o-realtime-preview") as connection,
    ):
        update: Any = {"modalities": ["text", "audio"], "turn_detection": None}
        await connection.session.update(session=update)
        await connection.input_audio_buffer.append(audio=encoded(TONE))
        await connection.input_audio_buffer.commit()
        await connection.response.create()
        events = await until(connection, "response.done")
    deltas = [event.delta for event in events if event.type == "response.audio.delta"]
    assert len(b"".join(map(base64.b64decode, deltas))) == 2 * RATE
