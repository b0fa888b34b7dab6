"""The page for strangers is true: its codec runs, and its recording is one that the test reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from voxmeter.endpoints.codec import Codec, Ended, Message, Settings, Text
from voxmeter.endpoints.errors import ProtocolError

PAGE = (Path(__file__).parent.parent / "docs" / "adding-an-endpoint.md").read_text()


def block(language: str) -> str:
    """Return the page's first block of a language."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def message_of(row: dict[str, Any]) -> Message:
    if "ended" in row:
        return Ended(*row["ended"])
    return Text(row["text"] if isinstance(row["text"], str) else json.dumps(row["text"]))


def test_the_pages_codec_does_what_its_recording_says() -> None:
    names: dict[str, Any] = {}
    exec(compile(block("python"), "page", "exec"), names)  # noqa: S102 - our own page
    rows = [json.loads(line) for line in block("json").splitlines()]
    codec: Codec = names["client"](Settings(**rows[0]["settings"]))
    for row in rows[2:]:
        if "error" in row:
            with pytest.raises(ProtocolError, match=row["error"]):
                codec.receive(message_of(row))
            continue
        step = codec.open() if "do" in row else codec.receive(message_of(row))
        wanted = [event["is"] for event in row.get("events", [])]
        assert [type(event).__name__ for event in step.events] == wanted
        assert len(step.messages) == len(row.get("sends", []))
    assert codec.address("ws://h", "k").headers == {"X-Key": "k"}
    assert len(codec.audio(b"ab").messages) == 1


def test_every_field_that_the_page_names_is_there() -> None:
    traits = {"input_rate", "input_encoding", "turn_end", "full_duplex", "reply_end"}
    traits |= {"first_speaker", "lead_in_ms", "min_turn_ms", "history"}
    from voxmeter.endpoints.codec import Traits

    assert traits <= set(Traits.__dataclass_fields__)
    assert all(f"`{name}" in PAGE for name in traits)
