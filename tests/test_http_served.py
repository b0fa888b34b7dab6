"""The server's side of kind `http`: alone, and joined to the client's side with no network."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Json,
    Message,
    Published,
    Request,
    Response,
    Settings,
    Text,
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Event,
    Fault,
    FaultKind,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)
from voxmeter.endpoints.http_endpoint import KIND, client
from voxmeter.endpoints.http_served import Server, server
from voxmeter.endpoints.http_served_request import form_fields
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    HistoryAdded,
    ReplyRequested,
    SessionSet,
    UserAudio,
)
from voxmeter.endpoints.wav import wav_file

PCM = bytes(range(200))
REPLY = bytes(range(0, 250, 5)) * 40
WAV = {"Content-Type": "audio/wav"}
JSON = {"content-type": "application/json; charset=utf-8"}


class Pair:
    """A client and a server codec; every message reaches the other side at once."""

    def __init__(self, **options: Json) -> None:
        settings = Settings(
            instructions="Be brief.",
            voice="joe",
            temperature=0.5,
            session_tag="t1",
            options=options,
        )
        self.client = client(settings)
        self.server = server()
        self.heard: list[Event] = []
        self.asked: list[ClientEvent] = []

    def ask(self, pcm: bytes = PCM, text: str = "") -> None:
        """Put a question, as a session with an HTTP connection does."""
        self.client.audio(pcm)
        if text:
            self.client.text(text)
        (request,) = self.client.end_turn().messages
        assert isinstance(request, Request)
        parts = urlsplit(self.client.address("http://here/", None).url)
        target = f"{parts.path}?{parts.query}"
        step = self.server.receive(
            Request(request.body, request.headers, request.method, request.path or target)
        )
        self.asked += step.events
        self.tell(step.messages)

    def tell(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.heard += self.client.receive(message).events

    def reply(self) -> None:
        """Let the server say two words and two pieces of sound."""
        self.tell(self.server.reply_started())
        for word, start in (("Hel", 0), ("lo.", 1000)):
            self.tell(self.server.reply_text(word))
            self.tell(self.server.reply_audio(REPLY[start : start + 1000]))
        self.tell(self.server.reply_ended("completed"))

    def said(self) -> tuple[bytes, str]:
        """Return all sound and all words of one whole reply."""
        assert self.heard[0] == ReplyStarted()
        assert self.heard[-1] == ReplyEnded()
        audio = b"".join(one.data for one in self.heard if isinstance(one, ReplyAudio))
        return audio, "".join(one.text for one in self.heard if isinstance(one, ReplyText))

    def rates(self) -> set[int]:
        return {one.rate for one in self.heard if isinstance(one, ReplyAudio)}


PLACES: dict[str, Json] = {
    "reply_audio": "audio",
    "reply_text": "text",
    "reply_rate": "sample_rate",
}
FORMS: list[tuple[str, dict[str, Json], bool, bool]] = [
    ("wav", {}, True, False),
    ("pcm16@16000", {}, True, False),
    ("mixed-replace", {}, True, True),
    ("ndjson", PLACES, True, True),
    ("sse", PLACES, True, True),
    ("json", PLACES, True, True),
    ("text", {}, False, True),
]


@pytest.mark.parametrize(
    ("reply", "places", "sound", "words"), FORMS, ids=lambda one: str(one)[:14]
)
def test_every_form_of_reply_that_a_client_reads_is_written(
    reply: str, places: dict[str, Json], sound: bool, words: bool
) -> None:
    pair = Pair(reply=reply, query={"reply": reply}, **places)
    pair.ask()
    pair.reply()
    assert pair.said() == (REPLY if sound else b"", "Hello." if words else "")
    assert pair.rates() == ({pair.server.output_rate} if sound else set())
    assert pair.server.output_rate == (16_000 if "@" in reply else 24_000)


@pytest.mark.parametrize("reply", ["wav@8000", "mixed-replace@48000", "json@8000", "sse@16000"])
def test_a_reply_at_another_rate_says_so_itself(reply: str) -> None:
    form, _, rate = reply.partition("@")
    pair = Pair(reply=form, query={"reply": reply}, **(PLACES if form in {"json", "sse"} else {}))
    pair.ask()
    assert pair.server.output_rate == int(rate)
    pair.reply()
    assert pair.said()[0] == REPLY
    assert pair.rates() == {int(rate)}


def test_a_client_that_reads_streams_hears_each_piece_when_it_was_sent() -> None:
    for reply, places, sound, _ in FORMS:
        pair = Pair(reply=reply, query={"reply": reply}, **places)
        pair.ask()
        pair.tell(pair.server.reply_started())
        pair.tell(pair.server.reply_audio(REPLY[:1000]))
        heard = [one.data for one in pair.heard if isinstance(one, ReplyAudio)]
        assert heard == ([REPLY[:1000]] if sound and reply != "json" else []), reply


BODIES: list[dict[str, Json]] = [
    {"raw": "wav"},
    {"raw": "pcm16"},
    {"json": {"audio": "{audio_base64}"}},
    {"json": {"audio": "data:audio/wav;base64,{audio_base64}"}},
    {"json": {"audio": "{audio_pcm_base64}", "sample_rate": "{sample_rate}"}},
    {"json": {"audio": "{audio_floats}", "sample_rate": "{sample_rate}"}},
    {"multipart": {"audio": "{audio_wav}"}},
    {"multipart": {"more": "x", "audio": "{audio_wav}", "sample_rate": "{sample_rate}"}},
]


@pytest.mark.parametrize("body", BODIES, ids=str)
def test_a_question_is_heard_as_it_was_asked_however_it_was_wrapped(body: dict[str, Json]) -> None:
    pair = Pair(**body)
    pair.ask()
    assert pair.asked == [
        SessionSet(),
        HistoryAdded("user", audio=UserAudio(PCM, "pcm16", 16_000)),
        ReplyRequested(),
    ]
    assert (pair.server.input_rate, pair.server.turn_end) == (16_000, "request")


@pytest.mark.parametrize("form", ["json", "multipart"])
def test_wishes_and_written_words_come_with_the_sound(form: str) -> None:
    audio = "{audio_base64}" if form == "json" else "{audio_wav}"
    names = ("instructions", "voice", "temperature", "text")
    fields: dict[str, Json] = {name: f"{{{name}}}" for name in names}
    body: Json = {**fields, "audio": audio, "tag": "{session_tag}"}
    pair = Pair(**{form: body})
    pair.ask(text="In one word.")
    assert pair.asked == [
        SessionSet(instructions="Be brief.", voice="joe", temperature=0.5, tag="t1"),
        HistoryAdded("user", "In one word."),
        HistoryAdded("user", audio=UserAudio(PCM, "pcm16", 16_000)),
        ReplyRequested(),
    ]


def test_a_question_may_be_in_writing_alone() -> None:
    asked = Request(json.dumps({"text": "Two and two?"}).encode(), JSON)
    told = server().receive(asked)
    assert told.events == [SessionSet(), HistoryAdded("user", "Two and two?"), ReplyRequested()]


def test_bare_samples_are_at_the_rate_that_the_query_says() -> None:
    served = server()
    headers = {"Content-Type": "application/octet-stream"}
    told = served.receive(Request(PCM, headers, path="/x?input_rate=8000"))
    assert told.events[1] == HistoryAdded("user", audio=UserAudio(PCM, "pcm16", 8000))
    assert served.input_rate == 8000


def test_a_file_says_its_own_rate() -> None:
    for headers in (WAV, {"Content-Type": "application/octet-stream"}):
        served = server()
        served.receive(Request(wav_file(PCM, 44_100), headers, path="/?input_rate=8000"))
        assert served.input_rate == 44_100


ACCEPTED = [
    ("*/*", "audio/wav"),
    ("", "audio/wav"),
    ("image/png, audio/pcm;q=0.5, text/plain", "audio/pcm;rate=24000"),
    ("Text/Event-Stream", "text/event-stream"),
    ("application/x-ndjson", "application/x-ndjson"),
    ("application/json", "application/json"),
    ("text/plain", "text/plain; charset=utf-8"),
    ("multipart/x-mixed-replace", "multipart/x-mixed-replace; boundary=voxmeter-part-of-a-reply"),
]


@pytest.mark.parametrize(("accept", "kind"), ACCEPTED)
def test_who_names_no_form_gets_what_it_accepts(accept: str, kind: str) -> None:
    served = server()
    served.receive(Request(wav_file(PCM, 16_000), {**WAV, "Accept": accept}))
    head = served.reply_started()[0]
    assert isinstance(head, Response)
    assert (head.status, head.headers["content-type"]) == (200, kind)


MISTAKES: list[tuple[bytes, dict[str, str], str, int, str]] = [
    (b"", {}, "/", 415, "a body without a type is not read"),
    (b"x", {"Content-Type": "text/html"}, "/", 415, "a body of type 'text/html' is not read"),
    (b"ID3", WAV, "/", 400, "the audio is not a WAV file"),
    (b"RIFF", WAV, "/", 400, "there is no sound"),
    (b"RIFFxxxxWAVEdata....", WAV, "/", 400, "has samples before their format"),
    (wav_file(b"", 16_000), WAV, "/", 400, "there is no sound"),
    (b"", WAV, "/", 400, "there is no sound"),
    (b"{", JSON, "/", 400, "not JSON"),
    (b"[]", JSON, "/", 400, "JSON, but not an object"),
    (b"\xff", JSON, "/", 400, "not UTF-8"),
    (b"{}", JSON, "/", 400, "there is no sound"),
    (b'{"audio": 7}', JSON, "/", 400, "audio is not base64 or a list of numbers"),
    (b'{"audio": "?"}', JSON, "/", 400, "audio is not base64"),
    (b'{"audio": ["x"]}', JSON, "/", 400, "other things than finite numbers"),
    (b'{"audio": "AAA=", "sample_rate": 1}', JSON, "/", 400, "sample_rate is not a rate"),
    (b'{"audio": "AAA=", "voice": 1}', JSON, "/", 400, "voice is of type int"),
    (b'{"audio": "AAA=", "temperature": "x"}', JSON, "/", 400, "temperature is of type str"),
    (PCM, WAV, "/?reply=mp3", 400, "reply='mp3' is not one of wav, pcm16, mixed-replace"),
    (PCM, WAV, "/?reply=wav@12", 400, "the rate of reply= '12' is not a rate"),
    (PCM, WAV, "/?input_rate=%C2%B2", 400, "input_rate '\\xb2' is not a rate"),
    (b"x", {"Content-Type": "multipart/form-data"}, "/", 400, "a form without a boundary"),
    (b"x", {"Content-Type": "multipart/form-data; boundary=b"}, "/", 400, "a form without fields"),
]


@pytest.mark.parametrize(("body", "headers", "path", "status", "words"), MISTAKES)
def test_a_request_that_cannot_be_answered_is_told_why(
    body: bytes, headers: dict[str, str], path: str, status: int, words: str
) -> None:
    told = server().receive(Request(body, headers, path=path))
    assert told.events == [ClientLeft()]
    (ended,) = told.messages
    assert isinstance(ended, Ended)
    assert ended.code == status
    assert words in ended.reason
    assert ended.reason.isprintable()


def form(*parts: bytes) -> Request:
    body = b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + b"--b--\r\n"
    return Request(body, {"Content-Type": 'multipart/form-data; charset=x; boundary="b"'})


def field(name: str, value: bytes) -> bytes:
    return f'Content-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value


def test_a_form_is_read_as_browsers_write_it() -> None:
    told = b'content-disposition: form-data; filename="q.wav"; name=audio\r\nX: y\r\n\r\n'
    whole = form(field("voice", b"a"), field("voice", b"b"), told + b"\r\n--bx\r\n\r\n")
    fields = form_fields(whole.body, whole.headers["Content-Type"])
    assert fields["voice"] == b"a"
    assert fields["audio"] == b""  # the mark may not stand in what it parts, nor begin alike


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("sample_rate", b"x", "sample_rate 'x' is not a rate"),
        ("temperature", b"warm", "temperature is not a number"),
        ("temperature", b"inf", "temperature is not a number"),
    ],
)
def test_a_field_of_a_form_that_cannot_be_is_told(name: str, value: bytes, words: str) -> None:
    told = server().receive(form(field("audio", PCM), field(name, value)))
    (ended,) = told.messages
    assert isinstance(ended, Ended)
    assert words in ended.reason


def test_a_part_without_a_name_is_passed_over() -> None:
    told = server().receive(form(b"X: y\r\n\r\nz", b"Content-Disposition: x; a=b\r\n\r\n", b""))
    assert told.messages == [Ended(400, "a form without fields")]


FAULTS: list[tuple[FaultKind, bool]] = [
    ("auth", False),
    ("quota", False),
    ("policy", False),
    ("busy", True),
    ("request", False),
    ("server", True),
]


@pytest.mark.parametrize(("kind", "retryable"), FAULTS)
def test_a_failure_before_the_answer_is_heard_as_what_it_is(
    kind: FaultKind, retryable: bool
) -> None:
    pair = Pair()
    pair.ask()
    pair.tell(pair.server.fault(kind, "code_7", "no luck"))
    (fault,) = pair.heard
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retryable) == (kind, retryable)
    assert fault.message.endswith("code_7: no luck")


@pytest.mark.parametrize(("reply", "told"), [("wav", False), ("mixed-replace", False),
    ("text", False), ("ndjson", True), ("sse", True), ("json", True)])  # fmt: skip
def test_a_failure_amid_an_answer_is_told_where_its_form_has_a_word_for_it(
    reply: str, told: bool
) -> None:
    pair = Pair(reply=reply, query={"reply": reply}, **(PLACES if told else {}))
    pair.ask()
    pair.tell(pair.server.reply_started())
    pair.server.reply_audio(PCM)
    ending = pair.server.fault("server", "server_error", "it broke")
    assert ending[-1] == (Ended() if told else Ended(500, "server_error: it broke"))
    pair.tell(ending)
    faults = [one for one in pair.heard if isinstance(one, Fault)]
    assert len(faults) == 1
    assert "it broke" in faults[0].message


def test_what_http_has_no_word_for_is_not_said() -> None:
    served = server()
    assert served.open().messages == ()
    told = (served.speech_started(1), served.speech_stopped(2), served.input_transcript("x"))
    assert [list(one) for one in told] == [[], [], []]
    early = (served.reply_audio(PCM), served.reply_text("x"), served.reply_ended("completed"))
    assert [list(one) for one in early] == [[], [], [Ended()]]


def test_the_end_of_the_connection_is_the_end_of_the_session() -> None:
    assert server().receive(Ended()).events == [ClientLeft()]


@pytest.mark.parametrize("message", [Text("x"), Binary(b"x"), Published("a", b"b"), Response()])
def test_what_is_no_request_is_refused(message: Message) -> None:
    with pytest.raises(ProtocolError, match="not a request, or not now"):
        server().receive(message)


def test_a_second_request_is_another_session() -> None:
    served = server()
    served.receive(Request(wav_file(PCM, 16_000), WAV))
    with pytest.raises(ProtocolError, match="not now"):
        served.receive(Request(wav_file(PCM, 16_000), WAV))


def answered(served: Server, request: Request) -> None:
    """A request leads to a question or to a refusal, and to nothing else."""
    step = served.receive(request)
    if step.messages:
        assert [type(one) for one in (*step.events, *step.messages)] == [ClientLeft, Ended]
    else:
        assert step.events[-1] == ReplyRequested()


TYPES = ["audio/wav", "audio/pcm", "application/json", "multipart/form-data; boundary=b", "", "é"]


@given(st.binary(max_size=200), st.sampled_from(TYPES), st.text(max_size=20), st.text(max_size=20))
def test_any_bytes_are_a_question_or_refused(
    body: bytes, kind: str, query: str, accept: str
) -> None:
    path = f"/?{query}"
    answered(server(), Request(body, {"content-type": kind, "accept": accept}, path=path))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
NAMES = ["audio", "sample_rate", "text", "instructions", "voice", "temperature", "tag"]


@given(st.dictionaries(st.sampled_from(NAMES), ANY | st.just(base64.b64encode(PCM).decode())))
def test_right_names_with_wrong_values_are_a_question_or_refused(asked: dict[str, object]) -> None:
    answered(server(), Request(json.dumps(asked).encode(), JSON))


@given(st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=30)))
def test_a_form_with_wrong_values_is_a_question_or_refused(asked: dict[str, bytes]) -> None:
    answered(server(), form(*(field(name, value) for name, value in asked.items())))


@given(st.lists(st.binary(max_size=60) | st.text(max_size=10), max_size=6), st.integers(0, 6))
def test_any_reply_arrives_whole_in_order_and_only_once(
    pieces: list[bytes | str], number: int
) -> None:
    reply, places, sound, words = FORMS[number]
    pair = Pair(reply=reply, query={"reply": reply}, **places)
    pair.ask()
    pair.tell(pair.server.reply_started())
    audio, text = b"", ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece.encode("utf-8", "replace").decode()
            pair.tell(pair.server.reply_text(piece))
        else:
            audio += piece[: len(piece) & ~1]
            pair.tell(pair.server.reply_audio(piece[: len(piece) & ~1]))
    pair.tell(pair.server.reply_ended("completed"))
    assert pair.said() == (audio if sound else b"", text if words else "")


def test_the_kind_says_which_keys_of_a_query_are_the_protocols_own() -> None:
    assert set(KIND.query_keys) == {"reply", "input_rate"}
