"""Both sides of Gemini Live joined with no network: what one sends is what the other hears."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.codec import Ended, Json, Message, Settings, Step, Turn
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    FaultKind,
    InputTranscript,
    Interrupted,
    Note,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
    SpeechStopped,
    Usage,
)
from voxmeter.endpoints.gemini_live import client
from voxmeter.endpoints.gemini_live_server import server
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    HistoryAdded,
    ReplyCancelled,
    ReplyRequested,
    SessionSet,
    TurnCommitted,
    UserAudio,
)

TENTH = bytes(3200)


class Pair:
    """A client and a server codec; every message reaches the other side at once."""

    def __init__(self, settings: Settings) -> None:
        self.client = client(settings)
        self.server = server()
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


def whole(news: Sequence[Event]) -> tuple[bytes, str]:
    """Return all audio and all text, however they were cut."""
    audio = b"".join(event.data for event in news if isinstance(event, ReplyAudio))
    return audio, "".join(event.text for event in news if isinstance(event, ReplyText))


def test_a_turn_found_by_the_server_is_heard_as_it_was_said() -> None:
    options: dict[str, Json] = {
        "input_transcription": True,
        "explicit_vad_signal": True,
        "silence_duration_ms": 250,
        "activity_handling": "no_interruption",
    }
    pair = Pair(Settings("m", "Be brief.", "Puck", 0.5, options=options))
    assert pair.news() == [Ready()]
    assert pair.asked == [SessionSet("Be brief.", "Puck", 0.5, "silence", 250, interruptible=False)]
    pair.asked.clear()
    pair.do(pair.client.audio(TENTH))
    assert pair.asked == [UserAudio(TENTH, "pcm16", 16000)]
    pair.tell(pair.server.speech_started(20))
    pair.tell(pair.server.speech_stopped(90))
    pair.tell(pair.server.input_transcript("Hello?"))
    pair.reply("Hel", b"\1\2", "lo.", b"\3")
    assert pair.news() == [
        SpeechStarted(20),
        SpeechStopped(90),
        InputTranscript("Hello?"),
        ReplyStarted("reply-1"),
        ReplyText("Hel", "reply-1"),
        ReplyAudio(b"\1\2", "pcm16", 24000, "reply-1"),
        ReplyText("lo.", "reply-1"),
        ReplyAudio(b"\3", "pcm16", 24000, "reply-1"),
        ReplyEnded("completed", "reply-1"),
    ]


def test_a_bracketed_turn_and_its_history_reach_the_server_in_order() -> None:
    pair = Pair(Settings(turn_end="commit", input_rate=24000))
    pair.asked.clear()
    pair.do(pair.client.turn(Turn("system", "One word.")))
    pair.do(pair.client.turn(Turn("user", "Two?", TENTH)))
    pair.do(pair.client.turn(Turn("assistant", "Two.")))
    pair.do(pair.client.audio(TENTH))
    pair.do(pair.client.text("In Roman numerals."))
    pair.do(pair.client.end_turn())
    assert pair.asked == [
        HistoryAdded("system", "One word."),
        HistoryAdded("user", "", UserAudio(TENTH, "pcm16", 24000)),
        HistoryAdded("assistant", "Two."),
        UserAudio(TENTH, "pcm16", 24000),
        HistoryAdded("user", "In Roman numerals."),
        TurnCommitted(),
        ReplyRequested(),
    ]
    assert pair.news() == [Ready()]
    pair.reply("II.", TENTH)
    assert whole(pair.news()) == (TENTH, "II.")


def test_history_that_was_announced_ends_before_the_question() -> None:
    pair = Pair(Settings(options={"initial_history": True}))
    pair.asked.clear()
    pair.do(pair.client.turn(Turn("user", "Two?")))
    pair.do(pair.client.audio(TENTH))
    pair.do(pair.client.text("Why?"))
    assert pair.asked == [
        HistoryAdded("user", "Two?"),
        UserAudio(TENTH, "pcm16", 16000),
        HistoryAdded("user", "Why?"),
    ]


def test_the_end_of_the_stream_closes_the_turn() -> None:
    pair = Pair(Settings(turn_end="commit", options={"commit_with": "stream_end"}))
    assert pair.server.turn_end == "silence"
    pair.do(pair.client.audio(TENTH))
    pair.tell(pair.server.speech_started(0))
    pair.do(pair.client.end_turn())
    assert pair.asked[-2:] == [TurnCommitted(), ReplyRequested()]


@pytest.mark.parametrize("turn_end", ["silence", "commit"])
def test_a_question_in_writing_alone_is_answered(turn_end: str) -> None:
    pair = Pair(Settings(turn_end=turn_end))  # type: ignore[arg-type]
    pair.do(pair.client.text("Why?"))
    pair.do(pair.client.end_turn())
    assert pair.asked[1] == HistoryAdded("user", "Why?")
    assert pair.asked[-1] == ReplyRequested()


def test_a_cancelled_reply_ends_as_cancelled_and_nothing_more_of_it_is_heard() -> None:
    pair = Pair(Settings())
    pair.tell(pair.server.reply_started())
    pair.tell(pair.server.reply_audio(TENTH))
    pair.news()
    pair.asked.clear()
    pair.do(pair.client.cancel(40))
    assert pair.asked == [ReplyCancelled()]
    pair.tell(pair.server.reply_audio(TENTH))
    pair.tell(pair.server.reply_ended("cancelled"))
    assert pair.news() == [Interrupted(), ReplyEnded("cancelled", "reply-1", "interrupted")]
    pair.reply(TENTH)
    assert whole(pair.news()) == (TENTH, "")


def test_the_user_speaking_into_a_reply_interrupts_it() -> None:
    pair = Pair(Settings(turn_end="commit"))
    pair.tell(pair.server.reply_started())
    pair.tell(pair.server.reply_audio(TENTH))
    pair.news()
    pair.do(pair.client.audio(TENTH))
    assert pair.asked[-2:] == [ReplyCancelled(), UserAudio(TENTH, "pcm16", 16000)]
    pair.tell(pair.server.reply_ended("cancelled"))
    interrupted, ended = pair.news()
    assert interrupted == Interrupted()
    assert isinstance(ended, ReplyEnded)


@pytest.mark.parametrize("kind", ["auth", "quota", "policy", "busy", "request", "server"])
def test_a_failure_of_the_server_is_a_fault_of_that_kind_and_the_end(kind: FaultKind) -> None:
    pair = Pair(Settings())
    pair.news()
    pair.tell(pair.server.fault(kind, "its_code", "No."))
    fault, closed = pair.news()
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retryable) == (kind, kind in {"busy", "server"})
    assert "No. (its_code)" in fault.message
    assert isinstance(closed, Closed)


def test_a_session_of_text_is_heard_as_text() -> None:
    pair = Pair(Settings(options={"response_modality": "text"}))
    pair.reply("Par", TENTH, "is.")
    assert whole(pair.news()) == (b"", "Paris.")


def test_a_client_without_transcriptions_hears_the_speech_alone() -> None:
    pair = Pair(Settings(options={"output_transcription": False}))
    pair.reply("Par", TENTH, "is.")
    assert whole(pair.news()) == (TENTH, "")


def test_a_session_that_cannot_be_taken_up_again_is_said_to_be_none() -> None:
    pair = Pair(Settings(options={"session_resumption": True}))
    assert pair.news() == [Ready(), Note("sessionResumptionUpdate", "not resumable")]
    fault, closed = Pair(Settings(options={"session_resumption": "old"})).news()
    assert isinstance(fault, Fault)
    assert (fault.kind, closed) == (
        "request",
        Closed(1008, "BidiGenerateContent session not found"),
    )


def test_a_reply_of_nothing_is_a_reply() -> None:
    pair = Pair(Settings())
    pair.news()
    pair.reply()
    assert pair.news() == [ReplyStarted("reply-1"), ReplyEnded("completed", "reply-1")]


def test_each_side_hears_the_other_leave() -> None:
    pair = Pair(Settings())
    assert pair.server.receive(Ended(1000)).events == [ClientLeft()]
    assert pair.client.receive(Ended(1000)).events == [Closed(1000)]


@given(
    st.lists(st.binary(max_size=40) | st.text(max_size=10), max_size=8),
    st.sampled_from(["generation", "interaction"]),
    st.sampled_from([8000, 16000, 48000]),
)
def test_any_reply_arrives_whole_in_order_and_only_once(
    pieces: list[bytes | str], end: str, rate: int
) -> None:
    pair = Pair(Settings(input_rate=rate, turn_end="commit", options={"reply_end": end}))
    pair.news()
    for number in (1, 2):
        pair.do(pair.client.audio(b"\0\1" * 20))
        pair.do(pair.client.end_turn())
        pair.reply(*pieces)
        news = pair.news()
        assert news[0] == ReplyStarted(f"reply-{number}")
        assert news[-1] == ReplyEnded("completed", f"reply-{number}")
        audio = b"".join(piece for piece in pieces if isinstance(piece, bytes))
        assert whole(news) == (audio, "".join(p for p in pieces if isinstance(p, str)))
        assert pair.asked[-3:] == [
            UserAudio(b"\0\1" * 20, "pcm16", rate),
            TurnCommitted(),
            ReplyRequested(),
        ]
