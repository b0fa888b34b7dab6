"""Answers of a played HTTP server, as the transport hands them on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from http_peer import Play, serving

from voxmeter.client.http import HttpTransport
from voxmeter.client.transport import Arrival, TransportSettings
from voxmeter.endpoints.codec import (
    Address,
    Binary,
    Ended,
    Message,
    Request,
)

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
