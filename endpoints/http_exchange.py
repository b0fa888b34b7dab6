"""One request and its answer, as a codec sees them: what every HTTP protocol here has in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from voxmeter.endpoints.codec import (
    Address,
    Binary,
    Ended,
    Json,
    Message,
    Request,
    Response,
    Settings,
    Step,
)
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import Event, Fault, ReplyEnded, ReplyStarted
from voxmeter.endpoints.http_faults import refusal

_CARRIED = ("instructions", "voice", "model", "temperature")


class Reader(Protocol):
    """Reads the body of one answer."""

    def feed(self, data: bytes) -> Iterable[Event]:
        """Return what a piece of the body stands for; pieces are split anywhere.

        Raises:
            ProtocolError: If the body is not what it should be.
        """
        ...

    def end(self) -> Iterable[Event]:
        """Return what was held back; a `ReplyEnded` is added where the reader has given none.

        Raises:
            ProtocolError: If the body ends where it may not.
        """
        ...


class Exchange:
    """Turns the answers to requests into events, one answer after another.

    Args:
        protocol: Its name, for errors.
        reader: Returns what reads the body that follows a head.
    """

    def __init__(self, protocol: str, reader: Callable[[Response], Reader]) -> None:
        self._protocol, self._make = protocol, reader
        self._reader: Reader | None = None
        self._over = False

    def receive(self, message: Message) -> Step:
        """Return the events of one message.

        Raises:
            ProtocolError: If it is not part of an answer, or not now.
        """
        match message:
            case Response() if self._reader is None:
                self._reader, self._over = self._make(message), False
                return Step([ReplyStarted()])
            case Binary(data) if self._reader is not None:
                return Step(self._kept(self._reader.feed(data)))
            case Ended(None) if self._reader is not None:
                events = self._kept(self._reader.end())
                ending = [] if self._over else [ReplyEnded()]
                self._reader = None
                return Step([*events, *ending])
            case Ended(code) if code is not None:
                self._reader = None
                return Step([refusal(message)])
            case _:
                raise ProtocolError(self._protocol, "not a part of an answer, or not now", message)

    def _kept(self, events: Iterable[Event]) -> Sequence[Event]:
        """Return events up to the end of the reply; what follows is not part of it."""
        kept: list[Event] = []
        for event in events:
            if self._over:
                break
            kept.append(event)
            self._over = isinstance(event, ReplyEnded) or (isinstance(event, Fault) and event.fatal)
        return kept


def with_path(url: str, path: str) -> str:
    """Return a URL with a path where it has none of its own."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=path)) if parts.path in {"", "/"} else url


def keyed(url: str, api_key: str | None, header: str = "Authorization") -> Address:
    """Return an address whose key goes into `Authorization: Bearer KEY`, or bare elsewhere."""
    if not api_key:
        return Address(url)
    bearer = header.lower() == "authorization"
    return Address(url, {header: f"Bearer {api_key}" if bearer else api_key})


def only_requests(kind: str, settings: Settings) -> None:
    """Refuse settings that close turns in another way.

    Raises:
        UserError: If `turn_end` is anything but `request`.
    """
    if settings.turn_end not in {None, "request"}:
        found = f"is {settings.turn_end}, but a question to kind {kind} is one request"
        raise UserError("turn_end", found, "remove it")


def unsaid(settings: Settings, said: Collection[str] = ()) -> Sequence[str]:
    """Return the names of the settings that were given and that a request does not carry.

    Args:
        settings: What the user wants.
        said: The names of those that it carries.
    """
    given = [name for name in _CARRIED if getattr(settings, name) not in ("", None)]
    return [name for name in given if name not in said]


def json_request(body: Mapping[str, Json]) -> Step:
    """Return what sends a JSON object."""
    data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    return Step(messages=[Request(data, {"Content-Type": "application/json"})])
