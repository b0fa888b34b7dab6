"""One TCP or TLS connection whose bytes are stamped by the event loop as they come."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from contextlib import suppress
from typing import NamedTuple, cast

from voxmeter.client.clock import Clock
from voxmeter.endpoints.errors import ConnectionLostError

_ADDRESS_TIMEOUT_S = 2.0  # for an address that has another behind it
_CLOSE_TIMEOUT_S = 1.0


class Chunk(NamedTuple):
    """Bytes of one read, and when they reached this process; no bytes mean the end."""

    t_ns: int
    data: bytes


class Link(asyncio.Protocol):
    """An open connection. What has come waits, with its stamp, until it is read.

    Attributes:
        connect_ms: How long the TCP handshake took, ms.
    """

    def __init__(self, clock: Clock, limit: int) -> None:
        self.connect_ms: float | None = None
        self._clock, self._limit = clock, limit
        self._transport: asyncio.Transport | None = None
        self._chunks: deque[Chunk] = deque()
        self._held = 0
        self._paused = False
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = asyncio.Event()
        self._fault: Exception | None = None

    @property
    def usable(self) -> bool:
        """Whether nothing has come since the last read, not even the end."""
        return not self._chunks and not self._closed.is_set()

    @property
    def ended(self) -> bool:
        """Whether all that came before the end has been read."""
        return bool(self._chunks) and not self._chunks[0].data

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note of the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Stamp what came; stop reading while more is held than a whole reply may have."""
        self._add(data)
        self._held += len(data)
        if self._held > self._limit and not self._paused:
            self._paused = True
            self._open().pause_reading()

    def eof_received(self) -> bool:
        """Take note of the end; the transport closes itself."""
        self._add(b"")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note of the end, and of what broke the connection."""
        self._fault = exc
        self._add(b"")
        self._writable.set()
        self._closed.set()

    def pause_writing(self) -> None:
        """Hold back what is to be sent."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let it go on."""
        self._writable.set()

    async def read(self) -> Chunk:
        """Return the next bytes; empty ones, again and again, after the end.

        Raises:
            ConnectionLostError: If the connection broke, after all that came before.
        """
        while not self._chunks:
            self._news.clear()
            await self._news.wait()
        chunk = self._chunks[0]
        if not chunk.data:
            if self._fault is not None:
                raise ConnectionLostError(None, str(self._fault) or type(self._fault).__name__)
            return chunk
        self._chunks.popleft()
        self._held -= len(chunk.data)
        if self._paused and self._held <= self._limit:
            self._paused = False
            self._open().resume_reading()
        return chunk

    async def write(self, data: bytes) -> None:
        """Send bytes; return when the system has all but a little of them.

        Raises:
            ConnectionLostError: If the connection has ended.
        """
        if self._closed.is_set():
            raise ConnectionLostError(None, str(self._fault or "the peer closed the connection"))
        self._open().write(data)
        await self._writable.wait()

    async def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Begin TLS on a connection that a proxy has opened.

        Raises:
            OSError: If there is no TLS to be had.
        """
        loop = asyncio.get_running_loop()
        found = await loop.start_tls(self._open(), self, context, server_hostname=host)
        if found is None:
            raise ConnectionResetError("")
        self._transport = found

    async def close(self) -> None:
        """Drop the connection; never waits long."""
        if self._transport is not None:
            self._transport.abort()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await self._closed.wait()

    def _add(self, data: bytes) -> None:
        self._chunks.append(Chunk(self._clock.now(), data))
        self._news.set()

    def _open(self) -> asyncio.Transport:
        if self._transport is None:
            raise ConnectionLostError(None, "not connected")
        return self._transport


async def dial(
    host: str, port: int, context: ssl.SSLContext | None, clock: Clock, limit: int
) -> Link:
    """Open a connection to the first address of a host that takes one; the caller sets a time-out.

    Args:
        host: Name or address.
        port: TCP port.
        context: For TLS from the first byte on; None for none.
        clock: Stamps what comes.
        limit: Bytes that may wait unread.

    Raises:
        OSError: From the name service, the system or TLS.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError | None = None
    for number, (family, kind, protocol, _, place) in enumerate(found, start=1):
        plug = socket.socket(family, kind, protocol)
        plug.setblocking(False)  # noqa: FBT003 - the name is the socket's own
        began = clock.now()
        try:
            async with asyncio.timeout(_ADDRESS_TIMEOUT_S if number < len(found) else None):
                await loop.sock_connect(plug, place)
        except OSError as error:  # a TimeoutError too
            plug.close()
            failure = error
            continue
        except BaseException:
            plug.close()
            raise
        took = (clock.now() - began) / 1e6
        link = await _over(plug, host, context, Link(clock, limit))
        link.connect_ms = took
        return link
    raise failure or OSError(f"no address for {host}")


async def _over(plug: socket.socket, host: str, context: ssl.SSLContext | None, link: Link) -> Link:
    loop = asyncio.get_running_loop()
    if context is None:
        await loop.create_connection(lambda: link, sock=plug)
    else:
        await loop.create_connection(lambda: link, sock=plug, ssl=context, server_hostname=host)
    return link
