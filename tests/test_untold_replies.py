"""Endpoints that never say that a reply is over: a greeting ends with quiet."""

from __future__ import annotations

import attempt_logs as logs
import pytest
from attempt_logs import RATE, audio, came, joined, silence, voice
from fakes import FrozenClock, ToyCodec, ToyTransport

from voxmeter.client.capture import Utterance
from voxmeter.client.ear import TurnEar
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.endpoints.codec import Address, Traits
from voxmeter.endpoints.events import ReplyAudio, ReplyText
from voxmeter.scoring.marks import latency

MS = 1_000_000
SECOND = ReplyAudio(bytes(48_000), "pcm16", 24_000)
SOUND = "sound " + "0040" * 80  # 10 ms
PATIENCE = Patience(
    first_reply_timeout_s=0.5, reply_limit_s=1, greeting_timeout_s=2, drain_ms=0, quiet_ms=60
)


def question(rate: int) -> Utterance:
    return Utterance(b"\1\2" * 1600, rate, 10, 1500)


async def session(transport: ToyTransport) -> tuple[list[str], int, str | None]:
    """Hold one; return how it went, the frames before the question, and the fault."""
    clock = FrozenClock()
    transport.now = clock.now
    capture = await converse(
        ToyCodec(Traits(8_000, first_speaker="endpoint", reply_end="quiet")),
        transport,
        Address("toy://peer"),
        Ask(question, text="now", patience=PATIENCE),
        clock=clock,
    )
    roles = [row["kind"] for row in capture.rows if row["kind"].startswith("reply_")]
    return [capture.outcome, *roles], capture.rows[0]["lead_in_samples"] // 160, capture.fault


async def test_the_question_comes_when_the_greeting_has_been_quiet_for_a_while() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready", SOUND)
        await peer.until(1, "text")  # goes with the question's first frame
        await peer.until(1 + 4 + 10 + 5, "audio")
        peer.say(SOUND)

    went, frames, fault = await session(ToyTransport(play))
    assert went == ["ended", "reply_audio", "reply_audio"]
    assert 3 <= frames <= 6  # 10 ms of sound and 60 ms of quiet, not the two seconds' patience
    assert fault is None


async def test_a_greeting_alone_is_no_answer() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready", SOUND)

    went, _, _ = await session(ToyTransport(play))
    assert went == ["timeout", "reply_audio"]


async def test_an_endpoint_that_does_not_greet_is_asked_after_a_while() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready")

    went, frames, _ = await session(ToyTransport(play))
    assert went == ["timeout"]
    assert frames == PATIENCE.greeting_timeout_s * 50


def test_a_reply_that_is_still_playing_when_the_question_ends_may_be_the_answer() -> None:
    listening = TurnEar(drain_ms=0, quiet_ms=1500, told=False)
    listening.hear(0, SECOND)
    listening.question_ended(2499 * MS)
    assert listening.answering


def test_a_reply_that_was_quiet_long_enough_before_the_question_ended_is_not_the_answer() -> None:
    listening = TurnEar(drain_ms=0, quiet_ms=1500, told=False)
    listening.hear(0, SECOND)
    listening.question_ended(2500 * MS)
    assert listening.heard
    assert not listening.answering
    assert listening.over_at() is None
    listening.hear(3000 * MS, SECOND)
    assert listening.answering
    assert listening.over_at() == (3000 + 1000 + 1500) * MS


def test_words_that_come_ahead_of_their_sound_do_not_begin_the_quiet() -> None:
    listening = TurnEar(drain_ms=0, quiet_ms=1500, told=False)
    listening.question_ended(0)
    listening.hear(100 * MS, ReplyText("Paris."))
    assert listening.over_at() == 10_100 * MS
    listening.hear(4000 * MS, SECOND)
    assert listening.over_at() == (4000 + 1000 + 1500) * MS


@pytest.mark.parametrize(
    ("greeted_ms", "roles", "status"),
    [(-2400, ["greeting"], "no_reply"), (-1300, ["talk-over"], "ok")],
)
def test_a_greeting_without_an_answer_is_a_greeting_in_the_log(
    greeted_ms: float, roles: list[str], status: str
) -> None:
    stream = joined(voice(200), silence(50))
    rows = [audio(greeted_ms, stream.size, "")]
    marks = latency(logs.log(logs.frames(300), rows), stream)
    assert ([one["role"] for one in marks.segments], marks.status) == (roles, status)


def test_what_comes_after_such_a_greeting_is_the_answer() -> None:
    stream = joined(voice(200), voice(500))
    rows = [
        came(-2400, "reply_text", text="Hello!", reply=""),
        audio(-2390, RATE // 5, ""),
        came(400, "reply_text", text="Paris.", reply=""),
        audio(410, RATE // 2, ""),
    ]
    marks = latency(logs.log(logs.frames(300), rows), stream)
    assert [one["role"] for one in marks.segments] == ["greeting", "answer"]
    assert marks.latency["first_text_ms"] == 400
