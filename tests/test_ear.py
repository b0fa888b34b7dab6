"""When an answer is over, told by events and by how long what came takes to play."""

from __future__ import annotations

from voxmeter.client.ear import TurnEar, ear_for
from voxmeter.endpoints.codec import Traits
from voxmeter.endpoints.events import (
    Event,
    Interrupted,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)

MS = 1_000_000
SECOND = bytes(48_000)


def ear(*, told: bool = True) -> TurnEar:
    return TurnEar(drain_ms=300, quiet_ms=1500, told=told)


def hear(listening: TurnEar, *events: tuple[int, Event]) -> None:
    for at_ms, event in events:
        listening.hear(at_ms * MS, event)


def audio(reply: str = "") -> ReplyAudio:
    return ReplyAudio(SECOND, "pcm16", 24_000, reply)


def test_a_reply_is_over_when_its_end_was_told_and_nothing_more_came() -> None:
    listening = ear()
    listening.question_ended(0)
    hear(listening, (100, ReplyStarted("r1")), (200, audio("r1")))
    assert listening.answering
    assert listening.over_at() is None
    hear(listening, (900, ReplyEnded("completed", "r1")))
    assert listening.over_at() == 1200 * MS


def test_audio_behind_the_end_of_its_reply_moves_the_end() -> None:
    listening = ear()
    listening.question_ended(0)
    hear(listening, (100, audio("r1")), (200, ReplyEnded("completed", "r1")), (450, audio("r1")))
    assert listening.over_at() == 750 * MS


def test_a_reply_that_ended_before_the_question_did_is_not_the_answer() -> None:
    listening = ear()
    hear(listening, (0, audio("r1")), (100, ReplyEnded("completed", "r1")))
    assert listening.greeted
    listening.question_ended(200 * MS)
    assert listening.heard
    assert not listening.answering
    assert listening.over_at() is None


def test_a_reply_still_open_when_the_question_ends_may_be_the_answer() -> None:
    listening = ear()
    hear(listening, (0, audio("r1")))
    listening.question_ended(50 * MS)
    assert listening.answering
    hear(listening, (100, ReplyEnded("completed", "r1")))
    assert listening.over_at() == 400 * MS


def test_a_cancelled_reply_waits_for_the_one_that_follows() -> None:
    listening = ear()
    hear(listening, (0, audio("r1")))
    listening.question_ended(50 * MS)
    hear(listening, (60, Interrupted()))
    assert listening.over_at() == 1560 * MS
    hear(listening, (800, ReplyStarted("r2")), (900, audio("r2")))
    assert listening.over_at() is None
    hear(listening, (1000, ReplyText("Yes.", "r2")), (1100, ReplyEnded("completed", "r2")))
    assert listening.over_at() == 1400 * MS
    assert listening.text() == "Yes."


def test_where_no_end_is_told_quiet_after_playback_ends_a_reply() -> None:
    listening = ear(told=False)
    listening.question_ended(0)
    hear(listening, (100, audio()), (150, audio()))  # two seconds of audio in one burst
    assert listening.over_at() == (100 + 2000 + 1500) * MS


def test_a_reply_that_ends_without_content_is_an_answer_with_nothing_in_it() -> None:
    listening = ear()
    listening.question_ended(0)
    hear(listening, (100, ReplyStarted("r1")))
    assert not listening.answering
    hear(listening, (200, ReplyEnded("completed", "r1")))
    assert listening.answering
    assert not listening.heard
    assert listening.over_at() == 500 * MS


def test_a_reply_that_only_began_is_no_answer_yet() -> None:
    listening = ear()
    listening.question_ended(0)
    hear(listening, (100, ReplyStarted("r1")))
    assert listening.over_at() is None


def test_text_of_several_answers_is_joined_in_order() -> None:
    listening = ear()
    listening.question_ended(0)
    hear(
        listening,
        (10, ReplyText("One ", "a")),
        (20, ReplyText("moment.", "a")),
        (30, ReplyEnded("completed", "a")),
        (40, ReplyText("Paris.", "b")),
    )
    assert listening.text() == "One moment. Paris."


def test_the_traits_of_a_protocol_choose_how_it_is_listened_to() -> None:
    turns = ear_for(Traits(24_000), drain_ms=300, quiet_ms=1500)
    stream = ear_for(Traits(24_000, full_duplex=True), drain_ms=300, quiet_ms=1500)
    assert type(turns) is not type(stream)
