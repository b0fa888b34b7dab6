"""Kind `pipecat` against recorded sessions, and against anything at all.

A line of a recording is one

    {"settings": {...}}                         the session's settings; the first line, if any
    {"do": "cancel", "with": [...]}             a verb of the codec; "sends" as hex what it sends
    {"from": "server", "hex": "00ff"}           one message; "events" what it leads to
    {"from": "server", "text": "..."}           the same, which no bot may send
    {"from": "server", "ended": [1008, "why"]}  the peer's close
    {"note": "..."}                             for the reader

"says" is for the reader too, and is checked: the message of RTVI without its label, or the name of
the frame. "events" have their class under "is" and the fields that are compared, audio as hex;
"error" is a part of a `ProtocolError`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints import pipecat_frames as frames
from voxmeter.endpoints.codec import Binary, Ended, Json, Message, Settings, Text, Turn
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import (
    Event,
    Interrupted,
    Note,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)
from voxmeter.endpoints.pipecat import NOTE_CHARACTERS, Client, client
from voxmeter.endpoints.protobuf_wire import field

RECORDINGS = sorted((Path(__file__).parent / "recordings" / "pipecat").glob("*.jsonl"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    settings = rows.pop(0)["settings"] if "settings" in rows[0] else {}
    codec = client(Settings(**settings))
    for number, row in enumerate(rows, start=1):
        if "note" not in row:
            play(codec, row, f"{path.name}, row {number}: {row}")


def play(codec: Client, row: dict[str, Any], where: str) -> None:
    if "says" in row:
        assert said(message_of(row)) == row["says"], where
    if "error" in row:
        with pytest.raises(ProtocolError) as raised:
            codec.receive(message_of(row))
        assert row["error"] in str(raised.value), where
        return
    if "do" in row:
        step = getattr(codec, row["do"])(*row.get("with", []))
    else:
        step = codec.receive(message_of(row))
    sent = [message.data.hex() for message in step.messages]
    assert sent == row.get("sends", []), where
    wanted = row.get("events", [])
    assert [type(event).__name__ for event in step.events] == [one["is"] for one in wanted], where
    for event, one in zip(step.events, wanted, strict=True):
        for name in one.keys() - {"is"}:
            value = getattr(event, name)
            assert (value.hex() if isinstance(value, bytes) else value) == one[name], (where, name)


def message_of(row: dict[str, Any]) -> Message:
    if "ended" in row:
        return Ended(*row["ended"])
    return Binary(bytes.fromhex(row["hex"])) if "hex" in row else Text(row["text"])


def said(message: Message) -> object:
    """Return a frame in a reader's words."""
    frame = frames.read(message)
    if not isinstance(frame, frames.MessageFrame):
        return type(frame).__name__
    told = json.loads(frame.data)
    told.pop("label", None)
    return told


def ready(**settings: Any) -> Client:
    codec = client(Settings(**settings))
    codec.open()
    codec.receive(frames.rtvi("bot-ready", {}, "1"))
    return codec


def heard(codec: Client, *messages: Message) -> list[Event]:
    """Return the events of messages, without notes."""
    events = [event for message in messages for event in codec.receive(message).events]
    return [event for event in events if not isinstance(event, Note)]


AUDIO = frames.audio(b"\1\0", 24_000)


def test_the_recordings_come_from_a_genuine_server_or_say_that_they_do_not() -> None:
    for path in RECORDINGS:
        notes = [json.loads(line).get("note", "") for line in path.read_text().splitlines()[:2]]
        source = "captured from pipecat-ai" if "captured" in path.stem else "not captured"
        assert source in "".join(notes), path.name


def test_the_key_goes_into_a_header_and_the_url_stays_as_it_is() -> None:
    codec = client(Settings())
    assert codec.address("http://127.0.0.1:8765", None).url == "ws://127.0.0.1:8765"
    here = codec.address("wss://h/ws-client?x=1", "secret")
    assert (here.url, here.headers) == ("wss://h/ws-client?x=1", {"Authorization": "Bearer secret"})


def test_a_session_may_be_asked_for_first() -> None:
    start: dict[str, Json] = {"transport": "websocket", "body": {"model": "m"}}
    codec = client(Settings(options={"start": start, "start_field": "ws_url"}))
    here = codec.address("wss://h/start", "secret")
    assert (here.url, here.headers) == ("https://h/start", {"Authorization": "Bearer secret"})
    assert here.invitation is not None
    assert here.invitation.field == "ws_url"
    assert json.loads(here.invitation.request.body) == start
    assert here.invitation.request.headers == {"Content-Type": "application/json"}
    default = client(Settings(options={"start": {}})).address("http://h/start", None)
    assert default.invitation is not None
    assert (default.invitation.field, default.invitation.request.body) == ("wsUrl", b"{}")


def test_traits_follow_from_the_options() -> None:
    plain = client(Settings()).traits
    assert (plain.input_rate, plain.turn_end, plain.latency_kind) == (
        16_000,
        "silence",
        "server-vad",
    )
    assert (plain.first_speaker, plain.reply_end, plain.takes_text) == ("user", "told", True)
    options: dict[str, Json] = {"rtvi": False, "first_speaker": "endpoint"}
    other = client(Settings(input_rate=24_000, options=options)).traits
    assert (other.input_rate, other.first_speaker) == (24_000, "endpoint")
    assert (other.reply_end, other.takes_text) == ("quiet", False)


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"instructions": "Be brief."}, "instructions"),
        ({"voice": "alloy"}, "voice"),
        ({"temperature": 0.7}, "temperature"),
        ({"temperature": 0.0}, "temperature"),
        ({"output_rate": 24_000}, "output_rate"),
        ({"input_rate": 4_000}, "input_rate"),
        ({"turn_end": "commit"}, "turn_end"),
        ({"options": {"rtvi": "no"}}, "options.rtvi"),
        ({"options": {"first_speaker": "bot"}}, "options.first_speaker"),
        ({"options": {"rtv": True}}, "options.rtv"),
        ({"options": {"start": "websocket"}}, "options.start"),
        ({"options": {"start_field": "wsUrl"}}, "options.start_field"),
    ],
)
def test_what_a_bot_cannot_be_told_is_the_users_mistake(
    settings: dict[str, Any], place: str
) -> None:
    with pytest.raises(UserError) as raised:
        client(Settings(**settings))
    assert raised.value.place == place


def test_audio_leaves_as_a_frame_of_its_rate() -> None:
    (message,) = client(Settings(input_rate=48_000)).audio(b"\1\0\2\0").messages
    assert frames.read(message) == frames.AudioFrame(b"\1\0\2\0", 48_000)
    assert not client(Settings()).audio(b"").messages


def test_a_question_in_writing_waits_for_what_is_spoken_and_an_interruption_does_not() -> None:
    codec = client(Settings())
    (written,) = codec.text("Choose B.").messages
    assert said(written) == {
        "type": "send-text",
        "id": "text",
        "data": {
            "content": "Choose B.",
            "options": {"run_immediately": False, "audio_response": True},
        },
    }
    (stop,) = codec.cancel(300).messages
    assert frames.read(stop) == frames.InterruptionFrame()


def test_other_verbs_have_no_word_in_this_protocol() -> None:
    codec = client(Settings())
    steps = [codec.turn(Turn("user", "Hi")), codec.end_turn(), codec.played("1"), codec.close()]
    steps.append(client(Settings(options={"rtvi": False})).text("Hi"))
    assert not any(step.messages or step.events for step in steps)


def test_an_interruption_while_the_bot_is_silent_cuts_nothing() -> None:
    codec = ready()
    assert heard(codec, frames.interruption(), frames.rtvi("bot-interrupted")) == []
    turn = [frames.rtvi("bot-llm-started"), AUDIO, frames.rtvi("bot-llm-stopped")]
    assert heard(codec, *turn, frames.rtvi("bot-stopped-speaking")) == [
        ReplyStarted("1"),
        ReplyAudio(b"\1\0", "pcm16", 24_000, "1"),
        ReplyEnded("completed", "1"),
    ]
    assert heard(codec, frames.interruption()) == []


def test_a_reply_that_was_thought_of_and_not_yet_spoken_is_over_when_a_user_speaks() -> None:
    codec = ready()
    told = [frames.rtvi("bot-llm-started"), frames.rtvi("bot-llm-text", {"text": "Well"})]
    assert heard(codec, *told, frames.interruption(), frames.rtvi("bot-interrupted")) == [
        ReplyStarted("1"),
        ReplyText("Well", "1"),
        Interrupted(),
        ReplyEnded("cancelled", "1"),
    ]


def test_an_unknown_message_is_noted_and_a_long_one_is_cut() -> None:
    codec = ready()
    (note,) = codec.receive(frames.rtvi("ui-command", {"command": "x" * 9_000})).events
    assert isinstance(note, Note)
    assert (note.name, len(note.text)) == ("ui-command", NOTE_CHARACTERS)


TYPES = st.sampled_from(
    [
        *("bot-ready", "user-started-speaking", "user-stopped-speaking", "user-transcription"),
        *("user-input", "bot-llm-started", "bot-llm-text", "llm-raw-text", "bot-llm-stopped"),
        *("bot-tts-started", "bot-output", "bot-started-speaking", "bot-stopped-speaking"),
        *("bot-interrupted", "llm-function-call-in-progress", "llm-function-call-stopped"),
        *("metrics", "error", "error-response", "of-the-future"),
    ]
)
NAMES = [
    *("text", "final", "error", "fatal", "segment_id", "will_be_spoken", "tool_call_id", "about"),
    *("capabilities", "library", "version", "audio_in", "tokens", "stt_usage", "characters"),
    *("value", "input_type"),
]
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
TOLD = st.builds(
    lambda kind, data: Binary(
        field(4, field(1, json.dumps({"label": frames.LABEL, "type": kind, "data": data})))
    ),
    TYPES,
    VALUES,
)
FRAMES = st.sampled_from([AUDIO, frames.audio(b"", 8_000), frames.interruption(), Binary(b"")])
ANY = st.builds(Binary, st.binary(max_size=40)) | st.builds(Text, st.text(max_size=8))


@pytest.mark.parametrize("rtvi", [True, False])
@given(st.lists(TOLD | FRAMES | ANY, max_size=20))
def test_any_messages_give_events_or_a_protocol_error(rtvi: bool, messages: list[Message]) -> None:
    codec = client(Settings(options={"rtvi": rtvi}))
    for message in messages:
        try:
            step = codec.receive(message)
        except ProtocolError:
            continue
        assert not step.messages
        json.dumps([getattr(event, "text", "") for event in step.events]).encode()


@given(st.lists(TYPES, max_size=30))
def test_replies_begin_and_end_in_turn_whatever_the_order_of_messages(kinds: list[str]) -> None:
    codec, open_reply = ready(), None
    data: dict[str, Json] = {"text": "a", "tool_call_id": "c", "segment_id": 1, "final": True}
    for kind in kinds:
        for message in (frames.rtvi(kind, data), AUDIO):
            for event in heard(codec, message):
                match event:
                    case ReplyStarted(name):
                        assert open_reply is None
                        open_reply = name
                    case ReplyEnded(reply=name):
                        assert open_reply == name
                        open_reply = None
                    case ReplyAudio(reply=name) | ReplyText(reply=name):
                        assert open_reply == name
                    case Interrupted():
                        assert open_reply is not None
                    case Ready():
                        pytest.fail("it was ready before")
                    case _:
                        pass
