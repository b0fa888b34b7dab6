"""A local endpoint that costs next to nothing: takes frames unread, says one word, closes.

It speaks as much of OpenAI Realtime as a session needs. `streaming_load.py --sink` starts it as a
process of its own on another core, so that what is measured is the streaming process.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import os
import sys
from typing import cast

from voxmeter.client.event_loop import new_loop

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_WORD = base64.b64encode(b"\0\x20" * 2400).decode()  # 0.1 s


def _text(**event: object) -> bytes:
    data = json.dumps(event).encode()
    head = bytes([0x81, len(data)]) if len(data) < 126 else b"\x81\x7e" + len(data).to_bytes(2)
    return head + data


_CREATED = _text(type="session.created", session={}) + _text(type="session.updated", session={})
_REPLY = (
    _text(type="response.created", response={"id": "r"})
    + _text(type="response.output_audio.delta", response_id="r", item_id="i", delta=_WORD)
    + _text(type="response.done", response={"id": "r", "status": "completed", "output": []})
)
_CLOSE = b"\x88\x02\x03\xe8"


class Sink(asyncio.Protocol):
    """One connection.

    Args:
        reply_s: When its one reply comes, from the connection on.
    """

    def __init__(self, reply_s: float) -> None:
        self._reply_s = reply_s
        self._head = b""
        self._upgraded = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer the upgrade and pings; leave all else unread."""
        if self._transport is None:
            return
        if self._upgraded:
            if data[0] == 0x89 and len(data) == 6 + (data[1] & 0x7F):
                body = bytes(b ^ data[2 + n % 4] for n, b in enumerate(data[6:]))
                self._transport.write(bytes([0x8A, len(body)]) + body)
            return
        self._head += data
        if b"\r\n\r\n" not in self._head:
            return
        self._upgraded = True
        lines = dict(
            line.split(b": ", 1) for line in self._head.split(b"\r\n")[1:] if b": " in line
        )
        key = next(value for name, value in lines.items() if name.lower() == b"sec-websocket-key")
        accept = base64.b64encode(hashlib.sha1(key + _MAGIC).digest())  # noqa: S324 - RFC 6455
        self._transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + _CREATED
        )
        loop = asyncio.get_running_loop()
        loop.call_later(self._reply_s, self._transport.write, _REPLY)
        loop.call_later(self._reply_s + 0.2, self._transport.write, _CLOSE)
        loop.call_later(self._reply_s + 0.5, self._transport.close)


async def _serve(reply_s: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Sink(reply_s), "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Print the port, and serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", type=int)
    parser.add_argument("--reply-s", type=float, default=6)
    args = parser.parse_args()
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(args.reply_s))


if __name__ == "__main__":
    main()
