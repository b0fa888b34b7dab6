"""A knock at an endpoint: a session, or the endpoint's own words why there is none."""

from __future__ import annotations

import pytest
from fakes import FrozenClock, Play, ToyCodec, ToyTransport

from voxmeter.client.probe import Knock, knock
from voxmeter.endpoints.codec import Address
from voxmeter.endpoints.errors import ConnectError, EndpointError


async def _knock(transport: ToyTransport, timeout_s: float = 5) -> Knock:
    try:
        return await knock(ToyCodec(), transport, Address("toy://"), timeout_s, FrozenClock())
    finally:
        assert transport.closed


async def test_a_session_is_opened_and_left_politely() -> None:
    async def play(peer: ToyTransport) -> None:
        await peer.until(1, "hello")
        peer.say("ping", "note", "ready")

    transport = ToyTransport(play)
    assert await _knock(transport) == Knock(connect_ms=0, rtt_ms=1.5, note="")
    assert transport.sent == ["hello", "pong", "bye"]


async def _faults(peer: ToyTransport) -> None:
    peer.say("fault quota")


async def _hangs_up(peer: ToyTransport) -> None:
    peer.hang_up(1008, "go away")


async def _says_nonsense(peer: ToyTransport) -> None:
    peer.say("nonsense")


@pytest.mark.parametrize(
    ("play", "words"),
    [
        (_faults, "quota: says the toy"),
        (_hangs_up, "go away"),
        (_says_nonsense, "toy: no such word: nonsense"),
    ],
)
async def test_an_endpoint_that_gives_no_session_says_why(play: Play, words: str) -> None:
    with pytest.raises(EndpointError, match=words):
        await _knock(ToyTransport(play))


async def test_a_complaint_that_ends_nothing_is_waited_out() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("complaint odd", "ready")

    assert (await _knock(ToyTransport(play))).rtt_ms == 1.5


async def test_an_endpoint_that_says_nothing_is_given_up() -> None:
    async def play(_: ToyTransport) -> None:
        return

    with pytest.raises(ConnectError, match=r"no session within 0\.01 s"):
        await _knock(ToyTransport(play), timeout_s=0.01)


async def test_a_refused_connection_is_told_as_it_is() -> None:
    async def play(_: ToyTransport) -> None:
        return

    refused = ConnectError("refused", "connection refused")
    with pytest.raises(ConnectError, match="connection refused"):
        await _knock(ToyTransport(play, refused))
