"""Both sides of OpenAI Realtime joined with no network: what one sends is what the other hears."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from realtime_rows import endpoint_of, settings_of

from voxmeter.endpoints.codec import Ended, Json, Message, Settings, Step, Turn, TurnEnd
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    InputTranscript,
    Interrupted,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
    SpeechStopped,
    Usage,
)
from voxmeter.endpoints.g711 import encode_alaw
from voxmeter.endpoints.openai_dialect import Format
from voxmeter.endpoints.openai_realtime import client
from voxmeter.endpoints.openai_realtime_server import Server, server
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    HistoryAdded,
    ReplyCancelled,
    ReplyRequested,
    ReplyTruncated,
    SessionSet,
    TurnCommitted,
    UserAudio,
)

TENTH = bytes(4800)
DIALECTS: list[Json] = ["ga", "legacy"]


class Pair:
    """A client and a server codec; every message reaches the other side at once."""

    def __init__(self, settings: Settings, served: Server | None = None) -> None:
        self.client = client(settings)
        self.server = served or server()
        self.heard: list[Event] = []
        self.asked: list[ClientEvent] = []
        self.tell(self.server.open().messages)
        self.do(self.client.open())

    def do(self, step: Step) -> None:
        """Take what the client's codec returned; its messages reach the server."""
        self.heard += step.events
        for message in step.messages:
            answer = self.server.receive(message)
            self.asked += answer.events
            self.tell(answer.messages)

    def tell(self, messages: Sequence[Message]) -> None:
        """Send what the server's codec returned to the client."""
        for message in messages:
            self.do(self.client.receive(message))

    def reply(self, *pieces: bytes | str) -> None:
        """Let the server send a whole reply."""
        self.tell(self.server.reply_started())
        for piece in pieces:
            if isinstance(piece, str):
                self.tell(self.server.reply_text(piece))
            else:
                self.tell(self.server.reply_audio(piece))
        self.tell(self.server.reply_ended("completed"))

    def news(self) -> list[Event]:
        """Return what the client heard since last time, without counts and notes."""
        news: list[Event] = [
            Ready() if isinstance(event, Ready) else event
            for event in self.heard
            if not isinstance(event, Usage)
        ]
        self.heard.clear()
        return news


RELATIVES = [
    "openai",
    "openai-beta",
    "azure-openai",
    "azure-openai-preview",
    "xai-grok",
    "qwen-omni-realtime",
    "qwen-audio-realtime",
    "glm-realtime",
    "stepfun",
    "vllm-omni-realtime",
    "local-realtime",
]


def whole(news: Sequence[Event]) -> tuple[bytes, str]:
    """Return all audio and all text, however they were cut."""
    audio = b"".join(event.data for event in news if isinstance(event, ReplyAudio))
    return audio, "".join(event.text for event in news if isinstance(event, ReplyText))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_turn_found_by_the_server_is_heard_as_it_was_said(dialect: Json) -> None:
    options = {"dialect": dialect, "transcription": "whisper", "silence_duration_ms": 250}
    pair = Pair(Settings(instructions="Be brief.", voice="joe", options=options))
    assert pair.news() == [Ready()]
    session = pair.asked.pop()
    assert isinstance(session, SessionSet)
    assert (session.instructions, session.voice) == ("Be brief.", "joe")
    assert (session.turn_end, session.silence_ms) == ("silence", 250)
    pair.do(pair.client.audio(TENTH))
    assert pair.asked == [UserAudio(TENTH, "pcm16", 24000)]
    pair.tell(pair.server.speech_started(20))
    pair.tell(pair.server.speech_stopped(90))
    pair.tell(pair.server.input_transcript("Hello?"))
    pair.reply("Hel", b"\1\2", "lo.", b"\3")
    news = pair.news()
    assert news[:3] == [SpeechStarted(20), SpeechStopped(90), InputTranscript("Hello?")]
    assert isinstance(news[3], ReplyStarted)
    reply = news[3].reply
    assert news[4:] == [
        ReplyText("Hel", reply),
        ReplyAudio(b"\1\2", "pcm16", 24000, reply),
        ReplyText("lo.", reply),
        ReplyAudio(b"\3", "pcm16", 24000, reply),
        ReplyEnded("completed", reply),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_committed_turn_and_its_history_reach_the_server_in_order(dialect: Json) -> None:
    pair = Pair(Settings(turn_end="commit", options={"dialect": dialect}))
    pair.asked.clear()
    pair.do(pair.client.turn(Turn("system", "One word.")))
    pair.do(pair.client.turn(Turn("user", "Two?", TENTH)))
    pair.do(pair.client.turn(Turn("assistant", "Two.")))
    pair.do(pair.client.audio(TENTH))
    pair.do(pair.client.text("In Roman numerals."))
    pair.do(pair.client.end_turn())
    kinds = [type(event) for event in pair.asked]
    assert kinds == [*[HistoryAdded] * 3, UserAudio, HistoryAdded, TurnCommitted, ReplyRequested]
    added = [event for event in pair.asked if isinstance(event, HistoryAdded)]
    assert [(one.role, one.text) for one in added] == [
        ("system", "One word."),
        ("user", ""),
        ("assistant", "Two."),
        ("user", "In Roman numerals."),
    ]
    assert added[1].audio == UserAudio(TENTH, "pcm16", 24000)
    assert pair.news() == [Ready()]
    pair.reply("II.", TENTH)
    assert whole(pair.news()) == (TENTH, "II.")


class Relative(Pair):
    """The same with the settings of a preset; the server takes unasked what a local one does."""

    def __init__(self, name: str, turn_end: TurnEnd) -> None:
        table = endpoint_of(name, turn_end=turn_end, instructions="Be brief.", voice="joe")
        super().__init__(settings_of(table), server_at(16000 if name == "local-realtime" else None))


def server_at(rate: int | None) -> Server:
    made = server()
    if rate is not None:
        made._session.input = made._session.output = Format("pcm16", rate)
    return made


@pytest.mark.parametrize("name", RELATIVES)
def test_every_relative_holds_the_same_conversation_with_turns_that_the_server_finds(
    name: str,
) -> None:
    pair = Relative(name, "silence")
    traits = pair.client.traits
    tenth = bytes(range(200)) * (traits.input_rate // 1000)
    assert pair.news() == [Ready()]
    session = pair.asked.pop()
    assert isinstance(session, SessionSet)
    assert (session.instructions, session.voice) == ("Be brief.", "joe")
    assert session.turn_end == "silence"
    pair.do(pair.client.audio(tenth))
    assert pair.asked == [UserAudio(tenth, "pcm16", traits.input_rate)]
    pair.tell(pair.server.speech_started(20))
    pair.tell(pair.server.speech_stopped(90))
    pair.reply("Hel", b"\1\2", "lo.", b"\3")
    assert whole(pair.news()) == (b"\1\2\3", "Hello.")


@pytest.mark.parametrize("name", RELATIVES)
def test_every_relative_holds_the_same_conversation_with_turns_that_it_commits(name: str) -> None:
    pair = Relative(name, "commit")
    rate = pair.client.traits.input_rate
    tenth = bytes(range(200)) * (rate // 1000)
    assert pair.news() == [Ready()]
    session = pair.asked.pop()
    assert isinstance(session, SessionSet)
    assert session.turn_end == "commit"
    pair.do(pair.client.turn(Turn("user", pcm=tenth)))
    pair.do(pair.client.turn(Turn("assistant", "Two.")))
    pair.do(pair.client.audio(tenth))
    pair.do(pair.client.text("In Roman numerals."))
    pair.do(pair.client.end_turn())
    told = [event for event in pair.asked if isinstance(event, HistoryAdded)]
    assert told[0].audio == UserAudio(tenth, "pcm16", rate)
    assert [one.text for one in told] == ["", "Two.", "In Roman numerals."]
    assert pair.asked[-2:] == [TurnCommitted(), ReplyRequested()]
    pair.reply("II.", TENTH)
    assert whole(pair.news()) == (TENTH, "II.")


def test_a_whole_question_in_one_request() -> None:
    pair = Pair(Settings(turn_end="request"))
    pair.do(pair.client.audio(TENTH))
    pair.do(pair.client.end_turn())
    question, request = pair.asked[1:]
    assert isinstance(question, HistoryAdded)
    assert question.audio == UserAudio(TENTH, "pcm16", 24000)
    assert request == ReplyRequested()


def test_a_commit_that_is_too_short_is_a_fault_that_ends_the_turn() -> None:
    pair = Pair(Settings(turn_end="commit"))
    pair.news()
    pair.do(pair.client.audio(b"ab"))
    pair.do(pair.client.end_turn())
    (fault,) = pair.news()
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.fatal) == ("request", True)
    assert fault.message.startswith("input_audio_buffer_commit_empty")


def test_a_cancelled_reply_ends_as_cancelled_and_is_cut_to_what_was_heard() -> None:
    pair = Pair(Settings())
    pair.tell(pair.server.reply_started())
    for _ in range(10):
        pair.tell(pair.server.reply_audio(TENTH))
    pair.news()
    pair.asked.clear()
    pair.do(pair.client.cancel(640))
    assert pair.asked == [ReplyCancelled(), ReplyTruncated(640)]
    pair.tell(pair.server.reply_audio(TENTH))
    pair.tell(pair.server.reply_ended("cancelled"))
    (ended,) = pair.news()
    assert isinstance(ended, ReplyEnded)
    assert (ended.reason, ended.detail) == ("cancelled", "client_cancelled")


def test_hearing_more_than_was_sent_is_never_claimed() -> None:
    pair = Pair(Settings())
    pair.tell(pair.server.reply_started())
    pair.tell(pair.server.reply_audio(TENTH))
    pair.asked.clear()
    pair.do(pair.client.cancel(60_000))
    assert pair.asked == [ReplyCancelled(), ReplyTruncated(0)]


def test_the_user_speaking_into_a_reply_interrupts_it() -> None:
    pair = Pair(Settings())
    pair.tell(pair.server.reply_started())
    pair.tell(pair.server.reply_audio(TENTH))
    pair.news()
    pair.tell(pair.server.speech_started(500))
    pair.tell(pair.server.reply_ended("cancelled"))
    started, interrupted, ended = pair.news()
    assert (started, interrupted) == (SpeechStarted(500), Interrupted())
    assert isinstance(ended, ReplyEnded)
    assert ended.detail == "turn_detected"


def test_a_failure_of_the_server_is_a_fault_and_no_reply() -> None:
    pair = Pair(Settings())
    pair.news()
    pair.tell(pair.server.speech_started(0))
    pair.tell(pair.server.speech_stopped(900))
    pair.tell(pair.server.fault("quota", "insufficient_quota", "No money."))
    fault = pair.news()[-1]
    expected = "response failed: insufficient_quota: No money."
    assert fault == Fault("quota", retryable=False, message=expected)


def test_a_session_of_text_is_heard_as_text() -> None:
    pair = Pair(Settings(options={"output_modalities": "text"}))
    pair.reply("Par", TENTH, "is.")
    assert whole(pair.news()) == (b"", "Paris.")


def test_a_client_that_asks_itself_asks_once_the_server_closed_the_turn() -> None:
    pair = Pair(Settings(options={"create_response": False}))
    pair.do(pair.client.audio(TENTH))
    pair.tell(pair.server.speech_started(0))
    pair.tell(pair.server.speech_stopped(90))
    assert pair.asked[-1] == ReplyRequested()


def test_semantic_turn_detection_is_asked_for_and_echoed() -> None:
    options: dict[str, Json] = {"turn_detection": "semantic_vad", "eagerness": "high"}
    pair = Pair(Settings(options={**options, "interrupt_response": False}))
    assert pair.news() == [Ready()]
    (session,) = pair.asked
    assert isinstance(session, SessionSet)
    assert (session.turn_end, session.silence_ms, session.interruptible) == ("silence", None, False)


def test_history_in_a_law_is_what_the_server_is_told_to_expect() -> None:
    pair = Pair(Settings(options={"input_encoding": "pcma"}))
    pair.do(pair.client.turn(Turn("user", pcm=b"\0\1\2\3")))
    assert pair.client.audio(b"") == Step()
    added = pair.asked[-1]
    assert isinstance(added, HistoryAdded)
    assert added.audio == UserAudio(encode_alaw(b"\0\1\2\3"), "pcma", 8000)


def test_hundreds_of_replies_are_told_apart() -> None:
    pair = Pair(Settings())
    pair.news()
    for number in range(200):
        pair.reply(str(number))
    replies = [event.reply for event in pair.news() if isinstance(event, ReplyEnded)]
    assert len(set(replies)) == 200


def test_each_side_hears_the_other_leave() -> None:
    pair = Pair(Settings())
    assert pair.server.receive(Ended(1000)).events == [ClientLeft()]
    assert pair.client.receive(Ended(1000)).events == [Closed(1000)]


@given(
    st.lists(st.binary(max_size=40) | st.text(max_size=10), max_size=8),
    st.sampled_from(DIALECTS),
    st.sampled_from([16000, 24000]),
)
def test_any_reply_arrives_whole_in_order_and_only_once(
    pieces: list[bytes | str], dialect: Json, rate: int
) -> None:
    options = {"dialect": dialect}
    rates = (rate, rate) if dialect == "ga" else (None, None)
    pair = Pair(Settings(input_rate=rates[0], output_rate=rates[1], options=options))
    pair.news()
    for _ in range(2):
        pair.reply(*pieces)
        news = pair.news()
        assert isinstance(news[0], ReplyStarted)
        assert news[-1] == ReplyEnded("completed", news[0].reply)
        audio = b"".join(piece for piece in pieces if isinstance(piece, bytes))
        assert whole(news) == (audio, "".join(p for p in pieces if isinstance(p, str)))


@given(st.lists(st.binary(max_size=40), max_size=8), st.sampled_from(["pcmu", "pcma"]))
def test_a_reply_in_g711_has_a_code_for_every_sample_however_it_was_cut(
    pieces: list[bytes], encoding: str
) -> None:
    pair = Pair(Settings(options={"output_encoding": encoding, "input_encoding": encoding}))
    pair.reply(*pieces)
    audio, _ = whole(pair.news())
    assert len(audio) == sum(map(len, pieces)) // 2
