"""Plays recordings to codecs that speak HTTP, and bodies split wherever one likes.

A line of a recording is one of

    {"settings": {...}}                          the session's settings; the first line, if any
    {"do": "end_turn", "with": [...]}            a verb of the codec; "sends" what it leads to
    {"from": "server", "response": [200, {...}]} the head of an answer
    {"from": "server", "text": "..."}            a piece of its body; "hex": the same in hex,
                                                 "file": the same from a file beside the recording
    {"from": "server", "ended": [429, "why"]}    its end; [null, ""] for one as it should be
    {"from": "server", "fetched": ["name", 200]} a whole answer that was fetched beside, with its
                                                 "text", "hex" or "file", or with "reason"
    {"note": "..."}                              for the reader

"events" have their class under "is" and the fields that are compared, audio as hex; for a body
from a file, "audio" is the number of bytes it leads to and "said" its words. "sends" are requests:
"type" is the content type, "has" fields of a JSON body that must be there, "contains" parts of any
body, "path" and "aside" its own. "error" is a part of a `ProtocolError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from voxmeter.endpoints.codec import (
    Binary,
    Codec,
    Ended,
    Fetched,
    Message,
    Request,
    Response,
    Settings,
    Step,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Event, ReplyAudio, ReplyText

RECORDINGS = Path(__file__).parent / "recordings"


def recordings(folder: str) -> list[Path]:
    """Return the recordings of one protocol."""
    return sorted((RECORDINGS / folder).glob("*.jsonl"))


def play(path: Path, make: Callable[[Settings], Codec]) -> None:
    """Play one recording; assert that it leads to what is written beside it."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    settings = rows.pop(0)["settings"] if "settings" in rows[0] else {}
    codec = make(Settings(**settings))
    for number, row in enumerate(rows, start=1):
        if "note" not in row:
            _play_row(codec, row, path.parent, f"{path.name}, row {number}: {row}")


def _play_row(codec: Codec, row: dict[str, Any], folder: Path, where: str) -> None:
    if "error" in row:
        with pytest.raises(ProtocolError) as raised:
            codec.receive(_message(row, folder))
        assert row["error"] in str(raised.value), where
        return
    if "do" in row:
        step: Step = getattr(codec, row["do"])(*[_argument(one) for one in row.get("with", [])])
    else:
        step = codec.receive(_message(row, folder))
    if "audio" in row:
        assert len(sound(step.events)) == row["audio"], where
        assert words(step.events) == row.get("said", ""), where
    else:
        _compare(step.events, row.get("events", []), where)
    sent = [one for one in step.messages if isinstance(one, Request)]
    assert len(sent) == len(step.messages) == len(row.get("sends", [])), (where, sent)
    for one, wanted in zip(sent, row.get("sends", []), strict=True):
        _compare_request(one, wanted, where)


def _compare(events: Sequence[Event], wanted: Sequence[dict[str, Any]], where: str) -> None:
    assert [type(event).__name__ for event in events] == [one["is"] for one in wanted], (
        where,
        events,
    )
    for event, one in zip(events, wanted, strict=True):
        for name, value in one.items():
            if name != "is":
                found = getattr(event, name)
                assert (found.hex() if isinstance(found, bytes) else found) == value, (where, event)


def _compare_request(sent: Request, wanted: dict[str, Any], where: str) -> None:
    kind = sent.headers.get("Content-Type", "")
    method = wanted.get("method", "POST")
    assert kind.startswith(wanted.get("type", "application/json" if method == "POST" else "")), (
        where
    )
    assert sent.method == method, where
    assert sent.path == wanted.get("path", sent.path), (where, sent.path)
    assert sent.aside == wanted.get("aside", ""), (where, sent.aside)
    if "has" in wanted:
        told = json.loads(sent.body)
        assert wanted["has"].items() <= told.items(), (where, told)
    for part in wanted.get("contains", []):
        assert part.encode() in sent.body, (where, part)


def _argument(value: object) -> object:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"]) if "hex" in value else Turn(**value)
    return value


def _message(row: dict[str, Any], folder: Path) -> Message:
    if "response" in row:
        return Response(*row["response"])
    if "ended" in row:
        return Ended(*row["ended"])
    if "fetched" in row:
        aside, status, headers = row["fetched"]
        return Fetched(aside, status, headers, _bytes(row, folder), row.get("reason", ""))
    return Binary(_bytes(row, folder))


def _bytes(row: dict[str, Any], folder: Path) -> bytes:
    if "file" in row:
        path: Path = folder / row["file"]
        return path.read_bytes()
    if "hex" in row:
        return bytes.fromhex(row["hex"])
    text: str = row.get("text", "")
    return text.encode()


def hear(codec: Codec, head: Response, body: bytes, cuts: Iterable[int] = ()) -> list[Event]:
    """Return the events of one whole answer, whose body is cut at these places."""
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    pieces = [body[start:end] for start, end in pairwise(places)]
    messages: list[Message] = [head, *(Binary(piece) for piece in pieces), Ended()]
    return [event for message in messages for event in codec.receive(message).events]


def sound(events: Iterable[Event]) -> bytes:
    """Return all audio, one piece after another."""
    return b"".join(event.data for event in events if isinstance(event, ReplyAudio))


def words(events: Iterable[Event]) -> str:
    """Return all text, one piece after another."""
    return "".join(event.text for event in events if isinstance(event, ReplyText))


def rates(events: Iterable[Event]) -> set[int]:
    """Return the rates that audio came with."""
    return {event.rate for event in events if isinstance(event, ReplyAudio)}


def others(events: Iterable[Event]) -> list[Event]:
    """Return whatever is neither audio nor text."""
    return [event for event in events if not isinstance(event, ReplyAudio | ReplyText)]
