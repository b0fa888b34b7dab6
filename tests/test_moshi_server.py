"""Both sides of Moshi joined with no network: what one sends is what the other hears."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.codec import Binary, Ended, Message, Published, Settings, Text
from voxmeter.endpoints.events import Closed, Event, Fault, Ready, ReplyAudio, ReplyText
from voxmeter.endpoints.moshi import Client, client
from voxmeter.endpoints.moshi_server import Server, server
from voxmeter.endpoints.serving import ClientLeft, FullDuplexCodec, ServerStep, UserAudio

PAGES = b"OggS" + bytes(range(40))


def joined() -> tuple[Client, Server]:
    """A client and a server whose handshake is done."""
    asking, answering = client(Settings()), server()
    (hello,) = answering.open().messages
    assert asking.receive(hello).events == [Ready()]
    return asking, answering


def heard(asking: Client, messages: list[Message]) -> list[Event]:
    return [event for message in messages for event in asking.receive(message).events]


def test_sound_goes_both_ways_as_it_is() -> None:
    asking, answering = joined()
    (sent,) = asking.audio(PAGES).messages
    assert answering.receive(sent).events == [UserAudio(PAGES, "opus", 24_000)]
    said = [
        *answering.reply_audio(PAGES),
        *answering.reply_audio(b""),
        *answering.reply_audio(b"x"),
    ]
    assert heard(asking, said) == [
        ReplyAudio(PAGES, "opus", 24_000),
        ReplyAudio(b"x", "opus", 24_000),
    ]


def test_nothing_is_said_of_turns_replies_or_the_users_words() -> None:
    _, answering = joined()
    assert not answering.speech_started(10)
    assert not answering.speech_stopped(10)
    assert not answering.input_transcript("hello")
    assert not answering.reply_started()
    assert not answering.reply_ended("completed")


@given(st.lists(st.text(max_size=12).filter(lambda text: "<" not in text), max_size=6))
def test_words_arrive_as_they_were_said(words: list[str]) -> None:
    asking, answering = joined()
    said = [message for text in words for message in answering.reply_text(text)]
    told = [event.text for event in heard(asking, said) if isinstance(event, ReplyText)]
    expected = "".join(words).encode("utf-8", "replace").decode()
    assert "".join(told) == expected


def test_a_failure_and_the_end_are_heard_by_the_other_side() -> None:
    asking, answering = joined()
    fault = Fault("server", retryable=True, message="session_refused: too short")
    assert heard(asking, [*answering.fault("policy", "session_refused", "too short")]) == [fault]
    assert answering.receive(Ended(1000)).events == [ClientLeft()]
    assert asking.receive(Ended(1000)).events == [Closed(1000)]


@pytest.mark.parametrize(
    "message",
    [Binary(b""), Binary(b"\1"), Binary(b"\0"), Binary(b"\2Hi"), Binary(b"\3\0"), Binary(b"\xff")],
)
def test_the_server_ignores_what_genuine_servers_ignore(message: Message) -> None:
    assert server().receive(message) == ServerStep()


@given(st.binary(max_size=64) | st.text(max_size=8))
def test_no_message_breaks_the_server(data: bytes | str) -> None:
    answering = server()
    step = answering.receive(Text(data) if isinstance(data, str) else Binary(data))
    assert not step.messages
    assert answering.receive(Published("a/topic", b"")) == ServerStep()


def test_the_server_says_a_frame_for_every_frame_but_the_first() -> None:
    answering = server()
    assert isinstance(answering, FullDuplexCodec)
    assert (answering.frame_ms, answering.held_back) == (80, 1)
    assert answering.output_encoding == "opus"
    assert answering.input_rate == answering.output_rate == 24_000
