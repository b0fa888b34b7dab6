"""Servers that do what they should not, over real sockets: each has its status, nothing is lost.

Each test is one conversation of the client with a server written out here, message by message.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from attempt_logs import RATE, joined, silence, voice
from captures import attempt_in
from test_websocket import certificate
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Utterance
from voxmeter.client.clock import SystemClock
from voxmeter.client.finish import finish
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.events import Event, ReplyStarted

__all__ = ["certificate"]  # a fixture

Row = dict[str, Any]
Certificate = tuple[Path, Path]
FRAMES = 10
SPOKEN = voice(200)
PATIENT = Patience(
    connect_timeout_s=10, first_reply_timeout_s=10, reply_limit_s=20, drain_ms=20, quiet_ms=100
)
BRIEF = Patience(
    connect_timeout_s=0.5, first_reply_timeout_s=0.4, reply_limit_s=1, drain_ms=20, quiet_ms=100
)


class Peer:
    """The server's side of one connection, in the words of OpenAI Realtime."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection

    async def ready(self) -> None:
        """Open the session."""
        asked = json.loads(await self.connection.recv())
        await self.say("session.updated", session=asked["session"])

    async def heard(self, frames: int = FRAMES) -> None:
        """Wait until the whole question has come."""
        for _ in range(frames):
            await self.connection.recv()

    async def say(self, kind: str, **fields: Any) -> None:
        await self.connection.send(json.dumps({"type": kind, **fields}))

    async def delta(self, pcm: bytes, name: str = "response.output_audio.delta") -> None:
        await self.say(name, response_id="r", item_id="i", delta=base64.b64encode(pcm).decode())

    async def started(self) -> None:
        await self.say("response.created", response={"id": "r", "status": "in_progress"})

    async def done(self, status: str = "completed", **fields: Any) -> None:
        await self.say("response.done", response={"id": "r", "status": status, **fields})

    async def reply(self, pcm: bytes | None = None) -> None:
        """Say one whole reply."""
        await self.started()
        await self.delta(to_pcm16(SPOKEN) if pcm is None else pcm)
        await self.done()

    async def stay(self) -> None:
        await self.connection.wait_closed()


Play = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def served(play: Play, **how: Any) -> AsyncIterator[str]:
    async def handler(connection: ServerConnection) -> None:
        await play(Peer(connection))

    how = {"compression": None, "max_size": None, "ping_interval": None} | how
    async with serve(handler, "127.0.0.1", 0, close_timeout=0.2, **how) as running:
        port = next(iter(running.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/realtime"


def question(rate: int) -> Utterance:
    """200 ms, cut at its last voiced sample."""
    pcm = to_pcm16(voice(200))
    return Utterance(pcm, rate, 0, len(pcm) // 2)


async def asked(
    url: str,
    folder: Path,
    patience: Patience = PATIENT,
    wire: TransportSettings | None = None,
    listen: Callable[[Event], None] = lambda _: None,
) -> Row:
    target = Target(
        "bot", "openai-realtime", url, patience=patience, wire=wire or TransportSettings()
    )
    async with LoopMonitor().watching() as monitor:
        capture = await attempt(target, question, monitor=monitor, listen=listen)
    row = finish(capture, attempt_in(folder))
    json.dumps(row, allow_nan=False)
    return row


async def result(play: Play, folder: Path, **how: Any) -> Row:
    async with served(play) as url:
        return await asked(url, folder, **how)


# What is odd and yet a reply


async def two_mebibytes(peer: Peer) -> None:  # PR-01
    await peer.ready()
    await peer.heard()
    await peer.reply(to_pcm16(joined(SPOKEN, silence(45_000)))[: 2 * 2**20])
    await peer.stay()


async def older_names(peer: Peer) -> None:  # PR-06
    await peer.ready()
    await peer.heard()
    await peer.started()
    await peer.delta(to_pcm16(SPOKEN), "response.audio.delta")
    await peer.done()
    await peer.stay()


async def odd_chunks(peer: Peer) -> None:  # PR-18
    await peer.ready()
    await peer.heard()
    await peer.started()
    data, start = to_pcm16(SPOKEN), 0
    for size in (1025, 1023, 1, 2047, len(data)):
        await peer.delta(data[start : start + size])
        start += size
    await peer.done()
    await peer.stay()


async def a_data_url(peer: Peer) -> None:  # PR-17
    await peer.ready()
    await peer.heard()
    await peer.started()
    coded = base64.b64encode(to_pcm16(SPOKEN)).decode()
    await peer.say(
        "response.output_audio.delta",
        response_id="r",
        item_id="i",
        delta=f"data:audio/pcm;base64,{coded}",
    )
    await peer.done()
    await peer.stay()


async def burst_then_gone(peer: Peer) -> None:  # PR-23
    await peer.ready()
    await peer.heard()
    await peer.started()
    for start in range(0, 2000, 100):
        await peer.delta(to_pcm16(voice(2000))[48 * start : 48 * (start + 100)])
    await peer.done()


async def unknown_kinds(peer: Peer) -> None:
    await peer.ready()
    await peer.say("session.surprise", deep={"type": "x"})
    await peer.heard()
    await peer.say("conversation.\x1b[2J", text="\x1b]0;title\x07")
    await peer.reply()
    await peer.stay()


async def counts_beyond_all_bounds(peer: Peer) -> None:
    await peer.ready()
    await peer.heard()
    await peer.started()
    await peer.delta(to_pcm16(SPOKEN))
    await peer.done(usage={"total_tokens": 1e308, "output_tokens": 7})
    await peer.say("response.created", response={"id": "s", "status": "in_progress"})
    response = {"id": "s", "status": "completed", "usage": {"total_tokens": 1e308}}
    await peer.say("response.done", response=response)
    await peer.stay()


async def words_that_json_lacks(peer: Peer) -> None:
    await peer.ready()
    await peer.connection.send('{"type":"x","count":NaN}')
    await peer.stay()


async def a_flood(peer: Peer) -> None:
    await peer.ready()
    await peer.heard()
    for number in range(3000):
        await peer.say("response.output_audio_transcript.delta.odd", number=number)
    await peer.reply()
    await peer.stay()


async def no_pongs(peer: Peer) -> None:  # PR-03
    await peer.ready()
    await peer.heard()
    await peer.reply()
    await peer.stay()


# What has a status of its own


async def never_a_session(peer: Peer) -> None:
    await peer.stay()


async def never_a_reply(peer: Peer) -> None:
    await peer.ready()
    await peer.stay()


async def nothing_in_it(peer: Peer) -> None:  # PR-06
    await peer.ready()
    await peer.heard()
    await peer.started()
    await peer.done()
    await peer.stay()


async def only_silence(peer: Peer) -> None:
    await peer.ready()
    await peer.heard()
    await peer.reply(to_pcm16(silence(400)))
    await peer.stay()


async def failed(peer: Peer) -> None:  # PR-07
    await peer.ready()
    await peer.heard()
    await peer.started()
    error = {"code": "insufficient_quota", "message": "spent", "type": "insufficient_quota"}
    await peer.done("failed", output=[], status_details={"type": "failed", "error": error})
    await peer.stay()


async def closed_in_the_middle(peer: Peer) -> None:  # PR-02
    await peer.ready()
    await peer.heard()
    await peer.started()
    await peer.delta(to_pcm16(SPOKEN))
    await peer.connection.close(1000)


async def dropped_in_the_middle(peer: Peer) -> None:  # PR-02
    await peer.ready()
    await peer.heard()
    await peer.started()
    await peer.delta(to_pcm16(SPOKEN))
    peer.connection.transport.abort()


async def old_header(peer: Peer) -> None:  # PR-06
    await peer.connection.close(4000, "beta header is gone")


async def bytes_instead_of_text(peer: Peer) -> None:  # PR-14
    await peer.ready()
    await peer.heard()
    await peer.connection.send(bytes(range(256)))
    await peer.stay()


async def no_json(peer: Peer) -> None:
    await peer.ready()
    await peer.connection.send("<html>\x1b[31m")
    await peer.stay()


async def a_list(peer: Peer) -> None:
    await peer.ready()
    await peer.connection.send("[]")
    await peer.stay()


async def a_deep_bomb(peer: Peer) -> None:
    await peer.ready()
    await peer.connection.send('{"type":' + "[" * 200_000)
    await peer.stay()


async def a_deep_and_whole_bomb(peer: Peer) -> None:
    await peer.ready()
    await peer.connection.send('{"type":"x","y":' + "[" * 50_000 + "]" * 50_000 + "}")
    await peer.stay()


async def digits(peer: Peer) -> None:
    await peer.ready()
    await peer.connection.send('{"type":"x","y":' + "9" * 100_000 + "}")
    await peer.stay()


async def bad_padding(peer: Peer) -> None:  # PR-17
    await peer.ready()
    await peer.heard()
    await peer.started()
    await peer.say("response.output_audio.delta", response_id="r", item_id="i", delta="AAA*")
    await peer.stay()


async def not_utf8(peer: Peer) -> None:
    await peer.ready()
    async with peer.connection.send_context():
        peer.connection.protocol.send_text(b"\xff\xfe")
    await peer.stay()


async def endless(peer: Peer) -> None:
    await peer.ready()
    await peer.heard()
    await peer.started()
    while True:
        await peer.delta(to_pcm16(SPOKEN))
        await peer.connection.recv()


async def over_the_limit(peer: Peer) -> None:
    await peer.ready()
    await peer.connection.send("x" * (3 * 2**20 + 1))
    await peer.stay()


async def wrong_rate(peer: Peer) -> None:
    asked = json.loads(await peer.connection.recv())["session"]
    asked["audio"]["output"]["format"]["rate"] = 16_000
    await peer.say("session.updated", session=asked)
    await peer.stay()


@pytest.mark.parametrize(
    ("play", "status", "words"),
    [
        (two_mebibytes, "ok", None),
        (older_names, "ok", None),
        (odd_chunks, "ok", None),
        (a_data_url, "ok", None),
        (burst_then_gone, "ok", None),
        (unknown_kinds, "ok", None),
        (counts_beyond_all_bounds, "ok", None),
        (a_flood, "ok", None),
        (no_pongs, "ok", None),
        (never_a_session, "disconnected", "no session within 0.5 s"),
        (never_a_reply, "timeout", None),
        (nothing_in_it, "no_reply", "without any audio"),
        (only_silence, "no_reply", None),
        (failed, "refused", "insufficient_quota"),
        (closed_in_the_middle, "disconnected", "1000"),
        (dropped_in_the_middle, "disconnected", "1006"),
        (old_header, "refused", "beta header is gone"),
        (bytes_instead_of_text, "protocol_error", "256 bytes"),
        (no_json, "protocol_error", "html"),
        (a_list, "protocol_error", "text, 2 characters"),
        (a_deep_bomb, "protocol_error", "200008 characters"),
        (a_deep_and_whole_bomb, "protocol_error", "characters"),
        (words_that_json_lacks, "protocol_error", "not JSON"),
        (digits, "protocol_error", "characters"),
        (bad_padding, "protocol_error", "base64"),
        (not_utf8, "protocol_error", "not UTF-8"),
        (endless, "truncated", None),
        (over_the_limit, "protocol_error", "max_message_mib"),
        (wrong_rate, "protocol_error", "output_rate"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
async def test_a_server_that_misbehaves_has_its_status(
    play: Play, status: str, words: str | None, tmp_path: Path
) -> None:
    patience = BRIEF if play in {never_a_session, never_a_reply, endless} else PATIENT
    wire = TransportSettings(max_message_mib=3)
    row = await result(play, tmp_path, patience=patience, wire=wire)
    assert row["status"] == status, row["fault"]
    assert (words is None) == (row["fault"] is None), row["fault"]
    assert (words or "") in (row["fault"] or "")
    assert (row["fault"] or "").isprintable()
    assert (tmp_path / "events" / "one.jsonl").is_file()
    audible = row["latency"]["first_audible_ms"]
    assert (audible is not None) == (
        status in {"ok", "truncated"} or "in_the_middle" in play.__name__
    )


async def test_a_reply_keeps_its_tail_when_it_came_in_one_burst_before_the_close(
    tmp_path: Path,
) -> None:  # PR-23
    row = await result(burst_then_gone, tmp_path)
    assert row["latency"]["reply_ms"] == pytest.approx(2000, abs=6)


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
async def test_a_refused_upgrade_is_refused_with_its_status_and_body(
    status: int, tmp_path: Path
) -> None:  # PR-24
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(HTTPStatus(status), "because\x1b[2J we say so\n")

    async with served(never_a_session, process_request=refuse) as url:
        row = await asked(url, tmp_path)
    assert row["status"] == "refused"
    assert f"HTTP {status}" in row["fault"]
    assert "we say so" in row["fault"]


async def test_silence_goes_on_until_a_server_that_waits_for_it_has_closed_the_turn(
    tmp_path: Path,
) -> None:  # PR-21
    async def play(peer: Peer) -> None:
        await peer.ready()
        await peer.heard(FRAMES + 8)  # the clip ends on speech: the rest can only be silence
        await peer.reply()
        await peer.stay()

    row = await result(play, tmp_path)
    assert row["status"] == "ok"
    assert row["latency"]["first_packet_ms"] >= 100


async def test_a_loop_that_is_blocked_is_told_as_our_own_fault(tmp_path: Path) -> None:  # PR-03
    def block(event: Event) -> None:
        if isinstance(event, ReplyStarted):
            clock = SystemClock()
            until = clock.now() + 80_000_000
            while clock.now() < until:
                pass

    async def play(peer: Peer) -> None:
        await peer.ready()
        await peer.heard()
        await peer.started()
        await peer.connection.recv()  # the reply's sound comes after the block
        await peer.delta(to_pcm16(SPOKEN))
        await peer.done()
        await peer.stay()

    row = await result(play, tmp_path, listen=block)
    assert row["status"] == "ok"
    assert row["audit"]["latency_valid"] is False
    assert row["audit"]["loop_lag_ms"]["max"] >= 50


async def test_a_server_that_answers_no_pings_has_no_round_trip_and_is_not_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # PR-03
    monkeypatch.setattr("voxmeter.client.websocket._PING_TIMEOUT_S", 0.05)

    async def play(peer: Peer) -> None:
        peer.connection.protocol.recv_frame = _without_pings(peer)  # type: ignore[assignment, method-assign]
        await no_pongs(peer)

    row = await result(play, tmp_path)
    assert (row["status"], row["rtt_ms"]) == ("ok", None)


def _without_pings(peer: Peer) -> Callable[[Any], None]:
    receive = peer.connection.protocol.recv_frame

    def recv_frame(frame: Any) -> None:
        if frame.opcode != 9:
            receive(frame)

    return recv_frame


# Servers that are none


@asynccontextmanager
async def talking(*said: bytes, then_close: bool = True) -> AsyncIterator[str]:
    """Something that listens, and says this to whoever connects."""
    over = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        for piece in said:
            writer.write(piece)
            await writer.drain()
        if not then_close:
            await over.wait()
        writer.close()

    listener = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with listener:
        yield f"ws://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1/realtime"
        over.set()


SHORT = Patience(connect_timeout_s=0.3, first_reply_timeout_s=0.3, reply_limit_s=0.5)


@pytest.mark.parametrize(
    ("said", "stays", "words"),
    [
        ((), True, "no connection within 0.3 s"),
        ((), False, "does not answer as HTTP"),
        ((b"HTTP/1.1 101 Swi",), True, "no connection within 0.3 s"),
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), False, "does not answer as HTTP"),
        ((bytes(range(256)) * 40,), False, "does not answer as HTTP"),
        ((b"HTTP/1.1 101 Switching Protocols\r\n\r\n",), False, ""),
        ((b"HTTP/1.1 101 X\r\n" + b"A: b\r\n" * 5000,), False, ""),
    ],
)
async def test_what_is_no_websocket_server_is_a_lost_connection(
    said: tuple[bytes, ...], stays: bool, words: str, tmp_path: Path
) -> None:
    async with talking(*said, then_close=not stays) as url:
        row = await asked(url, tmp_path, patience=SHORT)
    assert row["status"] in {"disconnected", "refused"}
    assert words in row["fault"]
    assert "\n" not in row["fault"]


async def test_tls_on_a_plain_port_is_told(tmp_path: Path) -> None:
    async with served(never_a_session) as url:
        row = await asked(url.replace("ws:", "wss:"), tmp_path)
    assert row["status"] == "disconnected"
    assert "does it speak TLS?" in row["fault"]


async def test_plain_talk_to_a_tls_port_is_told(certificate: Certificate, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with served(never_a_session, ssl=context) as url:
        row = await asked(url, tmp_path)
    assert row["status"] == "disconnected"
    assert "does not answer as HTTP" in row["fault"]


async def test_nobody_there_is_told_without_the_query(tmp_path: Path) -> None:
    async with served(never_a_session) as url:
        pass
    row = await asked(f"{url}?key=secret", tmp_path)
    assert row["status"] == "disconnected"
    assert "secret" not in row["fault"]


def test_the_question_is_as_long_as_the_servers_here_take_it_to_be() -> None:
    assert question(RATE).samples == FRAMES * RATE // 50
