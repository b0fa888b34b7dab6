"""Chat completions: recordings of every placement of audio, split anywhere, and odd answers."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from captures import attempt_in
from http_peer import Asked, Peer, serving
from http_play import hear, others, play, recordings, sound, words
from hypothesis import given
from hypothesis import strategies as st
from test_mini_omni import BRIEF, question

from voxmeter.client.finish import finish
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Json,
    Message,
    Request,
    Response,
    Settings,
    Step,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import Fault, Ready, ReplyEnded, ReplyStarted
from voxmeter.endpoints.openai_chat import client
from voxmeter.endpoints.wav import wav_file

STREAM = Response(200, {"content-type": "text/event-stream"})
WHOLE = Response(200, {"content-type": "application/json"})
CUTS = st.lists(st.integers(0, 2**16), max_size=20)


@pytest.mark.parametrize("path", recordings("openai_chat"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


def body_of(path: Path) -> tuple[Response, bytes]:
    """The head and the whole body of a recording's first answer."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    head = next(Response(*row["response"]) for row in rows if "response" in row)
    start = next(index for index, row in enumerate(rows) if "response" in row)
    rest = rows[start + 1 :]
    end = next(index for index, row in enumerate(rest) if "ended" in row)
    return head, "".join(row["text"] for row in rest[:end]).encode()


@pytest.mark.parametrize(
    "path",
    [path for path in recordings("openai_chat") if path.stem != "failures"],
    ids=lambda path: path.stem,
)
@given(CUTS)
def test_a_recorded_answer_is_the_same_however_it_is_split(path: Path, cuts: list[int]) -> None:
    head, body = body_of(path)
    whole = hear(client(Settings()), head, body)
    assert hear(client(Settings()), head, body, cuts) == whole
    assert isinstance(whole[-1], ReplyEnded)


@given(st.lists(st.tuples(st.text(max_size=9), st.binary(max_size=9)), max_size=5), CUTS)
def test_any_words_and_samples_come_back_out_of_a_stream(
    said: list[tuple[str, bytes]], cuts: list[int]
) -> None:
    lines = []
    for text, data in said:
        audio = {"data": base64.b64encode(b"x" + data).decode()}
        told = {"choices": [{"delta": {"content": text, "audio": audio}}]}
        lines.append(f"data: {json.dumps(told)}\n\n")
    body = "".join([*lines, "data: [DONE]\n\n"]).encode()
    events = hear(client(Settings()), STREAM, body, cuts)
    assert words(events) == "".join(text for text, _ in said)
    assert sound(events) == b"".join(b"x" + data for _, data in said)
    assert others(events) == [ReplyStarted(), ReplyEnded()]


@given(
    st.binary(min_size=1, max_size=60).filter(lambda data: data[:4] != b"RIFF"),  # a file's head
    st.lists(st.integers(0, 80), max_size=5),
)
def test_base64_may_be_cut_anywhere(data: bytes, cuts: list[int]) -> None:
    text = base64.b64encode(data).decode()
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    parts = [text[start:end] for start, end in pairwise(places)]
    told = [{"choices": [{"delta": {"audio": {"data": part}}}]} for part in parts]
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in told).encode()
    assert sound(hear(client(Settings()), STREAM, body)) == data


def test_base64_that_is_not_whole_at_the_end_breaks_the_protocol() -> None:
    told = {"choices": [{"delta": {"audio": {"data": "AAE=A"}}}]}
    with pytest.raises(ProtocolError, match="in the middle of its base64"):
        hear(client(Settings()), STREAM, f"data: {json.dumps(told)}\n\n".encode())


def test_words_that_were_cut_off_stay_so_when_the_sound_stops() -> None:
    told = [{"choices": [{"delta": {}, "finish_reason": why}]} for why in ("length", "stop")]
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in told).encode()
    events = hear(client(Settings()), STREAM, body)
    assert events[-1] == ReplyEnded("incomplete", detail="length")


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("http://h:8000", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/", "http://h:8000/v1/chat/completions"),
        ("https://h/v1", "https://h/v1/chat/completions"),
        ("https://h/compatible-mode/v1/", "https://h/compatible-mode/v1/chat/completions"),
        ("https://h/openai/deployments/d/chat/completions?api-version=1",
         "https://h/openai/deployments/d/chat/completions?api-version=1"),
    ],
)  # fmt: skip
def test_the_path_is_made_whole(url: str, whole: str) -> None:
    assert client(Settings()).address(url, None).url == whole


def test_the_key_is_a_bearer_unless_a_header_is_named() -> None:
    own = client(Settings(options={"key_header": "api-key"}))
    assert client(Settings()).address("http://h", "k").headers == {"Authorization": "Bearer k"}
    assert own.address("http://h", "k").headers == {"api-key": "k"}


def test_replies_are_words_unless_speech_is_asked_for() -> None:
    spoken = client(Settings(options={"modalities": "audio"}))
    assert client(Settings()).traits.latency_kind == "text"
    assert spoken.traits.latency_kind == "request"
    assert spoken.traits.history


def test_a_voice_without_speech_is_noted() -> None:
    assert client(Settings(voice="v")).open() == Step([Ready(note="a reply in text has no voice")])


def request_of(settings: Settings, *turns: Turn) -> dict[str, Any]:
    codec = client(settings)
    for turn in turns:
        codec.turn(turn)
    codec.audio(b"\1\0")
    (sent,) = codec.end_turn().messages
    assert isinstance(sent, Request)
    found: dict[str, Any] = json.loads(sent.body)
    return found


def test_a_turn_with_sound_is_told_in_sound() -> None:
    turns = [Turn("user", "One?", b"\1\0"), Turn("system", "Be brief.")]
    messages = request_of(Settings(), *turns)["messages"]
    parts = messages[0]["content"]
    assert [part["type"] for part in parts] == ["text", "input_audio"]
    assert messages[1] == {"role": "system", "content": "Be brief."}
    assert messages[2]["content"] == parts[1:]


def test_usage_is_asked_for_unless_told_otherwise() -> None:
    assert "stream_options" not in request_of(Settings(options={"usage": False}))
    assert "stream_options" not in request_of(Settings(options={"stream": False}))


def test_the_format_fits_the_way_of_the_reply() -> None:
    options: dict[str, Json] = {"modalities": "audio", "stream": False}
    assert request_of(Settings(options=options))["audio"] == {"format": "wav"}
    options = {"modalities": "audio"}
    assert request_of(Settings(options=options))["audio"] == {"format": "pcm16"}


def test_the_users_own_fields_have_the_last_word() -> None:
    options: dict[str, Json] = {"body": {"stream": False, "model": "n", "seed": 1}}
    found = request_of(Settings(model="m", options=options))
    assert (found["stream"], found["model"], found["seed"]) == (False, "n", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modality": "audio"}, "did you mean modalities"),
        ({"modalities": "both"}, "'text' or 'audio'"),
        ({"stream": 1}, "true or false"),
        ({"audio_part": "url"}, "'input_audio'"),
        ({"audio_format": "mp3"}, "'pcm16'"),
        ({"max_tokens": 1.5}, "a whole number"),
        ({"usage": "no"}, "true or false"),
        ({"body": []}, "a table"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Json], message: str) -> None:
    with pytest.raises(UserError, match=message):
        client(Settings(options=options))


@pytest.mark.parametrize(
    "told",
    [
        {"choices": {}},
        {"choices": [{"delta": []}]},
        {"choices": [{"delta": {"content": 7}}]},
        {"choices": [{"delta": {"audio": {"data": "*"}}}]},
        {"choices": [{"delta": {"content": "*"}}], "modality": "audio"},
        {"choices": [], "usage": {"prompt_tokens": "many"}},
        {"error": 7},
    ],
)
def test_what_is_not_as_it_should_be_breaks_the_protocol(told: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        hear(client(Settings()), WHOLE, json.dumps(told).encode())


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ({"message": "m", "code": "insufficient_quota"}, "quota", "insufficient_quota: m"),
        ({"message": "m", "type": "rate_limit_error"}, "busy", "rate_limit_error: m"),
        ({"code": 422}, "request", "422: no message"),
        ({}, "server", "no code: no message"),
    ],
)
def test_an_error_under_status_200_is_told_by_its_code(
    error: dict[str, Any], kind: str, message: str
) -> None:
    events = hear(client(Settings()), WHOLE, json.dumps({"error": error}).encode())
    (fault,) = [one for one in events if isinstance(one, Fault)]
    assert (fault.kind, fault.message) == (kind, message)


def test_what_it_has_no_word_for_is_nothing() -> None:
    codec = client(Settings())
    assert [codec.played(""), codec.cancel(1), codec.close()] == [Step()] * 3


WORDS = [b"data: ", b"{", b'{"choices": [{"delta": ', b'{"content": "x"}', b"}]}", b"\n\n",
         b'{"audio": {"data": "AAE="}}', b"[DONE]", b'{"error": {}}', b'{"usage": {}}']  # fmt: skip


@given(
    st.lists(
        st.one_of(
            st.builds(Binary, st.one_of(st.binary(max_size=20), st.sampled_from(WORDS))),
            st.builds(Ended, st.one_of(st.none(), st.integers(0, 999)), st.text(max_size=9)),
            st.sampled_from([STREAM, WHOLE, Response()]),
        ),
        max_size=12,
    )
)
def test_any_messages_give_events_or_a_protocol_error(messages: list[Message]) -> None:
    codec = client(Settings())
    for message in messages:
        try:
            assert isinstance(codec.receive(message), Step)
        except ProtocolError:
            continue


async def test_a_whole_attempt_in_words_has_the_time_of_its_first_word(tmp_path: Path) -> None:
    got: list[Asked] = []

    async def plays(peer: Peer) -> None:
        got.append(await peer.request())
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for text in ("The answer", " is B."):
            told = json.dumps({"choices": [{"delta": {"content": text}}]})
            await peer.say(f"data: {told}\n\n".encode())
        await peer.say(b"data: [DONE]\n\n")
        await peer.gone()

    async with serving(plays) as url:
        target = Target("v", "openai-chat", url, patience=BRIEF, api_key="sk-1")
        capture = await attempt(target, question, text="Which?")
    row = finish(capture, attempt_in(tmp_path))
    assert (row["status"], row["latency_kind"]) == ("ok", "text")
    assert row["reply_text"] == "The answer is B."
    assert row["latency"]["first_text_ms"] > 0
    assert row["latency"]["first_audible_ms"] is None
    assert got[0].target == "/v1/chat/completions"
    assert got[0].headers["authorization"] == "Bearer sk-1"
    assert json.loads(got[0].body)["messages"][0]["content"][0] == {
        "type": "text",
        "text": "Which?",
    }


def test_a_piece_that_holds_less_than_a_sample_is_heard_with_the_next() -> None:
    parts = [base64.b64encode(piece).decode() for piece in (b"RIF", b"x\1\2\3")]
    told = [{"choices": [{"delta": {"audio": {"data": part}}}]} for part in parts]
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in told).encode()
    assert sound(hear(client(Settings()), STREAM, body)) == b"RIFx\1\2\3"


def test_a_blank_line_and_the_head_of_a_file_alone_are_no_sound() -> None:
    head = base64.b64encode(wav_file(b"", 8000)).decode()
    told = {"choices": [{"delta": {"audio": {"data": head}}}]}
    body = f"data:  \n\ndata: {json.dumps(told)}\n\ndata: [DONE]\n\n".encode()
    assert others(hear(client(Settings()), STREAM, body)) == [ReplyStarted(), ReplyEnded()]
