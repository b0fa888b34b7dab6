"""A Gradio app of the test's own, spoken byte by byte: the test says when anything happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from http_peer import Asked, Peer

KINDS = ("number", "radio", "audio", "textbox", "state", "audio")
"""Of the components 0 to 5."""


def config(
    inputs: Sequence[int],
    outputs: Sequence[int],
    kinds: Sequence[str] = KINDS,
    name: str = "predict",
    **more: Any,
) -> dict[str, Any]:
    """What an app with one function says of itself."""
    function = {"id": 7, "api_name": name, "inputs": list(inputs), "outputs": list(outputs)}
    return {
        "version": "5.3.0",
        "protocol": "sse_v3",
        "api_prefix": "/gradio_api",
        "components": [{"id": at, "type": kind} for at, kind in enumerate(kinds)],
        "dependencies": [function],
        **more,
    }


GLM = config(
    [0, 0, 0, 1, 2, 3, 4, 3, 3],
    [4, 3, 3, 3, 5, 2],
    name="inference_fn",
)
"""GLM-4-Voice's demo."""


def event(msg: str, data: Any = None, **more: Any) -> str:
    """One event, as the server writes it."""
    told: dict[str, Any] = {"msg": msg, "event_id": "e", **more}
    if data is not None:
        told["output"] = {"data": data, "is_generating": msg == "process_generating"}
        told.setdefault("success", True)
    return f"data: {json.dumps(told)}\n\n"


def stream(path: str = "s/1/5/playlist.m3u8") -> dict[str, Any]:
    """An output that is streamed."""
    url = f"http://elsewhere.invalid/gradio_api/stream/{path}"
    return {"path": path, "url": url, "is_stream": True, "meta": {"_type": "gradio.FileData"}}


def file(path: str = "/tmp/a b.wav") -> dict[str, Any]:  # noqa: S108 - the server's, not ours
    """An output that is a file."""
    return {"path": path, "url": None, "is_stream": False, "meta": {"_type": "gradio.FileData"}}


def playlist(count: int, *, ended: bool = False) -> bytes:
    """A playlist of so many segments."""
    lines = ["#EXTM3U", "#EXT-X-PLAYLIST-TYPE:EVENT", "#EXT-X-VERSION:4"]
    for number in range(count):
        lines += ["#EXTINF:0.400,", f"{number}.aac"]
    return "\n".join([*lines, *(["#EXT-X-ENDLIST"] if ended else []), ""]).encode()


@dataclass
class World:
    """An app: what it says of itself, what it sends, and what it was asked.

    Attributes:
        config: What it says of itself.
        events: What goes into the event stream; None ends it.
        segments: What its playlist has by now; a test adds to it.
        ended: Whether the playlist is at its end.
        files: What it has, by path.
        refuses: Status lines, by the end of the path that they answer.
        joined: What was called.
        asked: Every request.
    """

    config: Mapping[str, Any]
    events: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)
    segments: list[bytes] = field(default_factory=list)
    ended: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    refuses: dict[str, str] = field(default_factory=dict)
    joined: list[dict[str, Any]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def say(self, *events: str | None) -> None:
        """Send events, and end the stream at None."""
        for one in events:
            self.events.put_nowait(one)

    async def play(self, peer: Peer) -> None:
        """Serve one connection."""
        while True:
            found = await peer.request()
            self.asked.append(found)
            await self._answer(peer, found)

    async def _answer(self, peer: Peer, found: Asked) -> None:
        path = found.target.partition("?")[0]
        for end, status in self.refuses.items():
            if path.endswith(end):
                await peer.whole(b'{"detail": "not for you"}', status)
                return
        place = path.rpartition("/")[2]
        if path.endswith("/config"):
            await peer.whole(json.dumps(self.config).encode())
        elif path.endswith("/upload"):
            await peer.whole(b'["/tmp/gradio/question.wav"]')
        elif path.endswith("/queue/join"):
            self.joined.append(json.loads(found.body))
            await peer.whole(b'{"event_id": "e"}')
        elif path.endswith("/queue/data"):
            await self._tell(peer)
        elif place == "playlist.m3u8":
            await peer.whole(playlist(len(self.segments), ended=self.ended))
        elif place.endswith(".aac"):
            await peer.whole(self.segments[int(place[:-4])], kind="audio/aac")
        else:
            await peer.whole(self.files[path], kind="audio/wav")

    async def _tell(self, peer: Peer) -> None:
        await peer.say(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        while (told := await self.events.get()) is not None:
            await peer.say(b"%x\r\n%s\r\n" % (len(told.encode()), told.encode()))
        await peer.say(b"0\r\n\r\n")
