"""A websocket that must be asked for over HTTP first, against real peers on loopback."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
from fakes import ToyCodec
from http_peer import Peer, Play, serving
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request as Asked
from websockets.http11 import Response as Answer

from voxmeter.client.capture import Utterance
from voxmeter.client.invitation import _websocket
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.client.transport import TransportSettings
from voxmeter.client.websocket import WebSocketTransport
from voxmeter.endpoints.codec import Address, Binary, Invitation, Request, Text
from voxmeter.endpoints.errors import ConnectError, ProtocolError

JOINING = "tok-3141592653589793"
BODY = b'{"rate":16000}'
INVITATION = Invitation(Request(BODY, {"Content-Type": "application/json"}), "joinUrl")


def answering(body: Any, status: str = "201 Created", more: str = "") -> Play:
    """Answer every request so; `body` may be an object or bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.whole(data, status, more=more)

    return play


async def refused(play: Play, invitation: Invitation = INVITATION) -> ConnectError:
    """Return the error of a connection that is not to be had."""
    async with serving(play) as url:
        transport = WebSocketTransport(TransportSettings())
        with pytest.raises(ConnectError) as raised:
            await transport.connect(
                Address(f"{url}/api/calls", {"X-API-Key": JOINING}, invitation=invitation)
            )
        await transport.close()
    assert JOINING not in str(raised.value)
    return raised.value


async def test_the_service_is_asked_with_the_key_and_the_websocket_opened_where_it_says() -> None:
    seen: list[Any] = []

    async def room(connection: ServerConnection) -> None:
        assert connection.request is not None
        seen.append((connection.request.path, connection.request.headers.get("X-API-Key")))
        await connection.send("welcome")

    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(serve(room, "127.0.0.1", 0))
        port = next(iter(host.sockets)).getsockname()[1]

        async def play(peer: Peer) -> None:
            asked = await peer.request()
            seen.append((asked.method, asked.target, asked.headers["x-api-key"], asked.body))
            join = f"ws://127.0.0.1:{port}/calls/{JOINING}?t=1"
            await peer.whole(json.dumps({"callId": "1", "joinUrl": join}).encode(), "201 Created")

        url = await stack.enter_async_context(serving(play))
        transport = WebSocketTransport(TransportSettings())
        address = Address(f"{url}/api/calls?x=1", {"X-API-Key": "k"}, invitation=INVITATION)
        await transport.connect(address)
        arrival = await anext(transport.receive())
        await transport.close()
    assert arrival.message == Text("welcome")
    assert seen == [("POST", "/api/calls?x=1", "k", BODY), (f"/calls/{JOINING}?t=1", None)]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        ("401 Unauthorized", {"detail": "Invalid API key."}, "auth: HTTP 401: Invalid API key."),
        ("402 Payment Required", {"detail": "Out of minutes."}, "quota: HTTP 402: Out of minutes."),
        ("422 Unprocessable", {"message": "no such voice"}, "request: HTTP 422: no such voice"),
        ("500 Oops", b"<h1>Broken</h1>", "server: HTTP 500: Broken"),
    ],
)
async def test_a_refusal_keeps_its_status_and_the_services_words(
    status: str, body: Any, words: str
) -> None:
    error = await refused(answering(body, status))
    assert (error.failure, str(error), error.status) == ("rejected", words, int(status[:3]))
    assert error.retryable == words.startswith("server")


async def test_a_service_that_is_busy_says_when_to_ask_again() -> None:
    play = answering({"detail": "Too many calls."}, "429 Busy", "Retry-After: 7\r\n")
    error = await refused(play)
    assert str(error) == "busy: HTTP 429: Too many calls.; retry after 7"
    assert (error.retryable, error.retry_after_s) == (True, 7)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"callId": "1"}, "joinUrl is missing"),
        ({"joinUrl": 5}, "joinUrl is of type int"),
        ({"joinUrl": "https://127.0.0.1/x"}, "joinUrl is not a websocket's URL"),
        ({"joinUrl": "wss://"}, "joinUrl is not a websocket's URL"),
        ({"joinUrl": "wss://h:99999/"}, "joinUrl is not a websocket's URL"),
        ({"joinUrl": "wss://[h/"}, "joinUrl is not a websocket's URL"),
        ([], "JSON, but not an object"),
        (b"<html>", "not JSON"),
        (b"\xff", "not UTF-8"),
    ],
)
async def test_an_answer_without_a_websocket_is_no_connection(body: Any, words: str) -> None:
    error = await refused(answering(body))
    assert error.failure == "closed"
    assert str(error).startswith("the answer to our request for a session: ")
    assert words in str(error)


async def test_a_service_that_hangs_up_is_no_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()

    error = await refused(play)
    assert (error.failure, str(error)) == (
        "closed",
        "connection lost: closed without an answer",
    )


async def test_what_does_not_speak_http_is_no_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.say(b"SSH-2.0-OpenSSH_9.6\r\n")
        await peer.gone()

    assert "does not answer as HTTP" in str(await refused(play))


async def test_a_websocket_without_tls_is_not_opened_where_we_asked_over_tls() -> None:
    with pytest.raises(ProtocolError, match="without TLS"):
        _websocket(Address("https://h"), INVITATION, Binary(b'{"joinUrl": "ws://h/1"}'))


async def test_the_secrets_of_a_joined_url_are_in_no_error() -> None:
    def gone(connection: ServerConnection, request: Asked) -> Answer:
        return connection.respond(404, f"nothing at {request.path}, token {JOINING}\n")

    async def never(connection: ServerConnection) -> None:
        raise AssertionError

    async with serve(never, "127.0.0.1", 0, process_request=gone) as host:
        port = next(iter(host.sockets)).getsockname()[1]
        join = f"ws://127.0.0.1:{port}/calls/{JOINING}/ws?token={JOINING}"
        error = await refused(answering({"joinUrl": join}))
    assert (error.failure, error.status) == ("rejected", 404)
    assert "HTTP 404 on the upgrade: nothing at [redacted], token [redacted]" in str(error)
    closed = f"ws://127.0.0.1:{port}/calls/{JOINING}"
    error = await refused(answering({"joinUrl": closed}))  # nobody listens there any more
    assert error.failure == "refused"
    assert str(error).startswith(f"ws://127.0.0.1:{port}[redacted]: ")


def question(rate: int) -> Utterance:
    return Utterance(bytes(rate // 5), rate, 0, rate // 10)


async def test_a_joined_url_that_points_elsewhere_is_not_followed_nor_told() -> None:
    def point(connection: ServerConnection, asked: Asked) -> Answer:
        where = f"wss://voice.invalid/calls/{JOINING}"
        return Answer(302, "Found", Headers({"Location": where, "Content-Length": "0"}), b"")

    async def room(connection: ServerConnection) -> None:
        raise AssertionError(connection)

    async with serve(room, "127.0.0.1", 0, process_request=point) as host:
        port = next(iter(host.sockets)).getsockname()[1]
        error = await refused(answering({"joinUrl": f"ws://127.0.0.1:{port}/calls/1"}))
    assert str(error) == "HTTP 302 on the upgrade: it points elsewhere"


async def test_the_time_it_takes_to_be_invited_is_part_of_the_connections() -> None:
    invited = asyncio.Event()

    async def room(connection: ServerConnection) -> None:
        await connection.send("ready")
        await connection.wait_closed()

    class Clock:
        """Moves only while the service thinks."""

        t_ns = 10**9

        def now(self) -> int:
            return self.t_ns

        async def sleep_until(self, t_ns: int) -> None:
            self.t_ns = max(self.t_ns, t_ns)
            await asyncio.sleep(0)

    clock = Clock()
    async with serve(room, "127.0.0.1", 0) as host:
        port = next(iter(host.sockets)).getsockname()[1]

        async def play(peer: Peer) -> None:
            await peer.request()
            clock.t_ns += 800_000_000
            invited.set()
            await peer.whole(json.dumps({"joinUrl": f"ws://127.0.0.1:{port}/1"}).encode())

        async with serving(play) as url:
            capture = await converse(
                ToyCodec(),
                WebSocketTransport(TransportSettings(), clock),
                Address(url, invitation=INVITATION),
                Ask(question, patience=Patience(first_reply_timeout_s=0.2)),
                clock=clock,
            )
    assert invited.is_set()
    assert capture.outcome == "timeout"
    assert capture.connect_ms is not None
    assert capture.connect_ms >= 800


async def test_a_service_that_does_not_answer_is_left_when_the_connection_is_due() -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async with serving(silent) as url:
        capture = await converse(
            ToyCodec(),
            WebSocketTransport(TransportSettings()),
            Address(url, invitation=INVITATION),
            Ask(question, patience=Patience(connect_timeout_s=0.2)),
        )
    assert (capture.outcome, capture.fault) == ("disconnected", "no connection within 0.2 s")


async def test_a_refused_invitation_is_a_refused_attempt() -> None:
    async with serving(answering({"detail": "Out of minutes."}, "402 Payment")) as url:
        capture = await converse(
            ToyCodec(),
            WebSocketTransport(TransportSettings()),
            Address(url, invitation=INVITATION),
            Ask(question),
        )
    assert (capture.outcome, capture.fault) == ("refused", "quota: HTTP 402: Out of minutes.")
