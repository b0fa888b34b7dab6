"""Plays recordings to codecs that speak over a websocket.

A line of a recording is one of

    {"settings": {...}}                           the session's settings; the first line, if any
    {"do": "text", "with": ["Hello?"]}            a verb of the codec; "sends" what it leads to
    {"from": "server", "text": {...} or "..."}    one message; "events" and "sends" what it leads to
    {"from": "server", "hex": "00ff"}             the same, binary
    {"from": "server", "ended": [1008, "why"]}    the peer's close
    {"from": "server", "on": "a/b", "text": ...}  one message on a topic, or with "hex"
    {"note": "..."}                               for the reader

"events" have their class under "is" and the fields that are compared, audio as hex; "sends" are
JSON messages whose given fields must be there, or {"hex": "..."} for a binary one, with the topic
under "on"; "error" is a part of a `ProtocolError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from voxmeter.endpoints.codec import (
    Binary,
    Codec,
    Ended,
    Message,
    Published,
    Settings,
    Step,
    Text,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Event

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
            _play_row(codec, row, f"{path.name}, row {number}: {row}")


def _play_row(codec: Codec, row: dict[str, Any], where: str) -> None:
    if "error" in row:
        with pytest.raises(ProtocolError) as raised:
            codec.receive(message_of(row))
        assert row["error"] in str(raised.value), where
        return
    if "do" in row:
        step: Step = getattr(codec, row["do"])(*[_argument(one) for one in row.get("with", [])])
    else:
        step = codec.receive(message_of(row))
    wanted = row.get("events", [])
    assert [type(event).__name__ for event in step.events] == [one["is"] for one in wanted], (
        where,
        step.events,
    )
    for event, one in zip(step.events, wanted, strict=True):
        for name, value in one.items():
            if name != "is":
                found = getattr(event, name)
                assert (found.hex() if isinstance(found, bytes) else found) == value, (where, event)
    assert len(step.messages) == len(row.get("sends", [])), (where, step.messages)
    for message, one in zip(step.messages, row.get("sends", []), strict=True):
        if isinstance(message, Published):
            assert message.topic == one["on"], where
            if "hex" in one:
                assert message.payload.hex() == one["hex"], where
            else:
                said = json.loads(message.payload)
                assert {**one, "on": None}.items() <= {**said, "on": None}.items(), (where, said)
        elif isinstance(message, Binary):
            assert message.data.hex() == one["hex"], where
        else:
            assert isinstance(message, Text)
            told = json.loads(message.data)
            assert one.items() <= told.items(), (where, told)


def _argument(value: object) -> object:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"]) if "hex" in value else Turn(**value)
    return value


def message_of(row: dict[str, Any]) -> Message:
    """Return the message of one row."""
    if "ended" in row:
        return Ended(*row["ended"])
    if "on" in row:
        inner = message_of({name: value for name, value in row.items() if name != "on"})
        data = inner.data.encode() if isinstance(inner, Text) else b""
        return Published(row["on"], inner.data if isinstance(inner, Binary) else data)
    if "hex" in row:
        return Binary(bytes.fromhex(row["hex"]))
    text = row["text"]
    return Text(text if isinstance(text, str) else json.dumps(text))


def told(kind: str, **fields: object) -> Text:
    """Return one JSON message of a type."""
    return Text(json.dumps({"type": kind, **fields}))


def sent(step: Step) -> list[Any]:
    """Return the JSON messages of a step."""
    return [json.loads(message.data) for message in step.messages if isinstance(message, Text)]


def heard(codec: Codec, messages: Iterable[Message]) -> list[Event]:
    """Return the events of messages, one after another."""
    return [event for message in messages for event in codec.receive(message).events]


def nothing(codec: Codec, *verbs: str) -> None:
    """Assert that the protocol has no word for these verbs."""
    arguments: dict[str, Any] = {"turn": Turn("user", "x"), "text": "x", "played": "r", "cancel": 1}
    for verb in verbs:
        given = [arguments[verb]] if verb in arguments else []
        assert getattr(codec, verb)(*given) == Step(), verb


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def garbage(types: Iterable[str], names: Iterable[str]) -> st.SearchStrategy[Text]:
    """Return JSON messages of known types whose known fields hold anything."""
    fields = st.sampled_from(sorted(names))
    inner = VALUES | st.dictionaries(fields, VALUES, max_size=4)
    whole = st.dictionaries(fields, inner | st.lists(inner, max_size=2), max_size=5)
    kinds = st.sampled_from(sorted(types)) | st.text(max_size=6)
    return st.builds(lambda kind, told: Text(json.dumps({**told, "type": kind})), kinds, whole)


ANYTHING: st.SearchStrategy[Message] = st.one_of(
    st.builds(Text, st.text(max_size=30)),
    st.builds(Binary, st.binary(max_size=30)),
    st.builds(Ended, st.none() | st.integers(1000, 4999), st.text(max_size=9)),
    st.sampled_from([Published("t", b""), Text('{"type": 5}'), Text("[]"), Text("{}")]),
)


def stands(codec: Codec, messages: Iterable[Message]) -> None:
    """Assert that whatever a peer says gives events or a `ProtocolError`."""
    for message in messages:
        try:
            assert isinstance(codec.receive(message), Step)
        except ProtocolError:
            continue
