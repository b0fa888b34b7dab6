"""The lines of programs, functions and imported answers: what is sent, and what each line means."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.codec import (
    Asked,
    Binary,
    Ended,
    Message,
    Settings,
    Step,
    Text,
    Turn,
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
from voxmeter.endpoints.exec_lines import OPTIONS, Lines, client, ends, imported, in_process

PCM = b"\x01\x00\x02\x00"
ENCODED = base64.b64encode(PCM).decode()


def line(**fields: Any) -> Text:
    return Text(json.dumps(fields))


def asked(settings: Settings | None = None) -> tuple[Lines, str]:
    """A session in which a question has been asked, and the question's id."""
    codec = client(settings or Settings(session_tag="t"))
    codec.receive(line(event="ready"))
    codec.audio(PCM)
    return codec, request(codec.end_turn())["id"]


def request(step: Step) -> dict[str, Any]:
    message = step.messages[-1]
    assert isinstance(message, Text)
    found: dict[str, Any] = json.loads(message.data)
    return found


def sound(message: Message) -> tuple[int, bytes]:
    assert isinstance(message, Binary)
    with wave.open(io.BytesIO(message.data)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getframerate(), file.readframes(file.getnframes())


def heard(codec: Lines, *messages: Message) -> Sequence[Event]:
    return [event for message in messages for event in codec.receive(message).events]


def test_a_question_is_a_wav_file_and_one_line() -> None:
    codec = client(Settings(session_tag="t", instructions="Be brief."))
    codec.audio(PCM[:2])
    codec.audio(PCM[2:])
    step = codec.end_turn()
    assert sound(step.messages[0]) == (16_000, PCM)
    assert request(step) == {
        "id": "t-1",
        "audio": 0,
        "sample_rate": 16_000,
        "text": None,
        "instructions": "Be brief.",
        "history": [],
    }
    assert len(step.messages) == 2
    assert "\n" not in json.dumps(request(step))


def test_settings_are_told_where_they_were_set() -> None:
    settings = Settings(
        model="large", voice="ann", temperature=0.0, output_rate=22_050, input_rate=8_000
    )
    codec, _ = asked(settings)
    codec.audio(PCM)
    codec.text("Which of them?")
    step = codec.end_turn()
    told = request(step)
    assert told["text"] == "Which of them?"
    assert sound(step.messages[0])[0] == told["sample_rate"] == 8_000
    wished = {name: told[name] for name in ("model", "voice", "temperature", "output_rate")}
    assert wished == {"model": "large", "voice": "ann", "temperature": 0.0, "output_rate": 22_050}


def test_history_goes_with_the_question_and_numbers_its_files() -> None:
    codec = client(Settings())
    first = codec.turn(Turn("user", "One?", PCM)).messages
    assert codec.turn(Turn("assistant", "Two.")).messages == []
    codec.audio(PCM * 2)
    step = codec.end_turn()
    assert [sound(message)[1] for message in [*first, step.messages[0]]] == [PCM, PCM * 2]
    assert request(step)["audio"] == 1
    assert request(step)["history"] == [
        {"role": "user", "text": "One?", "audio": 0},
        {"role": "assistant", "text": "Two.", "audio": None},
    ]
    codec.audio(PCM)
    assert request(codec.end_turn())["history"] == []
    assert client(Settings()).traits.history


def test_ready_may_name_the_program_and_the_rate_of_questions() -> None:
    codec = client(Settings())
    assert heard(codec, line(event="ready", name="toy", sample_rate=24_000)) == [
        Ready(24_000, "toy")
    ]
    codec.audio(PCM)
    assert sound(codec.end_turn().messages[0])[0] == 24_000
    assert heard(client(Settings()), line(event="ready")) == [Ready()]


def test_a_reply_is_words_and_sound_and_an_end() -> None:
    codec, name = asked()
    assert heard(
        codec,
        line(id=name, event="text", text="Yes"),
        line(id=name, event="audio", pcm_b64=ENCODED, sample_rate=24_000),
        line(id=name, event="audio", pcm_b64=ENCODED),
        line(event="done", usage={"tokens": 3, "cost": None, "yes": True, "big": 10**400}),
    ) == [
        ReplyStarted(),
        ReplyText("Yes"),
        ReplyAudio(PCM, "pcm16", 24_000),
        ReplyAudio(PCM, "pcm16", 24_000),
        Usage({"tokens": 3.0}),
        ReplyEnded(),
    ]


def test_the_samples_of_a_file_follow_its_line() -> None:
    codec, name = asked()
    told = line(id=name, event="audio", path="r.wav", sample_rate=22_050)
    assert heard(codec, told) == []
    assert heard(codec, Binary(PCM)) == [ReplyStarted(), ReplyAudio(PCM, "pcm16", 22_050)]
    with pytest.raises(ProtocolError, match="not UTF-8"):
        heard(codec, Binary(b"\xff"))


def test_one_process_answers_question_after_question() -> None:
    codec, first = asked()
    heard(codec, line(id=first, event="done"))
    second = request(codec.end_turn())["id"]
    assert second != first
    events = heard(codec, line(id=second, event="text", text="2"), line(id=second, event="done"))
    assert events == [ReplyStarted(), ReplyText("2"), ReplyEnded()]


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"text": "out of memory"}, Fault("server", retryable=False, message="out of memory")),
        ({"message": "later"}, Fault("server", retryable=False, message="later")),
        ({"kind": "busy", "text": "no"}, Fault("busy", retryable=True, message="no")),
        ({"kind": "strange"}, Fault("server", retryable=False, message="no reason given")),
    ],
)
def test_an_error_is_a_fault_with_the_programs_words(fields: dict[str, str], fault: Fault) -> None:
    codec, name = asked()
    assert heard(codec, line(id=name, event="error", **fields)) == [fault]
    assert heard(client(Settings()), line(event="error", **fields)) == [fault]


def test_the_end_of_the_program_closes_the_session() -> None:
    codec, _ = asked()
    assert heard(codec, Ended(3, "boom")) == [Closed(3, "boom")]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Text("Loading checkpoint \x1b[31m42"), r"not JSON: 'Loading checkpoint \\x1b\[31m42'; st"),
        (Text("[1]"), "JSON, but not an object: '\\[1\\]'"),
        (Text("[" * 100_000), "nested too deeply"),
        (Binary(b"\xff\xfe"), "not UTF-8"),
        (line(), "a line without an event; known: ready, text"),
        (line(event="audo"), "event 'audo'; known: ready, text"),
        (line(event=3), "event is of type int"),
        (line(event="ready"), "ready in the middle of a reply"),
        (line(event="text"), "text is missing"),
        (line(event="text", text=1), "text is of type int"),
        (line(event="done", id="other"), "answers 'other', but 't-1' was asked"),
        (line(event="done", usage=[]), "usage is of type list"),
        (line(event="audio", pcm_b64=ENCODED), "sample_rate is missing"),
        (line(event="audio", sample_rate=16_000), "one of pcm_b64 and path"),
        (line(event="audio", sample_rate=16_000, pcm_b64=ENCODED, path="x"), "one of pcm_b64"),
        (line(event="audio", sample_rate=16_000, path=3), "path is of type int"),
        (line(event="audio", sample_rate=0, pcm_b64=ENCODED), "sample_rate 0 is not from"),
        (line(event="audio", sample_rate=10**400, pcm_b64=ENCODED), "a finite number"),
        (line(event="audio", sample_rate=16_000, pcm_b64="%"), "is not base64"),
        (
            line(
                event="audio",
                sample_rate=16_000,
                pcm_b64=base64.b64encode(b"RIFF\0\0\0\0WAVE").decode(),
            ),
            "a WAV file where samples are wanted",
        ),
    ],
)
def test_what_no_line_may_say_is_an_error_that_shows_it(message: Message, words: str) -> None:
    codec, _ = asked()
    with pytest.raises(ProtocolError, match=words) as caught:
        codec.receive(message)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("event", ["text", "audio", "done"])
def test_nobody_answers_what_was_not_asked(event: str) -> None:
    codec = client(Settings())
    with pytest.raises(ProtocolError, match=f"{event} before anything was asked"):
        codec.receive(line(event=event, text="x"))
    again, name = asked()
    heard(again, line(id=name, event="done"))
    with pytest.raises(ProtocolError, match="before anything was asked"):
        again.receive(line(id=name, event=event, text="x"))


def test_a_rate_that_is_not_the_one_asked_for_is_an_error() -> None:
    codec = client(Settings(input_rate=16_000))
    with pytest.raises(ProtocolError, match="takes audio at 24000, but input_rate is 16000"):
        codec.receive(line(event="ready", sample_rate=24_000))
    with pytest.raises(ProtocolError, match="sample_rate 7 is not from"):
        client(Settings()).receive(line(event="ready", sample_rate=7))


def test_the_traits_are_those_of_one_request() -> None:
    traits = client(Settings()).traits
    assert (traits.turn_end, traits.latency_kind, traits.reply_end) == (
        "request",
        "request",
        "final",
    )
    text = client(Settings(options={"output_modalities": "text"})).traits
    assert (text.reply_channel, text.latency_kind) == ("text", "text")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(turn_end="commit"), "turn_end: is commit, but a question to kind exec is one"),
        (Settings(options={"output_modalities": "song"}), 'output_modalities: is "song"; write'),
        (Settings(options={"output_modalities": 1}), "output_modalities: is 1"),
    ],
)
def test_settings_that_no_line_can_carry_are_refused(settings: Settings, words: str) -> None:
    with pytest.raises(UserError, match=words):
        client(settings)
    assert set(OPTIONS) == {"once", "output_modalities"}


def test_the_verbs_without_a_word_say_nothing() -> None:
    codec = client(Settings())
    steps = (codec.open(), codec.played("r"), codec.cancel(1), codec.close(), codec.text("x"))
    assert all(not step.events and not step.messages for step in steps)
    assert codec.address("", "key").headers == {}


def test_imported_answers_are_found_by_their_question_and_no_sound_is_sent() -> None:
    codec = imported(Settings(asked=Asked("mine", "q1", "noise", 2)))
    codec.audio(PCM)
    (message,) = codec.end_turn().messages
    assert isinstance(message, Text)
    assert json.loads(message.data)["asked"] == {
        "suite": "mine",
        "item": "q1",
        "condition": "noise",
        "trial": 2,
    }
    assert not codec.traits.history
    assert request(imported(Settings()).end_turn())["asked"] is None


def test_no_program_is_told_which_question_of_which_suite_it_gets() -> None:
    settings = Settings(session_tag="t", asked=Asked("mine", "secret"))
    for codec in (client(settings), in_process(settings)):
        assert "secret" not in json.dumps(request(codec.end_turn()))


def test_the_last_line_of_a_reply_is_known_by_event_and_id() -> None:
    assert ends(line(id="7", event="done"), "7")
    assert ends(line(event="error"), "7")
    assert not ends(line(id="6", event="done"), "7")
    assert not ends(line(id="7", event="text", text='"done"'), "7")
    assert not ends(Text('"done"'), "7")
    assert not ends(Text('{"done"'), "7")
    assert not ends(Binary(b'{"event": "done"}'), "7")
    assert not ends(Ended(), "7")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(["event", "id", "text", "path", "pcm_b64", "sample_rate", "usage", "kind"])
EVENTS = st.sampled_from(["ready", "text", "audio", "done", "error", "t-1", "r.wav", ENCODED])
LINES = st.one_of(
    st.text().map(Text),
    st.binary(max_size=64).map(Binary),
    st.dictionaries(NAMES, EVENTS | JSON).map(lambda fields: Text(json.dumps(fields))),
    st.integers(-300, 300).map(Ended),
)


@given(st.lists(LINES, max_size=8), st.booleans())
def test_any_lines_give_events_or_a_protocol_error(messages: list[Message], ask: bool) -> None:
    codec, _ = asked() if ask else (client(Settings()), "")
    shown: list[str] = []
    for message in messages:
        try:
            codec.receive(message)
        except ProtocolError as error:
            shown.append(str(error))
        ends(message, "t-1")
    assert all(one.isprintable() for one in shown)
