"""The rows of a raw log: one for every message and event, named, sized, in order."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.capture import (
    Capture,
    Recorder,
    Utterance,
    kind_of,
    name_of,
    size_of,
)
from voxmeter.endpoints.codec import Binary, Ended, Message, Published, Text
from voxmeter.endpoints.events import (
    Closed,
    Fault,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyText,
    SpeechStarted,
    Usage,
)


def nested(first: str) -> str:
    """A message whose own name comes behind that of an object inside it."""
    return f'{{"event_id":"e","session":{{"type":"realtime",{first}}},"type":"session.created"}}'


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (Text('{"type": "session.update"}'), "session.update"),
        (Text(nested('"model":"m"')), "session.created"),
        (Text('{"response":{"output":[{"type":"message"}]},"type":"response.done"}'), "RESPONSE"),
        (Text('{"event":"audio.start","data":{"type":"x"}}'), "audio.start"),
        (Text('{"type":"transcript","event":""}'), "transcript"),
        (Text('{"data":{"type":"inner"}}'), "text"),
        (Text('{"type": 3}'), "text"),
        (Text('{"type": "' + "t" * 100 + '"}'), "t" * 60),
        (Text("hello"), "text"),
        (Text("[1, 2]"), "text"),
        (Text(""), "text"),
        (Text("[" * 10_000), "text"),
        (Text("9" * 10_000), "text"),
        (Text(nested(f'"blob":"{"A" * 40_000}"')), "session.created"),
        (Text('{"type":"conversation.item.create","item":"' + "A" * 40_000), "ITEM"),
        (Text('{"item":{"type":"message","audio":"' + "A" * 40_000), "message"),
        (Text("A" * 40_000), "text"),
        (Binary(b'{"type":"x"}'), "binary"),
        (Published("bot/in", b"{}"), "bot/in"),
        (Ended(1000), "binary"),
    ],
)
def test_a_message_is_named_by_its_outermost_type(message: Message, name: str) -> None:
    known = {"RESPONSE": "response.done", "ITEM": "conversation.item.create"}
    assert name_of(message) == known.get(name, name)


@given(st.text())
def test_any_text_has_a_name(text: str) -> None:
    assert 0 < len(name_of(Text(text))) <= 60


@pytest.mark.parametrize(
    ("message", "size"),
    [
        (Text("abc"), 3),
        (Text("naïve"), 6),
        (Text("\ud800"), 1),
        (Binary(bytes(5)), 5),
        (Published("topic", b"1234"), 4),
        (Ended(1000, "bye"), 0),
        (None, 0),
    ],
)
def test_a_size_is_that_of_the_payload_in_bytes(message: Message | None, size: int) -> None:
    assert size_of(message) == size


def test_an_event_is_spelled_as_rows_spell_it() -> None:
    assert kind_of(ReplyAudio(b"", "pcm16", 8000)) == "reply_audio"
    assert kind_of(Ready()) == "ready"
    assert kind_of(SpeechStarted()) == "speech_started"


def test_one_message_with_several_events_is_sized_once() -> None:
    record = Recorder()
    record.received(5, Text("12345678"), (ReplyText("Hi"), ReplyEnded("completed")))
    first, second = record.rows[1:]
    assert (first["kind"], first["bytes"], first["text"]) == ("reply_text", 8, "Hi")
    assert (second["kind"], second["bytes"], second["reason"]) == ("reply_ended", 0, "completed")
    assert first["t_ns"] == second["t_ns"] == 5


def test_a_message_without_events_is_a_row_with_its_name() -> None:
    record = Recorder()
    record.received(5, Text('{"type":"rate.limits"}'), ())
    assert record.rows[1] == {
        "t_ns": 5,
        "dir": "in",
        "kind": "message",
        "bytes": 22,
        "name": "rate.limits",
    }
    assert record.raw == [(1, '{"type":"rate.limits"}')]


def test_the_bytes_of_audio_go_beside_the_rows_and_its_message_is_not_kept() -> None:
    record = Recorder()
    record.received(5, Text("long base64"), (ReplyAudio(b"\1\2", "pcm16", 8000, "r"),))
    assert record.rows[1] == {
        "t_ns": 5,
        "dir": "in",
        "kind": "reply_audio",
        "bytes": 11,
        "encoding": "pcm16",
        "rate": 8000,
        "reply": "r",
    }
    assert record.audio == [(1, b"\1\2")]
    assert record.raw == []


def test_the_kind_of_a_fault_does_not_take_the_place_of_the_rows_own() -> None:
    record = Recorder()
    record.received(5, Text("{}"), (Fault("quota", retryable=True, message="later"),))
    assert record.rows[1]["kind"] == "fault"
    assert record.rows[1]["fault_kind"] == "quota"


def test_the_end_of_a_stream_is_no_message() -> None:
    record = Recorder()
    record.received(5, Ended(1000, "bye"), (Closed(1000, "bye"),))
    record.received(6, Ended(1000, "bye"), ())
    assert [row["kind"] for row in record.rows] == ["start", "closed"]


def test_only_a_frame_that_was_followed_at_once_is_marked_as_a_burst() -> None:
    record = Recorder()
    record.frame(10, 9, 100, 160, burst=False)
    record.frame(11, 10, 100, 160, burst=True)
    assert "burst" not in record.rows[1]
    assert record.rows[2]["burst"] is True


def test_what_we_send_has_its_own_fields_and_messages_a_name() -> None:
    record = Recorder()
    record.sent(5, "commit", Text("{}"), due_ns=4)
    record.sent(6, "request", None)
    record.sent(7, "message", Text('{"type":"a.b"}'))
    commit, request, message = record.rows[1:]
    assert (commit["due_ns"], commit["bytes"]) == (4, 2)
    assert request["bytes"] == 0
    assert message["name"] == "a.b"
    assert record.raw == [(3, '{"type":"a.b"}')]


def test_rows_are_json_and_a_capture_can_travel() -> None:
    record = Recorder()
    events: tuple[Any, ...] = (Usage({"tokens": 3}), Ready(24_000), Fault("server", True, "x"))  # noqa: FBT003
    record.received(5, Text("{}"), events)
    json.dumps(record.rows)
    capture = Capture(
        "ended", None, record.rows, record.audio, record.raw, Utterance(bytes(8), 8000, 0, 4)
    )
    again = pickle.loads(pickle.dumps(capture))  # noqa: S301 - our own
    assert again.rows == capture.rows
    assert again.utterance.samples == 4


def test_json_in_a_binary_message_is_kept_like_text_and_other_bytes_are_not() -> None:
    record = Recorder()
    for data in (b'{"goAway":{}}', b"{\xff}", b"\1{}"):
        record.received(5, Binary(data), ())
    assert record.raw == [(1, '{"goAway":{}}')]
    assert len(record.rows) == 4
