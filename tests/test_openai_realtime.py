"""The client codec against sessions written down line by line, and against anything at all.

A line of a recording is one of

    {"settings": {...}}                           the session's settings; the first line, if any
    {"preset": "unmute", "settings": {...}}       the same: keys laid over those of a preset
    {"connects": [url, headers, sub-protocols]}   where it connects with the key "KEY"
    {"do": "end_turn", "with": [...]}             a verb of the codec; "sends" what it leads to
    {"from": "server", "text": {...} or "..."}    one message; "events" and "sends" what it leads to
    {"from": "server", "hex": "00ff"}             the same, binary
    {"from": "server", "ended": [1008, "why"]}    the peer's close
    {"note": "..."}                               for the reader

"events" have their class under "is" and the fields that are compared, audio as hex; "sends" are
messages whose given fields must be there, "sends_exactly" whole ones; "error" is a part of a
`ProtocolError`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from realtime_rows import FOLDER, play_file

from voxmeter.endpoints import g711
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
    TurnEnd,
)
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    Usage,
)
from voxmeter.endpoints.openai_realtime import Client, client

RECORDINGS = sorted(FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play_file(path)


def told(**fields: object) -> Text:
    return Text(json.dumps(fields))


def sent(step: Step) -> list[dict[str, Any]]:
    return [json.loads(message.data) for message in step.messages if isinstance(message, Text)]


def heard(codec: Client, messages: Iterable[Message]) -> list[Event]:
    return [event for message in messages for event in codec.receive(message).events]


def ready(settings: Settings | None = None) -> Client:
    codec = client(settings or Settings())
    codec.open()
    assert heard(codec, [told(type="session.updated", session={})]) == [Ready()]
    return codec


def test_the_key_goes_into_a_header_and_the_model_into_the_query() -> None:
    codec = client(Settings(model="gpt-realtime-2.1", session_tag="t 1"))
    here = codec.address("http://127.0.0.1:9/v1/realtime?delay_ms=300", "sk-secret")
    assert here.url == "ws://127.0.0.1:9/v1/realtime?delay_ms=300&model=gpt-realtime-2.1&tag=t+1"
    assert here.headers == {"Authorization": "Bearer sk-secret"}
    assert codec.address("", None).url == "wss://api.openai.com/v1/realtime?model=gpt-realtime-2.1"
    assert codec.address("wss://h?model=x", None).url == "wss://h/v1/realtime?model=x"
    assert codec.address("ws://[::1]:9/a", None).url.endswith("tag=t+1")


def test_legacy_sends_the_beta_header_and_another_key_header_takes_the_bare_key() -> None:
    codec = client(Settings(options={"dialect": "legacy", "key_header": "api-key"}))
    headers = codec.address("wss://example.org/v1/realtime", "k").headers
    assert headers == {"OpenAI-Beta": "realtime=v1", "api-key": "k"}


@pytest.mark.parametrize("url", ["ftp://h/", "h:80", "ws://", "ws://[::1", "ws://h:99999/", "x"])
def test_a_url_that_is_none_is_the_users_mistake(url: str) -> None:
    with pytest.raises(UserError, match="url"):
        client(Settings()).address(url, None)


@pytest.mark.parametrize("key", ["sk-a\n", "sk-\u00e9"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(UserError) as raised:
        client(Settings()).address("", key)
    assert "sk-" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"silence_ms": 500}, "options.silence_ms: openai-realtime has no such option; did you"),
        ({"zzz": 500}, "known: dialect, flat_session"),
        ({"dialect": "beta"}, "'ga' or 'legacy' or 'bare'"),
        ({"output_modalities": ["text", "audio"]}, "'audio' (with its transcript) or 'text'"),
        ({"threshold": "high"}, "a number"),
        ({"speed": True}, "a number"),
        ({"max_output_tokens": 0}, "above 0"),
        ({"create_response": 1}, "true or false"),
        ({"session": "x"}, "a table"),
        ({"transcription": 3}, "a table with model"),
        ({"reasoning_effort": 3}, "a string"),
        ({"input_encoding": "mp3"}, "'pcmu'"),
    ],
)
def test_a_wrong_option_says_what_would_be_right(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as raised:
        client(Settings(options=options)).open()
    assert words in str(raised.value)


def test_rates_that_the_encoding_cannot_have_are_the_users_mistake() -> None:
    with pytest.raises(UserError, match="input_rate"):
        client(Settings(input_rate=16000, options={"input_encoding": "pcmu"}))
    with pytest.raises(UserError, match="output_rate"):
        client(Settings(output_rate=1))


def test_the_whole_ga_session_is_asked_for_as_the_types_have_it() -> None:
    options: dict[str, Json] = {
        "threshold": 0.4,
        "prefix_padding_ms": 200,
        "silence_duration_ms": 700,
        "interrupt_response": False,
        "transcription": "whisper-1",
        "noise_reduction": "near_field",
        "speed": 1.1,
        "reasoning_effort": "low",
        "max_output_tokens": "inf",
        "output_encoding": "pcmu",
        "session": {"truncation": "disabled", "audio": {"input": {"format": {"rate": 16000}}}},
    }
    codec = client(Settings(instructions="Be brief.", voice="marin", options=options))
    (update,) = sent(codec.open())
    assert update["type"] == "session.update"
    assert update["session"] == {
        "type": "realtime",
        "instructions": "Be brief.",
        "output_modalities": ["audio"],
        "max_output_tokens": "inf",
        "reasoning": {"effort": "low"},
        "truncation": "disabled",
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 16000},
                "transcription": {"model": "whisper-1"},
                "noise_reduction": {"type": "near_field"},
                "turn_detection": {
                    "type": "server_vad",
                    "threshold": 0.4,
                    "prefix_padding_ms": 200,
                    "silence_duration_ms": 700,
                    "interrupt_response": False,
                },
            },
            "output": {"format": {"type": "audio/pcmu"}, "voice": "marin", "speed": 1.1},
        },
    }


def test_the_legacy_session_has_its_fields_at_the_top_and_no_type() -> None:
    options = {"dialect": "legacy", "input_encoding": "pcma", "transcription": "whisper-1"}
    options["max_output_tokens"] = "inf"
    codec = client(Settings(voice="alloy", temperature=0.7, turn_end="commit", options={**options}))
    (update,) = sent(codec.open())
    assert update["session"] == {
        "modalities": ["text", "audio"],
        "input_audio_format": "g711_alaw",
        "output_audio_format": "pcm16",
        "turn_detection": None,
        "voice": "alloy",
        "temperature": 0.7,
        "input_audio_transcription": {"model": "whisper-1"},
        "max_response_output_tokens": "inf",
    }


def test_traits_follow_from_the_settings() -> None:
    assert client(Settings()).traits.latency_kind == "server-vad"
    assert client(Settings()).traits.input_rate == 24000
    commit = client(Settings(turn_end="commit", options={"input_encoding": "pcmu"})).traits
    assert (commit.latency_kind, commit.min_turn_ms) == ("commit", 100)
    assert (commit.input_rate, commit.input_encoding) == (8000, "pcmu")
    text = client(Settings(options={"output_modalities": ["text"]})).traits
    assert (text.reply_channel, text.latency_kind) == ("text", "text")


def test_history_in_g711_is_encoded_as_the_session_hears_it() -> None:
    codec = client(Settings(options={"input_encoding": "pcmu"}))
    pcm = bytes(range(8))
    (item,) = sent(codec.turn(Turn("user", "left out", pcm)))
    (content,) = item["item"]["content"]
    assert base64.b64decode(content["audio"]) == g711.encode_ulaw(pcm)
    assert codec.turn(Turn("assistant", "", pcm)) == Step()


def test_a_request_carries_the_whole_question_as_one_item() -> None:
    codec = ready(Settings(turn_end="request"))
    assert codec.audio(b"abcd") == codec.audio(b"ef") == Step()
    item, create = sent(codec.end_turn())
    assert base64.b64decode(item["item"]["content"][0]["audio"]) == b"abcdef"
    assert create["type"] == "response.create"
    assert codec.end_turn() == Step()


def test_a_written_question_alone_asks_for_a_reply_and_commits_nothing() -> None:
    codec = ready(Settings(turn_end="commit"))
    codec.text("Why?")
    assert [event["type"] for event in sent(codec.end_turn())] == ["response.create"]


@pytest.mark.parametrize(
    ("code", "kind", "retryable", "fatal"),
    [
        ("invalid_api_key", "auth", False, True),
        ("unauthorized", "auth", False, True),
        ("permission_denied", "auth", False, True),
        ("quota_exceeded", "quota", False, True),
        ("server_overloaded", "busy", True, False),
        ("insufficient_quota", "quota", False, True),
        ("rate_limit_exceeded", "busy", True, False),
        ("session_expired", "server", True, True),
        ("content_policy_violation", "policy", False, True),
        ("server_error", "server", True, False),
        ("invalid_value", "request", False, False),
    ],
)
def test_errors_are_sorted_by_whose_rule_was_met(
    code: str, kind: str, retryable: bool, fatal: bool
) -> None:
    codec = ready()
    error = {"type": "invalid_request_error", "code": code, "message": "No.", "param": "x"}
    (fault,) = heard(codec, [told(type="error", error=error)])
    assert fault == Fault(kind, retryable, f"{code}: No. (param x)", fatal)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verb", "fatal"), [("end_turn", True), ("audio", True), ("cancel", False)]
)
def test_an_error_is_fatal_when_it_names_a_message_that_the_turn_needs(
    verb: str, fatal: bool
) -> None:
    codec = ready(Settings(turn_end="commit"))
    codec.audio(bytes(4800))
    heard(codec, [told(type="response.created", response={"id": "r"})])
    arguments = {"end_turn": (), "audio": (b"ab",), "cancel": (0,)}[verb]
    step = getattr(codec, verb)(*arguments)
    about = sent(step)[0]["event_id"]
    error = {"type": "invalid_request_error", "code": "x", "message": "y", "event_id": about}
    (fault,) = heard(codec, [told(type="error", error=error)])
    assert isinstance(fault, Fault)
    assert fault.fatal is fatal
    assert f"about our {about.split('-')[0]}" in fault.message


@pytest.mark.parametrize("event_id", ["append-999", "append-", "evt_1", "-1", "append-0", "\u0661"])
def test_an_error_with_another_id_is_about_no_message_of_ours(event_id: str) -> None:
    codec = ready()
    error = {"type": "server_error", "message": "y", "event_id": event_id}
    (fault,) = heard(codec, [told(type="error", error=error)])
    assert fault == Fault("server", retryable=True, message="server_error: y", fatal=False)


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (
            {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}},
            "input as audio/p",
        ),
        ({"audio": {"output": {"format": {"type": "audio/pcmu"}}}}, "output as audio/pcmu at 8000"),
        ({"input_audio_format": "g711_alaw"}, "input as audio/pcma"),
        ({"output_audio_format": "mp3"}, "format 'mp3' is none of"),
        ({"audio": {"input": {"turn_detection": None}}}, "turn_end = 'commit'"),
        ({"turn_detection": None}, "turn_end = 'commit'"),
        ({"audio": 3}, "audio is of type int"),
    ],
)
def test_a_session_that_is_not_what_was_asked_for_fails_loudly(
    session: dict[str, Any], words: str
) -> None:
    codec = client(Settings())
    codec.open()
    with pytest.raises(ProtocolError) as raised:
        codec.receive(told(type="session.updated", session=session))
    assert words in str(raised.value)


def test_a_session_of_text_may_have_any_output_format_but_not_any_input() -> None:
    codec = client(Settings(options={"output_modalities": "text", "max_output_tokens": 20}))
    assert sent(codec.open())[0]["session"]["max_output_tokens"] == 20
    other = {"format": {"type": "audio/pcmu"}}
    session: dict[str, Any] = {"audio": {"output": other}, "id": 5, "model": "m"}
    assert heard(codec, [told(type="session.updated", session=session)]) == [Ready(note="model m")]
    with pytest.raises(ProtocolError, match="input as audio/pcmu"):
        codec.receive(told(type="session.updated", session={"audio": {"input": other}}))


def test_a_confirmed_format_without_a_rate_is_the_one_that_was_asked_for() -> None:
    bare = {"format": {"type": "audio/pcm"}}
    session = {"audio": {"input": bare, "output": bare}}
    codec = client(Settings(input_rate=16000, output_rate=16000))
    assert heard(codec, [told(type="session.updated", session=session)]) == [Ready()]
    codec = client(Settings(options={"input_encoding": "pcmu"}))
    with pytest.raises(ProtocolError, match="input as audio/pcm at 24000, not audio/pcmu at 8000"):
        codec.receive(told(type="session.updated", session=session))


@pytest.mark.parametrize("name", ["response.text.delta", "response.text.done"])
def test_a_close_after_words_alone_is_a_lost_connection_too(name: str) -> None:
    codec = ready()
    heard(codec, [told(type=name, delta="Hm", text="Hm")])
    assert heard(codec, [Ended(4000, "bye")]) == [Closed(4000, "bye")]


def test_a_bare_format_name_in_the_newer_place_is_understood() -> None:
    codec = client(Settings())
    audio = {"input": {"format": "pcm16"}, "output": {"format": "g711_ulaw"}}
    with pytest.raises(ProtocolError, match="output as audio/pcmu at 8000, not audio/pcm at 24000"):
        codec.receive(told(type="session.updated", session={"audio": audio}))


def test_a_server_that_keeps_its_turn_detection_in_commit_mode_fails_loudly() -> None:
    codec = client(Settings(turn_end="commit"))
    session = {"turn_detection": {"type": "server_vad"}}
    with pytest.raises(ProtocolError, match="turn_end = 'silence'"):
        codec.receive(told(type="session.updated", session=session))


def test_truncation_stays_below_what_was_sent_and_is_only_of_the_newest_reply() -> None:
    codec = ready()
    second = base64.b64encode(bytes(48000)).decode()
    delta = {"type": "response.output_audio.delta", "item_id": "i", "delta": second}
    heard(codec, [told(type="response.created", response={"id": "r"}), told(**delta)])
    cancel, truncate = sent(codec.cancel(5000))
    assert cancel["response_id"] == "r"
    assert (truncate["item_id"], truncate["audio_end_ms"]) == ("i", 900)
    assert heard(codec, [told(response_id="r", **delta)]) == []
    done = {"type": "response.done", "response": {"id": "r", "status": "completed"}}
    (ended,) = heard(codec, [told(**done)])
    assert ended == ReplyEnded("cancelled", "r", "completed all the same")
    heard(codec, [told(type="response.created", response={"id": "r2"})])
    assert [event["type"] for event in sent(codec.cancel(300))] == ["response.cancel"]


def test_a_server_without_ids_can_reply_again_after_a_cancelled_reply() -> None:
    codec = ready()
    delta = told(type="response.audio.delta", audio=base64.b64encode(b"ab").decode())
    turn = [told(type="response.created"), delta, told(type="response.done")]
    assert len(heard(codec, turn)) == 3
    heard(codec, turn[:1])
    codec.cancel(0)
    assert heard(codec, [delta]) == []
    assert heard(codec, turn[2:]) == [ReplyEnded("cancelled", "", "completed all the same")]
    assert len(heard(codec, turn)) == 3


def test_a_server_that_never_starts_a_reply_is_still_heard() -> None:
    codec = ready()
    rate = {"audio": base64.b64encode(b"ab").decode(), "sample_rate_hz": 16000}
    events = heard(codec, [told(type="response.audio.delta", **rate), told(type="response.done")])
    assert events == [ReplyAudio(b"ab", "pcm16", 16000, ""), ReplyEnded()]


def test_a_text_that_comes_only_whole_is_given_once_and_never_twice() -> None:
    codec = ready()
    here = {"response_id": "r", "item_id": "i"}
    whole = told(type="response.output_audio_transcript.done", transcript="Paris.", **here)
    assert heard(codec, [whole, whole]) == [ReplyText("Paris.", "r")]


def test_lone_surrogates_are_replaced_and_pairs_are_joined() -> None:
    codec = ready()
    message = Text('{"type":"response.text.delta","delta":"a\\ud83d b\\ud83d\\ude00"}')
    (text,) = heard(codec, [message])
    assert isinstance(text, ReplyText)
    assert text.text.encode() == "a\ufffd b\U0001f600".encode()


def test_usage_is_flat_and_numbers_only() -> None:
    codec = ready()
    usage = {"total_tokens": 9, "input_token_details": {"text_tokens": 3, "x": {"y": 1}}, "z": "a"}
    events = heard(codec, [told(type="response.done", response={"id": "r", "usage": usage})])
    assert events[0] == Usage({"total_tokens": 9, "input_token_details.text_tokens": 3})


def test_create_response_off_means_that_the_client_asks_when_the_server_closed_the_turn() -> None:
    codec = ready(Settings(options={"create_response": False}))
    codec.audio(b"ab")
    step = codec.receive(told(type="input_audio_buffer.committed", item_id="i"))
    assert [event["type"] for event in sent(step)] == ["response.create"]


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        (Ended(1008, "policy"), "policy"),
        (Ended(1013, ""), "busy"),
        (Ended(3000, "invalid_request_error.invalid_api_key"), "auth"),
        (Ended(4000, "beta header refused"), "request"),
        (Ended(1008, "insufficient_quota"), "quota"),
    ],
)
def test_a_close_that_says_why_is_a_fault_before_it_is_a_close(ended: Ended, kind: str) -> None:
    fault, closed = heard(client(Settings()), [ended])
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.fatal, fault.retryable) == (kind, True, kind == "busy")
    assert closed == Closed(ended.code, ended.reason)


@pytest.mark.parametrize("code", [1000, 1001, 1006, 1009, 1011, None])
def test_any_other_close_is_just_a_close(code: int | None) -> None:
    assert heard(client(Settings()), [Ended(code, "")]) == [Closed(code, "")]


BAD_MESSAGES = [
    (Text(""), "not JSON"),
    (Text("[1]"), "not an object"),
    (Text("nope"), "not JSON"),
    (Text('{"type": NaN}'), "not JSON"),
    (Text("{}"), "type is missing"),
    (Text('{"type": 5}'), "type is of type int"),
    (Text("[" * 200_000), "nested too deeply"),
    (Text('{"a":' * 200_000), "nested too deeply"),
    (Text('{"type":' + "1" * 10_000 + "}"), "not JSON"),
    (Binary(b"\xff\xfe"), "not UTF-8"),
    (Binary(b""), "not JSON"),
    (Published("a/b", b"{}"), "not a text or binary message"),
    (told(type="response.output_audio.delta"), "audio is missing"),
    (told(type="response.output_audio.delta", delta=5), "delta is of type int"),
    (told(type="response.output_audio.delta", delta="AA"), "not base64"),
    (told(type="response.output_audio.delta", delta="A\u00e9=="), "not base64"),
    (told(type="response.output_audio.delta", delta="AAA=BBB="), "not base64"),
    (
        told(
            type="response.output_audio.delta",
            delta=base64.b64encode(b"RIFF\0\0\0\0WAVEfmt ").decode(),
        ),
        "holds a WAV file",
    ),
    (told(type="response.output_audio.delta", delta="", sample_rate_hz=1), "is not from 8000"),
    (told(type="response.output_audio_transcript.delta", delta=[]), "delta is of type list"),
    (told(type="response.done", response=[]), "response is of type list"),
    (told(type="response.done", response={"status": "in_progress"}), "'in_progress'"),
    (told(type="response.done", response={"usage": 4}), "response.usage is of type int"),
    (Text('{"type":"response.done","response":{"usage":{"t":1e999}}}'), "a finite number"),
    (told(type="rate_limits.updated", rate_limits={}), "rate_limits is of type dict"),
    (told(type="rate_limits.updated", rate_limits=[3]), "rate_limits[0] is not an object"),
    (told(type="input_audio_buffer.speech_started", audio_start_ms="x"), "audio_start_ms"),
    (Text('{"type":"input_audio_buffer.speech_stopped","audio_end_ms":1e400}'), "a finite number"),
    (told(type="error", error=5), "error is of type int"),
    (told(type="session.updated", session=1), "session is of type int"),
    (
        told(
            type="session.updated",
            session={"audio": {"input": {"format": {"type": "pcm", "rate": 1}}}},
        ),
        "rate 1 is not from 8000",
    ),
]


@pytest.mark.parametrize(("message", "words"), BAD_MESSAGES)
def test_what_the_protocol_does_not_allow_is_a_protocol_error(message: Message, words: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        client(Settings()).receive(message)
    assert words in raised.value.problem
    assert str(raised.value).isprintable()


def test_a_message_over_the_limit_is_refused_unparsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxmeter.endpoints.fields.MAX_CHARACTERS", 10)
    with pytest.raises(ProtocolError, match="over 64 MiB"):
        client(Settings()).receive(Text('{"type": "x"}'))


def test_a_data_url_and_bare_base64_hold_the_same_audio() -> None:
    codec = ready()
    encoded = base64.b64encode(b"\1\2").decode()
    both = [f"data:audio/pcm;base64,{encoded}", encoded]
    events = heard(codec, [told(type="response.audio.delta", delta=one) for one in both])
    assert [event.data for event in events if isinstance(event, ReplyAudio)] == [b"\1\2"] * 2


def test_a_failed_reply_is_a_fault_and_never_an_empty_reply() -> None:
    codec = ready()
    heard(codec, [told(type="response.created", response={"id": "r"})])
    failed = {"id": "r", "status": "failed", "output": []}
    (fault,) = heard(codec, [told(type="response.done", response=failed)])
    assert fault == Fault("server", retryable=True, message="response failed: no code: no message")
    assert heard(codec, [told(type="response.created", response={"id": "s"})]) == [
        ReplyStarted("s")
    ]


EVENT_NAMES = st.sampled_from(
    [
        "session.updated",
        "error",
        "response.created",
        "response.done",
        "response.output_audio.delta",
        "response.audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio_transcript.done",
        "response.text.done",
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.input_audio_transcription.completed",
        "conversation.item.input_audio_transcription.failed",
        "rate_limits.updated",
    ]
)
_FIELDS = (
    "response session error delta audio id status usage status_details code message type event_id "
    "transcript text item_id content_index audio_start_ms rate_limits name remaining format rate "
    "input output turn_detection sample_rate_hz"
)
FIELD_NAMES = st.sampled_from(_FIELDS.split())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["failed", "completed", "audio/pcm", "AAAA", "data:,AAAA", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELD_NAMES, inner, max_size=4),
    max_leaves=12,
)
MESSAGES = (
    st.builds(Text, st.text(max_size=40))
    | st.builds(Binary, st.binary(max_size=40))
    | st.builds(
        lambda kind, fields: Text(json.dumps({**fields, "type": kind})),
        EVENT_NAMES,
        st.dictionaries(FIELD_NAMES, VALUES, max_size=5),
    )
    | st.builds(Ended, st.none() | st.integers(0, 5000), st.text(max_size=12))
)


@given(st.lists(MESSAGES, max_size=8), st.sampled_from(["silence", "commit", "request"]))
def test_anything_at_all_gives_events_or_a_protocol_error(
    messages: list[Message], turn_end: TurnEnd
) -> None:
    codec = client(Settings(turn_end=turn_end))
    codec.open()
    for message in messages:
        try:
            step = codec.receive(message)
        except ProtocolError:
            continue
        json.dumps(
            [asdict(event) for event in step.events], ensure_ascii=False, default=repr
        ).encode()
        codec.cancel(100)
