"""Hermes: each side by itself, from recordings, and both joined with no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ws_play import nothing, play, recordings

from voxmeter.endpoints import hermes_server
from voxmeter.endpoints import hermes_wire as wire
from voxmeter.endpoints.codec import Ended, Json, Message, Published, Settings, Step, Text
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import (
    Event,
    Fault,
    InputTranscript,
    Note,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStopped,
)
from voxmeter.endpoints.hermes import client
from voxmeter.endpoints.serving import ClientEvent, ClientLeft, ServerStep, SessionSet, UserAudio

TAGGED = Settings(session_tag="t1")


@pytest.mark.parametrize("path", recordings("hermes"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


@given(
    st.lists(
        st.builds(
            Published,
            st.sampled_from(
                [
                    wire.SESSION_STARTED,
                    wire.SESSION_ENDED,
                    wire.START_LISTENING,
                    wire.START_SESSION,
                    wire.END_SESSION,
                    wire.SAY,
                    "hermes/hotword/x/detected",
                    wire.audio_topic("voxmeter-", "playBytes/r"),
                    wire.audio_topic("voxmeter-", "audioFrame"),
                    wire.audio_topic("voxmeter-", "playFinished"),
                    "",
                ]
            ),
            st.binary(max_size=60)
            | st.dictionaries(
                st.sampled_from(["siteId", "sessionId", "text", "termination", "id", "error"]),
                st.sampled_from(["voxmeter-", "s", "", None, 3, {"reason": "nominal"}, {}]),
            ).map(lambda told: json.dumps(told).encode()),
        ),
        max_size=6,
    )
)
def test_any_messages_give_events_or_a_protocol_error(messages: list[Published]) -> None:
    for codec in (client(Settings()), hermes_server.server()):
        for message in messages:
            try:
                codec.receive(message)
            except ProtocolError:
                break


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"instructions": "Be brief."}, "instructions"),
        ({"voice": "joe"}, "voice"),
        ({"model": "m"}, "model"),
        ({"temperature": 0.5}, "temperature"),
        ({"output_rate": 16000}, "output_rate"),
        ({"turn_end": "commit"}, "turn_end"),
        ({"input_rate": 4000}, "input_rate"),
        ({"options": {"sites": ["a/b"]}}, "options.sites"),
        ({"options": {"sites": ["a", "a"]}}, "options.sites"),
        ({"options": {"wake_word": "#"}}, "options.wake_word"),
        ({"options": {"site": "a"}}, "options.site"),
    ],
)
def test_what_the_protocol_cannot_carry_is_refused(settings: dict[str, Any], place: str) -> None:
    with pytest.raises(UserError) as raised:
        client(Settings(**settings))
    assert raised.value.place == place


def test_sessions_side_by_side_are_at_sites_of_their_own() -> None:
    sites: dict[str, Json] = {"sites": ["desk", "hall"]}
    places = []
    for lane in range(2):
        codec = client(Settings(options=sites, lane=lane))
        assert codec.traits.most_sessions == 2
        (start,) = codec.open().messages
        places.append(told(start)["siteId"])
    assert places == ["desk", "hall"]
    made_up = [client(Settings(session_tag=tag)) for tag in ("a", "b")]
    assert [told(codec.open().messages[0])["siteId"] for codec in made_up] == [
        "voxmeter-a",
        "voxmeter-b",
    ]
    assert made_up[0].traits.most_sessions is None


def test_a_name_and_a_password_are_shown_to_the_broker_and_stand_in_no_url() -> None:
    codec = client(Settings(session_tag="t1", options={"username": "ann"}))
    address = codec.address("mqtts://broker:8883?delay_ms=300&tag=t1", "secret")
    assert address.url == "mqtts://broker:8883"
    assert dict(address.headers) == {"username": "ann", "password": "secret"}
    assert told(codec.open().messages[0])["customData"] == "t1?delay_ms=300&tag=t1"
    assert dict(client(TAGGED).address("mqtt://broker", None).headers) == {}


def test_there_are_no_words_for_what_hermes_has_not() -> None:
    nothing(client(TAGGED), "turn", "text", "end_turn")


def told(message: Message) -> dict[str, Any]:
    assert isinstance(message, Published)
    found: dict[str, Any] = json.loads(message.payload)
    return found


class Pair:
    """A client and a server codec; every message reaches the other side at once."""

    def __init__(self, settings: Settings = TAGGED) -> None:
        self.client, self.server = client(settings), hermes_server.server()
        self.heard: list[Event] = []
        self.asked: list[ClientEvent] = []
        self.over = False
        assert self.server.open() == ServerStep()
        self.do(self.client.open())

    def do(self, step: Step) -> None:
        self.heard += step.events
        for message in step.messages:
            answer = self.server.receive(message)
            self.asked += answer.events
            self.tell(answer.messages)

    def tell(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if isinstance(message, Ended):
                self.over = True
            else:
                self.do(self.client.receive(message))

    def news(self) -> list[Event]:
        news, self.heard = self.heard, []
        return [event for event in news if not isinstance(event, Note)]


@pytest.mark.parametrize("wake_word", ["", "hey"])
def test_a_turn_is_heard_as_it_was_said_and_ends_once_all_was_played(wake_word: str) -> None:
    options: dict[str, Json] = {"wake_word": wake_word} if wake_word else {}
    pair = Pair(Settings(session_tag="t1", options=options))
    (ready,) = pair.news()
    assert isinstance(ready, Ready)
    name = ready.note
    assert pair.asked == [SessionSet(tag="" if wake_word else "t1")]
    pair.asked.clear()
    pair.do(pair.client.audio(b"\1\0\2\0"))
    assert pair.asked == [UserAudio(b"\1\0\2\0", "pcm16", 16000)]
    assert pair.server.speech_started(0) == []
    pair.tell(pair.server.speech_stopped(100))
    pair.tell(pair.server.input_transcript("hello\n"))
    pair.do(pair.client.audio(b"\3\0"))
    pair.do(Step(messages=[wire.frame(wire.audio_topic("voxmeter-t1", "audioFrame"), b"", 16000)]))
    assert len(pair.asked) == 1
    pair.tell(pair.server.reply_started())
    pair.tell(pair.server.reply_text("Hi."))
    pair.tell(pair.server.reply_audio(b"\5\0"))
    pair.tell(pair.server.reply_audio(b"\6\0"))
    pair.do(pair.client.played(name))
    assert not pair.over
    pair.tell(pair.server.reply_audio(b"\7\0"))
    pair.tell(pair.server.reply_ended("completed"))
    assert not pair.over
    pair.do(pair.client.played(name))
    assert pair.over
    assert pair.asked[1:] == [ClientLeft()]
    assert pair.news() == [
        SpeechStopped(),
        InputTranscript("hello"),
        ReplyStarted(name),
        ReplyText("Hi.", name),
        ReplyAudio(b"\5\0", "pcm16", 22050, name),
        ReplyAudio(b"\6\0", "pcm16", 22050, name),
        ReplyAudio(b"\7\0", "pcm16", 22050, name),
        ReplyEnded(reply=name, detail="nominal"),
    ]


def test_a_reply_of_nothing_ends_the_session_and_one_taken_back_does_not() -> None:
    pair = Pair()
    pair.news()
    assert pair.server.reply_ended("cancelled") == []
    pair.tell(pair.server.reply_ended("completed"))
    assert pair.over
    assert [type(event) for event in pair.news()] == [ReplyEnded]


def test_a_client_that_leaves_ends_its_session_and_no_other() -> None:
    pair, other = Pair(), Pair(Settings(session_tag="t2"))
    (leaving,) = pair.client.close().messages
    assert other.server.receive(leaving) == ServerStep()
    pair.do(Step(messages=[leaving]))
    assert pair.over
    assert pair.asked[-1] == ClientLeft()


def test_a_failure_is_told_and_ends_the_session() -> None:
    pair = Pair()
    pair.news()
    pair.tell(pair.server.fault("server", "server_error", "no memory"))
    first, second = pair.news()
    assert first == Fault(
        "server", retryable=True, message="dialogueManager: server: server_error: no memory"
    )
    assert isinstance(second, Fault)
    assert pair.over


def test_a_site_that_gets_no_session_is_told_why() -> None:
    codec = client(TAGGED)
    (start,) = codec.open().messages
    assert isinstance(start, Published)
    (refusal,) = hermes_server.refusal(start, "busy")
    (event,) = codec.receive(refusal).events
    assert event == Fault("server", retryable=True, message="dialogueManager: busy")


def test_a_server_leaves_alone_what_is_not_for_it() -> None:
    pair = Pair()
    for message in (
        Published("hermes/dialogueManager/startSession", b'{"siteId": "other"}'),
        Published("hermes/hotword/hey/detected", b'{"siteId": "other"}'),
        Published("hermes/nlu/query", b"{}"),
        Published(wire.audio_topic("other", "audioFrame"), b""),
        wire.told(wire.audio_topic("voxmeter-t1", "playFinished"), {"id": "nobody's"}),
    ):
        assert pair.server.receive(message) == ServerStep(), message
    assert pair.server.receive(Ended(1000)).events == [ClientLeft()]
    with pytest.raises(ProtocolError, match="not a message on a topic"):
        pair.server.receive(Text("{}"))
