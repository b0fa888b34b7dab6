"""Our own servers over pipecat's protocol: both codecs joined, then sessions of a run."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import pytest
from attempt_logs import joined, silence, voice
from captures import attempt_in
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.audio import Pcm, resample, to_pcm16
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.finish import finish
from voxmeter.client.servers.brain import Brain, Heard, Speech, Spoken, Terms, UserTurn, Words
from voxmeter.client.servers.door import HostSettings
from voxmeter.client.servers.host import serving
from voxmeter.client.servers.metronome import Metronome
from voxmeter.client.servers.truth import TruthLog
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints import pipecat_frames as frames
from voxmeter.endpoints.codec import Binary, Ended, Json, Message, Settings, Step, Text
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Event,
    Fault,
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
)
from voxmeter.endpoints.pipecat import KIND, client
from voxmeter.endpoints.pipecat_server import FRAME_BYTES, server
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    HistoryAdded,
    ReplyCancelled,
    ReplyRequested,
    UserAudio,
)

RATE = 24_000
BRIEF = Patience(first_reply_timeout_s=10, reply_limit_s=20)


class Pair:
    """A client and a server codec; every message reaches the other side at once."""

    def __init__(self) -> None:
        self.client, self.server = client(Settings()), server()
        self.heard: list[Event] = []
        self.asked: list[ClientEvent] = []
        self.tell(self.server.open().messages)
        self.do(self.client.open())

    def do(self, step: Step) -> None:
        """Let the server hear what the client's codec returned."""
        self.heard += [event for event in step.events if not isinstance(event, Note)]
        for message in step.messages:
            answer = self.server.receive(message)
            self.asked += answer.events
            self.tell(answer.messages)

    def tell(self, messages: Sequence[Message]) -> None:
        """Let the client hear what the server's codec returned."""
        for message in messages:
            self.do(self.client.receive(message))

    def news(self) -> list[Event]:
        """Return what the client heard since last time, without notes."""
        news = self.heard.copy()
        self.heard.clear()
        return news


def test_a_turn_is_heard_as_it_was_said_and_audio_leaves_in_frames() -> None:
    pair = Pair()
    assert pair.news() == [Ready(note="voxmeter, RTVI 2.2.0")]
    pair.do(pair.client.audio(b"\1\0" * 320))
    assert pair.asked == [UserAudio(b"\1\0" * 320, "pcm16", 16_000)]
    pair.tell(pair.server.speech_started(20))
    pair.tell(pair.server.speech_stopped(90))
    pair.tell(pair.server.input_transcript("Hello?"))
    assert pair.news() == [SpeechStarted(), SpeechStopped(), InputTranscript("Hello?")]
    pair.tell(pair.server.reply_started())
    pair.tell([*pair.server.reply_text("Hel"), *pair.server.reply_text("")])
    pair.tell(pair.server.reply_audio(b"\1\0" * FRAME_BYTES))
    pair.tell([*pair.server.reply_audio(b"\2\0"), *pair.server.reply_audio(b"")])
    pair.tell(pair.server.reply_ended("completed"))
    frame = ReplyAudio(b"\1\0" * (FRAME_BYTES // 2), "pcm16", RATE, "1")
    assert pair.news() == [
        *(ReplyStarted("1"), ReplyText("Hel", "1"), frame, frame),
        *(ReplyAudio(b"\2\0", "pcm16", RATE, "1"), ReplyEnded("completed", "1")),
    ]


def test_a_reply_is_cut_by_the_user_and_by_the_client() -> None:
    pair = Pair()
    pair.news()
    for number in "12":
        pair.tell([*pair.server.reply_started(), *pair.server.reply_audio(b"\1\0")])
        assert pair.news()[0] == ReplyStarted(number)
        if number == "1":
            pair.tell(pair.server.speech_started(20))
        else:
            pair.do(pair.client.cancel(300))
            assert pair.asked == [ReplyCancelled()]
        pair.tell(pair.server.reply_ended("cancelled"))
        news = [event for event in pair.news() if not isinstance(event, SpeechStarted)]
        assert news == [Interrupted(), ReplyEnded("cancelled", number)]
    pair.tell(pair.server.speech_started(900))
    assert pair.news() == [SpeechStarted()]


def test_written_text_is_history_and_asks_for_a_reply_only_where_it_says_so() -> None:
    pair = Pair()
    pair.do(pair.client.text("Choose B."))
    assert pair.asked == [HistoryAdded("user", "Choose B.")]
    told: dict[str, Json] = {"content": "Hello?"}
    assert pair.server.receive(frames.rtvi("send-text", told)).events == [
        HistoryAdded("user", "Hello?"),
        ReplyRequested(),
    ]


@pytest.mark.parametrize(("kind", "fatal"), [("busy", True), ("server", False)])
def test_a_failure_ends_the_reply_and_only_one_of_the_account_the_session(
    kind: str, fatal: bool
) -> None:
    pair = Pair()
    pair.tell([*pair.server.reply_started(), *pair.server.reply_audio(b"\1\0")])
    pair.news()
    pair.tell(pair.server.fault(kind, "overloaded", "Later."))  # type: ignore[arg-type]
    pair.tell(pair.server.fault("server", "boom", "Again."))
    fault = Fault("server", retryable=True, message="overloaded: Later.", fatal=fatal)
    assert fault in pair.news()


def test_what_a_client_says_beside_that_is_ignored_or_refused_in_words() -> None:
    codec = server()
    assert codec.receive(frames.rtvi("disconnect-bot")).events == [ClientLeft()]
    assert codec.receive(Ended(1000)).events == [ClientLeft()]
    other = Binary(bytes.fromhex("22040a027b7d"))  # a message of {}
    assert not any(codec.receive(one).messages for one in (other, Binary(b"")))
    (refused,) = codec.receive(frames.rtvi("no-such", {}, "9")).messages
    (event,) = client(Settings()).receive(refused).events
    assert event == Fault(
        "request", retryable=False, message="Unsupported type no-such", fatal=False
    )
    with pytest.raises(ProtocolError, match="not a binary message"):
        codec.receive(Text("hello"))
    with pytest.raises(ProtocolError, match=r"data\.content is of type int"):
        codec.receive(frames.rtvi("send-text", {"content": 3}))


@given(st.lists(st.builds(Binary, st.binary(max_size=40)), max_size=12))
def test_any_bytes_of_a_client_give_events_or_a_protocol_error(messages: list[Message]) -> None:
    codec = server()
    for message in messages:
        try:
            codec.receive(message)
        except ProtocolError as error:
            assert error.protocol == "pipecat"  # noqa: PT017 - it may be raised or not


class Told(Brain):
    """Keeps what it was told of each turn; answers in words and half a second of voice."""

    def __init__(self) -> None:
        self.turns: list[UserTurn] = []

    def load(self) -> None:
        """Load nothing."""

    def admit(self, query: Mapping[str, str]) -> Terms:
        return Terms(endpoint_ms=200)

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        self.turns.append(turn)
        yield Heard("What is six?")
        yield Words("Half a ")
        yield Speech(voice(500))
        yield Words("dozen.")


def question(rate: int) -> Utterance:
    """Half a second of voice after a tenth of silence."""
    sound = resample(Pcm(joined(silence(100), voice(500)), RATE), rate).samples
    return Utterance(to_pcm16(sound), rate, rate // 10, rate * 6 // 10)


async def ask(
    brain: Brain,
    query: str = "",
    *,
    text: str = "",
    input_rate: int | None = None,
    log: TruthLog | None = None,
) -> Capture:
    here = HostSettings(path=KIND.path, query={"endpoint_ms": "200"})
    async with serving(brain, server, here, truth=log) as url:
        settings = Settings(input_rate=input_rate)
        target = Target("ours", "pipecat", f"{url}{query}", settings, patience=BRIEF)
        return await attempt(target, question, tag="mine", text=text)


async def test_a_metronome_answers_and_tells_the_truth(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    log = TruthLog(file)
    query = "?delay_ms=300&lead_ms=80&tag="
    found = finish(await ask(Metronome(), query, log=log), attempt_in(tmp_path))
    log.close()
    assert (found["status"], found["fault"]) == ("ok", None)
    (line,) = [json.loads(one) for one in file.read_text().splitlines()]
    assert (line["tag"], line["outcome"], line["reply_rate"]) == ("mine", "completed", RATE)
    assert found["latency"]["first_audible_ms"] > found["latency"]["first_packet_ms"]


@pytest.mark.parametrize("input_rate", [None, 8_000, 48_000])
async def test_a_brain_hears_the_question_at_the_rate_that_was_agreed(
    input_rate: int | None,
) -> None:
    brain = Told()
    capture = await ask(brain, text="Choose B.", input_rate=input_rate)
    assert (capture.outcome, capture.fault) == ("ended", None)
    assert capture.reply_text == "Half a dozen."
    (turn,) = brain.turns
    assert turn.rate == (input_rate or 16_000)
    assert len(turn.samples) / turn.rate == pytest.approx(0.5, abs=0.4)
    assert [one.text for one in turn.history] == ["Choose B."]
