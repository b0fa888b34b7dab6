"""Kind `gradio`: edits of outputs, sound in files, streams and outputs, Gradio 3, its page."""

from __future__ import annotations

import base64
import json
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aac import adts_of
from attempt_logs import voice
from gradio_codec import (
    ECHO,
    LIST,
    PCM,
    SPOKEN,
    WAV,
    answer,
    called,
    completed,
    failed,
    generating,
    hear,
    options,
    ready,
    told,
)
from gradio_world import config, file, playlist, stream
from http_play import sound, words
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.audio import to_pcm16
from voxmeter.client.config import parse
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
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Fault,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
)
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.gradio_app import patched
from voxmeter.endpoints.kind import load
from voxmeter.endpoints.wav import wav_file

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
