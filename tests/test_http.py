"""The HTTP transport against real servers on loopback: what is sent, what comes, and when."""

from __future__ import annotations

import asyncio

import pytest
from http_answers import QUESTION, answer, body, connected, one_answer
from http_peer import Asked, Peer, serving

from voxmeter.client import http_exchange
from voxmeter.client.clock import SystemClock
from voxmeter.client.http import HttpTransport
from voxmeter.client.http_words import refusal
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.codec import (
    Address,
    Binary,
    Ended,
    Request,
    Response,
    Text,
    describe,
)
from voxmeter.endpoints.errors import ConnectionLostError

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


# How messages are shown


def test_requests_and_answers_are_described_without_their_headers() -> None:
    secret = {"Authorization": "Bearer sk-1", "content-type": "audio/wav"}
    assert describe(Request(b"abc", secret, "POST", "/x")) == "request POST /x, 3 bytes"
    assert describe(Response(200, secret)) == "response 200, audio/wav"
    assert describe(Response()) == "response 200, of no type"
