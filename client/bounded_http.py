"""Answers of HTTP services in bounded memory: nothing is unpacked, and nothing grows without end.

The client that the `openai` package stands on unpacks whatever a server says is packed, and reads
to the end whatever it sends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import Any

LIMIT_MIB = 64

PLAIN = {"Accept-Encoding": "identity"}
"""Headers that ask a server to pack nothing."""


def hooks() -> dict[str, list[Any]]:
    """Return what the package's client needs as `event_hooks`."""
    return {"response": [_bound]}


def async_hooks() -> dict[str, list[Any]]:
    """Return what the package's asynchronous client needs as `event_hooks`."""

    async def bound(response: Any) -> None:  # noqa: ANN401 - of a library that the package chooses
        _bound(response)

    return {"response": [bound]}


def _bound(response: Any) -> None:  # noqa: ANN401
    library = import_module(type(response).__module__.partition(".")[0])
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in {"identity", ""}:
        words = f"its answer is compressed as {packed[:40]}, which was not asked for"
        raise library.ReadError(words, request=response.request)
    bases = (_Bounded, library.SyncByteStream, library.AsyncByteStream)
    failure = library.ReadError(f"its answer is over {LIMIT_MIB} MiB", request=response.request)
    response.stream = type("Bounded", bases, {})(response.stream, failure)


class _Bounded:
    """A stream of bytes that ends in an error where it grows too long."""

    def __init__(self, inner: Any, failure: Exception) -> None:  # noqa: ANN401
        self._inner, self._failure = inner, failure
        self._left = LIMIT_MIB * 2**20

    def __iter__(self) -> Iterator[bytes]:
        for data in self._inner:
            yield self._taken(data)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._inner:
            yield self._taken(data)

    def close(self) -> None:
        """Close the stream behind it."""
        self._inner.close()

    async def aclose(self) -> None:
        """Likewise."""
        await self._inner.aclose()

    def _taken(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise self._failure
        return data
