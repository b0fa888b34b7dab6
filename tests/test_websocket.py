"""The websocket transport against real servers on loopback: what goes wrong is told apart."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path

import pytest
from needs import needs
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from voxmeter.client import dialing
from voxmeter.client.clock import SystemClock
from voxmeter.client.transport import Arrival, TransportSettings
from voxmeter.client.websocket import WebSocketTransport
from voxmeter.endpoints.codec import Address, Binary, Ended, Text
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError, UserError

Handler = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def server(handler: Handler, **how: object) -> AsyncIterator[str]:
    async with serve(handler, "127.0.0.1", 0, compression=None, **how) as running:  # type: ignore[arg-type]
        port = next(iter(running.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1"


async def everything(handler: Handler, settings: TransportSettings | None = None) -> list[Arrival]:
    async with server(handler) as url:
        transport = WebSocketTransport(settings or TransportSettings())
        await transport.connect(Address(url))
        try:
            return [arrival async for arrival in transport.receive()]
        finally:
            await transport.close()


async def test_messages_come_whole_in_order_and_stamped() -> None:
    async def handler(peer: ServerConnection) -> None:
        await peer.send("text")
        await peer.send(b"\x00\x01")
        await peer.send(["in ", "two"])

    before = SystemClock().now()
    arrivals = await everything(handler)
    assert [one.message for one in arrivals] == [
        Text("text"),
        Binary(b"\0\1"),
        Text("in two"),
        Ended(1000, ""),
    ]
    stamps = [one.t_ns for one in arrivals]
    assert stamps == sorted(stamps)
    assert before < stamps[0] < SystemClock().now()


async def test_a_message_is_stamped_when_its_last_byte_came_not_when_it_is_read() -> None:
    told = asyncio.Event()

    async def handler(peer: ServerConnection) -> None:
        await peer.send("first")
        told.set()
        await peer.wait_closed()

    async with server(handler) as url:
        transport = WebSocketTransport(TransportSettings())
        await transport.connect(Address(url))
        await told.wait()
        for _ in range(50):  # let the arrival reach the queue before anyone reads it
            await transport.rtt_ms()
        read_at = SystemClock().now()
        arrival = await anext(transport.receive())
        await transport.close()
    assert arrival.message == Text("first")
    assert arrival.t_ns < read_at


async def test_a_message_of_two_mebibytes_is_no_trouble() -> None:
    big = "x" * (2 * 2**20)

    async def handler(peer: ServerConnection) -> None:
        await peer.send(big)

    assert (await everything(handler))[0].message == Text(big)


async def test_a_message_beyond_the_limit_names_the_setting() -> None:
    async def handler(peer: ServerConnection) -> None:
        await peer.send("x" * (2**20 + 1))
        await peer.wait_closed()

    with pytest.raises(ProtocolError, match="max_message_mib"):
        await everything(handler, TransportSettings(max_message_mib=1))


async def test_a_flood_ends_the_session_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("voxmeter.client.websocket._MOST_BYTES", 2 * 2**20)

    async def handler(peer: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            while True:
                await peer.send(bytes(2**19))

    with pytest.raises(ProtocolError, match="more than 2 MiB in one session"):
        await everything(handler)


async def test_text_that_is_not_utf8_breaks_the_protocol() -> None:
    async def handler(peer: ServerConnection) -> None:
        async with peer.send_context():
            peer.protocol.send_text(b"\xff\xfe")
        await peer.wait_closed()

    with pytest.raises(ProtocolError, match="not UTF-8"):
        await everything(handler)


@pytest.mark.parametrize(
    ("code", "reason"), [(1000, ""), (1008, "no"), (1011, "oops"), (4000, "x")]
)
async def test_the_close_code_and_reason_are_kept(code: int, reason: str) -> None:
    async def handler(peer: ServerConnection) -> None:
        await peer.close(code, reason)

    assert (await everything(handler))[-1].message == Ended(code, reason)


async def test_a_connection_that_just_goes_away_is_1006() -> None:
    async def handler(peer: ServerConnection) -> None:
        await peer.send("half a")
        peer.transport.abort()

    arrivals = await everything(handler)
    assert isinstance(arrivals[-1].message, Ended)
    assert arrivals[-1].message.code == 1006


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
async def test_a_refused_upgrade_shows_status_and_body(status: int) -> None:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(HTTPStatus(status), "because we say so\n")

    async def handler(peer: ServerConnection) -> None:
        raise AssertionError(peer)

    async with server(handler, process_request=refuse) as url:
        with pytest.raises(ConnectError, match=f"HTTP {status}.*because we say so") as caught:
            await WebSocketTransport(TransportSettings()).connect(Address(url))
    assert (caught.value.failure, caught.value.status) == ("rejected", status)


@pytest.mark.parametrize(
    "place", ["{other}", "/v2", "wss://127.0.0.1:1/", "http://h/", "ws://[::1/"]
)
async def test_no_redirect_is_followed_for_the_key_would_go_along(place: str) -> None:
    came: list[str] = []

    def point(_: ServerConnection, request: Request) -> Response:
        came.append(request.path)
        where = place.format(other=other) + "?key=secret"
        headers = Headers({"Location": where, "Content-Length": "0"})
        return Response(302, "Found", headers, b"")

    def note(_: ServerConnection, request: Request) -> None:
        came.append(f"elsewhere: {request.headers}")

    async def handler(peer: ServerConnection) -> None:
        raise AssertionError(peer)

    async with (
        server(handler, process_request=note) as other,
        server(handler, process_request=point) as url,
    ):
        address = Address(url, {"api-key": "secret"})
        with pytest.raises(
            ConnectError, match=r"on the upgrade: it points to .*put that into url"
        ) as caught:
            await WebSocketTransport(TransportSettings()).connect(address)
    assert (caught.value.failure, caught.value.status) == ("rejected", 302)
    assert "secret" not in str(caught.value)
    assert came == ["/v1"]


async def test_nobody_listening_is_refused_without_the_query() -> None:
    async def handler(peer: ServerConnection) -> None:
        raise AssertionError(peer)

    async with server(handler) as url:
        pass
    with pytest.raises(ConnectError) as caught:
        await WebSocketTransport(TransportSettings()).connect(Address(url + "?key=secret"))
    assert caught.value.failure == "refused"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "failure"),
    [
        ("ws://no-such-host.invalid/", "dns"),
        ("http://127.0.0.1/", "refused"),
        ("nonsense", "refused"),
        ("ws://..../", "dns"),
        (f"ws://{'a' * 300}/", "dns"),
    ],
)
async def test_a_url_that_leads_nowhere_says_so(url: str, failure: str) -> None:
    with pytest.raises(ConnectError) as caught:
        await WebSocketTransport(TransportSettings()).connect(Address(url))
    assert caught.value.failure == failure


async def test_a_peer_that_does_not_speak_http_is_no_websocket() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"220 mail ready\r\n")
        writer.close()

    listener = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with listener:
        with pytest.raises(ConnectError) as caught:
            await WebSocketTransport(TransportSettings()).connect(Address(f"ws://127.0.0.1:{port}"))
    assert caught.value.failure == "closed"


async def test_a_peer_that_drops_the_connection_at_once_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = ClientConnection.connection_made

    def dropped(self: ClientConnection, transport: asyncio.BaseTransport) -> None:
        made(self, transport)
        self.connection_lost(ConnectionResetError())

    monkeypatch.setattr(ClientConnection, "connection_made", dropped)
    async with server(lambda peer: peer.wait_closed()) as url:
        with pytest.raises(ConnectError, match="took the connection and dropped it") as caught:
            await WebSocketTransport(TransportSettings()).connect(Address(url))
    assert caught.value.failure == "closed"


async def test_a_proxy_in_the_environment_is_not_used_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "http_proxy"):
        monkeypatch.setenv(name, "socks5://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)

    async def handler(peer: ServerConnection) -> None:
        await peer.send("here")

    assert (await everything(handler))[0].message == Text("here")


def test_a_name_that_only_looks_like_this_machine_is_elsewhere() -> None:
    here = ("ws://localhost/x", "ws://127.0.0.1:9", "ws://127.9.9.9", "ws://[::1]:9")
    assert all(map(dialing.loopback, here))
    assert not any(map(dialing.loopback, ("ws://127.evil.example", "ws://1.1.1.1", "ws://")))


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("http://[::1", "is not a URL"),
        ("http://me:sesame@h/path", "path is meaningless"),
        ("http://h:99999", "is not a URL"),
        ("odd://me:sesame@h:1", "scheme odd isn't supported"),
    ],
)
async def test_a_proxy_that_is_none_is_named_without_its_password(
    proxy: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "no_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ALL_PROXY", "all_proxy", "http_proxy"):
        monkeypatch.setenv(name, proxy)
    transport = WebSocketTransport(TransportSettings())
    with pytest.raises(ConnectError, match=f"the proxy in the environment.*{words}") as caught:
        await transport.connect(Address("ws://voice.invalid/"))
    assert caught.value.failure == "refused"
    assert "sesame" not in str(caught.value)


async def test_a_header_that_cannot_be_sent_is_named_without_its_value() -> None:
    for value in ("se\ncret", "s€cret"):
        with pytest.raises(ConnectError, match="header 'X-Key' cannot be sent") as caught:
            await WebSocketTransport(TransportSettings()).connect(
                Address("ws://127.0.0.1:1", {"X-Key": value})
            )
        assert "cret" not in str(caught.value)


async def test_headers_and_subprotocols_are_offered() -> None:
    seen: dict[str, str] = {}

    async def handler(peer: ServerConnection) -> None:
        assert peer.request is not None
        seen["key"] = peer.request.headers["X-Key"]
        seen["protocol"] = str(peer.subprotocol)
        seen["extensions"] = peer.request.headers.get("Sec-WebSocket-Extensions", "none")

    async with server(handler, subprotocols=["realtime"]) as url:
        transport = WebSocketTransport(TransportSettings())
        await transport.connect(Address(url, {"X-Key": "k"}, ("realtime",)))
        _ = [arrival async for arrival in transport.receive()]
        await transport.close()
    assert seen == {"key": "k", "protocol": "realtime", "extensions": "none"}


async def test_a_peer_that_answers_no_pings_has_no_round_trip_time() -> None:
    async def handler(peer: ServerConnection) -> None:
        peer.transport.pause_reading()
        await peer.wait_closed()

    async with server(handler, ping_interval=None, close_timeout=0.1) as url:
        transport = WebSocketTransport(TransportSettings())
        await transport.connect(Address(url))
        assert await transport.rtt_ms() is None
        assert transport._connection is not None
        transport._connection.transport.abort()
        await transport.close()


async def test_a_peer_that_stopped_reading_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxmeter.client.websocket._LEAVE_TIMEOUT_S", 0.1)

    async def handler(peer: ServerConnection) -> None:
        peer.transport.pause_reading()
        await peer.wait_closed()

    async with server(handler, ping_interval=None, close_timeout=0.1) as url:
        transport = WebSocketTransport(TransportSettings())
        await transport.connect(Address(url))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                while True:
                    await transport.send(Binary(bytes(2**20)))
        assert transport._connection is not None
        assert transport._connection.transport.get_write_buffer_size() > 0
        async with asyncio.timeout(20):
            await transport.close()


async def test_sending_on_a_lost_connection_is_an_error_of_its_own() -> None:
    async def handler(peer: ServerConnection) -> None:
        await peer.close(1001, "going")

    async with server(handler) as url:
        transport = WebSocketTransport(TransportSettings())
        await transport.connect(Address(url))
        _ = [arrival async for arrival in transport.receive()]
        with pytest.raises(ConnectionLostError, match="1001"):
            await transport.send(Text("anyone?"))
        await transport.close()
    with pytest.raises(ConnectionLostError, match="not connected"):
        await WebSocketTransport(TransportSettings()).send(Text("?"))


async def test_closing_twice_or_unopened_is_harmless() -> None:
    transport = WebSocketTransport(TransportSettings())
    await transport.close()
    await transport.close()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Certificate and key of a server that signed for itself."""
    openssl = needs("openssl")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", key, "-out", cert),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


async def test_a_self_signed_certificate_needs_an_explicit_word(
    certificate: tuple[Path, Path],
) -> None:
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def handler(peer: ServerConnection) -> None:
        await peer.send("secret")

    async with server(handler, ssl=context) as url:
        secure = url.replace("ws:", "wss:")
        with pytest.raises(ConnectError, match="insecure = true") as caught:
            await WebSocketTransport(TransportSettings()).connect(Address(secure))
        assert caught.value.failure == "tls"
        for settings in (TransportSettings(insecure=True), TransportSettings(ca_file=str(cert))):
            transport = WebSocketTransport(settings)
            await transport.connect(Address(secure))
            assert (await anext(transport.receive())).message == Text("secret")
            await transport.close()


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_file_of_certificates_that_is_none_is_the_users_mistake(
    content: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    transport = WebSocketTransport(TransportSettings(ca_file=str(path)))
    with pytest.raises(UserError, match=r"ca\.pem: holds no certificates"):
        await transport.connect(Address("wss://127.0.0.1:1/"))


def test_only_messages_a_websocket_has_can_be_sent() -> None:
    with pytest.raises(TypeError, match="Ended"):
        asyncio.run(WebSocketTransport(TransportSettings()).send(Ended()))
