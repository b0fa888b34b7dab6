"""The HTTP transport against servers that break, lie or are not there, TLS and proxies."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from http_answers import QUESTION, answer, body, connected, one_answer
from http_peer import Asked, Peer, serving
from test_websocket import certificate

from voxmeter.client import http_link
from voxmeter.client.clock import SystemClock
from voxmeter.client.http import HttpTransport
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.codec import (
    Address,
    Binary,
    Response,
)
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError

__all__ = ["certificate"]  # a fixture


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
