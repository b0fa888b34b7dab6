"""What the stages of a pipeline have in common: how they tell what came, and how they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from voxmeter.client.clock import Clock
from voxmeter.client.http import HttpTransport
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.codec import Address, Ended, Json, Request, Response
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError
from voxmeter.endpoints.events import Event, Fault
from voxmeter.endpoints.http_exchange import Exchange, Reader

_Result = TypeVar("_Result")


class Told(NamedTuple):
    """What a stage gave, and when it was there."""

    t_ns: int
    event: Event


class StageError(Exception):
    """A stage failed; the question gets no answer.

    Attributes:
        fault: What failed, in words.
    """

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


def failed(whose: str, words: str) -> StageError:
    """Return what to raise when a stage fails for a reason of its own."""
    return StageError(Fault("server", retryable=True, message=f"{whose}: {words}"[:500]))


class Session(Protocol):
    """What a stage is for one session of the pipeline."""

    async def connect(self) -> None:
        """Open what is to be open before a question comes.

        Raises:
            ConnectError: If there is no connection to be had.
        """
        ...

    async def close(self) -> None:
        """End what was opened."""
        ...


class LlmSession(Session, Protocol):
    """A language model."""

    def answer(self, turns: list[dict[str, str]]) -> AsyncGenerator[Told, None]:
        """Yield `ReplyText`, `Usage` and `ReplyEnded`; raises `StageError`."""
        ...


class TtsSession(Session, Protocol):
    """A voice."""

    def speak(self, text: str) -> AsyncGenerator[Told, None]:
        """Yield `ReplyAudio` of whole 16-bit samples; raises `StageError`."""
        ...


class HttpStage:
    """A stage behind an HTTP API: one connection, opened before there is a question.

    Args:
        whose: What it is, for errors.
        address: Where, with its key.
        wire: How to connect.
        clock: Stamps what comes.
    """

    def __init__(self, whose: str, address: Address, wire: TransportSettings, clock: Clock) -> None:
        self._whose, self._address = whose, address
        self._transport = HttpTransport(wire, clock)
        self._arrivals = self._transport.receive()

    async def connect(self) -> None:
        """Open the connection."""
        try:
            await self._transport.connect(self._address)
        except ConnectError as error:
            raise ConnectError(error.failure, f"{self._whose}: {error}", error.status) from error

    async def close(self) -> None:
        """Drop the connection."""
        await self._transport.close()

    async def ask(
        self, body: Mapping[str, Json], reader: Callable[[Response], Reader]
    ) -> AsyncGenerator[Told, None]:
        """Send one request; yield what its answer says.

        Args:
            body: Sent as JSON.
            reader: Returns what reads the body that follows a head.

        Raises:
            StageError: If it is refused, or the answer says that it failed.
            ConnectionLostError: If the connection ends first.
            ProtocolError: If it is no answer.
        """
        exchange = Exchange(self._whose, reader)
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            await self._transport.send(Request(data, {"Content-Type": "application/json"}))
            async for t_ns, message in self._arrivals:
                for event in exchange.receive(message).events:
                    if isinstance(event, Fault):
                        words = f"{self._whose}: {event.message}"
                        raise StageError(replace(event, message=words))
                    yield Told(t_ns, event)
                if isinstance(message, Ended):
                    return
        except ConnectionLostError as error:
            raise ConnectionLostError(error.code, f"{self._whose}: {error.reason}") from error


async def patient(
    pieces: AsyncGenerator[Told, None], whose: str, limit_s: float
) -> AsyncGenerator[Told, None]:
    """Yield what a stage tells; it must not be silent for longer than the limit.

    Raises:
        StageError: If it is.
    """
    async with aclosing(pieces):
        while True:
            try:
                async with asyncio.timeout(limit_s):
                    told = await anext(pieces, None)
            except TimeoutError:
                raise failed(whose, f"said nothing for {limit_s:g} s") from None
            if told is None:
                return
            yield told


async def stamped(future: Future[_Result], clock: Clock) -> tuple[int, _Result]:
    """Wait for what another thread does; return the moment at which it was done, and its result."""
    done: list[int] = []
    future.add_done_callback(lambda _: done.append(clock.now()))  # there, not when the loop wakes
    result = await asyncio.wrap_future(future)
    return done[0], result


def beside(folder: Path, name: str) -> str:
    """Return a path that starts from a folder, where a name is one; any other name as it is."""
    return str(folder / name) if name and (folder / name).exists() else name
