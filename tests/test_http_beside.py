"""The HTTP transport: what is fetched beside an answer."""

from __future__ import annotations

import asyncio

import pytest
from http_answers import QUESTION, body, connected, one_answer
from http_peer import Peer, serving

from voxmeter.client.http import HttpTransport
from voxmeter.client.transport import Arrival, TransportSettings
from voxmeter.endpoints.codec import (
    Address,
    Ended,
    Fetched,
    Request,
    describe,
)
from voxmeter.endpoints.errors import ConnectionLostError, ProtocolError

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
