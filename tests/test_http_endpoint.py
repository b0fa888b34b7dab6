"""Kind `http`: what is sent is the template, filled; what comes back is read as told."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from attempt_logs import voice
from captures import attempt_in
from http_peer import Asked, Peer, serving
from http_play import hear, others, play, rates, recordings, sound, words
from hypothesis import given
from hypothesis import strategies as st
from wav_bytes import FLOAT, form, pcm, wav

from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Utterance
from voxmeter.client.finish import finish
from voxmeter.client.speaking import Patience
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
from voxmeter.endpoints.events import Event, Fault, ReplyEnded, ReplyStarted
from voxmeter.endpoints.http_endpoint import client
from voxmeter.endpoints.http_replies import WavBody
from voxmeter.endpoints.wav import floats_to_pcm16, wav_file

CUTS = st.lists(st.integers(0, 2**20), max_size=12)
PCM = bytes(range(200))
OK = Response(200, {"content-type": "audio/wav"})
AUDIO: dict[str, Json] = {"a": "{audio_base64}"}


def with_options(**options: Json) -> Settings:
    return Settings(options=options)


def request_of(settings: Settings, question: bytes = b"\1\0", text: str = "") -> Request:
    codec = client(settings)
    codec.audio(question)
    codec.text(text)
    (message,) = codec.end_turn().messages
    assert isinstance(message, Request)
    return message


@pytest.mark.parametrize("path", recordings("http"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


# What is sent


def test_a_placeholder_alone_keeps_its_type_and_amid_words_becomes_words() -> None:
    template: dict[str, Json] = {
        "rate": "{sample_rate}",
        "said": "at {sample_rate} Hz: {text}",
        "list": ["{voice}", {"deep": "{model}"}, 7, None, True],
        "audio": "{audio_pcm_base64}",
        "braces": "{{text}} {{}}",
    }
    settings = Settings(model="m", voice="v", input_rate=8000, options={"json": template})
    assert json.loads(request_of(settings, text="Q?").body) == {
        "rate": 8000,
        "said": "at 8000 Hz: Q?",
        "list": ["v", {"deep": "m"}, 7, None, True],
        "audio": "AQA=",
        "braces": "{text} {}",
    }


@pytest.mark.parametrize("words", ['"}, {"x": "', "{text} {0} {audio_base64}", "%s ü \0 \ud800"])
def test_what_users_write_is_data_and_never_a_template(words: str) -> None:
    template: dict[str, Json] = {"p": "<{instructions}>", "q": "{text}", "a": "{audio_base64}"}
    settings = Settings(instructions=words, options={"json": template})
    found = json.loads(request_of(settings, text=words).body)
    clean = words.replace("\ud800", "?")
    assert (found["p"], found["q"]) == (f"<{clean}>", clean)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_words_come_back_out_of_the_json(instructions: str, text: str) -> None:
    template: dict[str, Json] = {"p": "{instructions}", "q": "{text}.", "a": "{audio_floats}"}
    settings = Settings(instructions=instructions, options={"json": template})
    found = json.loads(request_of(settings, text=text).body)
    assert found == {"p": instructions, "q": f"{text}.", "a": [pytest.approx(1 / 32768)]}


def test_a_field_that_is_a_value_which_was_not_given_is_left_out() -> None:
    template: dict[str, Json] = {"t": "{temperature}", "n": None, "a": "{audio_base64}"}
    assert json.loads(request_of(with_options(json=template)).body).keys() == {"n", "a"}
    warm = Settings(temperature=0.5, options={"json": template})
    assert json.loads(request_of(warm).body)["t"] == 0.5


def test_floats_are_the_samples() -> None:
    samples = np.arange(-32768, 32768, 7, dtype="<i2").tobytes()
    found = json.loads(request_of(with_options(json={"a": "{audio_floats}"}), samples).body)["a"]
    assert floats_to_pcm16(np.array(found)) == samples
    amid = json.loads(request_of(with_options(json={"a": "x{audio_floats}"})).body)["a"]
    assert amid == "x[3.05176e-05]"


def test_a_form_has_its_fields_and_its_file() -> None:
    fields: dict[str, Json] = {
        'na"me\r\n': "{instructions}",
        "n": 4,
        "file": "{audio_wav}",
        "t": "{temperature}",
    }
    found = request_of(Settings(instructions="ü", options={"multipart": fields}))
    kind, _, boundary = found.headers["Content-Type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    parts = found.body.split(f"--{boundary}".encode())
    assert parts[0] == b""
    assert parts[-1] == b"--\r\n"
    named = b'\r\nContent-Disposition: form-data; name="'
    assert parts[1] == named + b'na%22me%0D%0A"\r\n\r\n\xc3\xbc\r\n'
    assert parts[2] == named + b'n"\r\n\r\n4\r\n'
    head = named + b'file"; filename="question.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    assert parts[3] == head + wav_file(b"\1\0", 16_000) + b"\r\n"
    assert len(parts) == 5


def test_a_file_in_json_is_base64_and_floats_in_a_form_are_a_list() -> None:
    whole = base64.b64encode(wav_file(b"\1\0", 16_000)).decode()
    found = request_of(with_options(json={"a": "{audio_wav}"}))
    assert json.loads(found.body)["a"] == whole
    listed = request_of(with_options(multipart={"a": "{audio_floats}"}))
    assert b"\r\n\r\n[3.05176e-05]\r\n" in listed.body


def test_path_query_and_key_are_in_the_address() -> None:
    query: dict[str, Json] = {"rate": "{sample_rate}", "p": "{instructions}", "t": "{temperature}"}
    settings = Settings(instructions="a&b", options={"query": query, "path": "/v2"})
    found = client(settings).address("http://h/v1?x=1", "k")
    assert found.url == "http://h/v2?x=1&rate=16000&p=a%26b"
    assert found.headers == {"Authorization": "Bearer k"}
    plain = client(with_options(key_header="X-Key")).address("http://h/v1?x=a%20b", "k")
    assert (plain.url, plain.headers) == ("http://h/v1?x=a%20b", {"X-Key": "k"})


def test_what_has_no_place_in_the_request_is_said() -> None:
    settings = Settings(instructions="x", voice="v", options={"json": AUDIO | {"v": "{voice}"}})
    (ready,) = client(settings).open().events
    assert getattr(ready, "note", "") == "no place in the request for instructions"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jsn": {}}, "did you mean json"),
        ({"json": {}}, "no place for the question's audio"),
        ({"json": "x"}, "a table"),
        ({"json": {"a": "{audio_base46}"}}, r"no placeholder \{audio_base46\}"),
        ({"json": AUDIO, "raw": "wav"}, "one body"),
        ({"multipart": {"a": ["{audio_wav}"]}}, "single values"),
        ({"raw": "mp3"}, "'wav' or 'pcm16'"),
        ({"query": {"a": "{audio_base64}"}}, "not known when the connection is opened"),
        ({"reply": "mp3"}, "'wav', 'pcm16'"),
        ({"reply": "wav@8000"}, "pcm16@24000"),
        ({"reply": "pcm16@"}, "pcm16@24000"),
        ({"reply": "pcm16@9999999999"}, "from 4000"),
        ({"reply": "sse"}, "'sse' needs to be told where the reply stands"),
        ({"reply_text": 1}, "a string"),
        ({"reply_text_whole": "yes"}, "true or false"),
        ({"method": "GET"}, "'POST'"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Json], message: str) -> None:
    with pytest.raises(UserError, match=message):
        client(Settings(options=options))


def test_what_it_has_no_word_for_is_nothing() -> None:
    codec = client(Settings())
    steps = [codec.turn(Turn("user", "x")), codec.played(""), codec.cancel(1), codec.close()]
    assert steps == [Step()] * 4


# What comes back


@given(CUTS, st.sampled_from([0, 200, 0x7FFFFFFF, 0xFFFFFFFF, 64]))
def test_a_wav_file_is_the_same_however_it_is_split_and_whatever_size_it_claims(
    cuts: list[int], size: int
) -> None:
    body = wav_file(PCM, 22_050)[:40] + size.to_bytes(4, "little") + PCM
    events = hear(client(Settings()), OK, body, cuts)
    assert sound(events) == PCM
    assert rates(events) == {22_050}
    assert others(events) == [ReplyStarted(), ReplyEnded()]


@pytest.mark.parametrize(
    ("tag", "bits", "channels"),
    [(1, 8, 1), (1, 24, 1), (1, 32, 2), (3, 32, 1), (3, 64, 2), (1, 16, 2)],
)
@pytest.mark.parametrize("step", [1, 5, 10_000])
def test_other_encodings_become_sixteen_bits_and_one_channel(
    tag: int, bits: int, channels: int, step: int
) -> None:
    values = np.array([0.0, 0.5, -0.5, 0.25, -1.0])
    moments = np.repeat(values, channels)
    data = moments.astype(f"<f{bits // 8}").tobytes() if tag == FLOAT else pcm(moments, bits)
    body = wav(form(tag, bits, channels=channels), data)
    events = hear(client(Settings()), OK, body, range(0, len(body), step))
    found = np.frombuffer(sound(events), "<i2") / 32768
    assert found == pytest.approx(values, abs=1 / 128 if bits == 8 else 1e-4)


def test_files_one_after_another_are_one_reply() -> None:
    body = wav_file(PCM, 16_000) * 3
    events = hear(client(Settings()), OK, body, range(0, len(body), 3))
    assert sound(events) == PCM * 3


def test_floats_beyond_full_scale_and_none_at_all_do_no_harm() -> None:
    found = floats_to_pcm16(np.array([2.0, -2.0, np.nan, np.inf]))
    assert np.frombuffer(found, "<i2").tolist() == [32767, -32768, 0, 32767]


def test_the_head_alone_is_a_reply_without_sound() -> None:
    assert hear(client(Settings()), OK, wav_file(b"", 16_000)) == [ReplyStarted(), ReplyEnded()]


HEAD = wav_file(b"", 16_000)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"RIFF....WAVE", "ends before its samples begin"),
        (b"RI", "ends before its samples begin"),
        (b"ID3\4", "not a WAV file"),
        (b"RIFF....AVI ", "not a WAV file"),
        (HEAD[:12] + HEAD[36:], "samples before their format"),
        (HEAD[:12] + b"JUNK\xff\xff\0\1" + HEAD[12:], "no samples where they should be"),
        (HEAD[:16] + b"\4\0\0\0" + HEAD[20:24] + HEAD[36:], "cut-off format"),
        (HEAD[:20] + b"\6\0" + HEAD[22:34] + b"\x08\0" + HEAD[36:], "encoding 6"),
        (HEAD[:22] + b"\0\0" + HEAD[24:], "0 channels"),
        (HEAD[:24] + b"\1\0\0\0" + HEAD[28:], "at 1 Hz"),
    ],
)
def test_what_is_no_wav_file_breaks_the_protocol(body: bytes, message: str) -> None:
    for cuts in (range(0), range(len(body))):
        with pytest.raises(ProtocolError, match=message):
            hear(client(Settings()), OK, body, cuts)


def test_a_format_that_hides_behind_another_is_found() -> None:
    chunk = HEAD[12:16] + (40).to_bytes(4, "little") + b"\xfe\xff" + HEAD[22:36]
    chunk += b"\x16\0" + bytes(6) + b"\1\0" + bytes(14)
    body = HEAD[:12] + b"JUNK\3\0\0\0abc\0" + chunk + b"data\2\0\0\0\1\2"
    assert sound(hear(client(Settings()), OK, body)) == b"\1\2"


def test_bare_samples_have_the_rate_that_was_told() -> None:
    for settings, rate in (
        (with_options(reply="pcm16@8000"), 8000),
        (with_options(reply="pcm16"), 24_000),
        (Settings(output_rate=16_000, options={"reply": "pcm16@8000"}), 16_000),
    ):
        events = hear(client(settings), OK, b"\1\2\3", [1])
        assert sound(events) == b"\1\2\3"
        assert rates(events) == {rate}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": "out of memory"}', "words where samples are wanted: '{\"error"),
        (b"<html>\r\n<title>502 Bad Gateway</title>" + b" " * 100, "words where samples"),
        (b"Traceback (most recent call last):\n" * 9, "words where samples are wanted: 'Trace"),
        (wav_file(bytes(100), 16_000), "a WAV file where samples are wanted"),
    ],
)
@pytest.mark.parametrize("cuts", [[], [1, 2, 30]])
def test_a_page_or_a_file_is_no_bare_samples(body: bytes, words: str, cuts: list[int]) -> None:
    with pytest.raises(ProtocolError, match=words):
        hear(client(with_options(reply="pcm16")), OK, body, cuts)


@pytest.mark.parametrize(
    "body", [b"", b"ab", b" " * 60, b"a" * 63 + b"\0" * 99, bytes(64) + b"a" * 64]
)
def test_samples_that_look_a_little_like_words_are_samples(body: bytes) -> None:
    for cuts in ([], [7], [100]):
        assert sound(hear(client(with_options(reply="pcm16")), OK, body, cuts)) == body


@given(st.text(max_size=20), CUTS)
def test_words_alone_are_the_same_however_they_are_split(text: str, cuts: list[int]) -> None:
    codec = client(with_options(reply="text"))
    assert codec.traits.reply_channel == "text"
    assert words(hear(codec, Response(), text.encode(), cuts)) == text


def test_a_letter_that_was_cut_off_is_told() -> None:
    assert words(hear(client(with_options(reply="text")), Response(), b"a\xc3")) == "a\ufffd"


@pytest.mark.parametrize("wrapping", ["ndjson", "sse"])
@given(
    st.lists(st.tuples(st.text(max_size=9), st.binary(max_size=9)), max_size=5),
    CUTS,
    st.sampled_from(["\n", "\r\n"]),
)
def test_json_is_the_same_however_it_is_split(
    wrapping: str, said: list[tuple[str, bytes]], cuts: list[int], end: str
) -> None:
    options: dict[str, Json] = {"reply": wrapping, "reply_audio": "o.0.a", "reply_text": "o.0.t"}
    objects = [
        json.dumps({"o": [{"t": text, "a": base64.b64encode(b"x" + data).decode()}]})
        for text, data in said
    ]
    lines = [f"data: {one}{end}{end}" if wrapping == "sse" else one + end for one in objects]
    codec = client(Settings(options=options))
    assert codec.traits.reply_channel == "speech"
    events = hear(codec, Response(), "".join(lines).encode(), cuts)
    assert words(events) == "".join(text for text, _ in said)
    assert sound(events) == b"".join(b"x" + data for _, data in said)


def test_audio_in_json_may_be_numbers_and_whole_files() -> None:
    told = {"reply": "ndjson", "reply_audio": "a", "reply_rate": "r"}
    settings = Settings(options=cast("dict[str, Json]", told))

    def heard(value: object, **more: object) -> Any:
        body = json.dumps({"a": value, **more}).encode()
        events = hear(client(settings), Response(), body)
        return sound(events), rates(events)

    assert heard([0.5, -1, 0]) == (b"\0\x40\0\x80\0\0", {24_000})
    assert heard([16384, -32768, 0], r=8000) == (b"\0\x40\0\x80\0\0", {8000})
    whole = base64.b64encode(wav_file(b"\1\0", 11_025)).decode()
    assert heard(whole) == (b"\1\0", {11_025})
    assert heard(f"data:audio/wav;base64,{whole}") == (b"\1\0", {11_025})
    assert heard("") == heard([]) == heard(None) == (b"", set())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"a": 7}, "a is not base64 or a list"),
        ({"a": ["x"]}, "finite numbers"),
        ({"a": [[1.0]]}, "finite numbers"),
        ({"a": [None]}, "finite numbers"),
        ({"a": "AAE=", "r": "fast"}, "r is not a rate"),
        ({"t": 7}, "t is not a string"),
        ([], "not an object"),
    ],
)
def test_what_stands_in_a_place_and_does_not_belong_there_is_told(
    line: object, message: str
) -> None:
    options = {"reply": "ndjson", "reply_audio": "a", "reply_text": "t", "reply_rate": "r"}
    codec = client(Settings(options=cast("dict[str, Json]", options)))
    with pytest.raises(ProtocolError, match=message):
        hear(codec, Response(), json.dumps(line).encode())


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("no", "no"),
        ({"message": "no", "code": 1}, "no"),
        ({"code": 1}, '{"code": 1}'),
        ({"code": "no_model"}, '{"code": "no_model"}'),
        ({"message": "no", "type": "overloaded"}, "overloaded: no"),
        (True, "true"),
    ],
)
def test_an_error_under_status_200_is_a_refusal(error: Json, message: str) -> None:
    codec = client(with_options(reply="json", reply_text="t"))
    events = hear(codec, Response(), json.dumps({"error": error}).encode())
    assert [getattr(one, "message", None) for one in others(events)] == [None, message]
    assert not any(isinstance(one, ReplyEnded) for one in events)


@pytest.mark.parametrize("nothing", [None, False, 0, "", {}, []])
def test_an_empty_error_is_none(nothing: Json) -> None:
    codec = client(with_options(reply="json", reply_text="t"))
    events = hear(codec, Response(), json.dumps({"error": nothing, "t": "x"}).encode())
    assert words(events) == "x"


REPLIES: list[dict[str, Json]] = [
    {},
    {"reply": "pcm16"},
    {"reply": "mixed-replace"},
    {"reply": "text"},
    {"reply": "json", "reply_audio": "a", "reply_text": "t", "reply_rate": "r"},
    {"reply": "ndjson", "reply_audio": "a", "reply_text": "t", "reply_rate": "r"},
    {"reply": "sse", "reply_audio": "a.0", "reply_text": "t", "reply_text_whole": True},
]
PIECES = [b"RIFF", HEAD, b"\r\n--frame\r\n", b"--frame--", b"\r\n\r\n", b'{"a": "', b'"}', b"data:",
          b"\n\n", b"[DONE]", b'{"t": "x"}', b'{"a": [1e400]}', b"[" * 2000]  # fmt: skip


@given(
    st.sampled_from(REPLIES),
    st.lists(
        st.one_of(
            st.builds(Binary, st.one_of(st.binary(max_size=60), st.sampled_from(PIECES))),
            st.builds(Ended, st.one_of(st.none(), st.integers(0, 999)), st.text(max_size=9)),
            st.sampled_from([Response(), OK]),
        ),
        max_size=10,
    ),
)
def test_any_messages_give_events_or_a_protocol_error(
    options: dict[str, Json], messages: list[Message]
) -> None:
    codec = client(Settings(options=options))
    for message in messages:
        try:
            step = codec.receive(message)
        except ProtocolError:
            continue
        assert sound(step.events) is not None


def test_a_reader_of_files_says_whose_reply_it_was() -> None:
    with pytest.raises(ProtocolError, match=r"^mine: the audio is not a WAV file"):
        list(WavBody("mine").feed(b"nonsense"))


# A whole attempt


async def test_a_whole_attempt_in_words_and_one_in_sound(tmp_path: Path) -> None:
    got: list[Asked] = []

    async def plays(peer: Peer) -> None:
        got.append(await peer.request())
        if got[-1].target == "/words":
            await peer.whole(b'{"t": "The answer is B."}')
        else:
            await peer.whole(wav_file(to_pcm16(voice(300)), 24_000), kind="audio/wav")

    def question(rate: int) -> Utterance:
        asked = to_pcm16(voice(200))
        return Utterance(asked, rate, 0, len(asked) // 2)

    patience = Patience(drain_ms=20)
    rows = []
    async with serving(plays) as url:
        for path, options in (
            ("/words", {"reply": "json", "reply_text": "t", "json": AUDIO}),
            ("/sound", {}),
        ):
            settings = Settings(options=cast("dict[str, Json]", options))
            target = Target("x", "http", url + path, settings=settings, patience=patience)
            capture = await attempt(target, question)
            rows.append(finish(capture, attempt_in(tmp_path)))
    in_words, in_sound = rows
    assert (in_words["status"], in_words["latency_kind"]) == ("ok", "text")
    assert in_words["reply_text"] == "The answer is B."
    assert in_words["latency"]["first_text_ms"] > 0
    assert in_words["latency"]["first_packet_ms"] is None
    assert (in_sound["status"], in_sound["latency_kind"]) == ("ok", "request")
    assert in_sound["latency"]["first_audible_ms"] > 0
    assert got[1].body == wav_file(to_pcm16(voice(200)), 16_000)


def test_a_turn_cannot_be_closed_in_another_way() -> None:
    with pytest.raises(UserError, match="turn_end: is commit, but a question to kind http is one"):
        client(Settings(turn_end="commit"))


def test_a_budget_that_is_spent_is_told_from_too_many_requests() -> None:
    def fault(reason: str) -> tuple[str, bool]:
        (found,) = client(Settings()).receive(Ended(429, reason)).events
        assert isinstance(found, Fault)
        return found.kind, found.retryable

    assert fault("Insufficient balance") == ("quota", False)
    assert fault("Too many requests") == ("busy", True)


def test_a_body_in_place_of_events_is_read_for_what_it_says() -> None:
    def heard(body: bytes) -> list[Event]:
        return others(hear(client(with_options(reply="sse", reply_text="t")), Response(), body))

    _, fault = heard(b'{"error": {"code": "insufficient_quota",\n "message": "no money"}}')
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.message) == ("quota", "insufficient_quota: no money")
    with pytest.raises(ProtocolError, match="Service is down"):
        heard(b"Service is down")
    assert heard(b": ping\nevent: x\n\nthis is ignored\ndata: {}\n\nand this") == [
        ReplyStarted(),
        ReplyEnded(),
    ]
    assert heard(b"\n\n") == [ReplyStarted(), ReplyEnded()]


def test_blank_lines_and_samples_that_are_none_are_nothing() -> None:
    codec = client(with_options(reply="ndjson", reply_audio="a", reply_text="t"))
    head = base64.b64encode(wav_file(b"", 8000)).decode()
    body = f'\n  \n{{"a": "{head}", "t": ""}}\n'.encode()
    assert others(hear(codec, Response(), body)) == [ReplyStarted(), ReplyEnded()]
    sse = client(with_options(reply="sse", reply_text="t"))
    assert others(hear(sse, Response(), b"data:  \n\n")) == [ReplyStarted(), ReplyEnded()]
