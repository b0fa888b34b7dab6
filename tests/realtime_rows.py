"""Plays written sessions of OpenAI Realtime; `test_openai_realtime.py` has their format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from voxmeter.endpoints import preset
from voxmeter.endpoints.codec import Binary, Ended, Message, Settings, Step, Text, Turn
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.openai_realtime import Client, client

FOLDER = Path(__file__).parent / "recordings" / "openai_realtime"
SETTINGS = (
    "model",
    "instructions",
    "voice",
    "temperature",
    "input_rate",
    "output_rate",
    "turn_end",
)


def endpoint_of(name: str, **own: Any) -> dict[str, Any]:
    """The `[[endpoint]]` table that a preset makes with a user's own keys."""
    table = dict(preset.read(name).endpoint)
    options = {**table.get("options", {}), **own.pop("options", {})}
    return {**table, **own, "options": options}


def settings_of(table: Mapping[str, Any]) -> Settings:
    """What a session of such an endpoint is to be."""
    chosen = {key: table[key] for key in SETTINGS if key in table}
    return Settings(**chosen, options=table.get("options", {}))


def play_file(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    first = rows.pop(0) if "note" not in rows[0] and "do" not in rows[0] else {}
    own = first.get("settings", {})
    table = endpoint_of(first["preset"], **own) if "preset" in first else own
    codec = client(settings_of(table))
    for number, row in enumerate(rows, start=1):
        where = f"{path.name}, row {number}: {row}"
        if "connects" in row:
            address = codec.address(table["url"], "KEY")
            found = [address.url, address.headers, list(address.subprotocols)]
            assert found == row["connects"], where
        elif "note" not in row:
            play(codec, row, where)


def play(codec: Client, row: dict[str, Any], where: str) -> None:
    if "error" in row:
        with pytest.raises(ProtocolError) as raised:
            codec.receive(message_of(row))
        assert row["error"] in str(raised.value), where
        return
    if "do" in row:
        step: Step = getattr(codec, row["do"])(*[argument(one) for one in row.get("with", [])])
    else:
        step = codec.receive(message_of(row))
    assert [str(event).split("(")[0] for event in step.events] == [
        one["is"] for one in row.get("events", [])
    ], (where, step.events)
    for event, wanted in zip(step.events, row.get("events", []), strict=True):
        for name, value in wanted.items():
            if name != "is":
                assert shown(getattr(event, name)) == value, (where, name)
    sent = [json.loads(m.data) for m in step.messages if isinstance(m, Text)]
    if "sends_exactly" in row:
        assert sent == row["sends_exactly"], (where, sent)
        return
    assert len(sent) == len(row.get("sends", [])), (where, sent)
    for told, wanted in zip(sent, row.get("sends", []), strict=True):
        assert told["event_id"], where
        assert wanted.items() <= told.items(), (where, told)


def argument(value: object) -> object:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"]) if "hex" in value else Turn(**value)
    return value


def shown(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def message_of(row: dict[str, Any]) -> Message:
    if "ended" in row:
        return Ended(*row["ended"])
    if "hex" in row:
        return Binary(bytes.fromhex(row["hex"]))
    text = row["text"]
    return Text(text if isinstance(text, str) else json.dumps(text))
