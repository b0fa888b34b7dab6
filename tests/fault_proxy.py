"""A TCP proxy between the client and a server of ours that does to a connection what networks do.

Which fault a connection has is a function of its number (and of a seed, where chance decides), so
that a test, and a soak of thousands, can say what every one of them must come to. What happened is
kept, by the session's tag.

    python tests/fault_proxy.py --upstream ws://127.0.0.1:9000 --share 0.1 --seed 1 --log FILE
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import socket
import ssl
import struct
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal
from urllib.parse import urlsplit

Cut = Literal["", "reset", "half-open", "truncate", "close"]
_TAG = re.compile(rb"[?&]tag=([^& ]*)")
_PIECE = 1 << 14
_GARBAGE = bytes(range(256))


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done to one connection; nothing by default.

    Attributes:
        name: What to call it in the log.
        door: `refuse` resets it before a byte has passed, `garbage` answers with bytes that no
            protocol has, `noise` does so before it has heard a request, `mute` says nothing at all.
        query: Added to the query that the server sees, such as `fault=silent`.
        latency_ms: Of everything that the server sends.
        jitter_ms: Up to so much more, drawn for each piece; what comes later overtakes nothing.
        bytes_per_s: Of what the server sends; 0 is no limit.
        cut: What ends the connection: `reset` (RST), `half-open` (it stays, and nothing passes any
            more in either direction), `truncate` (an end in the middle of a message), `close`.
        cut_at: The message of the server's, from 1, that meets `cut`; of a reply where `cut_in`.
        cut_in: Text that the message in question must have, such as `output_audio.delta`.
        reorder: Messages of a reply that no order binds to one another come in another one.
    """

    name: str = ""
    door: Literal["", "refuse", "garbage", "noise", "mute"] = ""
    query: str = ""
    latency_ms: float = 0.0
    jitter_ms: float = 0.0
    bytes_per_s: float = 0.0
    cut: Cut = ""
    cut_at: int = 1
    cut_in: str = ""
    reorder: bool = False


@dataclass(slots=True)
class Passed:
    """One connection that came by, and how often its fault was met."""

    number: int
    fault: Fault
    tag: str = ""
    met: int = 0


@dataclass
class FaultProxy:
    """Passes connections on to one port of this machine.

    Attributes:
        upstream: The server's port.
        fault_of: Which fault the n-th connection has, from 1.
        seed: Of jitter and reordering.
        tls: Certificate and key with which it talks TLS to the client, and plainly to the server.
        log: Where each connection is written to as it ends.
        passed: Every connection so far.
    """

    upstream: int
    fault_of: Callable[[int], Fault] = lambda _: Fault()
    seed: int = 0
    tls: tuple[Path, Path] | None = None
    log: IO[str] | None = None
    passed: list[Passed] = field(default_factory=list)
    _server: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen on a free port; return it."""
        context = None
        if self.tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.tls)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        number = len(self.passed) + 1
        one = Passed(number, self.fault_of(number))
        self.passed.append(one)
        try:
            await self._pass_on(one, client, to_client)
        except (ConnectionError, asyncio.IncompleteReadError, _CutError):
            pass
        finally:
            if self.log is not None:
                row = {"number": number, "fault": one.fault.name, "tag": one.tag, "met": one.met}
                self.log.write(json.dumps(row) + "\n")
                self.log.flush()
            to_client.close()

    async def _pass_on(
        self, one: Passed, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        if one.fault.door == "refuse":
            one.met += 1
            _reset(to_client)
        if one.fault.door == "mute":
            one.met += 1
            await client.read()  # until it leaves
            return
        if one.fault.door == "noise":
            one.met += 1
            await client.read(1)
            to_client.write(_GARBAGE)
            return
        head = await client.readuntil(b"\r\n\r\n")
        tagged = _TAG.search(head)
        one.tag = tagged[1].decode() if tagged else ""
        if one.fault.door == "garbage":
            one.met += 1
            to_client.write(_GARBAGE)
            return
        server, to_server = await asyncio.open_connection("127.0.0.1", self.upstream)
        try:
            to_server.write(_with_query(head, one.fault.query))
            upwards = asyncio.create_task(_carry(client, to_server))
            try:
                await self._downwards(one, server, to_client)
            except _HalfOpenError:
                upwards.cancel()
                await asyncio.gather(upwards, return_exceptions=True)
                while await client.read(_PIECE):  # its own patience ends it
                    pass
            finally:
                upwards.cancel()
        finally:
            to_server.close()

    async def _downwards(
        self,
        one: Passed,
        server: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
    ) -> None:
        fault, draw = one.fault, random.Random(f"{self.seed} {one.number}")  # noqa: S311
        one.met += bool(fault.query)
        head = await server.readuntil(b"\r\n\r\n")
        to_client.write(head)
        if b" 101 " not in head[:16]:
            await _carry(server, to_client)
            return
        messages = _frames(server)
        if fault.reorder:
            messages = _reordered(messages, draw, one)
        if fault.latency_ms or fault.jitter_ms:
            messages = _late(messages, fault, draw, one)
        counted = 0
        async for message in messages:
            counted += fault.cut_in.encode() in message
            if fault.cut and counted == fault.cut_at:
                one.met += 1
                await _cut(fault.cut, message, to_client)
            if fault.bytes_per_s:
                one.met += 1
                await asyncio.sleep(len(message) / fault.bytes_per_s)
            to_client.write(message)
            await to_client.drain()


class _CutError(Exception):
    """This connection is over."""


class _HalfOpenError(Exception):
    """Nothing passes on this connection any more."""


async def _cut(how: Cut, message: bytes, to_client: asyncio.StreamWriter) -> None:
    if how == "reset":
        _reset(to_client)
    if how == "truncate":
        to_client.write(message[: len(message) // 2])
        await to_client.drain()
    if how == "half-open":
        raise _HalfOpenError
    raise _CutError


def _reset(to_client: asyncio.StreamWriter) -> None:
    """End a connection with RST, and not with a word."""
    peer = to_client.get_extra_info("socket")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    to_client.transport.abort()
    raise _CutError


async def _carry(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(_PIECE):
            to.write(data)
            await to.drain()
        to.write_eof()


async def _frames(server: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the server's websocket frames, each whole and as it came."""
    with suppress(asyncio.IncompleteReadError):
        while True:
            head = await server.readexactly(2)
            size, more = head[1] & 0x7F, b""
            if size >= 126:
                more = await server.readexactly(2 if size == 126 else 8)
                size = int.from_bytes(more, "big")
            yield head + more + await server.readexactly(size)


async def _late(
    messages: AsyncIterator[bytes], fault: Fault, draw: random.Random, one: Passed
) -> AsyncIterator[bytes]:
    """Hold every message for a while, many at a time: latency is no lack of bandwidth."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()

    async def fill() -> None:
        async for message in messages:
            wait_s = (fault.latency_ms + draw.uniform(0, fault.jitter_ms)) / 1000
            queue.put_nowait((loop.time() + wait_s, message))
        queue.put_nowait(None)

    filling = asyncio.create_task(fill())
    try:
        while (held := await queue.get()) is not None:
            one.met += 1
            await asyncio.sleep(max(0.0, held[0] - loop.time()))
            yield held[1]
    finally:
        filling.cancel()


async def _reordered(
    messages: AsyncIterator[bytes], draw: random.Random, one: Passed
) -> AsyncIterator[bytes]:
    """Shuffle what comes between a reply's beginning and its end.

    Messages of one family (sound, its words, the items) keep their order: that much every protocol
    promises.
    """
    families: dict[str, list[bytes]] | None = None
    async for message in messages:
        if b'"response.created"' in message:
            families = {}
            yield message
        elif families is None:
            yield message
        elif b'"response.done"' in message:
            waiting = [family for family in families.values() if family]
            one.met += len(waiting) > 1
            while waiting:
                family = draw.choice(waiting)
                yield family.pop(0)
                waiting = [family for family in waiting if family]
            families = None
            yield message
        else:
            families.setdefault(_family(message), []).append(message)


def _family(message: bytes) -> str:
    with suppress(ValueError):
        kind = str(json.loads(message[message.index(b"{") :])["type"])
        return kind.rpartition(".")[0] if kind.startswith("response.output_audio") else "items"
    return "items"


def _with_query(head: bytes, query: str) -> bytes:
    if not query:
        return head
    method, target, rest = head.split(b" ", 2)
    joint = b"&" if b"?" in target else b"?"
    return b" ".join((method, target + joint + query.encode(), rest))


@contextmanager
def proxying(proxy: FaultProxy) -> Iterator[int]:
    """Run a proxy in a thread of its own while the `with` block lasts; yields its port."""
    ready: list[int] = []
    began, over = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        ready.append(await proxy.start())
        loops.append(asyncio.get_running_loop())
        began.set()
        await over.wait()
        await proxy.stop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="fault proxy")
    thread.start()
    try:
        if not began.wait(30):
            raise TimeoutError
        yield ready[0]
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join(30)


SOAK_FAULTS = (
    *(Fault(name, query=f"fault={name}") for name in ("drop", "silent", "garbage", "never")),
    Fault("server-refuses", query="fault=refuse"),
    Fault("slow", query="fault=slow"),
    Fault("refuse", door="refuse"),
    Fault("no-http", door="garbage"),
    Fault("reset", cut="reset", cut_in="output_audio.delta", cut_at=2),
    Fault("truncate", cut="truncate", cut_in="output_audio.delta", cut_at=2),
    Fault("half-open", cut="half-open", cut_in="response.created"),
    Fault("half-open-late", cut="half-open", cut_in="output_audio.delta", cut_at=2),
    Fault("late", latency_ms=30, jitter_ms=60),
    Fault("narrow", bytes_per_s=400_000),
    Fault("reorder", reorder=True),
)
"""What a soak puts into its connections, each as often as any other."""


def by_chance(share: float, seed: int) -> Callable[[int], Fault]:
    """Return a choice in which about `share` of the connections have one of `SOAK_FAULTS`."""

    def fault_of(number: int) -> Fault:
        draw = random.Random(f"{seed} {number}")  # noqa: S311 - no secret
        return draw.choice(SOAK_FAULTS) if draw.random() < share else Fault()

    return fault_of


async def _main(args: argparse.Namespace, log: IO[str]) -> None:
    url = urlsplit(args.upstream)
    proxy = FaultProxy(url.port or 0, by_chance(args.share, args.seed), args.seed, log=log)
    port = await proxy.start()
    print(f"ready {args.upstream.replace(f':{url.port}', f':{port}')}", flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it has ended
    await proxy.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Break some of the connections to a server.")
    parser.add_argument("--upstream", required=True, metavar="URL")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args()
    with options.log.open("w") as file:
        asyncio.run(_main(options, file))
