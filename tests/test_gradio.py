"""Kind `gradio`: captured sessions, templates, edits of outputs, odd servers, whole attempts."""

from __future__ import annotations

import base64
import json
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aac import adts_of
from attempt_logs import voice
from captures import attempt_in
from gradio_world import World, config, event, file, playlist, stream
from http_peer import serving
from http_play import play, recordings, sound, words
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Utterance
from voxmeter.client.config import parse
from voxmeter.client.finish import finish
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.client.targets import settings as settings_of
from voxmeter.endpoints.catalog import find
from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Fetched,
    Json,
    Message,
    Request,
    Response,
    Settings,
    Step,
    Text,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import (
    Event,
    Fault,
    FaultKind,
    Note,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.gradio import client
from voxmeter.endpoints.gradio_app import patched
from voxmeter.endpoints.gradio_wire import Client
from voxmeter.endpoints.kind import load
from voxmeter.endpoints.wav import wav_file

ECHO = config([2, 3], [3, 5])
PCM = bytes(range(200))
WAV = wav_file(PCM, 24_000)
LIST = "turn 1 playlist"


def options(**more: Json) -> dict[str, Json]:
    return {"data": ["{audio}", "{text}"], "text_output": 0, "audio_output": 1, **more}


SPOKEN = Settings(session_tag="t", options=options())
WORDS = Settings(options={"data": ["{text}"], "text_output": 0})


@pytest.mark.parametrize("path", recordings("gradio"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


# Codecs that are taken as far as a test needs


def answer(body: str | bytes) -> list[Message]:
    data = body.encode() if isinstance(body, str) else body
    return [Response(), Binary(data), Ended()]


def hear(codec: Client, messages: Sequence[Message]) -> Step:
    """Return all that several messages lead to."""
    steps = [codec.receive(one) for one in messages]
    return Step(
        [event for step in steps for event in step.events],
        [message for step in steps for message in step.messages],
    )


def ready(settings: Settings, app: dict[str, Any], url: str = "http://h") -> Client:
    """Return a codec that knows its app."""
    codec = client(settings)
    codec.address(url, None)
    codec.open()
    (event,) = hear(codec, answer(json.dumps(app))).events
    assert isinstance(event, Ready), event
    return codec


def called(settings: Settings = SPOKEN, app: dict[str, Any] = ECHO, text: str = "") -> Client:
    """Return a codec whose call has joined the queue and whose events begin."""
    codec = ready(settings, app)
    ask(codec, text)
    hear(codec, [Response()])
    return codec


def ask(codec: Client, text: str = "") -> list[Json]:
    """Ask one question, up to the events; return the inputs."""
    codec.audio(b"\0\0")
    codec.text(text)
    (asked,) = codec.end_turn().messages
    if isinstance(asked, Request) and asked.path.endswith("/upload"):
        (asked,) = hear(codec, answer('["/q.wav"]')).messages
    assert isinstance(asked, Request)
    (events,) = hear(codec, answer('{"event_id": "e"}')).messages
    assert isinstance(events, Request)
    assert "/queue/data?session_hash=" in events.path
    found: list[Json] = json.loads(asked.body)["data"]
    return found


def told(codec: Client, *events: str, over: bool = False) -> Step:
    """Return what events lead to, and the end of them where they are over."""
    return hear(codec, [Binary(one.encode()) for one in events] + [Ended()] * over)


def failed(message: str, kind: FaultKind = "server") -> Fault:
    return Fault(kind, retryable=True, message=message)


def generating(data: Any) -> str:
    return event("process_generating", data)


def completed(data: Any, **more: Any) -> str:
    return event("process_completed", data, **more)


# What is asked


def test_placeholders_become_values_of_their_own_type_wherever_they_stand() -> None:
    template: list[Json] = [
        {"text": "{text}", "files": ["{audio}"]},
        "{instructions} at {sample_rate} {{text}}",
        "{temperature}",
        [True, "{null}", "{voice}{model}{session_tag}{null}"],
        "<{output.0}{temperature}>",
    ]
    settings = Settings(
        instructions="Be {text}.",
        temperature=0.5,
        voice="v",
        model="m",
        session_tag="t",
        options={"data": template, "text_output": 0},
    )
    found = ask(ready(settings, config([3] * 5, [3])), text='"{audio}"')
    size = len(wav_file(b"\0\0", 16_000))
    upload = {
        "path": "/q.wav",
        "orig_name": "question.wav",
        "mime_type": "audio/wav",
        "size": size,
        "meta": {"_type": "gradio.FileData"},
    }
    assert found == [
        {"text": '"{audio}"', "files": [upload]},
        "Be {text}. at 16000 {text}",
        0.5,
        [True, None, "vmt"],
        "<0.5>",
    ]


def test_state_that_is_left_out_is_null_and_outputs_are_counted_without_it() -> None:
    codec = called(SPOKEN, config([4, 2, 3], [4, 3, 5]))
    step = told(codec, completed([None, "yes", None]), over=True)
    assert words(step.events) == "yes"
    assert ask(ready(SPOKEN, config([4, 2, 3], [4, 3, 5])))[0] is None


def test_outputs_of_the_last_answer_are_fed_back_and_before_it_what_the_options_say() -> None:
    more = options(
        data=["{audio}", "{output.0}", "{output.2.-1.0}", "{output.9}"],
        first_outputs={"2.-1.0": [], "9": 4},
    )
    app = config([2, 3, 3, 3], [3, 5, 3])
    codec = ready(Settings(options=more), app)
    assert ask(codec)[1:] == ["", [], 4]
    hear(codec, [Response()])
    told(codec, completed(["one", None, [["a", "b"], ["c", "d"]]]), over=True)
    assert ask(codec)[1:] == ["one", "c", None]


def test_a_question_in_writing_alone_is_not_uploaded_and_is_asked_once() -> None:
    codec = ready(WORDS, config([3], [3]))
    assert ask(codec, "Who?") == ["Who?"]
    hear(codec, [Response()])
    told(codec, completed(["Me."]), over=True)
    assert ask(codec, "") == [""]
    assert (codec.traits.takes_text, codec.traits.reply_channel) == (True, "text")


def test_a_function_can_be_named_by_its_number_and_a_name_with_or_without_a_slash() -> None:
    for more in ({"fn_index": 7}, {"api_name": "predict"}, {"api_name": "/predict"}):
        ready(Settings(options=options(**more)), ECHO)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"data": "{audio}"}, "use a list"),
        ({"data": [1]}, "no place for the question"),
        ({"data": ["{audio}", "{sound}"]}, "no placeholder {sound}"),
        ({"data": ["{audio}", "{output.}"]}, "no placeholder {output.}"),
        ({"data": ["{audio}", "{temperature}"]}, "which is not set"),
        ({"audio_output": True}, "number of an output"),
        ({"audio_output": "x"}, "number of an output"),
        ({"audio_output": [1, 2.5]}, "number of an output"),
        ({"text_output": "0..1"}, "number of an output"),
        ({"fn_index": -1}, "whole number"),
        ({"text_when": "never"}, "'growing' or 'completed'"),
        ({"apiname": "/x"}, "did you mean api_name"),
    ],
)
def test_a_wrong_option_is_the_users_mistake(more: dict[str, Json], found: str) -> None:
    with pytest.raises(UserError, match=found.replace("{", r"\{")):
        client(Settings(options=options(**more)))


def test_without_options_it_is_a_recording_in_and_a_recording_out() -> None:
    codec = ready(Settings(), config([2], [5]))
    assert codec.traits.reply_channel == "speech"
    assert len(ask(codec)) == 1
    hear(codec, [Response()])
    (asked,) = told(codec, completed([file()]), over=True).messages
    assert isinstance(asked, Request)
    assert "/file=" in asked.path


def test_another_way_to_end_turns_is_refused() -> None:
    with pytest.raises(UserError, match="is one request"):
        client(Settings(turn_end="commit", options=options()))


def test_what_it_has_no_word_for_is_nothing() -> None:
    codec = client(SPOKEN)
    steps = [codec.turn(Turn("user", "x")), codec.played(""), codec.cancel(1), codec.close()]
    assert steps == [Step()] * 4


# Where, and who asks


def test_a_path_of_the_url_stands_before_every_other() -> None:
    codec = ready(SPOKEN, ECHO, "https://h/app/")
    (upload,) = codec.end_turn().messages
    assert isinstance(upload, Request)
    assert upload.path == "/app/gradio_api/upload"
    hear(codec, answer('["/q"]'))
    hear(codec, [*answer("{}"), Response()])
    given = stream()
    step = told(codec, generating(["", {**given, "url": "http://h/app/gradio_api/x.m3u8?a=1"}]))
    assert [one.path for one in step.messages if isinstance(one, Request)] == [
        "/app/gradio_api/x.m3u8?a=1"
    ]


def test_a_key_goes_along_and_a_password_only_to_the_login() -> None:
    assert client(SPOKEN).address("http://h", "k").headers == {"Authorization": "Bearer k"}
    codec = client(Settings(options=options(login="al ice")))
    assert codec.address("http://h", "p&w").headers == {}
    (login,) = codec.open().messages
    assert isinstance(login, Request)
    assert (login.path, login.body) == ("/login", b"username=al+ice&password=p%26w")
    head = Response(200, {"set-cookie": "token=abc; HttpOnly"})
    (asked,) = hear(codec, [head, Binary(b"{}"), Ended()]).messages
    assert asked == Request(b"", {"Cookie": "token=abc"}, "GET", "/config")


def test_refusals_before_the_question_say_what_to_do() -> None:
    codec = client(SPOKEN)
    codec.open()
    (fault,) = codec.receive(Ended(401, "Not authenticated")).events
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retryable) == ("auth", False)
    assert "HTTP 401: Not authenticated; set api_key_env, or the option login" in fault.message
    codec = client(Settings(options=options(login="a")))
    codec.open()
    (fault,) = codec.receive(Ended(400, "Incorrect credentials.")).events
    assert fault == Fault(
        "auth", retryable=False, message="login: HTTP 400: Incorrect credentials."
    )
    codec = client(SPOKEN)
    codec.open()
    assert codec.receive(Ended(404, "no")).events == [
        Fault("request", retryable=False, message="HTTP 404: no")
    ]


@pytest.mark.parametrize(
    ("app", "found"),
    [
        ({"auth_required": True}, "auth: the app wants a login"),
        ({**ECHO, "protocol": "sse"}, "request: Gradio 5.3.0 speaks sse, which is not supported"),
        (config([2], [3]), "request: 2 inputs are given, the function takes 1: audio"),
        (
            config([2, 9, 3], [3]),
            "request: 2 inputs are given, the function takes 3: audio, ?, text",
        ),
        (config([2], [3], name="answer"), "no function /predict; it has /answer"),
        (
            {**ECHO, "dependencies": []},
            "no function /predict; it has no named functions, by fn_index: none",
        ),
        (
            {**ECHO, "dependencies": [{"api_name": None, "inputs": [2, 3], "outputs": []}]},
            "it has no named functions, by fn_index: 0 (audio, textbox)",
        ),
        (
            {
                **ECHO,
                "dependencies": [
                    {"api_name": f"f{n}", "inputs": [], "outputs": []} for n in range(14)
                ],
            },
            "/f11, and 2 more",
        ),
    ],
)
def test_an_app_that_does_not_fit_is_told_in_words(app: dict[str, Any], found: str) -> None:
    codec = client(SPOKEN)
    codec.open()
    (fault,) = hear(codec, answer(json.dumps(app))).events
    assert isinstance(fault, Fault)
    assert found in f"{fault.kind}: {fault.message}"


def test_a_number_that_is_no_functions_is_told_as_such() -> None:
    codec = client(Settings(options=options(fn_index=3)))
    codec.open()
    (fault,) = hear(codec, answer(json.dumps(ECHO))).events
    assert "no function number 3; it has /predict" in str(fault)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<html>", "not JSON"),
        ("{}", "not the configuration of a Gradio app"),
        ('{"dependencies": [], "components": 3}', "components is of type int"),
        ('{"dependencies": [{"inputs": 1}], "components": []}', r"inputs is not a list"),
        ('{"dependencies": [4], "components": []}', "is not an object"),
    ],
)
def test_what_is_no_configuration_breaks_the_protocol(body: str, found: str) -> None:
    codec = client(SPOKEN)
    codec.open()
    with pytest.raises(ProtocolError, match=found):
        hear(codec, answer(body))


@pytest.mark.parametrize("body", ["<html>", "{}", "[]", "[1]", '["a", "b"]', "[" * 100_000])
def test_what_is_no_answer_to_an_upload_breaks_the_protocol(body: str) -> None:
    codec = ready(SPOKEN, ECHO)
    codec.end_turn()
    with pytest.raises(ProtocolError, match="has no path in it"):
        hear(codec, answer(body))


def test_an_answer_that_nobody_asked_for_breaks_the_protocol() -> None:
    for message in (Response(), Binary(b""), Ended(), Ended(500, ""), Text("x")):
        with pytest.raises(ProtocolError, match="or not now"):
            client(SPOKEN).receive(message)


def test_a_configuration_without_end_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxmeter.endpoints.gradio_wire.MAX_CHARACTERS", 10)
    codec = client(SPOKEN)
    codec.open()
    with pytest.raises(ProtocolError, match="over 64 MiB"):
        hear(codec, answer("x" * 11))


# What comes


def test_words_grow_by_edits_and_what_replaces_them_goes_on_a_new_line() -> None:
    codec = called(Settings(options=options(audio_output=[])))
    step = told(
        codec,
        generating(["One", None]),
        generating([[["append", [], " two"]], []]),
        generating([[["replace", [], "Three"]], []]),
        generating([[["replace", [], ""]], []]),
        completed(["", None]),
        over=True,
    )
    assert step.events == [
        ReplyStarted(),
        ReplyText("One"),
        ReplyText(" two"),
        ReplyText("\nThree"),
        ReplyEnded(),
    ]


def test_only_the_last_words_count_where_the_options_say_so() -> None:
    codec = called(Settings(options=options(text_when="completed", audio_output=[])))
    step = told(codec, generating(["Wait…", None]), completed(["Done.", None]), over=True)
    assert step.events == [ReplyStarted(), ReplyText("Done."), ReplyEnded()]


def test_words_can_be_taken_out_of_a_chat_window() -> None:
    more = options(text_output="0.-1.1", text_html=True, audio_output=[])
    chat = [["<p>Hi</p>", "<p>a &lt; b,<br>\n<b>yes</b></p>"]]
    step = told(called(Settings(options=more)), completed([chat, None]), over=True)
    assert step.events == [ReplyStarted(), ReplyText("a < b, yes"), ReplyEnded()]


def test_a_call_that_nobody_named_is_taken_by_whatever_comes() -> None:
    codec = ready(SPOKEN, ECHO)
    codec.end_turn()
    hear(codec, answer('["/q"]'))
    hear(codec, [*answer("{}"), Response()])
    assert words(told(codec, completed(["yes", None])).events) == "yes"


def test_outputs_that_do_not_fit_the_configuration_are_counted_as_they_come() -> None:
    step = told(called(app=config([2, 3], [4, 3, 5])), completed(["yes", None]))
    assert words(step.events) == "yes"


def test_the_first_version_of_the_protocol_repeats_all_outputs() -> None:
    codec = called(app={**ECHO, "protocol": "sse_v1"})
    step = told(codec, generating(["a", None]), generating(["ab", None]), completed(["abc", None]))
    assert words(step.events) == "abc"


def test_events_of_the_queue_are_noted_and_those_of_other_calls_are_let_by() -> None:
    codec = called()
    step = told(
        codec,
        event("estimation", rank=3, queue_size=4),
        event("process_starts"),
        event("heartbeat"),
        event("log", level="info", log="wait\na bit"),
        event("process_completed", ["no", None], event_id="another"),
        completed(["yes", None]),
        event("close_stream", event_id=None),
        over=True,
    )
    assert step.events == [
        Note("estimation", "rank 3 of 4"),
        Note("process_starts"),
        Note("log", "wait a bit"),
        ReplyStarted(),
        ReplyText("yes"),
        ReplyEnded(),
    ]


def test_a_call_that_was_stopped_ends_with_what_there_is() -> None:
    codec = called()
    step = told(
        codec, generating(["so far", None]), event("process_completed", output={}), over=True
    )
    assert step.events == [ReplyStarted(), ReplyText("so far"), ReplyEnded()]


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        (
            [event("process_completed", output={"error": "too\nlong"}, success=False)],
            failed("too long"),
        ),
        (
            [event("process_generating", success=False)],
            failed(
                "the app failed and keeps the reason to itself "
                "(launch(show_error=True) would tell it)",
            ),
        ),
        ([event("unexpected_error", message="lost")], failed("lost")),
        ([event("server_stopped")], failed("server_stopped")),
        ([event("queue_full")], failed("queue_full", "busy")),
    ],
)
def test_a_failure_keeps_its_words_and_nothing_follows_it(events: list[str], fault: Fault) -> None:
    codec = called()
    step = told(codec, "".join([*events, completed(["late", None])]), event("log"), over=True)
    assert step.events == [fault]
    assert codec.receive(Fetched(LIST)) == Step()


def test_an_output_for_failures_is_read_where_it_is_named() -> None:
    codec = called(Settings(options=options(error_output=0, text_output=1, audio_output=[])))
    step = told(codec, generating([" ", None]), generating([[["replace", [], "no GPU"]], []]))
    assert step.events == [ReplyStarted(), failed("no GPU")]


def test_events_that_end_before_the_function_break_the_protocol() -> None:
    with pytest.raises(ProtocolError, match="end before the function does"):
        told(called(), generating(["a", None]), over=True)


@pytest.mark.parametrize(
    ("events", "found"),
    [
        (["data: nonsense\n\n"], "not JSON"),
        (["data: {}\n\n"], None),
        ([event("process_generating")], "outputs are not a list"),
        ([event("process_completed", output={"data": 3})], "outputs are not a list"),
        ([event("process_completed", output=3)], "output is of type int"),
        ([generating([1, None])], "output 0 is not text"),
        ([generating(["", "a.wav"])], "output 1 is not audio"),
        ([generating(["", None]), generating([[]])], "1 outputs after 2"),
        ([generating(["", None]), generating([3, []])], "does not"),
        ([generating(["", None]), generating([[["append", 1]], []])], "not an action"),
        ([generating(["", None]), generating([[["swap", [], 1]], []])], "cannot be made: swap"),
        ([generating(["", None]), generating([[["append", [], 1]], []])], "cannot be made"),
        ([generating(["", None]), generating([[["add", ["a"], 1]], []])], "there is nothing"),
        ([generating(["", {}]), generating([[], [["replace", ["a"], 1]]])], "there is nothing"),
        ([generating(["", {"a": []}]), generating([[], [["replace", ["a", 0], 1]]])], "nothing"),
        ([generating(["", {"a": []}]), generating([[], [["add", ["a", 2], 1]]])], "nothing"),
        (
            [generating(["", {}]), generating([[], [["replace", ["a"] * 200, 1]]])],
            "nested too deeply",
        ),
    ],
)
def test_events_that_are_not_gradios_break_the_protocol(
    events: list[str], found: str | None
) -> None:
    codec = called()
    if found is None:
        assert told(codec, *events) == Step([], [])
        return
    with pytest.raises(ProtocolError, match=found):
        told(codec, *events)


# Edits

VALUES = st.recursive(
    st.none() | st.integers(0, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


def edits(old: Any, new: Any, path: list[Any]) -> list[list[Any]]:
    """The edits that lead from one value to another, as Gradio writes them."""
    if type(old) is not type(new):
        return [["replace", path, new]]
    if old == new:
        return []
    if isinstance(old, str) and new.startswith(old):
        return [["append", path, new[len(old) :]]]
    if isinstance(old, list):
        both = min(len(old), len(new))
        made = [one for at in range(both) for one in edits(old[at], new[at], [*path, at])]
        made += [["delete", [*path, at], None] for at in range(both, len(old))]
        return made + [["add", [*path, at], new[at]] for at in range(both, len(new))]
    if isinstance(old, dict):
        made = [one for key in old if key in new for one in edits(old[key], new[key], [*path, key])]
        made += [["delete", [*path, key], None] for key in old if key not in new]
        return made + [["add", [*path, key], new[key]] for key in new if key not in old]
    return [["replace", path, new]]


@given(VALUES, VALUES)
def test_edits_lead_from_any_value_to_any_other_and_leave_the_old_one_alone(
    old: Json, new: Json
) -> None:
    before = json.dumps(old)
    message = Fields("gradio", Text(""), {})
    assert patched(message, old, json.loads(json.dumps(edits(old, new, [])))) == new
    assert json.dumps(old) == before


def test_lists_can_be_added_to_appended_to_and_cut_at_their_end() -> None:
    message = Fields("gradio", Text(""), {})
    assert patched(message, [1], [["append", [], [2]]]) == [1, 2]
    assert patched(message, [1], [["add", [1], [2]], ["append", [1], [3]]]) == [1, [2, 3]]
    # the places are those before the change, or those during it (Gradio 6): the same is left
    for places in ((1, 2), (1, 1)):
        assert patched(message, [1, 2, 3], [["delete", [at], None] for at in places]) == [1]


@given(VALUES, st.lists(VALUES, max_size=3))
def test_any_edits_are_a_value_or_a_protocol_error(old: Json, made: list[Json]) -> None:
    message = Fields("gradio", Text(""), {})
    tried: list[Json] = [made]
    tried += [[[action, one, 1] for one in made] for action in ("add", "delete", "append")]
    for changes in tried:
        with suppress(ProtocolError):
            patched(message, old, changes)


# Sound


def test_sound_is_the_file_that_the_best_output_names() -> None:
    outputs: list[Any] = ["", {"path": None}, None, {"url": "http://[nowhere"}, file()]
    settings = Settings(options=options(audio_output=[2, 1, 3, 4]))
    codec = called(settings, config([2, 3], [3, 5, 5, 5, 5]))
    (asked,) = told(codec, completed(outputs), over=True).messages
    assert asked == Request(b"", {}, "GET", "/gradio_api/file=/tmp/a%20b.wav")
    step = hear(codec, [Response(), Binary(WAV[:50]), Binary(WAV[50:]), Ended()])
    assert sound(step.events) == PCM
    assert {one.rate for one in step.events if isinstance(one, ReplyAudio)} == {24_000}
    assert step.events[-1] == ReplyEnded()


def test_a_rate_of_the_users_goes_before_that_of_the_file() -> None:
    codec = called(Settings(output_rate=22_050, options=options()))
    told(codec, completed(["", file()]), over=True)
    step = hear(codec, [Response(), Binary(WAV), Ended()])
    assert {one.rate for one in step.events if isinstance(one, ReplyAudio)} == {22_050}


def test_a_file_that_is_no_wav_file_breaks_the_protocol() -> None:
    codec = called()
    told(codec, completed(["", file()]), over=True)
    with pytest.raises(ProtocolError, match="is not a WAV file"):
        hear(codec, [Response(), Binary(b"ID3 and so on, as MP3 begins")])


def test_sound_within_the_output_is_read_where_it_stands() -> None:
    codec = called()
    within = "data:audio/wav;base64," + base64.b64encode(WAV).decode()
    step = told(codec, completed(["", {"name": "a.wav", "data": within}]), over=True)
    assert sound(step.events) == PCM
    codec = called()
    with pytest.raises(ProtocolError, match="audio is not base64"):
        told(codec, completed(["", {"data": "?"}]), over=True)


def test_a_stream_that_is_no_playlist_is_read_as_a_file_at_the_end() -> None:
    codec = called(app={**ECHO, "api_prefix": ""})
    step = told(codec, generating(["", {"path": "s/1/5", "is_stream": True}]))
    assert step.messages == []
    (asked,) = told(
        codec, completed(["", {"path": "s/1/5", "is_stream": True}]), over=True
    ).messages
    assert asked == Request(b"", {}, "GET", "/stream/s/1/5")


def test_a_reply_ends_with_the_last_of_its_stream_and_its_events_whichever_comes_later() -> None:
    ended = Fetched(LIST, body=playlist(1, ended=True))
    segment = Fetched("turn 1 segment 0", body=b"ID3\4\0\0\0\0\0\1x" + adts_of_tone())
    for late in (True, False):
        codec = called()
        told(codec, generating(["", stream()]), completed(["", stream()]))
        codec.receive(Fetched(LIST, body=playlist(0)))
        codec.receive(ended)
        last: list[Message] = [segment, Ended()] if late else [Ended(), segment]
        steps = [hear(codec, [one]) for one in last]
        kinds = [[type(one) for one in step.events] for step in steps]
        assert kinds == ([[ReplyAudio], [ReplyEnded]] if late else [[], [ReplyAudio, ReplyEnded]])
        assert all(one == Step([], []) for one in [codec.receive(segment)])


def adts_of_tone() -> bytes:
    import numpy as np

    return adts_of(np.frombuffer(to_pcm16(voice(100)), dtype="<i2"))


def test_an_empty_segment_is_no_sound() -> None:
    codec = called()
    told(codec, generating(["", stream()]), completed(["", stream()]), over=True)
    codec.receive(Fetched(LIST, body=playlist(0)))
    codec.receive(Fetched(LIST, body=playlist(1, ended=True)))
    assert codec.receive(Fetched("turn 1 segment 0")).events == [ReplyEnded()]


def test_a_stream_without_a_segment_leaves_the_next_best_output() -> None:
    codec = called(Settings(options=options(audio_output=[1, 2])), config([2, 3], [3, 5, 5]))
    told(codec, generating(["", stream(), None]), completed(["", stream(), file()]), over=True)
    codec.receive(Fetched(LIST, body=playlist(0)))
    (asked,) = codec.receive(Fetched(LIST, body=playlist(0, ended=True))).messages
    assert isinstance(asked, Request)
    assert asked.path.endswith("b.wav")


def test_what_is_refused_or_no_sound_beside_the_events_is_told() -> None:
    codec = called()
    told(codec, generating(["", stream()]))
    assert codec.receive(Fetched(LIST, 404, reason="gone")).events == [
        Fault("request", retryable=False, message=f"{LIST}: HTTP 404: gone")
    ]
    codec = called()
    told(codec, generating(["", stream()]))
    codec.receive(Fetched(LIST, body=playlist(1)))
    with pytest.raises(ProtocolError, match="not AAC in ADTS frames"):
        codec.receive(Fetched("turn 1 segment 0", body=b"ID3"))


def test_what_is_fetched_for_an_earlier_answer_is_let_by() -> None:
    codec = called()
    told(codec, generating(["", stream()]))
    assert codec.receive(Fetched("turn 0 playlist", 404)) == Step()


# Gradio 3

THREE = {**config([2, 3], [3, 5]), "protocol": "ws", "api_prefix": None, "version": "3.50.2"}


def test_gradio_3_takes_the_question_within_the_call_and_gives_one_output_a_request() -> None:
    codec = ready(SPOKEN, THREE)
    codec.audio(b"\0\0")
    (asked,) = codec.end_turn().messages
    assert isinstance(asked, Request)
    assert asked.path == "/run/predict"
    (given, _) = json.loads(asked.body)["data"]
    assert given["name"] == "question.wav"
    assert base64.b64decode(given["data"].partition(",")[2]) == wav_file(b"\0\0", 16_000)
    step = hear(codec, answer('{"data": ["One", null], "is_generating": true}'))
    assert (words(step.events), step.messages) == ("One", [asked])
    step = hear(codec, answer('{"data": ["One two", {"name": "/a.wav"}], "is_generating": true}'))
    assert words(step.events) == " two"
    (wanted,) = hear(codec, answer('{"data": [null, null], "is_generating": false}')).messages
    assert wanted == Request(b"", {}, "GET", "/file=/a.wav")
    assert sound(hear(codec, answer(WAV)).events) == PCM


def test_gradio_3_says_what_failed() -> None:
    codec = ready(Settings(options=options(error_output=0, text_output=1, audio_output=[])), THREE)
    codec.end_turn()
    step = hear(codec, answer('{"data": ["bad", null], "is_generating": true}'))
    assert step == Step([ReplyStarted(), failed("bad")], [])
    codec = ready(SPOKEN, THREE)
    codec.end_turn()
    assert hear(codec, answer('{"error": "no GPU"}')) == Step([failed("no GPU")], [])
    codec = ready(SPOKEN, THREE)
    codec.end_turn()
    assert codec.receive(Ended(500, "oops")).events == [failed("HTTP 500: oops")]


# What the pages say


@pytest.mark.parametrize("name", ["gradio", "glm-4-voice"])
def test_every_example_of_its_page_makes_an_endpoint(name: str) -> None:
    page = Path(__file__).parent.parent / "docs" / "endpoints" / f"{name}.md"
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    found = [
        one
        for block in blocks
        for one in parse(tomllib.loads(block) | {"suite": [{"kind": "demo"}]}, "page").endpoints
    ]
    assert len(found) >= 2
    for endpoint in found:
        assert endpoint.kind == name
        make = load(find(name).codec)
        assert callable(make)
        assert make(settings_of(endpoint)).open().messages


# Anything at all

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "[]", "e"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
ODD = st.sampled_from(["", "http://[", "//x/y.m3u8", "\ud800", "a\n?b.m3u8", "http://h:x/?q"])
FILES = st.fixed_dictionaries(
    {},
    optional={
        "url": JUNK | ODD,
        "path": JUNK | ODD,
        "is_stream": JUNK,
        "data": JUNK | st.sampled_from(["data:,", "UklGRg=="]),
    },
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["process_generating", "process_completed", "unexpected_error"]),
            st.fixed_dictionaries(
                {},
                optional={
                    "output": JUNK | st.fixed_dictionaries({"data": JUNK | st.tuples(JUNK, FILES)}),
                    "success": JUNK,
                    "event_id": JUNK,
                    "message": JUNK,
                },
            ),
        ),
        max_size=5,
    )
)
def test_events_with_fields_of_any_kind_are_events_or_a_protocol_error(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    codec = called()
    for name, fields in events:
        with suppress(ProtocolError):
            told(codec, f"data: {json.dumps({'msg': name, **fields})}\n\n")
    for message in (Ended(), Fetched(LIST, body=b"#EXTM3U\n#EXT-X-ENDLIST"), *answer(WAV)):
        with suppress(ProtocolError):
            codec.receive(message)


@given(st.lists(st.binary(max_size=50), max_size=6))
def test_any_bytes_as_events_are_events_or_a_protocol_error(pieces: list[bytes]) -> None:
    codec = called()
    for piece in pieces:
        with suppress(ProtocolError):
            codec.receive(Binary(piece))


# Whole attempts with a fake server

BRIEF = Patience(connect_timeout_s=2, first_reply_timeout_s=0.5, reply_limit_s=2.0, drain_ms=20)


def question(rate: int) -> Utterance:
    pcm = to_pcm16(voice(200))
    return Utterance(pcm, rate, 0, len(pcm) // 2)


async def asked(
    world: World, folder: Path, settings: Settings, text: str = ""
) -> tuple[dict[str, Any], list[Event]]:
    heard: list[Event] = []
    async with serving(world.play) as url:
        target = Target("g", "gradio", url, settings=settings, patience=BRIEF)
        async with LoopMonitor().watching() as monitor:
            capture = await attempt(
                target, question, text=text, monitor=monitor, listen=heard.append
            )
    row = finish(capture, attempt_in(folder))
    json.dumps(row, allow_nan=False)
    return row, heard


async def test_a_whole_attempt_hears_the_words_and_then_the_file(tmp_path: Path) -> None:
    whole = wav_file(to_pcm16(voice(400)), 24_000)
    world = World(ECHO, files={"/gradio_api/file=/tmp/a%20b.wav": whole})
    world.say(generating(["Yes", None]), completed(["Yes.", file()]), None)
    row, heard = await asked(world, tmp_path, SPOKEN, "Really?")
    assert (row["status"], row["fault"], row["reply_text"]) == ("ok", None, "Yes.")
    assert (row["latency_kind"], sound(heard)) == ("request", whole[44:])
    assert row["latency"]["first_text_ms"] < row["latency"]["first_packet_ms"]
    assert world.joined[0]["data"][1] == "Really?"
    assert len(world.joined[0]["session_hash"]) == 16


async def test_a_whole_attempt_in_words_alone_is_measured_by_them(tmp_path: Path) -> None:
    world = World(config([3], [3]))
    world.say(completed(["Berlin"]), None)
    row, _ = await asked(world, tmp_path, WORDS, "Where?")
    assert (row["status"], row["latency_kind"], row["reply_text"]) == ("ok", "text", "Berlin")


async def test_every_session_is_another_one_to_the_server(tmp_path: Path) -> None:
    names = set()
    for _ in range(2):
        world = World(config([3], [3]))
        world.say(completed(["a"]), None)
        await asked(world, tmp_path, WORDS)
        names.add(world.joined[0]["session_hash"])
    assert len(names) == 2


async def test_a_server_that_falls_silent_amid_its_events_is_cut_off(tmp_path: Path) -> None:
    world = World(ECHO)
    world.say(generating(["So", None]))
    row, _ = await asked(world, tmp_path, SPOKEN)
    assert (row["status"], row["reply_text"]) == ("truncated", "So")
