"""The settings by which relatives of OpenAI Realtime differ, and the presets that combine them.

Their sessions are written down in the recordings, which `test_openai_realtime.py` plays.
"""

from __future__ import annotations

import base64
import json
import wave
from contextlib import suppress
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from realtime_rows import FOLDER, endpoint_of, settings_of

from voxmeter.endpoints import preset
from voxmeter.endpoints.codec import Binary, Json, Message, Settings, Step, Text, Turn, TurnEnd
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import (
    Event,
    Fault,
    Interrupted,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
)
from voxmeter.endpoints.openai_realtime import Client, client

PRESETS = [name for name in preset.names() if preset.read(name).kind == "openai-realtime"]
NEEDED = {"url": "wss://example.org/v1/realtime", "model": "m"}


def codec_of(name: str, **own: Any) -> Client:
    ready = preset.read(name)
    needed = {key: NEEDED[key] for key in ready.needs}
    return client(settings_of(endpoint_of(name, **needed, **own)))


def with_options(**options: Json) -> Client:
    return client(Settings(options=options))


def told(**fields: object) -> Text:
    return Text(json.dumps(fields))


def sent(step: Step) -> list[dict[str, Any]]:
    return [json.loads(message.data) for message in step.messages if isinstance(message, Text)]


def heard(codec: Client, *messages: Message) -> list[Event]:
    return [event for message in messages for event in codec.receive(message).events]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def files_in(event: dict[str, Any]) -> tuple[int, bytes]:
    """The rate and the samples of the WAV file that a message holds."""
    with wave.open(BytesIO(base64.b64decode(event["audio"]))) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getframerate(), file.readframes(file.getnframes())


def test_every_preset_is_proven_by_a_recording() -> None:
    firsts = [path.read_text().split("\n", 1)[0] for path in FOLDER.glob("*.jsonl")]
    played = {json.loads(first).get("preset") for first in firsts}
    assert set(PRESETS) <= played
    assert len(PRESETS) == 13


@pytest.mark.parametrize(
    ("name", "kind", "rates"),
    [
        ("openai", "server-vad", (24000, 20)),
        ("qwen-omni-realtime", "server-vad", (16000, 20)),
        ("glm-realtime", "server-vad", (16000, 40)),
        ("unmute", "server-vad", (24000, 40)),
        ("vllm-omni-realtime-turns", "commit", (16000, 20)),
        ("local-realtime", "server-vad", (16000, 20)),
    ],
)
def test_traits_follow_from_a_preset(name: str, kind: str, rates: tuple[int, int]) -> None:
    traits = codec_of(name).traits
    assert traits.latency_kind == kind
    assert (traits.input_rate, traits.frame_ms) == rates
    bare = name in {"unmute", "vllm-omni-realtime-turns"}
    assert traits.history is traits.takes_text is not bare
    assert traits.input_encoding == ("opus" if name == "unmute" else "pcm16")
    assert traits.first_speaker == ("endpoint" if name == "unmute" else "user")


@pytest.mark.parametrize(
    ("key_header", "header"),
    [
        ("", {"Authorization": "Bearer k"}),
        ("authorization", {"authorization": "Bearer k"}),
        ("X-Key", {"X-Key": "k"}),
        ("Authorization: Basic {key}", {"Authorization": "Basic k"}),
        ("Authorization:Api-Key {key}", {"Authorization": "Api-Key k"}),
    ],
)
def test_the_key_goes_where_and_how_the_server_wants_it(
    key_header: str, header: dict[str, str]
) -> None:
    codec = with_options(key_header=key_header)
    assert codec.address("wss://h/x", "k").headers == header
    assert codec.address("wss://h/x", None).headers == {}


def test_the_query_is_a_table_and_the_urls_own_goes_first() -> None:
    query: dict[str, Json] = {"deployment": "{model}", "api-version": "1", "x": "y z"}
    codec = client(Settings(model="a/b", options={"query": query}))
    assert codec.address("wss://h/x?x=1", None).url == (
        "wss://h/x?x=1&deployment=a%2Fb&api-version=1"
    )
    nameless = with_options(query=query)
    assert nameless.address("wss://h/x", None).url == "wss://h/x?api-version=1&x=y+z"
    assert with_options(query={}).address("wss://h/x", None).url == "wss://h/x"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key_header": "Authorization: Basic"}, "has no {key} behind its colon"),
        ({"query": {"a": 1}}, "a table of strings"),
        ({"query": "a=1"}, "a table"),
        ({"subprotocols": "realtime"}, "a list of strings"),
        ({"ignore": ["a", 3]}, "a list of strings"),
        ({"beta_header": "yes"}, "true or false"),
        ({"frame_ms": 50}, "20, 40, 60, 80 or 100"),
        ({"frame_ms": 120}, "a whole number from 20 to 100"),
        ({"turn_detection": "client_vad"}, "turn_end = 'commit' and no_detection for that"),
        ({"no_detection": "off"}, "'null' or 'client_vad' or 'none'"),
        ({"commit": "twice"}, "'ask' or 'alone' or 'turns'"),
        ({"reply_end": "done"}, "'response.done' or 'audio.done'"),
        ({"ready": "now"}, "'updated' or 'created' or 'sent'"),
        ({"first_speaker": "both"}, "'user' or 'endpoint'"),
        ({"output_encoding": "wav"}, "'pcm16' or 'pcmu' or 'pcma' or 'opus'"),
        ({"update": []}, "a table"),
        ({"flat_session": "yes"}, "true or false"),
        ({"timestamp_field": 1}, "a string"),
    ],
)
def test_a_wrong_option_says_what_would_be_right(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as raised:
        client(Settings(options=options)).address("wss://h", "k")
    assert words in str(raised.value)


def test_a_question_in_one_request_needs_items_to_be_one() -> None:
    with pytest.raises(UserError, match="use 'silence' or 'commit'"):
        client(Settings(turn_end="request", options={"dialect": "bare"}))


def test_a_turn_between_two_commits_is_never_closed_by_silence() -> None:
    with pytest.raises(UserError, match="this server answers nothing else"):
        client(Settings(options={"commit": "turns"}))


@pytest.mark.parametrize("turn_end", ["commit", "request"])
def test_the_end_of_a_question_in_opus_is_never_cut_off(turn_end: TurnEnd) -> None:
    with pytest.raises(UserError, match="a page of Opus that is not full yet"):
        client(Settings(turn_end=turn_end, options={"input_encoding": "opus"}))


def test_each_append_each_question_and_each_old_turn_is_a_file_of_its_own() -> None:
    options: dict[str, Json] = {"dialect": "legacy", "input_encoding": "wav"}
    codec = client(Settings(turn_end="request", input_rate=24000, options=options))
    (update,) = sent(codec.open())
    assert update["session"]["input_audio_format"] == "wav24"
    (old,) = sent(codec.turn(Turn("user", pcm=b"\1\2\3\4")))
    assert files_in(old["item"]["content"][0]) == (24000, b"\1\2\3\4")
    codec.audio(b"\5\6")
    codec.audio(b"\7\10")
    item, _ = sent(codec.end_turn())
    assert files_in(item["item"]["content"][0]) == (24000, b"\5\6\7\10")


def test_a_word_of_the_users_own_names_the_format() -> None:
    words: dict[str, Json] = {"input_word": "linear", "output_word": "raw"}
    codec = with_options(dialect="legacy", input_encoding="wav", **words)
    session = sent(codec.open())[0]["session"]
    assert (session["input_audio_format"], session["output_audio_format"]) == ("linear", "raw")
    confirmed = {"input_audio_format": "linear", "output_audio_format": "raw"}
    assert heard(codec, told(type="session.updated", session=confirmed)) == [Ready()]


def test_what_stands_in_braces_is_filled_in_where_it_stands_alone() -> None:
    session: dict[str, Json] = {
        "about": "{model}",
        "list": ["{voice}", 1],
        "inner": {"text": "{instructions}"},
        "left": "for {model}",
    }
    settings = Settings(
        model="m", voice="v", instructions="Say {model}.", options={"session": session}
    )
    (update,) = sent(client(settings).open())
    made = update["session"]
    assert (made["about"], made["list"], made["left"]) == ("m", ["v", 1], "for {model}")
    assert made["inner"] == {"text": "Say {model}."}


def test_opus_has_no_history_and_its_pages_are_sent_as_they_come() -> None:
    codec = with_options(input_encoding="opus", timestamp_field="at")
    assert not codec.traits.history
    assert codec.turn(Turn("user", "Why?")) == Step()
    (first,) = sent(codec.audio(bytes(160)))
    assert base64.b64decode(first["audio"]) == bytes(160)
    assert codec.audio(b"") == Step()
    assert sent(codec.audio(bytes(160)))[0]["at"] == 40


def test_a_flood_of_heartbeats_is_nothing_at_all() -> None:
    codec = codec_of("glm-realtime")
    codec.open()
    beats = [codec.receive(told(type="heartbeat")) for _ in range(5000)]
    assert not any(beat.events or beat.messages for beat in beats)
    assert heard(codec, told(type="session.updated", session={})) == [Ready()]


def test_texts_of_two_replies_at_once_are_each_heard_once() -> None:
    codec = with_options()
    whole = [
        told(type="response.output_text.done", response_id=name, item_id=name, text=f"{name}!")
        for name in ("a", "b")
    ]
    assert heard(codec, *whole) == [ReplyText("a!", "a"), ReplyText("b!", "b")]
    done = told(type="response.done", response={"id": "a", "status": "completed"})
    assert heard(codec, done) == [ReplyEnded("completed", "a")]
    assert heard(codec, *whole) == []


@pytest.mark.parametrize(
    ("status", "late"), [("completed", True), ("incomplete", True), ("cancelled", False)]
)
def test_a_tail_is_heard_only_of_a_reply_that_was_not_stopped(status: str, late: bool) -> None:
    codec = with_options()
    piece = told(type="response.audio.delta", response_id="r", delta=encoded(b"ab"))
    done = told(type="response.done", response={"id": "r", "status": status})
    heard(codec, told(type="response.created", response={"id": "r"}), piece, done)
    assert heard(codec, piece) == ([ReplyAudio(b"ab", "pcm16", 24000, "r")] if late else [])
    assert "response.cancel" not in [event["type"] for event in sent(codec.cancel(0))]
    failed = told(type="response.done", response={"id": "s", "status": "failed"})
    other = told(type="response.audio.delta", response_id="s", delta=encoded(b"cd"))
    assert isinstance(heard(codec, failed)[0], Fault)
    assert heard(codec, other) == []


def test_replies_long_over_are_forgotten_and_so_are_their_texts() -> None:
    codec = with_options()
    said = told(type="response.text.done", response_id="r0", text="Hm")
    assert heard(codec, said) == [ReplyText("Hm", "r0")]
    for number in range(70):
        heard(codec, told(type="response.done", response={"id": f"r{number}"}))
    assert heard(codec, said) == [ReplyText("Hm", "r0")]


def test_speech_into_a_reply_that_is_no_response_is_no_interruption_yet() -> None:
    codec = codec_of("unmute")
    started, words = heard(
        codec, told(type="response.created"), told(type="response.text.delta", delta="Hm")
    )
    assert (started, words) == (ReplyStarted(""), ReplyText("Hm", ""))
    spoke = told(type="input_audio_buffer.speech_started")
    assert heard(codec, spoke) == [SpeechStarted()]
    assert heard(codec, told(type="unmute.interrupted_by_vad")) == [Interrupted()]
    assert heard(codec, told(type="response.audio.done")) == []


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("InvalidApiKey", "auth", False),
        ("Arrearage", "quota", False),
        ("DataInspectionFailed", "policy", False),
        ("Throttling.AllocationQuota", "busy", True),
        ("InternalError.Algo", "server", True),
    ],
)
def test_dashscopes_own_codes_are_sorted_too(code: str, kind: str, retryable: bool) -> None:
    codec = codec_of("qwen-omni-realtime")
    (fault,) = heard(codec, told(type="error", error={"code": code, "message": "No."}))
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retryable) == (kind, retryable)


EVENTS = (
    "session.created session.updated error response.created response.done response.audio.delta "
    "response.audio.done response.output_audio.delta response.output_audio.done "
    "transcription.delta transcription.done response.text.delta response.text.done "
    "unmute.interrupted_by_vad input_audio_buffer.speech_started input_audio_buffer.committed "
    "heartbeat rate_limits.updated response.audio_transcript.delta response.audio_transcript.done"
)
FIELDS = (
    "response session error delta audio id status usage status_details code message type text "
    "transcript item_id response_id content_index has_audio sample_rate_hz format rate input "
    "output sample_rate input_audio_format output_audio_format turn_detection"
)
NAMES = st.sampled_from(FIELDS.split())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["failed", "completed", "wav", "pcm", "client_vad", "AAAA", "UklGRg==", "r"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)
MESSAGES = (
    st.builds(Text, st.text(max_size=40))
    | st.builds(Binary, st.binary(max_size=40))
    | st.builds(
        lambda kind, fields: Text(json.dumps({**fields, "type": kind})),
        st.sampled_from(EVENTS.split()),
        st.dictionaries(NAMES, VALUES, max_size=5),
    )
)


@given(st.sampled_from(PRESETS), st.lists(MESSAGES, max_size=8))
def test_anything_at_all_gives_events_or_a_protocol_error(
    name: str, messages: list[Message]
) -> None:
    codec = codec_of(name)
    codec.open()
    for message in messages:
        with suppress(ProtocolError):
            codec.receive(message)
        codec.audio(bytes(64))
        codec.cancel(100)
        codec.end_turn()
