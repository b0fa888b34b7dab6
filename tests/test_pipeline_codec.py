"""The codec of pipelines and its options: recordings, any lines at all, and wrong settings.

A line of a recording is one of

    {"settings": {...}}                       the session's settings; the first line, if any
    {"do": "turn", "with": [...]}             a verb of the codec, samples as hex; "sends" are the
                                              messages it leads to: {"hex": "..."} or a line
    {"from": "server", "text": {...}}         a line of the transport, or a text as it stands;
                                              "hex": samples, "ended": the end
    {"note": "..."}                           for the reader

"events" have their class under "is" and the fields that are compared, audio as hex. "error" is a
part of a `ProtocolError`.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client import config
from voxmeter.client.targets import settings
from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Json,
    Message,
    Published,
    Settings,
    Step,
    Text,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import Event
from voxmeter.endpoints.pipeline import Client, client
from voxmeter.endpoints.pipeline_options import read

RECORDINGS = sorted((Path(__file__).parent / "recordings" / "pipeline").glob("*.jsonl"))
NAMES = ("ready", "heard", "text", "audio", "stage", "usage", "note", "fault", "done", "other")
FIELDS = ("text", "name", "rate", "began_ms", "ms", "counts", "kind", "retryable", "retry_after_s")
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.one_of(st.integers(), st.text(max_size=2)), max_size=2),
)


def message_of(row: dict[str, Any]) -> Message:
    if "ended" in row:
        return Ended(*row["ended"])
    if "hex" in row:
        return Binary(bytes.fromhex(row["hex"]))
    return Text(row["text"] if isinstance(row["text"], str) else json.dumps(row["text"]))


def shown(event: Event, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return those fields of an event that a recording tells of."""
    fields = {one.name: getattr(event, one.name) for one in dataclasses.fields(event)}
    found = {"is": type(event).__name__} | {key: fields[key] for key in wanted if key != "is"}
    return {key: value.hex() if isinstance(value, bytes) else value for key, value in found.items()}


def sent(message: Message) -> object:
    if isinstance(message, Binary):
        return {"hex": message.data.hex()}
    assert isinstance(message, Text)
    return json.loads(message.data)


def argument(value: Any) -> Any:
    if isinstance(value, dict):
        return Turn(**value | {"pcm": bytes.fromhex(value.get("pcm", ""))})
    return value


def done(codec: Client, row: dict[str, Any]) -> Step:
    values = [argument(one) for one in row.get("with", [])]
    if row["do"] == "audio":
        values = [bytes.fromhex(one) for one in values]
    step: Step = getattr(codec, row["do"])(*values)
    assert [sent(one) for one in step.messages] == row["sends"]
    return step


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    codec = client(Settings(**rows.pop(0)["settings"] if "settings" in rows[0] else {}))
    for row in rows:
        if "error" in row:
            with pytest.raises(ProtocolError) as raised:
                codec.receive(message_of(row))
            assert row["error"] in str(raised.value), row
        elif "note" not in row:
            step = done(codec, row) if "do" in row else codec.receive(message_of(row))
            wanted = row.get("events", [])
            assert len(step.events) == len(wanted), row
            pairs = zip(step.events, wanted, strict=True)
            assert [shown(event, one) for event, one in pairs] == wanted


def test_every_message_of_a_reply_is_in_a_recording() -> None:
    rows = [json.loads(line) for path in RECORDINGS for line in path.read_text().splitlines()]
    lines = [row["text"] for row in rows if isinstance(row.get("text"), dict)]
    told = {line.get("event") for line in lines}
    assert set(NAMES) - {"other"} <= told


@given(st.lists(st.one_of(st.text(max_size=40), st.binary(max_size=9)), max_size=6))
def test_any_text_and_bytes_give_events_or_a_protocol_error(pieces: list[str | bytes]) -> None:
    codec = client(Settings())
    codec.end_turn()
    for one in pieces:
        with suppress(ProtocolError):
            codec.receive(Text(one) if isinstance(one, str) else Binary(one))
    with pytest.raises(ProtocolError, match="not a text or binary"):
        codec.receive(Published("topic", b""))


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(FIELDS), VALUES)))
)
def test_lines_with_wrong_fields_give_events_or_a_protocol_error(
    lines: list[tuple[str, dict[str, Any]]],
) -> None:
    codec = client(Settings())
    codec.end_turn()
    for name, fields in lines:
        with suppress(ProtocolError):
            codec.receive(Text(json.dumps(fields | {"event": name})))
        with suppress(ProtocolError):
            codec.receive(Binary(b"\0\0"))


def test_traits_say_what_a_pipeline_can_do() -> None:
    spoken, written = client(Settings()).traits, client(Settings(options={"tts": "none"})).traits
    assert (spoken.latency_kind, written.latency_kind) == ("request", "text")
    assert spoken.history
    assert spoken.takes_text
    assert spoken.reply_end == "final"
    assert client(Settings(input_rate=8_000)).traits.input_rate == 8_000


def test_the_endpoints_key_goes_into_a_header() -> None:
    assert client(Settings()).address("", "k").headers == {"Authorization": "Bearer k"}
    assert client(Settings()).address("", None).headers == {}


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h:8000", "http://h:8000/v1/chat/completions"),
        ("https://h/v1/", "https://h/v1/chat/completions"),
        ("https://h/openai?api-version=1", "https://h/openai/chat/completions?api-version=1"),
    ],
)
def test_a_base_url_is_made_whole(base: str, url: str) -> None:
    assert read(Settings(options={"llm_base_url": base})).llm.url == url


def test_what_is_set_beside_the_options_counts_where_an_option_does_not_say_otherwise() -> None:
    there: dict[str, Json] = {
        "llm_base_url": "http://h",
        "tts": "openai",
        "max_tokens": 5,
        "llm_usage": False,
    }
    wanted = read(Settings("m", "Be brief.", "ann", temperature=0.5, options=there))
    assert wanted.llm.fields == {"model": "m", "temperature": 0.5, "max_tokens": 5}
    assert wanted.llm.instructions == "Be brief."
    assert wanted.tts is not None
    assert (wanted.tts.voice, wanted.tts.model) == ("ann", "tts-1")
    own = read(Settings("m", voice="ann", options=there | {"llm_model": "n", "tts_voice": "bob"}))
    assert own.llm.fields["model"] == "n"
    assert own.tts is not None
    assert own.tts.voice == "bob"
    assert read(Settings(voice="de", options={"tts": "espeak-ng"})).tts is not None


@pytest.mark.parametrize(
    ("options", "shares", "url"),
    [
        ({"llm_base_url": "http://h"}, True, "http://h/v1/audio/speech"),
        ({"llm_base_url": "http://h", "tts_base_url": "http://h/v1"}, True, "http://h/v1/audio/speech"),
        ({"llm_base_url": "http://h", "tts_base_url": "http://o/v1"}, False, "http://o/v1/audio/speech"),
        ({"llm": "embedded", "tts_base_url": "http://o/v1"}, False, "http://o/v1/audio/speech"),
    ],
)  # fmt: skip
def test_a_speech_service_gets_the_language_models_key_only_at_the_same_place(
    options: dict[str, Any], shares: bool, url: str
) -> None:
    speaking = read(Settings(options=options | {"tts": "openai"})).tts
    assert speaking is not None
    assert (speaking.shares, speaking.url) == (shares, url)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"asr_modle": "x"}, "options.asr_modle: pipeline has no such option; did you mean"),
        ({"asr_device": "tpu"}, "options.asr_device: 'tpu'; use 'auto' or 'cpu' or 'cuda'"),
        ({"asr_beam_size": 0}, "options.asr_beam_size: 0; use a whole number from 1 to 100"),
        ({"llm": "gpt"}, "options.llm: 'gpt'; use 'openai' or 'embedded'"),
        ({"llm_base_url": "ws://h/v1"}, "options.llm_base_url: 'ws://h/v1'; use a URL such as"),
        ({"llm_base_url": "http://u:p@h"}, "options.llm_base_url: "),
        ({"llm_base_url": "http://[h"}, "options.llm_base_url: "),
        ({"llm_base_url": "http://h:0/"}, "options.llm_base_url: "),
        (
            {"llm": "embedded", "max_tokens": 9},
            "options.max_tokens: is set, but llm = 'embedded' takes",
        ),
        ({"tts": "parrot"}, "options.tts: 'parrot'; use 'hibari' or"),
        ({"tts": "openai"}, "options.tts_base_url: is missing; write where the speech service is"),
        ({"tts": "none", "tts_by": "whole"}, "options.tts_by: is set, but tts = 'none' takes"),
        ({"tts": "piper", "tts_model": "m"}, "options.tts_model: is set, but tts = 'piper' takes"),
        ({"tts_by": "word"}, "options.tts_by: 'word'; use 'sentence' or 'whole'"),
        ({"llm_body": 3}, "options.llm_body: 3; use a table"),
    ],
)
def test_a_wrong_option_is_the_users_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as raised:
        client(Settings(options=options))
    assert str(raised.value).startswith(words)
    assert "\n" not in str(raised.value)


def test_settings_that_a_pipeline_cannot_have_are_refused() -> None:
    with pytest.raises(UserError, match="turn_end"):
        client(Settings(turn_end="silence"))
    with pytest.raises(UserError, match="voice: is set, but with tts = 'none' nobody speaks"):
        client(Settings(voice="ann", options={"tts": "none"}))
    with pytest.raises(UserError, match="output_rate: 8000, but tts = 'hibari' has no rate"):
        client(Settings(output_rate=8_000))


def test_the_blocks_of_the_page_can_be_pasted() -> None:
    page = (Path(__file__).parent.parent / "docs" / "endpoints" / "pipeline.md").read_text()
    (block,) = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    pasted = config.parse(tomllib.loads(block + '[[suite]]\nkind = "demo"\n'), "bench.toml")
    made = [client(settings(endpoint)) for endpoint in pasted.endpoints]
    assert [one.traits.reply_channel for one in made] == ["text", "speech", "speech"]
