"""Kind `gradio`: captured sessions, what is asked of which app, and what comes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gradio_codec import (
    ECHO,
    LIST,
    SPOKEN,
    WORDS,
    answer,
    ask,
    called,
    completed,
    failed,
    generating,
    hear,
    options,
    ready,
    told,
)
from gradio_world import config, event, file, stream
from http_play import play, recordings, words

from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Fetched,
    Json,
    Request,
    Response,
    Settings,
    Step,
    Text,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import (
    Fault,
    Note,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)
from voxmeter.endpoints.gradio import client
from voxmeter.endpoints.wav import wav_file


@pytest.mark.parametrize("path", recordings("gradio"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


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
