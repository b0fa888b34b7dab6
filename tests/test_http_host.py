"""Our own servers over HTTP: real sockets, clients of every kind, and what hostile ones can do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attempt_logs import joined, silence, voice
from captures import attempt_in
from plain_wire import RATE, Scripted, rows, speech

from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Utterance
from voxmeter.client.finish import finish
from voxmeter.client.servers import http_answer, http_host
from voxmeter.client.servers.brain import Brain, Drop, Speech, Spoken, UserTurn, Words
from voxmeter.client.servers.door import HostSettings
from voxmeter.client.servers.echo import Echo
from voxmeter.client.servers.http_host import serving
from voxmeter.client.servers.metronome import Metronome
from voxmeter.client.servers.truth import TruthLog
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints.codec import Json, Message, Published, Settings
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.http_endpoint import KIND
from voxmeter.endpoints.http_served import Server, server
from voxmeter.endpoints.serving import ServerStep
from voxmeter.endpoints.wav import wav_file

QUESTION = wav_file(to_pcm16(voice(200)), 24_000)
BRIEF = Patience(first_reply_timeout_s=0.4, reply_limit_s=20, drain_ms=20)
PATIENT = Patience(first_reply_timeout_s=20, reply_limit_s=40, drain_ms=20)


@asynccontextmanager
async def served(
    brain: Brain, truth: Path | None = None, *, codec: Any = server, **settings: Any
) -> AsyncIterator[str]:
    log = TruthLog(truth) if truth else None
    keys = frozenset(KIND.query_keys)
    found = HostSettings(path=KIND.path, client_keys=keys, **settings)
    async with serving(brain, codec, found, truth=log) as url:
        yield url
    if log is not None:
        log.close()


def question(rate: int) -> Utterance:
    pcm = to_pcm16(joined(silence(100), voice(300)))
    scale = rate // 1000
    return Utterance(pcm[: 2 * 400 * scale], rate, 100 * scale, 400 * scale)


async def ask(
    url: str,
    folder: Path,
    query: str = "",
    patience: Patience = PATIENT,
    options: Mapping[str, Json] | None = None,
    key: str | None = None,
) -> dict[str, Any]:
    """Ask as a run does; return the trial's row."""
    settings = Settings(options=options or {}, input_rate=24_000)
    target = Target("ours", "http", f"{url}?{query}", settings, patience=patience, api_key=key)
    capture = await attempt(target, question, tag="mine")
    return finish(capture, attempt_in(folder))


@dataclass
class Raw:
    """A client that hides nothing: bytes out, bytes in."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    async def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def post(self, target: str = "/", version: str = "1.1", **headers: str) -> None:
        await self.say(posted(target, version, QUESTION, **headers))

    async def answer(self) -> tuple[int, bytes]:
        """Read one whole answer."""
        while (line := await self.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100"):
            self.head += line
        lines = line.decode().split("\r\n")
        pairs = [one.split(": ", 1) for one in lines[1:] if one]
        self.headers = {name.lower(): value for name, value in pairs}
        return int(lines[0].split()[1]), await self._body()

    async def _body(self) -> bytes:
        if "content-length" in self.headers:
            return await self.reader.readexactly(int(self.headers["content-length"]))
        if "transfer-encoding" not in self.headers:
            return await self.reader.read()
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)
        return body

    async def closed(self) -> bool:
        """Return whether the server closes, and says nothing before that."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True

    def gone(self) -> None:
        self.writer.transport.abort()


def posted(target: str = "/", version: str = "1.1", body: bytes = QUESTION, **more: str) -> bytes:
    """A whole request."""
    headers = {"Host": "h", "Content-Type": "audio/wav", "Content-Length": str(len(body))}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    lines = [f"POST {target} HTTP/{version}", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def raw(url: str) -> AsyncIterator[Raw]:
    port = int(url.rpartition(":")[2].strip("/"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(20):
            yield Raw(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


# What a run meets


async def test_a_metronome_answers_a_request_and_tells_the_truth(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url:
        row = await ask(url, tmp_path, "delay_ms=60&lead_ms=80&pacing=burst&tag=")
    assert (row["status"], row["fault"], row["latency_kind"]) == ("ok", None, "request")
    (line,) = rows(truth)
    assert (line["tag"], line["session"], line["turn"]) == ("mine", 1, 1)
    assert (line["outcome"], line["reply_rate"]) == ("completed", 24_000)
    assert line["reply_samples"] == 24_000 * 1680 // 1000
    packet_ns = row["t0_ns"] + row["latency"]["first_packet_ms"] * 1e6
    assert row["t0_ns"] < line["user_end_ns"]  # the request has to be made and to arrive
    assert line["user_end_ns"] + 60_000_000 <= line["first_packet_ns"] <= line["last_packet_ns"]
    assert packet_ns > line["user_end_ns"] + 60_000_000
    assert line["first_audible_ns"] - line["first_packet_ns"] >= 79_000_000


FORMS: list[dict[str, Json]] = [
    {},
    {"reply": "pcm16@16000", "query": {"reply": "pcm16@16000"}},
    {"reply": "mixed-replace", "query": {"reply": "mixed-replace"}},
    {"reply": "ndjson", "query": {"reply": "ndjson"}, "reply_audio": "audio"},
    {"reply": "sse", "query": {"reply": "sse"}, "reply_audio": "audio"},
    {"reply": "json", "query": {"reply": "json"}, "reply_audio": "audio"},
    {"json": {"audio": "{audio_base64}"}},
    {"multipart": {"audio": "{audio_wav}"}},
]


@pytest.mark.parametrize("options", FORMS, ids=str)
async def test_an_echo_comes_back_in_every_form(options: dict[str, Json], tmp_path: Path) -> None:
    async with served(Echo()) as url:
        row = await ask(url, tmp_path, options=options)
    assert (row["status"], row["fault"]) == ("ok", None)
    assert row["latency"]["reply_ms"] == pytest.approx(300, abs=10)


async def test_words_alone_are_a_text_reply(tmp_path: Path) -> None:
    options: dict[str, Json] = {"reply": "text", "query": {"reply": "text"}}
    async with served(Scripted(Words("Good "), speech(), Words("day."))) as url:
        row = await ask(url, tmp_path, options=options)
    assert (row["status"], row["latency_kind"]) == ("ok", "text")
    assert row["reply_text"] == "Good day."


FAULTS = [
    ("refuse", "refused", "busy: HTTP 503: fault=refuse"),
    ("drop", "disconnected", "closed in the middle of a body"),
    ("silent", "no_reply", ""),
    ("slow", "ok", ""),
    ("garbage", "protocol_error", "does not answer as HTTP"),
    ("never", "timeout", ""),
]


@pytest.mark.parametrize(("fault", "status", "words"), FAULTS)
async def test_each_fault_of_the_metronome_is_a_status_of_its_own(
    fault: str, status: str, words: str, tmp_path: Path
) -> None:
    truth = tmp_path / "truth.jsonl"
    patience = BRIEF if fault == "never" else PATIENT
    async with served(Metronome(), truth) as url:
        row = await ask(url, tmp_path, f"delay_ms=10&chunk_ms=100&fault={fault}&tag=", patience)
    assert row["status"] == status, row["fault"]
    assert words in (row["fault"] or "")
    lines = rows(truth)
    outcomes = {"refuse": [], "drop": ["dropped"], "never": ["disconnected"]}
    assert [one["outcome"] for one in lines] == outcomes.get(fault, ["completed"])
    if fault == "slow":
        assert row["latency"]["stalls"] > 0


async def test_the_token_is_shown_as_the_endpoints_key(tmp_path: Path) -> None:
    brain = Scripted(speech(0.2))
    async with served(brain, token="secret-secret") as url:  # noqa: S106 - made up
        for query, key, status in [
            ("", None, "refused"),
            ("", "secret-secre", "refused"),
            ("", "secret-secret", "ok"),
            ("token=secret-secret", None, "ok"),
        ]:
            row = await ask(url, tmp_path, query, key=key)
            assert row["status"] == status, (query, key)
            assert (row["fault"] or "auth: HTTP 401").startswith("auth: HTTP 401")
    assert [dict(turn.query) for turn in brain.turns] == [{}, {}]


async def test_a_key_may_have_a_name_of_its_own() -> None:
    async with served(Scripted(speech()), token="secret", key_names=("x-key", "key")) as url:  # noqa: S106
        for headers, target, status in [
            ({"X_Key": "secret"}, "/", 200),
            ({"X_Key": "wrong"}, "/", 401),
            ({}, "/?key=secret", 200),
            ({}, "/?key=wrong", 401),
            ({}, "/", 401),
        ]:
            async with raw(url) as one:
                await one.post(target, **headers)
                assert (await one.answer())[0] == status, (headers, target)
                assert ("www-authenticate" in one.headers) == (status == 401)


async def test_fifty_sessions_at_once_are_all_answered(tmp_path: Path) -> None:
    brain = Scripted(speech(0.2))
    async with served(brain) as url:
        found = await asyncio.gather(*(ask(url, tmp_path / str(n)) for n in range(50)))
    assert {row["status"] for row in found} == {"ok"}
    assert {turn.session for turn in brain.turns} == set(range(1, 51))


# Connections


async def test_a_connection_is_kept_for_the_next_request() -> None:
    brain = Scripted(speech())
    async with served(brain) as url, raw(url) as one:
        for number in range(3):
            await one.post(f"/anything?reply=pcm16&tag=t{number}")
            status, body = await one.answer()
            assert (status, len(body)) == (200, 2 * 2400 * RATE // 24_000)
            assert one.headers["transfer-encoding"] == "chunked"
    assert [(turn.session, turn.number, turn.tag) for turn in brain.turns] == [
        (1, 1, "t0"),
        (2, 1, "t1"),
        (3, 1, "t2"),
    ]
    assert [turn.history for turn in brain.turns] == [()] * 3


async def test_requests_that_come_together_are_answered_one_by_one() -> None:
    async with served(Echo()) as url, raw(url) as one:
        await one.say(posted("/?reply=json") * 3)
        bodies = [await one.answer() for _ in range(3)]
    assert {status for status, _ in bodies} == {200}
    assert len({body for _, body in bodies}) == 1


async def test_http_1_0_has_its_body_ended_by_the_close() -> None:
    async with served(Scripted(speech())) as url, raw(url) as one:
        await one.post(version="1.0")
        status, body = await one.answer()
        assert (status, body[:4]) == (200, b"RIFF")
        assert one.headers["connection"] == "close"


async def test_an_end_that_is_no_end_breaks_the_connection_off() -> None:
    async with served(Scripted(speech(), Drop())) as url:
        for version in ("1.0", "1.1"):
            async with raw(url) as one:
                await one.post(version=version)
                with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                    await one.answer()


async def test_who_asks_whether_to_go_on_is_told_to() -> None:
    async with served(Scripted(speech())) as url, raw(url) as one:
        whole = posted(Expect="100-continue")
        await one.say(whole[: -len(QUESTION)])
        assert (await one.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        await one.say(QUESTION)
        assert (await one.answer())[0] == 200


@pytest.mark.parametrize("limit", [1, 64])
async def test_who_asks_whether_to_go_on_may_be_refused(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_host, "_DRAIN_S", 0.05)
    async with served(Metronome(), max_message_mib=limit) as url, raw(url) as one:
        length = str(2 * 2**20) if limit == 1 else "9"
        await one.say(
            posted("/?fault=refuse", body=b"", Content_Length=length, Expect="100-continue")
        )
        status, _ = await one.answer()
        assert status == 503
        assert one.head == b""
        assert await one.closed()


async def test_a_request_may_come_in_chunks() -> None:
    brain = Scripted(speech())
    async with served(brain) as url, raw(url) as one:
        head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Type: audio/wav\r\n"
        await one.say(head, b"Transfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(QUESTION), 1000):
            piece = QUESTION[start : start + 1000]
            await one.say(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        await one.say(b"0\r\n\r\n")
        assert (await one.answer())[0] == 200
    assert len(brain.turns[0].samples) == len(voice(200))


# Who is told no


REFUSED: list[tuple[bytes, int, str]] = [
    (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", 405, "send the question with POST"),
    (b"DELETE /x HTTP/1.1\r\nHost: h\r\n\r\n", 405, "DELETE asks nothing"),
    (posted(Content_Type="text/html"), 415, "send audio/wav"),
    (posted(body=b"ID3"), 400, "the audio is not a WAV file"),
    (posted("/?no=1"), 400, "not this one"),
    (posted("/?reply=mp3"), 400, "is not one of wav"),
    (posted(Content_Length=str(2 * 2**20)), 413, "a request may have at most 1 MiB"),
    (b"\x00\x01\x02\r\n\r\n", 400, "not HTTP"),
    (b"GET / HTTP/1.1\r\n\r\n", 400, "not HTTP"),
    (b"POST / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 70_000, 431, "not HTTP"),
    (b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "not HTTP"),
    (b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "not HTTP"),
]


@pytest.mark.parametrize(("request_", "status", "words"), REFUSED, ids=range(len(REFUSED)))
async def test_a_request_that_is_refused_has_its_status_and_one_line(
    request_: bytes, status: int, words: str
) -> None:
    async with served(Scripted(speech()), max_message_mib=1) as url:
        async with raw(url) as one:
            await one.say(request_)
            found, body = await one.answer()
        await usable(url)
    assert found == status
    message = json.loads(body)["error"]["message"]
    assert words in message
    assert "\n" not in message
    assert ("allow" in one.headers) == (status == 405)


async def test_a_body_without_a_length_is_stopped_at_the_limit() -> None:
    async with served(Scripted(speech()), max_message_mib=1) as url, raw(url) as one:
        head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Type: audio/wav\r\n"
        await one.say(head, b"Transfer-Encoding: chunked\r\n\r\n")
        await one.say(*[b"40000\r\n" + bytes(2**18) + b"\r\n"] * 5)
        assert (await one.answer())[0] == 413


async def usable(url: str) -> None:
    """Check that the host still answers a well-behaved client."""
    async with raw(url) as one:
        await one.post()
        assert (await one.answer())[0] == 200


async def test_a_refused_request_leaves_the_connection_to_the_next() -> None:
    async with served(Scripted(speech())) as url, raw(url) as one:
        for target, status in (("/?no=1", 400), ("/?reply=x", 400), ("/", 200)):
            await one.post(target)
            assert (await one.answer())[0] == status


@pytest.mark.parametrize("sent", [b"POST / HTTP/1.1\r\nHo", posted()[:-1]])
async def test_who_dawdles_is_told_and_dropped(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_host, "_HEAD_S", 0.05)
    monkeypatch.setattr(http_host, "_BODY_S", 0.05)
    monkeypatch.setattr(http_host, "_DRAIN_S", 0.05)
    async with served(Scripted(speech())) as url, raw(url) as one:
        await one.say(sent)
        assert (await one.answer())[0] == 408
        assert await one.closed()
        await usable(url)


async def test_who_asks_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_host, "_IDLE_S", 0.05)
    async with served(Scripted(speech())) as url, raw(url) as one:
        assert await one.closed()


async def test_who_leaves_amid_a_request_leaves_nothing_behind() -> None:
    async with served(Scripted(speech())) as url:
        for sent in (b"", b"POST / HT", posted()[:200]):
            async with raw(url) as one:
                await one.say(sent)
                one.writer.write_eof()
                await one.reader.read()
        await usable(url)


async def test_sessions_and_connections_have_a_limit() -> None:
    brain = Scripted(speech())
    brain.held.clear()
    async with served(brain, max_sessions=1) as url, raw(url) as first:
        await first.post()
        await brain.asked.get()
        async with raw(url) as second, raw(url) as third, raw(url) as fourth:
            await second.post()
            status, body = await second.answer()
            assert (status, second.headers["retry-after"]) == (503, "1")
            assert b"all 1 sessions are taken" in body
            async with raw(url) as fifth:
                assert await fifth.closed()
            del third, fourth
        brain.held.set()
        assert (await first.answer())[0] == 200


# What goes wrong amid an answer


class Noticing(Scripted):
    """Says what it is given, waits while it is held, and notices how that ends."""

    def __init__(self, *pieces: Spoken) -> None:
        super().__init__(*pieces)
        self.over = asyncio.Event()

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        try:
            async for piece in super().answer(turn):
                yield piece
        finally:
            self.over.set()


async def test_a_client_that_leaves_stops_the_reply(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    brain = Noticing(speech())
    brain.held.clear()
    async with served(brain, truth) as url:
        async with raw(url) as one:
            await one.post("/?tag=gone")
            await one.reader.readuntil(b"\r\n\r\n")
            one.gone()
        await brain.over.wait()
        brain.held.set()
        await usable(url)
    assert brain.ended == ["cancelled", "completed"]
    assert [line["outcome"] for line in rows(truth)] == ["disconnected", "completed"]


async def test_a_client_that_takes_nothing_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_answer, "_STALL_S", 0.05)
    truth = tmp_path / "truth.jsonl"
    brain = Noticing(*[Speech(np.zeros(24_000, np.float32), onset=0)] * 400)
    async with served(brain, truth) as url, raw(url) as one:
        one.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await one.post()
        await brain.over.wait()
    assert [line["outcome"] for line in rows(truth)] == ["disconnected"]


class Broken(Scripted):
    """Says what it is given, then fails."""

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        for piece in self.pieces:
            yield piece
        raise ValueError("it broke")


async def test_a_failure_before_the_answer_is_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    async with served(Broken()) as url, raw(url) as one:
        for _ in range(2):
            await one.post()
            status, body = await one.answer()
            assert status == 500
            assert json.loads(body)["error"]["message"] == "server_error: ValueError: it broke"
    assert "it broke" in capsys.readouterr().err


async def test_a_failure_amid_an_answer_breaks_it_off_or_is_told_in_it() -> None:
    async with served(Broken(speech())) as url:
        async with raw(url) as one:
            await one.post()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await one.answer()
        async with raw(url) as one:
            await one.post("/?reply=ndjson")
            status, body = await one.answer()
            assert status == 200
            assert json.loads(body.splitlines()[-1])["error"]["code"] == "server_error"


class Strict(Server):
    """Finds fault with every request, without a word for it."""

    def receive(self, message: Message) -> ServerStep:
        raise ProtocolError("strict", "never", message)


class Wrong(Server):
    """Answers with what HTTP cannot carry."""

    def receive(self, message: Message) -> ServerStep:
        return ServerStep(messages=[Published("a", b"b")])


@pytest.mark.parametrize(("codec", "status"), [(Strict, 400), (Wrong, 500)])
async def test_a_codec_that_fails_ends_only_its_own_request(
    codec: type[Server], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(Scripted(speech()), codec=codec) as url, raw(url) as one:
        await one.post()
        assert (await one.answer())[0] == status
    assert "session 1: " in capsys.readouterr().err


async def test_closing_the_host_ends_open_connections() -> None:
    brain = Scripted(speech())
    brain.held.clear()
    async with served(brain) as url:
        connecting = raw(url)
        one = await connecting.__aenter__()
        await one.post()
        await brain.asked.get()
    with suppress(ConnectionError):
        await one.reader.read()
    assert brain.ended == ["cancelled"]
    await connecting.__aexit__(None, None, None)


async def test_an_address_that_others_reach_needs_a_token_and_a_free_port() -> None:
    with pytest.raises(UserError, match="set --token-env"):
        async with served(Echo(), host="0.0.0.0"):  # noqa: S104 - refused
            pass
    async with served(Echo()) as url:
        port = int(url.rpartition(":")[2].strip("/"))
        with pytest.raises(UserError, match="choose another port"):
            async with served(Echo(), port=port):
                pass
