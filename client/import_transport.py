"""Answers made elsewhere as an endpoint: nothing is asked, what was answered is read from files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.import_answers import Answers
from voxmeter.client.terminal import printable
from voxmeter.client.transport import Arrival, Launch, Transport
from voxmeter.endpoints.codec import Address, Asked, Binary, Json, Message, Text
from voxmeter.endpoints.errors import ClipError, ProtocolError, UserError
from voxmeter.endpoints.exec_lines import LINES_OPTIONS

OPTIONS = {
    "path": "a folder of audio files named after the items, or a file of JSON lines; needed",
    **LINES_OPTIONS,
}
"""Every option of kind `import`, with what it does."""


class Imported:
    """The answers of one endpoint.

    Args:
        launch: With the options `path` and `output_modalities`.
        clock: Stamps the answers; no latency comes of it.

    Raises:
        UserError: If there are no answers of the kind that is to be scored.
    """

    def __init__(self, launch: Launch, clock: Clock | None = None) -> None:
        place = f"{launch.place} options"
        path = launch.options.get("path")
        if not isinstance(path, str) or not path.strip():
            cure = 'write path = "answers" (voxmeter endpoints import shows how)'
            raise UserError(
                f"{place}.path", "is missing" if path is None else "is not a path", cure
            )
        self.answers = Answers(launch.folder / path, f"{place}.path")
        self.written = launch.options.get("output_modalities") == "text"
        self.limit = launch.wire.max_message_mib * 2**20
        self.clock = clock or SystemClock()
        if not self.written and not self.answers.spoken:
            cure = 'write output_modalities = "text" to have the texts scored'
            raise UserError(f"{place}.path", "no answer there has audio", cure)
        if self.written and not self.answers.written:
            cure = "remove output_modalities to have the audio scored"
            raise UserError(f"{place}.path", "no answer there has text", cure)

    def __enter__(self) -> Callable[[], Transport]:
        return partial(ImportTransport, self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing was started."""


class ImportTransport:
    """One question that was answered elsewhere; see `Transport`."""

    def __init__(self, imported: Imported) -> None:
        self._imported = imported
        self._request: asyncio.Queue[dict[str, Json]] = asyncio.Queue()

    async def connect(self, address: Address) -> None:
        """Do nothing."""

    async def send(self, message: Message) -> None:
        """Take note which question is asked."""
        if not isinstance(message, Text):
            raise TypeError(f"answers made elsewhere are not asked by {type(message).__name__}")
        self._request.put_nowait(json.loads(message.data))

    async def receive(self) -> AsyncIterator[Arrival]:
        """Yield the lines of the answer, and its samples."""
        yield self._arrival(Text('{"event": "ready"}'))
        while True:
            request = await self._request.get()
            for message in await asyncio.to_thread(self._lines, request):
                yield self._arrival(message)

    async def rtt_ms(self) -> float | None:
        """Return None: there is no connection."""
        return None

    async def close(self) -> None:
        """Do nothing."""

    def _arrival(self, message: Message) -> Arrival:
        return Arrival(self._imported.clock.now(), message)

    def _lines(self, request: dict[str, Json]) -> list[Message]:
        name, told = request["id"], request["asked"]
        if not isinstance(told, dict):
            words = "answers made elsewhere are to the questions of a suite"
            return [_line(name, "error", kind="request", text=words)]
        asked = Asked(**cast("dict[str, Any]", told))
        answer = self._imported.answers.find(asked)
        if answer is None:
            words = f'no answer to "{asked.item}" of {asked.suite} ({asked.condition})'
            where = printable(f"{words} in {self._imported.answers.path}", 400)
            return [_line(name, "error", kind="request", text=where)]
        lines: list[Message] = [_line(name, "text", text=answer.text)] if answer.text else []
        if answer.audio is not None and not self._imported.written:
            lines += self._sound(name, answer.audio)
        return [*lines, _line(name, "done")]

    def _sound(self, name: Json, path: Path) -> list[Message]:
        from voxmeter.client.reply_files import reply

        try:
            pcm, rate = reply(path, self._imported.limit)
        except ClipError as error:
            line = _line(name, "audio", path=str(path))
            raise ProtocolError("import", printable(str(error), 300), line) from None
        return [_line(name, "audio", path=str(path), sample_rate=rate), Binary(pcm)]


def _line(name: Json, event: str, **fields: Json) -> Text:
    return Text(json.dumps({"id": name, "event": event, **fields}))
