"""The server of Gemini Live: what a client may ask, what ends its session, how replies are told."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.codec import Binary, Ended, Message, Published, Text
from voxmeter.endpoints.events import FaultKind
from voxmeter.endpoints.gemini_live_server import Server, server
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    HistoryAdded,
    ReplyCancelled,
    ReplyRequested,
    ServerStep,
    SessionSet,
    TurnCommitted,
    UserAudio,
)

SECOND = bytes(48_000)
MANUAL = {"realtimeInputConfig": {"automaticActivityDetection": {"disabled": True}}}


def ask(codec: Server, **fields: object) -> ServerStep:
    return codec.receive(Text(json.dumps(fields)))


def told(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [json.loads(message.data) for message in messages if isinstance(message, Binary)]


def ready(**setup: object) -> Server:
    codec = server()
    assert codec.open() == ServerStep()
    step = ask(codec, setup={"model": "models/m", **setup})
    assert set(told(step.messages)[0]) == {"setupComplete"}
    return codec


def sound(data: bytes = b"\0\1", rate: int = 16000) -> dict[str, str]:
    return {"data": base64.b64encode(data).decode(), "mimeType": f"audio/pcm;rate={rate}"}


def events_of(step: ServerStep) -> Sequence[ClientEvent]:
    assert step.messages == ()
    return list(step.events)


def close_of(step: ServerStep) -> Ended:
    (ended,) = step.messages
    assert isinstance(ended, Ended)
    assert len(ended.reason.encode()) <= 123
    assert step.events == ()
    return ended


def test_a_session_is_set_up_as_it_was_asked_for() -> None:
    codec = server()
    setup = {
        "generationConfig": {
            "responseModalities": ["AUDIO"],
            "temperature": 0.5,
            "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Puck"}}},
        },
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
        "realtimeInputConfig": {
            "automaticActivityDetection": {"silenceDurationMs": 300},
            "activityHandling": "NO_INTERRUPTION",
        },
    }
    step = ask(codec, setup=setup)
    assert step.events == [
        SessionSet("Be brief.\n\nBe kind.", "Puck", 0.5, "silence", 300, interruptible=False)
    ]
    (complete,) = told(step.messages)
    assert complete["setupComplete"]["sessionId"]
    assert (codec.input_rate, codec.output_rate, codec.turn_end) == (16000, 24000, "silence")


def test_what_is_left_out_of_a_setup_is_left_to_the_server() -> None:
    step = ask(server(), setup={})
    assert step.events == [SessionSet(turn_end="silence", interruptible=True)]
    assert ready().turn_end == "silence"
    assert ready(**MANUAL).turn_end == "commit"
    assert server().turn_end == "silence"


def test_names_with_underscores_are_understood_as_the_package_of_google_sends_them() -> None:
    codec = server()
    words = {"parts": [{"text": "Be brief."}]}
    step = ask(codec, setup={"system_instruction": words})
    assert isinstance(step.events[0], SessionSet)
    assert step.events[0].instructions == "Be brief."
    said = {"data": "-_8=", "mime_type": "audio/pcm;rate=8000"}
    assert events_of(ask(codec, realtime_input={"audio": said})) == [
        UserAudio(b"\xfb\xff", "pcm16", 8000)
    ]


@pytest.mark.parametrize(
    ("setup", "code", "words"),
    [
        ({"generationConfig": {"responseModalities": ["AUDIO", "TEXT"]}}, 1007, "one response mod"),
        ({"generationConfig": {"responseModalities": "AUDIO"}}, 1007, "one response modality"),
        ({"sessionResumption": {"handle": "old"}}, 1008, "session not found"),
        ({"generationConfig": []}, 1007, "INVALID_ARGUMENT: setup.generationConfig is of type"),
        ({"generationConfig": {"temperature": "hot"}}, 1007, "a number is wanted"),
    ],
)
def test_a_setup_that_cannot_be_ends_the_session(
    setup: dict[str, Any], code: int, words: str
) -> None:
    ended = close_of(ask(server(), setup=setup))
    assert ended.code == code
    assert words in ended.reason


def test_a_client_that_asks_for_handles_is_told_that_there_are_none() -> None:
    step = ask(server(), setup={"sessionResumption": {}})
    assert told(step.messages)[1] == {"sessionResumptionUpdate": {"resumable": False}}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Text("nope"), "not JSON"),
        (Binary(b"\xff"), "not UTF-8"),
        (Published("t", b""), "not a text or binary message"),
        (Text("[" * 100_000), "nested too deeply"),
        (Text("{}"), "exactly one field"),
        (Text('{"setup": {}, "clientContent": {}}'), "exactly one field"),
        (Text('{"setup": null}'), "exactly one field"),
        (Text('{"hologram": {}}'), 'Unknown name "hologram": Cannot find field.'),
        (Text('{"clientContent": {}}'), "the first message must be setup"),
    ],
)
def test_what_cannot_be_the_first_message_ends_the_session(message: Message, words: str) -> None:
    codec = server()
    ended = close_of(codec.receive(message))
    assert ended.code == 1007
    assert words in ended.reason
    assert codec.receive(Text('{"setup": {}}')) == ServerStep(), "it is over"
    assert codec.fault("server", "x", "y") == []


def test_a_second_setup_ends_the_session() -> None:
    assert "only the first message" in close_of(ask(ready(), setup={})).reason


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"audio": {"data": "AAAA"}}, "mimeType is missing"),
        ({"audio": {"data": "AAAA", "mimeType": "audio/mp3"}}, "is not audio/pcm"),
        ({"audio": {"data": "AAAA", "mimeType": "image/png"}}, "nothing else is heard"),
        ({"audio": {"data": "?", "mimeType": "audio/pcm"}}, "not base64"),
        ({"audio": "AAAA"}, "audio is of type str"),
        ({"activityStart": {}}, "Explicit activity control is not supported"),
        ({"activityStart": True}, "activityStart is of type bool"),
        ({"text": 3}, "text is of type int"),
    ],
)
def test_input_that_cannot_be_ends_the_session(given: dict[str, Any], words: str) -> None:
    ended = close_of(ask(ready(), realtimeInput=given))
    assert ended.code == 1007
    assert words in ended.reason


def test_audio_is_heard_at_the_rate_that_each_piece_says() -> None:
    codec = ready()
    for rate in (8000, 16000):
        step = ask(codec, realtimeInput={"audio": sound(b"\1\2\3", rate)})
        assert events_of(step) == [UserAudio(b"\1\2\3", "pcm16", rate)]
        assert codec.input_rate == rate
    older = ask(codec, realtimeInput={"mediaChunks": [sound(b"\1\2"), sound(b"\3\4")]})
    assert events_of(older) == [UserAudio(b, "pcm16", 16000) for b in (b"\1\2", b"\3\4")]
    assert events_of(ask(codec, realtimeInput={"audio": sound(b"")})) == []


def test_a_bracketed_turn_is_committed_and_answered_and_the_rest_is_not_heard() -> None:
    codec = ready(**MANUAL)
    assert events_of(ask(codec, realtimeInput={"audio": sound()})) == []
    assert events_of(ask(codec, realtimeInput={"activityStart": {}})) == []
    assert len(events_of(ask(codec, realtimeInput={"audio": sound()}))) == 1
    said = ask(codec, realtimeInput={"text": "In one word."})
    assert events_of(said) == [HistoryAdded("user", "In one word.")]
    ended = ask(codec, realtimeInput={"activityEnd": {}})
    assert events_of(ended) == [TurnCommitted(), ReplyRequested()]
    assert events_of(ask(codec, realtimeInput={"audioStreamEnd": True})) == []
    assert "activityEnd without" in close_of(ask(codec, realtimeInput={"activityEnd": {}})).reason


def test_speech_begins_once_before_it_ends() -> None:
    codec = ready(**MANUAL)
    ask(codec, realtimeInput={"activityStart": {}})
    twice = close_of(ask(codec, realtimeInput={"activityStart": {}}))
    assert "activityStart twice" in twice.reason


@pytest.mark.parametrize("handling", ["START_OF_ACTIVITY_INTERRUPTS", "NO_INTERRUPTION"])
def test_bracketed_speech_interrupts_a_reply_unless_it_may_not(handling: str) -> None:
    config = {**MANUAL["realtimeInputConfig"], "activityHandling": handling}
    codec = ready(realtimeInputConfig=config)
    codec.reply_started()
    step = ask(codec, realtimeInput={"activityStart": {}})
    interrupts = handling == "START_OF_ACTIVITY_INTERRUPTS"
    assert events_of(step) == ([ReplyCancelled()] if interrupts else [])


def test_the_end_of_the_stream_closes_a_turn_that_had_begun() -> None:
    codec = ready()
    assert events_of(ask(codec, realtimeInput={"audioStreamEnd": True})) == []
    codec.speech_started(100)
    step = ask(codec, realtimeInput={"audioStreamEnd": True})
    assert events_of(step) == [TurnCommitted(), ReplyRequested()]
    codec.speech_started(100)
    codec.speech_stopped(900)
    assert events_of(ask(codec, realtimeInput={"audioStreamEnd": True})) == []


def test_text_beside_no_speech_is_a_turn_and_beside_speech_is_part_of_it() -> None:
    codec = ready()
    said = HistoryAdded("user", "Why?")
    assert events_of(ask(codec, realtimeInput={"text": "Why?"})) == [said, ReplyRequested()]
    codec.speech_started(100)
    assert events_of(ask(codec, realtimeInput={"text": "Why?"})) == [said]


def test_turns_of_the_conversation_are_added_and_answered_when_they_are_complete() -> None:
    codec = ready()
    turns = [
        {"role": "user", "parts": [{"inlineData": sound(b"\1\2", 8000)}]},
        {"role": "model", "parts": [{"text": "Two."}, {"text": "Three."}]},
        {"role": "system", "parts": [{"text": "One word."}]},
        {"parts": [{"text": "Why?"}, {"inlineData": {"mimeType": "image/png", "data": ""}}]},
    ]
    added = [
        HistoryAdded("user", "", UserAudio(b"\1\2", "pcm16", 8000)),
        HistoryAdded("assistant", "Two. Three."),
        HistoryAdded("system", "One word."),
        HistoryAdded("user", "Why?"),
    ]
    assert events_of(ask(codec, clientContent={"turns": turns})) == added
    step = ask(codec, clientContent={"turns": turns[:1], "turnComplete": True})
    assert events_of(step) == [added[0], ReplyRequested()]
    codec.reply_started()
    assert events_of(ask(codec, clientContent={})) == [ReplyCancelled()]
    bad = close_of(ask(codec, clientContent={"turns": [{"role": "nobody"}]}))
    assert "role 'nobody' is none of" in bad.reason


def test_history_that_was_announced_is_answered_by_nobody() -> None:
    codec = ready(historyConfig={"initialHistoryInClientContent": True})
    turns = [{"role": "user", "parts": [{"text": "Why?"}]}]
    for complete in (False, True):
        step = ask(codec, clientContent={"turns": turns, "turnComplete": complete})
        assert events_of(step) == [HistoryAdded("user", "Why?")]
    step = ask(codec, clientContent={"turns": turns, "turnComplete": True})
    assert events_of(step) == [HistoryAdded("user", "Why?"), ReplyRequested()]


def test_instructions_change_within_a_session_and_answers_to_no_call_are_let_pass() -> None:
    codec = ready()
    words = {"systemInstruction": {"parts": [{"text": "Whisper."}]}}
    assert events_of(ask(codec, contextUpdate=words)) == [SessionSet(instructions="Whisper.")]
    assert events_of(ask(codec, contextUpdate={})) == []
    assert events_of(ask(codec, toolResponse={"functionResponses": []})) == []


def test_a_spoken_reply_is_told_in_the_documented_order() -> None:
    codec = ready(outputAudioTranscription={}, inputAudioTranscription={}, explicitVadSignal=True)
    ask(codec, realtimeInput={"audio": sound(bytes(32_000))})
    messages = [*codec.speech_started(180), *codec.speech_stopped(900)]
    messages += [*codec.input_transcript("What is six?"), *codec.reply_started()]
    messages += [*codec.reply_text("Half a"), *codec.reply_audio(SECOND), *codec.reply_text("")]
    messages += [*codec.reply_audio(b""), *codec.reply_ended("completed")]
    start, stop, heard, words, audio, generated, complete = told(messages)
    assert start == {"voiceActivity": {"type": "ACTIVITY_START", "audioOffset": "0.180s"}}
    assert stop == {"voiceActivity": {"type": "ACTIVITY_END", "audioOffset": "0.900s"}}
    transcription = {"text": "What is six?", "finished": True}
    assert heard == {"serverContent": {"inputTranscription": transcription}}
    assert words == {"serverContent": {"outputTranscription": {"text": "Half a"}}}
    part = audio["serverContent"]["modelTurn"]["parts"][0]["inlineData"]
    assert part == {"data": base64.b64encode(SECOND).decode(), "mimeType": "audio/pcm;rate=24000"}
    assert generated == {"serverContent": {"generationComplete": True}}
    assert complete["serverContent"] == {"turnComplete": True}
    assert complete["usageMetadata"] == {
        "promptTokenCount": 25,
        "responseTokenCount": 27,
        "totalTokenCount": 52,
        "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 25}],
        "responseTokensDetails": [
            {"modality": "AUDIO", "tokenCount": 25},
            {"modality": "TEXT", "tokenCount": 2},
        ],
    }
    assert told(again(codec))[-1]["usageMetadata"]["totalTokenCount"] == 0, "counted by the turn"


def again(codec: Server) -> list[Message]:
    return [*codec.reply_started(), *codec.reply_ended("completed")]


def test_what_a_client_did_not_ask_for_is_not_told() -> None:
    codec = ready()
    messages = [*codec.speech_started(180), *codec.speech_stopped(900)]
    messages += [*codec.input_transcript("What is six?"), *codec.reply_text("Half a dozen.")]
    assert messages == []
    nobody = server()
    for said in (nobody.input_transcript("a"), nobody.reply_text("a"), nobody.reply_audio(SECOND)):
        assert said == []


def test_a_reply_in_text_has_no_audio() -> None:
    codec = ready(generationConfig={"responseModalities": ["TEXT"]})
    codec.reply_started()
    assert codec.reply_audio(SECOND) == []
    (words,) = told(codec.reply_text("Half a dozen."))
    turn = {"role": "model", "parts": [{"text": "Half a dozen."}]}
    assert words == {"serverContent": {"modelTurn": turn}}


def test_a_cancelled_reply_is_interrupted_and_then_complete() -> None:
    codec = ready()
    codec.reply_started()
    interrupted, complete = told(codec.reply_ended("cancelled"))
    assert interrupted == {"serverContent": {"interrupted": True}}
    assert complete["serverContent"] == {"turnComplete": True}
    assert codec.reply_ended("cancelled") == []


def test_a_reply_that_begins_ends_the_one_before() -> None:
    codec = ready()
    assert codec.reply_started() == []
    generated, _ = told(codec.reply_started())
    assert generated == {"serverContent": {"generationComplete": True}}


@pytest.mark.parametrize(
    ("kind", "code", "status"),
    [
        ("auth", 1008, "UNAUTHENTICATED"),
        ("quota", 1011, "RESOURCE_EXHAUSTED: quota"),
        ("policy", 1008, "FAILED_PRECONDITION"),
        ("busy", 1011, "UNAVAILABLE"),
        ("request", 1007, "INVALID_ARGUMENT"),
        ("server", 1011, "INTERNAL"),
    ],
)
def test_a_failure_ends_the_session_with_its_words(kind: FaultKind, code: int, status: str) -> None:
    assert ready().fault(kind, "its_code", "No.") == [Ended(code, f"{status}: No. (its_code)")]


def test_a_reason_is_cut_to_what_a_close_frame_holds() -> None:
    (ended,) = ready().fault("server", "x", "\u20ac" * 200 + "\ud800")
    assert isinstance(ended, Ended)
    assert 120 <= len(ended.reason.encode()) <= 123


def test_the_client_leaves() -> None:
    assert ready().receive(Ended(1000)).events == [ClientLeft()]


FIELD_NAMES = st.sampled_from(
    [
        "generationConfig",
        "responseModalities",
        "realtimeInputConfig",
        "automaticActivityDetection",
        "disabled",
        "turns",
        "parts",
        "role",
        "text",
        "inlineData",
        "turnComplete",
        "audio",
        "data",
        "mimeType",
        "activityStart",
        "activityEnd",
        "audioStreamEnd",
        "media_chunks",
        "systemInstruction",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELD_NAMES, inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(["setup", "clientContent", "realtime_input", "contextUpdate", "x"])
MESSAGES = (
    st.builds(Text, st.text(max_size=40))
    | st.builds(Binary, st.binary(max_size=40))
    | st.just(Text('{"setup": {}}'))
    | st.builds(
        lambda name, fields: Text(json.dumps({name: fields})),
        NAMES,
        st.dictionaries(FIELD_NAMES, VALUES, max_size=5) | VALUES,
    )
)


@given(st.booleans(), st.lists(MESSAGES, max_size=6))
def test_no_client_makes_it_raise(begun: bool, messages: list[Message]) -> None:
    codec = ready() if begun else server()
    over = False
    for message in messages:
        step = codec.receive(message)
        assert not (over and (step.events or step.messages))
        over = over or any(isinstance(one, Ended) for one in step.messages)
