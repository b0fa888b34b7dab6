"""The server codec: the order of its events, its errors, and that no client makes it raise."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints import g711
from voxmeter.endpoints.codec import Binary, Ended, Message, Published, Text
from voxmeter.endpoints.openai_realtime_server import Server, server
from voxmeter.endpoints.serving import (
    ClientLeft,
    HistoryAdded,
    HistoryRemoved,
    ReplyCancelled,
    ReplyRequested,
    ReplyTruncated,
    ServerStep,
    SessionSet,
    TurnCommitted,
    UserAudio,
    UserCleared,
)
from voxmeter.endpoints.wav import wav_file

SECOND = bytes(48000)


def ask(codec: Server, kind: str, **fields: object) -> ServerStep:
    return codec.receive(Text(json.dumps({"type": kind, "event_id": "mine", **fields})))


def append(codec: Server, data: bytes = SECOND) -> ServerStep:
    return ask(codec, "input_audio_buffer.append", audio=base64.b64encode(data).decode())


def told(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [json.loads(message.data) for message in messages if isinstance(message, Text)]


def types(messages: Sequence[Message]) -> list[str]:
    return [event["type"] for event in told(messages)]


def error_of(step: ServerStep) -> dict[str, Any]:
    (event,) = told(step.messages)
    assert event["type"] == "error"
    assert step.events == ()
    error: dict[str, Any] = event["error"]
    return error


def session_of(step: ServerStep) -> dict[str, Any]:
    (event,) = told(step.messages)
    assert event["type"] == "session.updated"
    session: dict[str, Any] = event["session"]
    return session


def test_the_server_speaks_first_and_every_event_has_an_id_of_its_own() -> None:
    codec = server()
    (created,) = told(codec.open().messages)
    assert created["type"] == "session.created"
    assert created["session"]["audio"]["input"]["turn_detection"]["type"] == "server_vad"
    ids = [event["event_id"] for event in told(reply(codec))]
    assert len({created["event_id"], *ids}) == 1 + len(ids)
    assert server().open() != server().open()


def reply(codec: Server) -> list[Message]:
    return [
        *codec.reply_started(),
        *codec.reply_text("Par"),
        *codec.reply_audio(b"\1\2"),
        *codec.reply_text("is."),
        *codec.reply_audio(SECOND),
        *codec.reply_ended("completed"),
    ]


def test_a_turn_found_by_the_server_is_told_in_the_documented_order() -> None:
    codec = server()
    transcription = {"model": "whisper"}
    session = {"type": "realtime", "audio": {"input": {"transcription": transcription}}}
    ask(codec, "session.update", session=session)
    append(codec)
    messages = [*codec.speech_started(180), *codec.speech_stopped(900)]
    messages += [*codec.input_transcript("What is the capital?"), *reply(codec)]
    assert types(messages) == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.completed",
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    ]
    events = told(messages)
    assert (events[0]["audio_start_ms"], events[1]["audio_end_ms"]) == (180, 900)
    user = {events[n].get("item_id") or events[n]["item"]["id"] for n in range(6)}
    assert len(user) == 1
    assistant = {event["item_id"] for event in events if "content_index" in event} - user
    assert len(assistant) == 1
    assert events[8]["previous_item_id"] in user
    assert {event["response_id"] for event in events if "response_id" in event} == {
        events[-1]["response"]["id"]
    }
    done = events[-1]["response"]
    assert (done["status"], done["status_details"]) == ("completed", None)
    assert done["output"][0]["content"] == [{"type": "output_audio", "transcript": "Paris."}]
    assert done["usage"]["input_token_details"]["audio_tokens"] == 7
    assert done["usage"]["output_token_details"] == {"text_tokens": 1, "audio_tokens": 20}
    assert done["usage"]["total_tokens"] == 7 + 4 + 1 + 20


def test_the_older_shape_is_answered_in_the_older_shape() -> None:
    codec = server()
    session: dict[str, Any] = {"modalities": ["text", "audio"]}
    session |= {"output_audio_format": "g711_ulaw"}
    session |= {"input_audio_format": "g711_alaw", "temperature": 0.7, "turn_detection": None}
    step = ask(codec, "session.update", session=session)
    assert step.events == [SessionSet(temperature=0.7, turn_end="commit")]
    answered = session_of(step)
    assert "type" not in answered
    assert session.items() <= answered.items()
    assert (codec.input_rate, codec.output_rate, codec.turn_end) == (8000, 8000, "commit")
    messages = [*append(codec, bytes(800)).messages]
    messages += ask(codec, "input_audio_buffer.commit").messages
    messages += reply(codec)
    assert types(messages) == [
        "input_audio_buffer.committed",
        "conversation.item.created",
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.content_part.added",
        "response.audio_transcript.delta",
        "response.audio.delta",
        "response.audio_transcript.delta",
        "response.audio.delta",
        "response.audio.done",
        "response.audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    deltas = [event["delta"] for event in told(messages) if event["type"] == "response.audio.delta"]
    assert b"".join(map(base64.b64decode, deltas)) == g711.encode_ulaw(b"\1\2" + SECOND)


def test_the_session_is_echoed_whole_and_what_was_left_out_stays() -> None:
    codec = server()
    audio = {
        "input": {
            "format": {"type": "audio/pcm", "rate": 16000},
            "turn_detection": {"type": "server_vad", "silence_duration_ms": 300},
        },
        "output": {"format": {"type": "audio/pcma"}, "voice": {"id": "v1"}, "speed": 1.2},
    }
    session = {"type": "realtime", "instructions": "Be brief.", "audio": audio}
    step = ask(codec, "session.update", session=session)
    assert step.events == [
        SessionSet("Be brief.", "v1", None, "silence", 300, None, True, True)  # noqa: FBT003
    ]
    assert session_of(step)["audio"]["input"]["turn_detection"]["prefix_padding_ms"] == 300
    detection = {"create_response": False, "interrupt_response": False}
    audio = {"input": {"turn_detection": detection}}
    step = ask(codec, "session.update", session={"type": "realtime", "audio": audio})
    assert step.events == [
        SessionSet(turn_end="silence", auto_reply=False, interruptible=False),
    ]
    answered = session_of(step)
    assert answered["instructions"] == "Be brief."
    assert answered["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 300
    assert answered["audio"]["input"]["format"] == {"type": "audio/pcm", "rate": 16000}
    assert answered["audio"]["output"] == {
        "format": {"type": "audio/pcma"},
        "voice": "v1",
        "speed": 1.2,
    }
    limit: dict[str, Any] = {"type": "realtime", "max_output_tokens": 50}
    assert session_of(ask(codec, "session.update", session=limit))["max_output_tokens"] == 50
    limit = {"type": "realtime", "max_output_tokens": "inf"}
    assert session_of(ask(codec, "session.update", session=limit))["max_output_tokens"] == "inf"
    cleared = ask(codec, "session.update", session={"type": "realtime", "instructions": ""})
    assert cleared.events == [SessionSet(instructions="")]


@pytest.mark.parametrize(
    "session",
    [
        {"type": "transcription"},
        {"type": "realtime", "audio": {"input": {"format": {"type": "audio/mp3"}}}},
        {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 5}}}},
        {"type": "realtime", "audio": []},
        {"type": "realtime", "output_modalities": ["video"]},
        {"type": "realtime", "output_modalities": []},
        {"type": "realtime", "instructions": 5},
        {"turn_detection": {"type": "half"}},
        {"turn_detection": {"silence_duration_ms": 1e300}},
        {"turn_detection": {"threshold": -1}},
        {"turn_detection": {"create_response": "no"}},
        {"voice": 3},
        "x",
    ],
)
def test_a_session_that_cannot_be_is_refused_and_nothing_has_changed(session: object) -> None:
    codec = server()
    before = session_of(ask(codec, "session.update", session={}))
    error = error_of(ask(codec, "session.update", session=session))
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_value")
    assert error["event_id"] == "mine"
    assert session_of(ask(codec, "session.update", session={})) == before


def test_audio_is_heard_in_the_format_that_was_agreed() -> None:
    codec = server()
    assert append(codec, b"abc").events == [UserAudio(b"abc", "pcm16", 24000)]
    assert append(codec, b"").events == []
    ask(codec, "session.update", session={"input_audio_format": "g711_ulaw"})
    assert append(codec, b"abc").events == [UserAudio(b"abc", "pcmu", 8000)]
    step = ask(codec, "input_audio_buffer.clear")
    assert step.events == [UserCleared()]
    assert types(step.messages) == ["input_audio_buffer.cleared"]


def test_a_session_of_wav_files_takes_one_in_each_message_and_at_its_own_rate() -> None:
    codec = server()
    asked = {"input_audio_format": "wav24", "turn_detection": {"type": "client_vad"}}
    session = session_of(ask(codec, "session.update", session=asked))
    assert (session["input_audio_format"], session["turn_detection"]) == ("wav24", None)
    assert codec.turn_end == "commit"
    assert append(codec, wav_file(SECOND, 24000)).events == [UserAudio(SECOND, "pcm16", 24000)]
    assert append(codec, wav_file(b"", 24000)).events == []
    assert "at 16000, not at 24000" in error_of(append(codec, wav_file(b"ab", 16000)))["message"]
    for broken in (SECOND, b"RIFF", b""):
        assert error_of(append(codec, broken))["code"] == "invalid_value"
    question = [{"type": "input_audio", "audio": base64.b64encode(wav_file(b"ab", 24000)).decode()}]
    (added,) = ask(codec, "conversation.item.create", item={"content": question}).events
    assert isinstance(added, HistoryAdded)
    assert added.audio == UserAudio(b"ab", "pcm16", 24000)


@pytest.mark.parametrize(
    ("inward", "outward", "rates"),
    [
        ("pcm", "pcm", (16000, 24000)),
        ("wav", "pcm24", (16000, 24000)),
        ("wav48", "pcm16", (48000, 24000)),
    ],
)
def test_the_words_of_other_vendors_stand_for_their_rates(
    inward: str, outward: str, rates: tuple[int, int]
) -> None:
    codec = server()
    asked = {"input_audio_format": inward, "output_audio_format": outward}
    session = session_of(ask(codec, "session.update", session=asked))
    assert (session["input_audio_format"], session["output_audio_format"]) == (inward, outward)
    assert (codec.input_rate, codec.output_rate) == rates


def test_a_commit_closes_the_turn_but_asks_for_nothing() -> None:
    codec = server()
    ask(codec, "session.update", session={"turn_detection": None})
    append(codec)
    step = ask(codec, "input_audio_buffer.commit")
    assert step.events == [TurnCommitted()]
    assert types(step.messages)[0] == "input_audio_buffer.committed"
    assert ask(codec, "response.create").events == [ReplyRequested()]
    options = {"instructions": "Whisper."}
    codec.reply_started()
    codec.reply_ended("completed")
    asked = ask(codec, "response.create", response=options)
    assert asked.events == [ReplyRequested("Whisper.")]


def test_turns_without_an_automatic_reply_leave_the_asking_to_the_client() -> None:
    codec = server()
    ask(codec, "session.update", session={"turn_detection": {"create_response": False}})
    codec.speech_started(0)
    codec.speech_stopped(500)
    assert ask(codec, "response.create").events == [ReplyRequested()]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (Text("nope"), "invalid_json"),
        (Text("[]"), "invalid_value"),
        (Text("[" * 100_000), "invalid_value"),
        (Binary(b"\xff"), "invalid_json"),
        (Published("t", b""), "invalid_json"),
        (Text("{}"), "invalid_value"),
        (Text('{"type": "who.knows"}'), "invalid_value"),
        (Text('{"type": "response.create", "event_id": 5}'), "invalid_value"),
    ],
)
def test_what_is_no_event_is_told_as_an_error(message: Message, code: str) -> None:
    codec = server()
    error = error_of(codec.receive(message))
    assert (error["type"], error["code"]) == ("invalid_request_error", code)
    assert append(codec).events


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        ("input_audio_buffer.append", {}, "invalid_value"),
        ("input_audio_buffer.append", {"audio": "!"}, "invalid_value"),
        ("input_audio_buffer.commit", {}, "input_audio_buffer_commit_empty"),
        ("response.cancel", {}, "response_cancel_not_active"),
        ("conversation.item.delete", {"item_id": "x"}, "item_not_found"),
        ("conversation.item.delete", {}, "invalid_value"),
        ("conversation.item.retrieve", {"item_id": "x"}, "item_not_found"),
        ("conversation.item.truncate", {"item_id": "x", "audio_end_ms": 0}, "item_not_found"),
        ("conversation.item.create", {}, "invalid_value"),
        ("conversation.item.create", {"item": {"type": "function_call"}}, "invalid_value"),
        ("conversation.item.create", {"item": {"content": [{"type": "x"}]}}, "invalid_value"),
        ("response.create", {"response": {"modalities": "x"}}, "invalid_value"),
    ],
)
def test_what_cannot_be_done_is_told_with_its_code(
    kind: str, fields: dict[str, Any], code: str
) -> None:
    error = error_of(ask(server(), kind, **fields))
    assert (error["code"], error["event_id"]) == (code, "mine")
    assert error["message"]


def test_a_commit_of_less_than_100_ms_is_refused() -> None:
    codec = server()
    append(codec, bytes(4798))
    assert error_of(ask(codec, "input_audio_buffer.commit"))["code"].endswith("commit_empty")
    append(codec, bytes(2))
    assert ask(codec, "input_audio_buffer.commit").events == [TurnCommitted()]
    assert error_of(ask(codec, "input_audio_buffer.commit"))["code"].endswith("commit_empty")


def test_only_one_response_at_a_time() -> None:
    codec = server()
    ask(codec, "response.create")
    for _ in range(2):
        error = error_of(ask(codec, "response.create"))
        assert error["code"] == "conversation_already_has_active_response"
        codec.reply_started()
    codec.reply_ended("completed")
    assert ask(codec, "response.create").events == [ReplyRequested()]


def test_a_cancelled_reply_closes_as_cancelled_by_the_client() -> None:
    codec = server()
    response_id = told(codec.reply_started())[0]["response"]["id"]
    wrong = ask(codec, "response.cancel", response_id="resp_x")
    assert error_of(wrong)["code"] == "response_cancel_not_active"
    assert ask(codec, "response.cancel", response_id=response_id).events == [ReplyCancelled()]
    done = told(codec.reply_ended("cancelled"))[-1]["response"]
    assert done["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    codec.reply_started()
    done = told(codec.reply_ended("cancelled"))[-1]["response"]
    assert done["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    codec.reply_started()
    done = told(codec.reply_ended("incomplete"))[-1]["response"]
    assert done["status_details"] == {"type": "incomplete", "reason": "max_output_tokens"}


def test_a_reply_that_was_only_asked_for_can_be_cancelled_too() -> None:
    codec = server()
    ask(codec, "response.create")
    step = ask(codec, "response.cancel")
    assert step.events == [ReplyCancelled()]
    assert types(step.messages) == ["response.created", "response.done"]
    assert codec.reply_audio(b"ab") == codec.reply_text("x") == []
    assert codec.reply_ended("cancelled") == []


def test_a_fault_fails_the_reply_that_is_owed_and_is_an_error_otherwise() -> None:
    codec = server()
    (error,) = told(codec.fault("busy", "rate_limit_exceeded", "Later."))
    assert (error["type"], error["error"]["type"]) == ("error", "rate_limit_error")
    codec.speech_started(0)
    codec.speech_stopped(900)
    created, done = told(codec.fault("quota", "insufficient_quota", "No money."))
    assert created["type"] == "response.created"
    assert done["response"]["status"] == "failed"
    assert done["response"]["output"] == []
    assert done["response"]["status_details"]["error"] == {
        "type": "insufficient_quota",
        "code": "insufficient_quota",
        "message": "No money.",
    }
    codec.reply_started()
    assert types(codec.fault("server", "x", "y")) == ["response.done"]
    assert types(codec.fault("server", "x", "y")) == ["error"]


def test_truncation_says_what_was_heard_and_never_more_than_was_sent() -> None:
    codec = server()
    codec.reply_started()
    codec.reply_audio(SECOND)
    item = told(codec.reply_ended("completed"))[-1]["response"]["output"][0]["id"]
    step = ask(codec, "conversation.item.truncate", item_id=item, audio_end_ms=400)
    assert step.events == [ReplyTruncated(400)]
    assert types(step.messages) == ["conversation.item.truncated"]
    over = ask(codec, "conversation.item.truncate", item_id=item, audio_end_ms=1001)
    assert error_of(over)["param"] == "audio_end_ms"
    now = told(codec.reply_started())[1]["item"]["id"]
    codec.reply_audio(SECOND)
    assert ask(codec, "conversation.item.truncate", item_id=now, audio_end_ms=9).events
    append(codec)
    user = told(ask(codec, "input_audio_buffer.commit").messages)[0]["item_id"]
    wrong = ask(codec, "conversation.item.truncate", item_id=user, audio_end_ms=9)
    assert error_of(wrong)["param"] == "item_id"


def test_items_are_put_in_told_again_and_taken_out() -> None:
    codec = server()
    audio = base64.b64encode(b"abcd").decode()
    parts = [{"type": "input_audio", "audio": audio, "transcript": "Two?"}]
    item = {"type": "message", "role": "user", "content": parts, "id": "q"}
    step = ask(codec, "conversation.item.create", item=item)
    spoken = UserAudio(b"abcd", "pcm16", 24000)
    assert step.events == [HistoryAdded("user", "Two?", spoken, "q")]
    assert types(step.messages) == ["conversation.item.added", "conversation.item.done"]
    assert error_of(ask(codec, "conversation.item.create", item=item))["code"] == "item_exists"
    answer = {"role": "assistant", "content": [{"type": "output_text", "text": "Two."}]}
    first = {"role": "system", "content": [{"type": "input_text", "text": "Be kind."}]}
    ask(codec, "conversation.item.create", item={"type": "message", **answer})
    step = ask(codec, "conversation.item.create", item=first, previous_item_id="root")
    assert told(step.messages)[0]["previous_item_id"] is None
    step = ask(codec, "conversation.item.create", item=answer, previous_item_id="q")
    assert told(step.messages)[0]["previous_item_id"] == "q"
    step = ask(codec, "conversation.item.create", item=answer, previous_item_id="gone")
    assert error_of(step)["code"] == "item_not_found"
    (got,) = told(ask(codec, "conversation.item.retrieve", item_id="q").messages)
    assert got["item"]["content"] == [{"type": "input_audio", "transcript": "Two?"}]
    assert ask(codec, "conversation.item.delete", item_id="q").events == [HistoryRemoved("q")]
    assert error_of(ask(codec, "conversation.item.retrieve", item_id="q"))


@pytest.mark.parametrize("strange", [{"type": "function_call"}, {"role": "tool"}])
def test_only_messages_of_known_roles_are_taken(strange: dict[str, str]) -> None:
    item = {"type": "message", "content": [{"type": "input_text", "text": "x"}], **strange}
    error = error_of(ask(server(), "conversation.item.create", item=item))
    assert "only messages of user, assistant and system are taken" in error["message"]


@pytest.mark.parametrize(
    ("session", "kind"), [({}, "output_audio"), ({"modalities": ["audio"]}, "audio")]
)
def test_what_the_assistant_said_is_told_again_in_the_clients_spelling(
    session: dict[str, Any], kind: str
) -> None:
    codec = server()
    ask(codec, "session.update", session=session)
    item = told(reply(codec))[-1]["response"]["output"][0]
    assert item["content"] == [{"type": kind, "transcript": "Paris."}]
    (got,) = told(ask(codec, "conversation.item.retrieve", item_id=item["id"]).messages)
    assert got["item"]["content"] == item["content"]


def test_a_reply_still_open_is_closed_before_the_next() -> None:
    codec = server()
    codec.reply_started()
    events = told(codec.reply_started())
    assert [event["type"] for event in events].index("response.done") == 5
    assert events[5]["response"]["status"] == "incomplete"
    assert events[6]["type"] == "response.created"


def test_a_session_of_text_sends_no_audio_whatever_the_brain_says() -> None:
    codec = server()
    ask(codec, "session.update", session={"type": "realtime", "output_modalities": ["text"]})
    assert types(reply(codec)) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    ]
    ask(codec, "response.create", response={"output_modalities": ["audio"]})
    assert "response.output_audio.delta" in types(reply(codec))
    assert "response.output_audio.delta" not in types(reply(codec))


def test_what_the_user_said_is_told_only_to_a_client_that_asked() -> None:
    codec = server()
    assert codec.input_transcript("early") == []
    append(codec)
    item = told(ask(codec, "input_audio_buffer.commit").messages)[0]["item_id"]
    assert codec.input_transcript("Hello.") == []
    (got,) = told(ask(codec, "conversation.item.retrieve", item_id=item).messages)
    assert got["item"]["content"][0]["transcript"] == "Hello."


def test_a_client_that_leaves_is_gone() -> None:
    assert server().receive(Ended(1001)).events == [ClientLeft()]


KINDS = st.sampled_from(
    [
        "session.update",
        "input_audio_buffer.append",
        "input_audio_buffer.commit",
        "input_audio_buffer.clear",
        "conversation.item.create",
        "conversation.item.delete",
        "conversation.item.retrieve",
        "conversation.item.truncate",
        "response.create",
        "response.cancel",
    ]
)
_NAMES = (
    "session audio item response item_id audio_end_ms content_index event_id response_id type id "
    "role content text transcript input output format rate turn_detection voice instructions "
    "modalities output_modalities input_audio_format threshold previous_item_id speed transcription"
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["user", "message", "text", "audio", "AAAA", "root", "item_000001", "\ud800"])
    | st.sampled_from(["audio/pcm", "pcm16", "server_vad", "resp_000001", "realtime"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(_NAMES.split()), inner, max_size=4)
    ),
    max_leaves=12,
)
MESSAGES = (
    st.builds(Text, st.text(max_size=40))
    | st.builds(Binary, st.binary(max_size=40))
    | st.builds(
        lambda kind, fields: Text(json.dumps({**fields, "type": kind})),
        KINDS,
        st.dictionaries(st.sampled_from(_NAMES.split()), VALUES, max_size=5),
    )
)


@given(st.lists(MESSAGES, max_size=8), st.booleans())
def test_nothing_that_a_client_sends_makes_the_server_raise(
    messages: list[Message], replying: bool
) -> None:
    codec = server()
    codec.open()
    for message in messages:
        step = codec.receive(message)
        assert all(event["event_id"] for event in told(step.messages))
        if replying:
            reply(codec)
            codec.speech_started(0)
            codec.speech_stopped(5)
            codec.input_transcript("x")
    assert 8000 <= codec.input_rate <= 48000
    assert 8000 <= codec.output_rate <= 48000


def test_a_setting_of_null_is_told_back_as_null() -> None:
    codec = server()
    codec.open()
    inward = {"transcription": None, "noise_reduction": {"type": "near_field", "deep": {"a": 1}}}
    asked = {"type": "realtime", "audio": {"input": inward}}
    session = session_of(ask(codec, "session.update", session=asked))
    assert session["audio"]["input"]["transcription"] is None
    assert session["audio"]["input"]["noise_reduction"] == {"type": "near_field"}
