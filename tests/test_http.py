"""The HTTP transport against real servers on loopback: what comes, when, and what goes wrong."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from http_peer import Asked, Peer, Play, serving
from test_websocket import certificate

from voxmeter.client import http_exchange, http_link
from voxmeter.client.clock import SystemClock
from voxmeter.client.http import HttpTransport
from voxmeter.client.http_words import refusal
from voxmeter.client.transport import Arrival, TransportSettings
from voxmeter.endpoints.codec import (
    Address,
    Binary,
    Ended,
    Fetched,
    Message,
    Request,
    Response,
    Text,
    describe,
)
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError

__all__ = ["certificate"]  # a fixture

QUESTION = Request(b"question", {"Content-Type": "text/plain"})


@asynccontextmanager
async def connected(
    play: Play,
    settings: TransportSettings | None = None,
    headers: dict[str, str] | None = None,
    path: str = "/chat",
) -> AsyncIterator[HttpTransport]:
    async with serving(play) as url:
        transport = HttpTransport(settings or TransportSettings())
        await transport.connect(Address(url + path, headers or {}))
        try:
            yield transport
        finally:
            await transport.close()


async def one_answer(transport: HttpTransport) -> list[Arrival]:
    found: list[Arrival] = []
    async for arrival in transport.receive():
        found.append(arrival)
        if isinstance(arrival.message, Ended):
            break
    return found


async def answer(play: Play, settings: TransportSettings | None = None) -> list[Message]:
    async with connected(play, settings) as transport:
        await transport.send(QUESTION)
        return [arrival.message for arrival in await one_answer(transport)]


def body(messages: list[Message]) -> bytes:
    return b"".join(one.data for one in messages if isinstance(one, Binary))


# What is sent


async def asked(request: Request, address: Address) -> Asked:
    got: list[Asked] = []

    async def play(peer: Peer) -> None:
        got.append(await peer.request())
        await peer.whole(b"{}")

    async with serving(play) as url:
        transport = HttpTransport(TransportSettings())
        await transport.connect(Address(url + address.url, address.headers))
        await transport.send(request)
        await one_answer(transport)
        await transport.close()
    return got[0]


async def test_a_request_has_its_verb_path_headers_and_body() -> None:
    found = await asked(QUESTION, Address("/chat?x=1", {"Authorization": "Bearer k"}))
    assert (found.method, found.target, found.body) == ("POST", "/chat?x=1", b"question")
    assert found.headers["authorization"] == "Bearer k"
    assert found.headers["content-type"] == "text/plain"
    assert found.headers["host"].startswith("127.0.0.1:")
    assert found.headers["accept-encoding"] == "identity"
    assert found.headers["user-agent"] == "voxmeter"


async def test_a_path_of_the_request_goes_before_that_of_the_address() -> None:
    found = await asked(Request(b"", {}, "PUT", "/other?y=2"), Address("/chat?x=1"))
    assert (found.method, found.target) == ("PUT", "/other?y=2")


async def test_headers_of_the_address_go_before_those_of_the_request_whatever_their_case() -> None:
    found = await asked(QUESTION, Address("", {"content-TYPE": "audio/x", "user-agent": "me"}))
    assert found.target == "/"
    assert found.headers["content-type"] == "audio/x"
    assert found.headers["user-agent"] == "me"


async def test_letters_that_http_cannot_carry_are_escaped_in_the_path() -> None:
    found = await asked(QUESTION, Address("/ä b?q=%20ü"))
    assert found.target == "/%C3%A4%20b?q=%20%C3%BC"


async def test_anything_but_a_request_is_a_mistake_of_the_codec() -> None:
    async with connected(Peer.gone) as transport:
        with pytest.raises(TypeError, match="HTTP cannot carry Text"):
            await transport.send(Text("hello"))


# What comes


async def test_a_body_without_a_length_ends_where_the_connection_is_closed() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old(b"\0\1\2", b"\3")

    found = await answer(play)
    head = {"content-type": "audio/wav", "connection": "close"}
    assert found[0] == Response(200, head)
    assert body(found) == b"\0\1\2\3"
    assert found[-1] == Ended(None, "")


async def test_each_piece_is_handed_on_before_the_next_is_made() -> None:
    heard = [asyncio.Event() for _ in range(5)]

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old()
        for number, event in enumerate(heard):
            await peer.say(bytes([number]))
            await event.wait()

    async with connected(play) as transport:
        await transport.send(QUESTION)
        pieces = []
        async for t_ns, message in transport.receive():
            if isinstance(message, Binary):
                pieces.append((t_ns, message.data))
                heard[len(pieces) - 1].set()
            if isinstance(message, Ended):
                break
    assert [data for _, data in pieces] == [b"\0", b"\1", b"\2", b"\3", b"\4"]
    stamps = [t_ns for t_ns, _ in pieces]
    assert stamps == sorted(stamps)


async def test_a_piece_is_stamped_when_it_came_not_when_it_is_read() -> None:
    told = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old(b"early")
        told.set()
        await peer.gone()

    async with connected(play) as transport:
        before = SystemClock().now()
        await transport.send(QUESTION)
        await told.wait()
        link = transport._link
        assert link is not None
        while link.link.usable:  # noqa: ASYNC110 - until the loop has read the socket
            await asyncio.sleep(0)
        read_at = SystemClock().now()
        head = await anext(transport.receive())
    assert isinstance(head.message, Response)
    assert before < head.t_ns < read_at


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_chunked_bodies_come_out_whole_wherever_they_are_split(size: int) -> None:
    sent = bytes(range(256)) * 3
    wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for first in range(0, len(sent), 100):
        piece = sent[first : first + 100]
        wire += f"{len(piece):x};ext=1\r\n".encode() + piece + b"\r\n"
    wire += b"0\r\nTrailer: x\r\n\r\n"

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.say(*(wire[first : first + size] for first in range(0, len(wire), size)))
        await peer.gone()

    found = await answer(play)
    assert body(found) == sent
    assert found[-1] == Ended(None)


async def test_many_small_chunks_of_one_read_are_one_piece() -> None:
    chunks = b"1\r\nx\r\n" * 500
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.say(whole)
        await peer.gone()

    found = await answer(play)
    assert body(found) == b"x" * 500
    assert len(found) < 10


async def test_a_provisional_answer_is_not_the_answer() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await peer.whole(b"{}")

    found = await answer(play)
    assert isinstance(found[0], Response)
    assert found[0].status == 200
    assert body(found) == b"{}"


async def test_one_connection_serves_several_requests() -> None:
    connections: list[Peer] = []

    async def play(peer: Peer) -> None:
        connections.append(peer)
        for _ in range(3):
            await peer.request()
            await peer.whole(str(len(peer.asked)).encode())

    async with connected(play) as transport:
        found = []
        for _ in range(3):
            await transport.send(QUESTION)
            found.append(body([one.message for one in await one_answer(transport)]))
    assert found == [b"1", b"2", b"3"]
    assert len(connections) == 1


async def test_a_connection_that_was_closed_after_an_answer_is_opened_anew() -> None:
    connections: list[Peer] = []

    async def play(peer: Peer) -> None:
        connections.append(peer)
        await peer.request()
        await peer.old(str(len(connections)).encode())

    async with connected(play) as transport:
        found = []
        for _ in range(2):
            await transport.send(QUESTION)
            found.append(body([one.message for one in await one_answer(transport)]))
    assert found == [b"1", b"2"]


async def test_a_connection_that_nobody_used_in_time_is_opened_anew() -> None:
    connections: list[Peer] = []

    async def play(peer: Peer) -> None:
        connections.append(peer)
        if len(connections) > 1:
            await peer.request()
            await peer.old(b"second")

    async with connected(play) as transport:
        assert transport._link is not None
        await transport._link.link._closed.wait()
        await transport.send(QUESTION)
        assert body([one.message for one in await one_answer(transport)]) == b"second"


async def test_who_cannot_be_reached_again_is_lost_for_sender_and_listener() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old(b"1")

    async with serving(play) as url:
        transport = HttpTransport(TransportSettings())
        await transport.connect(Address(url))
        await transport.send(QUESTION)
        await one_answer(transport)
    with pytest.raises(ConnectionLostError):
        await transport.send(QUESTION)
    with pytest.raises(ConnectionLostError):
        await one_answer(transport)
    await transport.close()


async def test_the_tcp_handshake_is_the_round_trip_time() -> None:
    async with connected(Peer.gone) as transport:
        rtt_ms = await transport.rtt_ms()
    assert rtt_ms is not None
    assert rtt_ms > 0


# Refusals

PAGE = b"<!doctype html>\n<html><title>500</title><style>b{}</style><h1>Oh &amp; no</h1></html>"


@pytest.mark.parametrize(
    ("status", "said", "more", "words"),
    [
        ("401 Unauthorized", b'{"error": {"message": "bad key", "code": "no_key"}}', "",
         "no_key: bad key"),
        ("403 Forbidden", b'{"detail": "not yours"}', "", "not yours"),
        ("422 Oh", b'{"detail": [{"loc": ["audio"]}]}', "", '[{"loc": ["audio"]}]'),
        ("400 Bad", b'{"error": "no audio"}', "", "no audio"),
        ("400 Bad", b'{"message": "m", "type": "t", "code": 7}', "", "t: m"),
        ("429 Slow", b'{"error": {"code": "c"}}', "Retry-After: 20\r\n", "c; retry after 20"),
        ("500 Broken", PAGE, "", "Oh & no"),
        ("503 Full House", b"", "", "Full House"),
        ("404 Not Found", b"[1]", "", "[1]"),
        ("502 Bad", b"\xff\xfe", "", "\ufffd\ufffd"),
        ("307 Moved", b"", "Location: /chat/?key=1\r\n",
         "Moved; it points to /chat/: put that into url"),
    ],
)  # fmt: skip
async def test_a_refused_request_ends_with_its_status_and_the_servers_words(
    status: str, said: bytes, more: str, words: str
) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.whole(said, status, more=more)

    assert await answer(play) == [Ended(int(status[:3]), words)]


async def test_a_key_that_the_server_repeats_is_not_passed_on() -> None:
    async def play(peer: Peer) -> None:
        found = await peer.request()
        await peer.whole(found.headers["authorization"].encode(), "401 No")

    async with connected(play, headers={"Authorization": "Bearer sk-secret-1"}) as transport:
        await transport.send(QUESTION)
        (found,) = await one_answer(transport)
    assert found.message == Ended(401, "Bearer …")


async def test_a_refusal_before_the_whole_request_was_read_is_heard() -> None:
    async def play(peer: Peer) -> None:
        await peer.head()
        await peer.whole(b"too much", "413 Large", more="Connection: close\r\n")
        await peer.gone()

    async with connected(play) as transport, asyncio.TaskGroup() as group:
        group.create_task(transport.send(Request(bytes(4 * 2**20))))
        (found,) = await one_answer(transport)
    assert found.message == Ended(413, "too much")


async def test_a_refusal_whose_words_never_end_is_a_refusal_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_exchange, "_REFUSAL_S", 0.05)

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 429 Slow\r\nContent-Length: 100\r\n\r\nwait")
        await peer.gone()

    assert await answer(play) == [Ended(429, "wait")]


async def test_of_a_long_refusal_the_beginning_is_read() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.whole(b"long " * 100_000, "500 Broken")

    (found,) = await answer(play)
    assert isinstance(found, Ended)
    assert found.reason == ("long " * 100)[:400]


def test_an_answer_of_markup_alone_leaves_the_reason_phrase() -> None:
    assert refusal("Gone", {}, b"<html><script>x()</script></html>") == "Gone"
    assert refusal("Gone", {}, b"{" * 4000) == "{" * 400


# What goes wrong


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", "closed without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "closed without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234", "closed in the middle of a body"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01",
            "in the middle of a body",
        ),
    ],
)
async def test_a_connection_that_ends_before_the_answer_is_lost(said: bytes, words: str) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.say(said)

    with pytest.raises(ConnectionLostError, match=words):
        await answer(play)


async def test_a_connection_that_breaks_is_lost_after_all_that_came() -> None:
    heard = asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old(b"0123")
        await heard.wait()
        peer.writer.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
        )
        peer.reset()

    async with connected(play) as transport:
        await transport.send(QUESTION)
        arrivals = transport.receive()
        assert isinstance((await anext(arrivals)).message, Response)
        assert (await anext(arrivals)).message == Binary(b"0123")
        heard.set()
        with pytest.raises(ConnectionLostError):
            await anext(arrivals)


@pytest.mark.parametrize(
    "said",
    [b"220 mail ready\r\n", b"\x15\x03\x01\0\2\2\x46", b"HTTP/1.1 200 OK\r\n:\r\n\r\n",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
     b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 40_000],
    ids=["mail", "tls", "no name", "no size", "endless head"],
)  # fmt: skip
async def test_what_is_not_http_breaks_the_protocol(said: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.say(said)
        await peer.gone()

    with pytest.raises(ProtocolError, match="does not answer as HTTP"):
        await answer(play)


async def test_a_body_beyond_the_limit_names_the_setting() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old(bytes(2**20), b"\0")
        await peer.gone()

    with pytest.raises(ProtocolError, match="max_message_mib"):
        await answer(play, TransportSettings(max_message_mib=1))


async def test_a_body_as_large_as_the_limit_is_no_trouble() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old(bytes(2**20))

    found = await answer(play, TransportSettings(max_message_mib=1))
    assert body(found) == bytes(2**20)


async def test_no_more_is_held_than_a_reply_may_have() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old(*[bytes(2**20)] * 16)
        await peer.gone()

    async with connected(play, TransportSettings(max_message_mib=1)) as transport:
        await transport.send(QUESTION)
        assert transport._link is not None
        link = transport._link.link
        while not link._paused:  # noqa: ASYNC110 - until the loop has read the socket
            await asyncio.sleep(0)
        assert link._held < 3 * 2**20


async def test_reading_goes_on_when_what_was_held_has_been_read() -> None:
    sent = [bytes([number]) * 2**18 for number in range(16)]

    async def play(peer: Peer) -> None:
        await peer.say(*sent)

    async with serving(play) as url:
        port = int(url.rpartition(":")[2])
        link = await http_link.dial("127.0.0.1", port, None, SystemClock(), 2**16)
        while not link._paused:  # noqa: ASYNC110 - until the loop has read the socket
            await asyncio.sleep(0)
        got = bytearray()
        while data := (await link.read()).data:
            got += data
        assert bytes(got) == b"".join(sent)
        assert link.ended
        await link.close()
        with pytest.raises(ConnectionLostError, match="the peer closed the connection"):
            await link.write(b"x")


async def test_a_packed_body_that_was_not_asked_for_is_refused() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.whole(b"x", more="Content-Encoding: gzip\r\n")

    with pytest.raises(ProtocolError, match="compressed as gzip"):
        await answer(play)


async def test_nobody_there_is_refused_without_the_query() -> None:
    async with serving(Peer.gone) as url:
        pass
    with pytest.raises(ConnectError) as caught:
        await HttpTransport(TransportSettings()).connect(Address(f"{url}/chat?key=secret"))
    assert caught.value.failure == "refused"
    assert "secret" not in str(caught.value)
    assert url in str(caught.value)


@pytest.mark.parametrize(
    ("url", "failure"),
    [
        ("ws://127.0.0.1/", "refused"),
        ("nonsense", "refused"),
        ("http://", "refused"),
        ("http://a..b/", "dns"),
        ("http://no-such.invalid/", "dns"),
    ],
)
async def test_a_url_that_leads_nowhere_says_so(url: str, failure: str) -> None:
    with pytest.raises(ConnectError) as caught:
        await HttpTransport(TransportSettings(use_proxy=False)).connect(Address(url))
    assert caught.value.failure == failure


async def test_a_header_that_cannot_be_sent_is_named_without_its_value() -> None:
    for value in ("se\ncret", "s€cret"):
        with pytest.raises(ConnectError, match="header 'X-Key' cannot be sent") as caught:
            await HttpTransport(TransportSettings()).connect(
                Address("http://127.0.0.1:1", {"X-Key": value})
            )
        assert "cret" not in str(caught.value)


async def test_the_next_address_of_a_host_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Peer.gone) as dead:
        pass
    ports = [int(dead.rpartition(":")[2])]

    async def addresses(*_: object, **__: object) -> list[tuple[object, ...]]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        return [(*kind, ("127.0.0.1", port)) for port in ports]

    async with serving(Peer.gone) as url:
        ports.append(int(url.rpartition(":")[2]))
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", addresses)
        link = await http_link.dial("host", 1, None, SystemClock(), 1)
        assert link.usable
        await link.close()


async def test_sending_before_there_is_a_connection_is_a_lost_one() -> None:
    with pytest.raises(ConnectionLostError):
        await HttpTransport(TransportSettings()).send(QUESTION)


# TLS


def tls(paths: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*paths)
    return context


async def test_a_self_signed_certificate_needs_an_explicit_word(
    certificate: tuple[Path, Path],
) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old(b"inside")

    async with serving(play, tls(certificate)) as url:
        with pytest.raises(ConnectError, match="insecure = true") as caught:
            await HttpTransport(TransportSettings()).connect(Address(url))
        assert caught.value.failure == "tls"
        for settings in (
            TransportSettings(insecure=True),
            TransportSettings(ca_file=str(certificate[0])),
        ):
            transport = HttpTransport(settings)
            await transport.connect(Address(url))
            await transport.send(QUESTION)
            found = [one.message for one in await one_answer(transport)]
            await transport.close()
            assert body(found) == b"inside"


async def test_tls_to_a_plain_port_is_told() -> None:
    async def play(peer: Peer) -> None:
        await peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(play) as url:
        with pytest.raises(ConnectError) as caught:
            await HttpTransport(TransportSettings()).connect(
                Address(url.replace("http:", "https:"))
            )
    assert caught.value.failure == "tls"


# Proxies


def proxies(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name.upper()}_PROXY", raising=False)
        monkeypatch.delenv(f"{name}_proxy", raising=False)
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, url)


async def test_a_proxy_in_the_environment_is_not_used_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxies(monkeypatch, "http://127.0.0.1:1")

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.old(b"here")

    assert body(await answer(play)) == b"here"


async def test_a_proxy_is_told_whom_a_plain_request_is_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: list[Asked] = []

    async def play(peer: Peer) -> None:
        got.append(await peer.request())
        await peer.whole(b"{}")

    async with serving(play) as url:
        proxies(monkeypatch, url.replace("//", "//me:p%40ss@"))
        transport = HttpTransport(TransportSettings())
        await transport.connect(Address("http://voice.invalid/chat?x=1"))
        await transport.send(QUESTION)
        await one_answer(transport)
        assert await transport.rtt_ms() is None
        await transport.close()
    assert got[0].target == "http://voice.invalid/chat?x=1"
    assert got[0].headers["host"] == "voice.invalid"
    assert got[0].headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


async def test_tls_goes_through_a_tunnel(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def inside(peer: Peer) -> None:
        await peer.request()
        await peer.old(b"inside")

    async def proxy(peer: Peer) -> None:
        found = await peer.request()
        assert (found.method, found.target) == ("CONNECT", "voice.invalid:443")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await peer.say(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        try:
            await asyncio.gather(pump(peer.reader, writer), pump(reader, peer.writer))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async with serving(inside, tls(certificate)) as target, serving(proxy) as url:
        port = int(target.rpartition(":")[2])
        proxies(monkeypatch, url)
        transport = HttpTransport(TransportSettings(insecure=True))
        await transport.connect(Address("https://voice.invalid/chat"))
        await transport.send(QUESTION)
        found = [one.message for one in await one_answer(transport)]
        await transport.close()
    assert body(found) == b"inside"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n", "HTTP 407 for a tunnel to voice"),
        (b"", "closed"),
        (b"nonsense\r\n\r\n", "illegal status line"),
        (b"HTTP/1.1 200 OK\r\n\r\nnot tls at all", "TLS|dropped"),
    ],
)
async def test_a_proxy_that_gives_no_tunnel_is_named(
    said: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.say(said)

    async with serving(play) as url:
        proxies(monkeypatch, url)
        with pytest.raises(ConnectError, match=words):
            await HttpTransport(TransportSettings()).connect(Address("https://voice.invalid/"))


@pytest.mark.parametrize("proxy", ["http://[::1", "http://me:open/sesame@h:1", "h:99999"])
async def test_a_proxy_that_is_no_url_is_named_without_its_password(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxies(monkeypatch, proxy)
    with pytest.raises(ConnectError, match="the proxy in the environment is not a URL") as caught:
        await HttpTransport(TransportSettings()).connect(Address("http://voice.invalid"))
    assert "sesame" not in str(caught.value)


async def test_a_proxy_that_is_not_there_or_speaks_socks_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(Peer.gone) as url:
        pass
    for place, words in ((url, f"the proxy in the environment, {url}"), ("socks5://h:1", "socks5")):
        proxies(monkeypatch, place)
        with pytest.raises(ConnectError, match=words):
            await HttpTransport(TransportSettings()).connect(Address("http://voice.invalid/"))


# What is fetched beside


def beside(name: str, path: str) -> Request:
    return Request(b"", {}, "GET", path, name)


async def arrivals(transport: HttpTransport, count: int) -> list[Arrival]:
    found: list[Arrival] = []
    async for arrival in transport.receive():
        found.append(arrival)
        if len(found) == count:
            return found
    raise AssertionError("receive ended by itself")


async def test_what_is_fetched_beside_waits_for_no_answer_that_still_goes_on() -> None:
    fetched = asyncio.Event()

    async def play(peer: Peer) -> None:
        target = (await peer.request()).target
        if target == "/chat":
            await peer.old(b"first", kind="text/event-stream")
            await fetched.wait()
            await peer.say(b"last")
        else:
            await peer.whole(target.encode(), kind="audio/aac")
            await peer.gone()

    async with connected(play) as transport:
        await transport.send(QUESTION)
        opening = [one.message for one in await arrivals(transport, 2)]
        await transport.send(beside("list", "/list"))
        (got,) = [one.message for one in await arrivals(transport, 1)]
        fetched.set()
        rest = [one.message for one in await one_answer(transport)]
    assert body(opening) == b"first"
    head = {"content-type": "audio/aac", "content-length": "5"}
    assert got == Fetched("list", 200, head, b"/list")
    assert body(rest) == b"last"


async def test_several_are_fetched_at_a_time_and_come_as_they_are_ready() -> None:
    late, early = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        target = (await peer.request()).target
        if target == "/late":
            late.set()
            await early.wait()
        await peer.whole(target.encode())
        await peer.gone()

    async with connected(play) as transport:
        await transport.send(beside("a", "/late"))
        await late.wait()
        await transport.send(beside("b", "/early"))
        first = await arrivals(transport, 1)
        early.set()
        second = await arrivals(transport, 1)
    assert [describe(one.message) for one in first + second] == ["b 200, 6 bytes", "a 200, 5 bytes"]
    assert first[0].t_ns < second[0].t_ns


async def test_a_connection_beside_is_used_again_and_a_closed_one_is_not() -> None:
    connections: list[list[str]] = []

    async def play(peer: Peer) -> None:
        mine: list[str] = []
        connections.append(mine)
        while True:
            mine.append((await peer.request()).target)
            if mine[-1] == "/last":
                await peer.old()
                return
            await peer.whole(b"")

    async with connected(play) as transport:
        for path in ("/1", "/2", "/last", "/3"):
            await transport.send(beside("x", path))
            await arrivals(transport, 1)
    assert connections == [[], ["/1", "/2", "/last"], ["/3"]]


@pytest.mark.parametrize("seen", [True, False])
async def test_a_connection_beside_that_was_closed_meanwhile_is_opened_anew(*, seen: bool) -> None:
    """Seen before the next request is sent, or only when nothing answers it."""
    connections: list[list[str]] = []
    asked_again = asyncio.Event()

    async def play(peer: Peer) -> None:
        mine: list[str] = []
        connections.append(mine)
        mine.append((await peer.request()).target)
        await peer.whole(b"")
        if not seen:
            await peer.request()
            asked_again.set()

    async with connected(play) as transport:
        await transport.send(beside("x", "/1"))
        await arrivals(transport, 1)
        if seen:
            await transport._spare[0].link._closed.wait()
        await transport.send(beside("x", "/2"))
        (got,) = await arrivals(transport, 1)
        assert isinstance(got.message, Fetched)
    assert connections == [[], ["/1"], ["/2"]]
    assert asked_again.is_set() is not seen


async def test_what_changes_something_is_not_sent_twice() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.whole(b"")
        await peer.request()

    async with connected(play) as transport:
        await transport.send(beside("x", "/1"))
        await arrivals(transport, 1)
        await transport.send(Request(b"", {}, "POST", "/2", "y"))
        with pytest.raises(ConnectionLostError, match="closed without an answer"):
            await arrivals(transport, 1)


async def test_a_refusal_beside_is_told_with_its_words_and_ends_nothing() -> None:
    async def play(peer: Peer) -> None:
        while True:
            target = (await peer.request()).target
            if target == "/chat":
                await peer.whole(b"{}")
            else:
                await peer.whole(b'{"detail": "File not allowed"}', "403 Forbidden")

    async with connected(play) as transport:
        await transport.send(beside("file", "/x"))
        assert (await arrivals(transport, 1))[0].message == Fetched(
            "file", 403, reason="File not allowed"
        )
        await transport.send(QUESTION)
        assert isinstance((await one_answer(transport))[-1].message, Ended)


async def test_a_connection_that_breaks_beside_is_lost_to_whoever_listens() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")

    async with connected(play) as transport:
        await transport.send(beside("x", "/x"))
        with pytest.raises(ConnectionLostError, match="closed in the middle of a body"):
            await arrivals(transport, 1)


async def test_a_server_that_takes_no_second_connection_is_told_of() -> None:
    async with serving(Peer.gone) as url:
        transport = HttpTransport(TransportSettings())
        await transport.connect(Address(url))
    await transport.send(beside("x", "/x"))
    with pytest.raises(ConnectionLostError, match="Connect call failed"):
        await arrivals(transport, 1)
    await transport.close()


async def test_a_body_beside_may_be_no_larger_than_any_other() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.whole(b"x" * (2**20 + 1))
        await peer.gone()

    async with connected(play, TransportSettings(max_message_mib=1)) as transport:
        await transport.send(beside("x", "/x"))
        with pytest.raises(ProtocolError, match="larger than max_message_mib"):
            await arrivals(transport, 1)


async def test_what_is_still_being_fetched_ends_with_the_transport() -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def play(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await peer.gone()
        left.set()

    async with connected(play) as transport:
        await transport.send(beside("x", "/x"))
        await asked.wait()
        await transport.close()
        await left.wait()
        assert not [one for one in asyncio.all_tasks() if one.get_name() == "http x"]


# How messages are shown


def test_requests_and_answers_are_described_without_their_headers() -> None:
    secret = {"Authorization": "Bearer sk-1", "content-type": "audio/wav"}
    assert describe(Request(b"abc", secret, "POST", "/x")) == "request POST /x, 3 bytes"
    assert describe(Response(200, secret)) == "response 200, audio/wav"
    assert describe(Response()) == "response 200, of no type"
