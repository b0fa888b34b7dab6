"""The server host: who comes in, many at once, and what hostile clients can do."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from plain_wire import (
    RATE,
    PlainClient,
    Scripted,
    client,
    question,
    served,
    speech,
)
from websockets.exceptions import InvalidStatus

from voxmeter.client.servers.host import HostSettings
from voxmeter.endpoints.errors import UserError


async def test_a_session_that_the_brain_will_not_take_is_refused_with_its_reason() -> None:
    async with served(Scripted()) as url:
        with pytest.raises(InvalidStatus) as refused:
            async with client(url, "?no=1"):
                pass
    assert refused.value.response.status_code == 400
    assert refused.value.response.body == b"not this one\n"


TOKENS: list[tuple[str, dict[str, str], bool]] = [
    ("", {}, False),
    ("", {"Authorization": "Bearer secret"}, True),
    ("", {"Authorization": "bearer  secret "}, True),
    ("", {"Authorization": "Basic secret"}, False),
    ("", {"Authorization": "Bearer secre"}, False),
    ("?token=secret", {}, True),
    ("?token=Secret", {}, False),
    ("?token=%C3%A9", {}, False),
]


async def test_only_who_shows_the_token_comes_in() -> None:
    brain = Scripted()
    settings = HostSettings(token="secret")  # noqa: S106 - made up
    async with served(brain, settings=settings) as url:
        for query, headers, let_in in TOKENS:
            status = 200
            try:
                async with client(url, query, headers):
                    pass
            except InvalidStatus as refused:
                status = refused.response.status_code
            assert status == (200 if let_in else 401), (query, headers)
    assert "secret" not in repr(settings)


async def test_an_address_that_others_reach_needs_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):  # noqa: S104 - refused
        with pytest.raises(UserError, match="set --token-env"):
            async with served(Scripted(), settings=HostSettings(host)):
                pass


async def test_a_port_that_is_taken_is_one_line() -> None:
    async with served(Scripted()) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(UserError, match="choose another port"):
            async with served(Scripted(), settings=HostSettings(port=port)):
                pass


async def test_more_sessions_than_allowed_are_told_to_wait() -> None:
    async with served(Scripted(), settings=HostSettings(max_sessions=1)) as url:
        async with client(url):
            with pytest.raises(InvalidStatus) as refused:
                async with client(url):
                    pass
        assert refused.value.response.status_code == 503
        await usable(url)


async def usable(url: str) -> None:
    """Check that the host still answers a well-behaved client."""
    for _ in range(100):
        try:
            async with client(url) as one:
                await one.say(question())
                await one.until("reply_ended")
                return
        except InvalidStatus:
            continue
    pytest.fail("no session became free")


async def test_fifty_sessions_at_once_are_all_answered() -> None:
    brain = Scripted(speech())

    async def ask(url: str) -> int:
        async with client(url) as one:
            await one.say(question())
            await one.until("reply_ended")
            return len(one.audio)

    async with served(brain) as url:
        sizes = await asyncio.gather(*(ask(url) for _ in range(50)))
    assert set(sizes) == {round(0.1 * RATE) * 2}
    assert {turn.session for turn in brain.turns} == set(range(1, 51))


async def not_json(one: PlainClient) -> None:
    await one.connection.send("{{{")


async def unknown_request(one: PlainClient) -> None:
    await one.do("dance")


async def wrong_types(one: PlainClient) -> None:
    await one.connection.send("[1]")


async def two_mebibytes(one: PlainClient) -> None:
    await one.connection.send(np.random.default_rng(0).bytes(2 * 2**20))
    await one.connection.send("x" * 2 * 2**20)


async def invalid_utf8(one: PlainClient) -> None:
    await one.connection.send(b"\xff\xfe", text=True)


async def disconnect_mid_reply(one: PlainClient) -> None:
    await one.say(question())
    await one.until("audio")
    one.connection.transport.abort()


async def too_large(one: PlainClient) -> None:
    await one.connection.send(bytes(5 * 2**20))


HOSTILE = [
    not_json, unknown_request, wrong_types, two_mebibytes, invalid_utf8, disconnect_mid_reply,
    too_large,
]  # fmt: skip


async def test_hostile_clients_end_only_their_own_sessions() -> None:
    brain = Scripted(*[speech(0.5)] * 5)
    async with served(brain, settings=HostSettings(max_message_mib=4)) as url:
        async with client(url) as bystander:
            for attack in HOSTILE:
                async with client(url) as one:
                    await attack(one)
                    closed = await one.until_closed()
                    assert closed.rcvd is None or closed.rcvd.code != 1011, attack
            await bystander.say(question())
            await bystander.until("reply_ended")
        await usable(url)


async def test_strangers_that_speak_no_http_are_ignored() -> None:
    async with served(Scripted(speech())) as url:
        port = int(url.rpartition(":")[2])
        for data in (b"\x00\x01\x02", b"GET / HTTP/1.1\r\n\r\n", b""):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            writer.write_eof()
            await reader.read()
            writer.close()
            await writer.wait_closed()
        await usable(url)


async def test_a_client_that_leaves_ends_its_session() -> None:
    async with served(Scripted()) as url, client(url) as one:
        await one.do("leave")
        closed = await one.until_closed()
        assert closed.rcvd is not None
        assert closed.rcvd.code == 1000


async def test_closing_the_host_ends_open_sessions() -> None:
    brain = Scripted(speech())
    brain.held.clear()
    async with served(brain) as url:
        connecting = client(url)
        one = await connecting.__aenter__()
        await one.say(question())
        await one.until("audio")
    closed = await one.until_closed()
    assert closed.rcvd is not None
    assert closed.rcvd.code == 1001
    await connecting.__aexit__(None, None, None)
    assert brain.ended == ["cancelled"]
