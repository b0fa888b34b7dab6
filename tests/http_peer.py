"""An HTTP server of the test's own, written out byte by byte, on a loopback port."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Asked:
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Peer:
    """The server's side of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    asked: list[Asked] = field(default_factory=list)

    async def head(self) -> Asked:
        """Read the head of a request."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        pairs = [line.split(": ", 1) for line in lines[1:] if line]
        return Asked(method, target, {name.lower(): value for name, value in pairs}, b"")

    async def request(self) -> Asked:
        """Read a whole request."""
        found = await self.head()
        found.body = await self.reader.readexactly(int(found.headers.get("content-length", "0")))
        self.asked.append(found)
        return found

    async def say(self, *pieces: bytes) -> None:
        """Send pieces, each in a packet of its own as far as the system lets."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def old(self, *pieces: bytes, kind: str = "audio/wav") -> None:
        """Answer as Flask's server does: HTTP/1.0, no length, an end by closing."""
        head = f"HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n"
        await self.say(head.encode(), *pieces)

    async def whole(
        self, body: bytes, status: str = "200 OK", kind: str = "application/json", more: str = ""
    ) -> None:
        """Answer with a body of known length."""
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
        await self.say(head.encode() + b"\r\n" + body)

    async def gone(self) -> None:
        """Wait until the client has left."""
        with suppress(OSError):
            while await self.reader.read(65536):
                pass

    def reset(self) -> None:
        """Break the connection."""
        self.writer.transport.abort()


Play = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def serving(play: Play, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve every connection by a coroutine of the test's; what fails in it fails the test."""
    failures: list[BaseException] = []
    tasks: list[asyncio.Task[None]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        try:
            await play(Peer(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left first
        except Exception as error:  # noqa: BLE001 - raised below, in the test
            failures.append(error)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    listener = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=context)
    scheme = "http" if context is None else "https"
    async with listener:
        yield f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    for task in tasks:
        if not task.done():
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if failures:
        raise failures[0]
