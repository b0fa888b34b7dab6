"""The client of Gemini Live against sessions written down line by line, and against anything.

Recordings are as in `test_openai_realtime.py`, but that "sends" are whole messages.
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
from voxmeter.endpoints.events import Closed, Event, Fault, Note, Ready, ReplyAudio, ReplyEnded
from voxmeter.endpoints.gemini_live import Client, client
from voxmeter.endpoints.gemini_live_options import OPTIONS
from voxmeter.endpoints.gemini_live_wire import camel, duration, duration_ms

RECORDINGS = sorted((Path(__file__).parent / "recordings" / "gemini-live").glob("*.jsonl"))
PATH = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
GOOGLE = f"wss://generativelanguage.googleapis.com{PATH}"
VERTEX = "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent"


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    settings = rows.pop(0)["settings"] if "settings" in rows[0] else {}
    codec = client(Settings(**settings))
    for number, row in enumerate(rows, start=1):
        if "note" not in row:
            play(codec, row, f"{path.name}, row {number}: {row}")


def play(codec: Client, row: dict[str, Any], where: str) -> None:
    if "error" in row:
        with pytest.raises(ProtocolError) as raised:
            codec.receive(message_of(row))
        assert row["error"] in str(raised.value.problem), where
        return
    if "do" in row:
        step: Step = getattr(codec, row["do"])(*[argument(one) for one in row.get("with", [])])
    else:
        step = codec.receive(message_of(row))
    wanted = row.get("events", [])
    assert [type(event).__name__ for event in step.events] == [one["is"] for one in wanted], where
    for event, expected in zip(step.events, wanted, strict=True):
        for name, value in expected.items():
            if name != "is":
                assert shown(getattr(event, name)) == value, (where, name)
    assert sent(step) == row.get("sends", []), where


def argument(value: Any) -> Any:
    if isinstance(value, dict) and "hex" in value:
        return bytes.fromhex(value["hex"])
    if isinstance(value, dict):
        return Turn(**{name: argument(one) for name, one in value.items()})
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


def told(**fields: object) -> Text:
    return Text(json.dumps(fields))


def sent(step: Step) -> list[dict[str, Any]]:
    return [json.loads(message.data) for message in step.messages if isinstance(message, Text)]


def heard(codec: Client, messages: Iterable[Message]) -> list[Event]:
    return [event for message in messages for event in codec.receive(message).events]


def ready(settings: Settings | None = None) -> Client:
    codec = client(settings or Settings())
    codec.open()
    assert heard(codec, [told(setupComplete={})]) == [Ready()]
    return codec


def spoken() -> Text:
    data = base64.b64encode(b"\0\1").decode()
    inline = {"mimeType": "audio/pcm;rate=24000", "data": data}
    return told(serverContent={"modelTurn": {"parts": [{"inlineData": inline}]}})


@pytest.mark.parametrize(
    ("auth", "url", "headers"),
    [
        ({}, f"{GOOGLE}?key=k+1", {}),
        ({"auth": "query"}, f"{GOOGLE}?key=k+1", {}),
        ({"auth": "access_token"}, f"{GOOGLE}Constrained?access_token=k+1", {}),
        ({"auth": "header"}, GOOGLE, {"x-goog-api-key": "k 1"}),
        ({"auth": "bearer"}, GOOGLE, {"Authorization": "Bearer k 1"}),
    ],
)
def test_the_key_goes_where_it_is_wanted(
    auth: dict[str, Json], url: str, headers: dict[str, str]
) -> None:
    address = client(Settings(model="m", options=auth)).address("", "k 1")
    assert (address.url, address.headers) == (url, headers)
    bare = client(Settings(model="m", options=auth)).address("", None)
    assert (bare.url, bare.headers) == (url.partition("?")[0], {})


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:9", f"ws://127.0.0.1:9{PATH}?key=k&tag=t"),
        ("https://localhost/", f"wss://localhost{PATH}?key=k&tag=t"),
        ("ws://[::1]:9/a?key=mine&tag=x", "ws://[::1]:9/a?key=mine&tag=x"),
        ("wss://gateway.example/live?x=1", "wss://gateway.example/live?x=1&key=k"),
        (
            "wss://us-central1-aiplatform.googleapis.com",
            f"wss://us-central1-aiplatform.googleapis.com{VERTEX}?key=k",
        ),
    ],
)
def test_a_url_is_filled_in_but_what_it_says_already_stays(given: str, url: str) -> None:
    assert client(Settings("projects/p", session_tag="t")).address(given, "k").url == url


def test_the_tag_is_sent_where_it_is_asked_for() -> None:
    tagged = client(Settings(session_tag="t", options={"send_tag": True}))
    assert tagged.address("wss://gateway.example/live", None).url.endswith("?tag=t")
    untagged = client(Settings(session_tag="t", options={"send_tag": False}))
    assert untagged.address("ws://127.0.0.1:9/a", None).url == "ws://127.0.0.1:9/a"


@pytest.mark.parametrize(
    "url", ["ftp://h/", "h:80", "ws://", "ws://[::1", "ws://h:99999/", "x?key=k"]
)
def test_a_url_that_is_none_is_the_users_mistake_and_its_query_is_not_shown(url: str) -> None:
    with pytest.raises(UserError, match="url") as raised:
        client(Settings()).address(url, None)
    assert "key=" not in str(raised.value)


def test_the_hosted_services_need_a_model_and_vertex_ai_its_whole_path() -> None:
    with pytest.raises(UserError, match="model: is missing"):
        client(Settings()).address("", "k")
    for model in ("", "gemini-3.8-live"):
        with pytest.raises(UserError, match="that Vertex AI wants; write projects/"):
            client(Settings(model)).address("wss://us-central1-aiplatform.googleapis.com", "k")


@pytest.mark.parametrize("key", ["AIza\n", "AIza\u00e9"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(UserError) as raised:
        client(Settings(model="m")).address("", key)
    assert "AIza" not in str(raised.value)


@pytest.mark.parametrize(
    ("model", "auth", "named"),
    [
        ("gemini-3.8-live", "query", "models/gemini-3.8-live"),
        ("models/gemini-3.8-live", "query", "models/gemini-3.8-live"),
        ("gemini-3.8-live", "bearer", "gemini-3.8-live"),
        ("projects/p/locations/l/x", "bearer", "projects/p/locations/l/x"),
    ],
)
def test_a_model_of_google_ai_gets_its_folder(model: str, auth: str, named: str) -> None:
    (setup,) = sent(client(Settings(model=model, options={"auth": auth})).open())
    assert setup["setup"]["model"] == named


def test_the_whole_setup_is_asked_for_as_the_types_have_it() -> None:
    options: dict[str, Json] = {
        "input_transcription": True,
        "language": "de-DE",
        "start_sensitivity": "high",
        "end_sensitivity": "low",
        "prefix_padding_ms": 20,
        "silence_duration_ms": 300,
        "activity_handling": "no_interruption",
        "turn_coverage": "all_input",
        "session_resumption": "h-1",
        "compression": {"triggerTokens": 9000, "slidingWindow": {"targetTokens": 4000}},
        "proactive_audio": True,
        "explicit_vad_signal": True,
        "thinking_budget": 0,
        "thinking_level": "low",
        "max_output_tokens": 500,
        "setup": {"generationConfig": {"topK": 3}, "labels": {"who": "me"}},
    }
    settings = Settings(
        model="m", instructions="Be brief.", voice="Kore", temperature=0.2, options=options
    )
    (message,) = sent(client(settings).open())
    assert message == {
        "setup": {
            "model": "models/m",
            "generationConfig": {
                "responseModalities": ["AUDIO"],
                "temperature": 0.2,
                "maxOutputTokens": 500,
                "speechConfig": {
                    "voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}},
                    "languageCode": "de-DE",
                },
                "thinkingConfig": {"thinkingBudget": 0, "thinkingLevel": "LOW"},
                "topK": 3,
            },
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "realtimeInputConfig": {
                "automaticActivityDetection": {
                    "startOfSpeechSensitivity": "START_SENSITIVITY_HIGH",
                    "endOfSpeechSensitivity": "END_SENSITIVITY_LOW",
                    "prefixPaddingMs": 20,
                    "silenceDurationMs": 300,
                },
                "activityHandling": "NO_INTERRUPTION",
                "turnCoverage": "TURN_INCLUDES_ALL_INPUT",
            },
            "inputAudioTranscription": {},
            "outputAudioTranscription": {},
            "sessionResumption": {"handle": "h-1"},
            "contextWindowCompression": {
                "triggerTokens": 9000,
                "slidingWindow": {"targetTokens": 4000},
            },
            "proactivity": {"proactiveAudio": True},
            "explicitVadSignal": True,
            "labels": {"who": "me"},
        }
    }


def test_what_is_switched_off_is_left_to_the_server_or_said() -> None:
    options: dict[str, Json] = {
        "session_resumption": False,
        "compression": False,
        "proactive_audio": False,
    }
    (message,) = sent(client(Settings(options=options)).open())
    assert message["setup"] == {
        "generationConfig": {"responseModalities": ["AUDIO"]},
        "outputAudioTranscription": {},
        "proactivity": {"proactiveAudio": False},
    }
    (message,) = sent(client(Settings(options={"compression": True})).open())
    assert message["setup"]["contextWindowCompression"] == {"slidingWindow": {}}


def test_every_option_is_known_to_the_codec() -> None:
    for name in OPTIONS:
        with pytest.raises(UserError, match=f"options.{name}: "):
            client(Settings(options={name: []}))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"silence_ms": 500}, "options.silence_ms: gemini-live has no such option; did you"),
        ({"auth": "basic"}, "'query' or 'header' or 'bearer' or 'access_token'"),
        ({"compression": 3}, "true, or a table"),
        ({"session_resumption": ""}, "true, or the handle of an earlier session"),
        ({"thinking_budget": -2}, "a whole number from -1"),
        ({"turn_coverage": "some"}, "'activity' or 'all_input' or 'activity_and_video'"),
    ],
)
def test_a_wrong_option_says_what_would_be_right(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as raised:
        client(Settings(options=options))
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        (Settings(turn_end="request"), "turn_end"),
        (Settings(output_rate=16000), "output_rate"),
        (Settings(input_rate=96000), "input_rate"),
    ],
)
def test_a_setting_that_this_protocol_cannot_carry_is_refused(
    settings: Settings, place: str
) -> None:
    with pytest.raises(UserError, match=f"^{place}: "):
        client(settings)


def test_traits_follow_from_the_settings() -> None:
    usual = client(Settings(output_rate=24000)).traits
    assert (usual.input_rate, usual.latency_kind, usual.reply_end) == (16000, "server-vad", "told")
    assert (usual.history, usual.takes_text) == (True, True)
    assert client(Settings(turn_end="commit", input_rate=8000)).traits.latency_kind == "commit"
    written = client(Settings(options={"response_modality": "text"})).traits
    assert (written.reply_channel, written.latency_kind) == ("text", "text")


@pytest.mark.parametrize(
    ("code", "reason", "kind", "retryable"),
    [
        (1007, "API key not valid. Please pass a valid API key.", "auth", False),
        (1007, "Request contains an invalid argument.", "request", False),
        (1007, "", "request", False),
        (1007, "User location is not supported for the API use.", "policy", False),
        (1008, "Method doesn't allow unregistered callers", "auth", False),
        (1008, "Request had insufficient authentication scopes.", "auth", False),
        (1008, "models/x is not found for API version v1beta, or is not sup", "request", False),
        (1008, "Publisher Model `projects/p/locations/global/publishers/goo", "request", False),
        (1008, "Operation is not implemented, or supported, or enabled.", "request", False),
        (1008, "BidiGenerateContent session not found", "request", False),
        (1008, "something else", "policy", False),
        (1011, "You exceeded your current quota, please check your plan", "quota", False),
        (1011, "[ORIGINAL ERROR] generic::resource_exhausted: x", "busy", True),
        (1011, "RESOURCE_EXHAUSTED: Maximum concurrent sessions", "busy", True),
        (1011, "RESOURCE_EXHAUSTED: quota is used up", "quota", False),
        (1011, "The service is currently unavailable.", "busy", True),
        (1011, "Internal error encountered.", "server", True),
        (1011, "Deadline expired before operation could complete.", "server", True),
        (1011, "", "server", True),
        (1013, "", "busy", True),
    ],
)
def test_a_close_is_sorted_by_whose_rule_was_met(
    code: int, reason: str, kind: str, retryable: bool
) -> None:
    fault, closed = heard(client(Settings()), [Ended(code, reason)])
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retryable, fault.fatal) == (kind, retryable, True)
    assert fault.message == f"closed with {code}: {reason or 'no reason given'}"
    assert closed == Closed(code, reason)


def test_a_close_that_names_a_wait_can_be_tried_again_after_it() -> None:
    reason = "You exceeded your current quota. Please retry in 12s."
    fault, _ = heard(client(Settings()), [Ended(1011, reason)])
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retryable, fault.retry_after_s) == ("quota", True, 12.0)


@pytest.mark.parametrize("code", [1000, 1001, 1006, None])
def test_a_close_that_blames_nobody_is_no_fault(code: int | None) -> None:
    assert heard(client(Settings()), [Ended(code, "quota")]) == [Closed(code, "quota")]


def test_a_close_explains_nothing_any_more_once_a_reply_came() -> None:
    codec = ready()
    heard(codec, [spoken()])
    assert heard(codec, [Ended(1011, "Internal error")]) == [Closed(1011, "Internal error")]


@pytest.mark.parametrize(
    "reason",
    [
        "PROHIBITED_INPUT_CONTENT",
        "BLOCKLIST",
        "GENERATED_AUDIO_SAFETY",
        "INPUT_TEXT_NCII_PROHIBITED",
        "INPUT_IMAGE_CELEBRITY",
        "INPUT_OTHER",
        "GENERATED_IMAGE_PROMINENT_PEOPLE_DETECTED_BY_REWRITER",
    ],
)
def test_a_turn_refused_by_a_rule_is_a_fault_of_policy(reason: str) -> None:
    content = {"turnComplete": True, "turnCompleteReason": reason}
    (fault,) = heard(ready(), [told(serverContent=content)])
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.fatal) == ("policy", True)
    assert reason in fault.message


@pytest.mark.parametrize(
    "reason",
    ["", "TURN_COMPLETE_REASON_UNSPECIFIED", "GENERATED_OTHER", "MAX_REGENERATION_REACHED"],
)
def test_a_turn_that_ends_in_nothing_for_another_reason_is_an_empty_reply(reason: str) -> None:
    content = {"turnComplete": True, "turnCompleteReason": reason}
    events = heard(ready(), [told(serverContent=content)])
    assert events[-1] == ReplyEnded("completed", "reply-1", reason)


def test_a_long_list_of_functions_and_a_long_name_are_cut_for_the_log() -> None:
    calls = [{"name": "f" * 500}] * 9
    (fault,) = heard(ready(), [told(toolCall={"functionCalls": calls})])
    assert isinstance(fault, Fault)
    assert len(fault.message) < 300
    (note,) = heard(ready(), [told(goAway={"timeLeft": "x" * 500})])
    assert isinstance(note, Note)
    assert len(note.text) < 150


def test_a_handle_is_noted_whole_so_that_a_session_can_be_taken_up_again() -> None:
    handle = "h" * 2000
    update = {"newHandle": handle, "resumable": True}
    assert heard(ready(), [told(sessionResumptionUpdate=update)]) == [
        Note("sessionResumptionUpdate", handle)
    ]


@pytest.mark.parametrize("message", [Published("t", b""), Text("[" * 100_000), Text("3")])
def test_what_is_no_object_is_a_protocol_error(message: Message) -> None:
    with pytest.raises(ProtocolError) as raised:
        client(Settings()).receive(message)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("text", "ms"),
    [("1.5s", 1500), ("0s", 0), ("0.0004s", 0), ("", None), ("1", None), ("-1s", None)],
)
def test_a_duration_is_read_in_milliseconds(text: str, ms: int | None) -> None:
    assert duration_ms(text) == ms


@given(st.integers(0, 10**9))
def test_a_duration_is_read_as_it_was_written(ms: int) -> None:
    assert duration_ms(duration(ms)) == ms


def test_names_are_brought_to_camel_case_however_deep_and_values_are_not() -> None:
    given: Json = {"client_content": {"turns": [{"role": "a_b", "inline_data": {}}]}}
    assert camel(given) == {"clientContent": {"turns": [{"role": "a_b", "inlineData": {}}]}}
    deep: Json = {"a_b": 1}
    for _ in range(500):
        deep = {"a": deep}
    assert "a_b" in json.dumps(camel(deep))


_FIELDS = (
    "setupComplete sessionId serverContent modelTurn parts inlineData mimeType data text thought "
    "inputTranscription outputTranscription finished generationComplete interrupted turnComplete "
    "turnCompleteReason waitingForInput interactionStatus usageMetadata promptTokenCount "
    "promptTokensDetails modality tokenCount toolCall functionCalls name goAway timeLeft error "
    "code sessionResumptionUpdate newHandle resumable voiceActivity type audioOffset status "
    "message voiceActivityDetectionSignal vadSignalType"
)
FIELD_NAMES = st.sampled_from(_FIELDS.split())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["audio/pcm;rate=24000", "AAAA", "IN_PROGRESS", "1s", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELD_NAMES, inner, max_size=4),
    max_leaves=12,
)
CONTENT = st.fixed_dictionaries(
    {},
    optional={
        "modelTurn": st.fixed_dictionaries(
            {"parts": st.lists(st.dictionaries(FIELD_NAMES, VALUES, max_size=3), max_size=3)}
        ),
        "outputTranscription": st.fixed_dictionaries({"text": st.text(max_size=5)}) | VALUES,
        "generationComplete": st.booleans() | VALUES,
        "interrupted": st.booleans() | VALUES,
        "turnComplete": st.booleans() | VALUES,
        "turnCompleteReason": st.sampled_from(["BLOCKLIST", "NEED_MORE_INPUT"]) | VALUES,
    },
)
MESSAGES = (
    st.builds(Text, st.text(max_size=40))
    | st.builds(Binary, st.binary(max_size=40))
    | st.builds(told, setupComplete=st.just({}))
    | st.builds(told, serverContent=CONTENT)
    | st.builds(lambda fields: told(**fields), st.dictionaries(FIELD_NAMES, VALUES, max_size=4))
    | st.builds(Ended, st.none() | st.integers(0, 5000), st.text(max_size=12))
)


@given(st.lists(MESSAGES, max_size=8), st.sampled_from(["silence", "commit"]), st.booleans())
def test_anything_at_all_gives_events_or_a_protocol_error(
    messages: list[Message], turn_end: TurnEnd, interaction: bool
) -> None:
    options = {"reply_end": "interaction"} if interaction else {}
    codec = client(Settings(turn_end=turn_end, options={**options}))
    codec.open()
    open_replies = 0
    for message in messages:
        try:
            step = codec.receive(message)
        except ProtocolError:
            return  # the driver ends the session with it
        shown = [asdict(event) for event in step.events]
        json.dumps(shown, ensure_ascii=False, default=repr).encode()
        names = [type(event).__name__ for event in step.events]
        open_replies += names.count("ReplyStarted") - names.count("ReplyEnded")
        assert open_replies in {0, 1}, "replies begin before they end, and one at a time"
        assert all(event.reply for event in step.events if isinstance(event, ReplyAudio))
