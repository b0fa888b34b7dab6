"""A session whose output never stops: when the answer is over, in stream time."""

from __future__ import annotations

import numpy as np
import pytest
from attempt_logs import RATE, Samples, joined, silence, voice
from fakes import FrozenClock, ToyCodec, ToyTransport
from test_session import BRIEF, question

from voxmeter.client.audio import to_pcm16
from voxmeter.client.duplex import DuplexEar
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask
from voxmeter.endpoints.codec import Address, Traits
from voxmeter.endpoints.events import ReplyAudio, ReplyEnded, ReplyText

MS = 1_000_000
CHUNK = RATE // 50


def hear(ear: DuplexEar, stream: Samples, start_ms: int = 0, chunk: int = CHUNK) -> int:
    """Let it hear a stream in real time; return when the last piece came, ms."""
    at_ms = start_ms
    for first in range(0, len(stream), chunk):
        piece = to_pcm16(stream[first : first + chunk])
        at_ms = start_ms + first * 1000 // RATE
        ear.hear(at_ms * MS, ReplyAudio(piece, "pcm16", RATE))
    return at_ms


def asked(ear: DuplexEar, before: Samples | None = None) -> DuplexEar:
    last_ms = hear(ear, silence(500) if before is None else before)
    ear.question_ended((last_ms + 20) * MS)  # all of it has been heard
    return ear


def ear() -> DuplexEar:
    return DuplexEar(quiet_ms=1500)


def test_an_answer_is_over_after_a_second_and_a_half_of_quiet_behind_it() -> None:
    listening = asked(ear())
    hear(listening, joined(silence(400), voice(800), silence(1480)), 500)
    assert listening.answering
    assert listening.over_at() is None
    last = hear(listening, silence(40), 500 + 2680)
    assert listening.over_at() == last * MS


def test_a_pause_inside_the_answer_does_not_end_it() -> None:
    listening = asked(ear())
    hear(listening, joined(voice(500), silence(1200), voice(500), silence(1200)))
    assert listening.over_at() is None


def test_quiet_is_counted_in_stream_time_not_by_the_clock() -> None:
    listening = asked(ear())
    hear(listening, joined(voice(500), silence(500)))
    listening.hear(60_000 * MS, ReplyAudio(to_pcm16(silence(20)), "pcm16", RATE))
    assert listening.over_at() is None


def test_what_was_audible_before_the_end_of_the_question_is_no_answer() -> None:
    listening = asked(ear(), joined(silence(200), voice(300), silence(200)))
    hear(listening, silence(3000))
    assert not listening.answering
    assert listening.over_at() is None


def test_a_voice_that_goes_on_across_the_end_of_the_question_is_answering() -> None:
    listening = asked(ear(), joined(silence(200), voice(300)))
    hear(listening, voice(300))
    assert listening.answering


def test_silence_is_heard_and_is_no_answer() -> None:
    listening = ear()
    assert not listening.heard
    asked(listening)
    assert listening.heard
    assert not listening.answering


def test_nothing_before_the_question_is_no_trouble() -> None:
    listening = ear()
    listening.question_ended(0)
    assert not listening.answering
    assert listening.over_at() is None
    hear(listening, joined(voice(400), silence(1600)))
    assert listening.over_at() is not None


def test_a_greeting_is_over_after_its_quiet() -> None:
    listening = ear()
    assert not listening.greeted
    hear(listening, silence(3000))
    assert not listening.greeted
    hear(listening, joined(voice(500), silence(1400)))
    assert not listening.greeted
    hear(listening, silence(200))
    assert listening.greeted


def test_only_words_after_the_question_are_its_answers() -> None:
    listening = ear()
    listening.hear(0, ReplyText("Hello. "))
    asked(listening)
    listening.hear(1, ReplyText("Par"))
    listening.hear(2, ReplyText("is. "))
    listening.hear(3, ReplyEnded("completed"))
    assert listening.text() == "Paris."


@pytest.mark.parametrize("chunk", [7, 333, 4800])
def test_how_the_stream_is_cut_changes_no_verdict(chunk: int) -> None:
    listening = asked(ear())
    hear(listening, joined(silence(100), voice(400), silence(1490)), chunk=chunk)
    assert listening.over_at() is None
    hear(listening, silence(20), chunk=chunk)
    assert listening.over_at() is not None


def test_what_began_before_the_user_did_is_a_greeting_however_long_it_goes_on() -> None:
    listening = ear()
    hear(listening, joined(silence(300), voice(300)))
    listening.question_began(700 * MS)
    hear(listening, voice(300), 600)
    listening.question_ended(1000 * MS)
    hear(listening, joined(voice(300), silence(1600)), 900)
    assert not listening.answering
    assert listening.over_at() is None
    last = hear(listening, joined(voice(300), silence(1600)), 2800)
    assert listening.answering
    assert listening.over_at() == last * MS


def test_the_last_piece_is_still_playing_when_the_question_ends() -> None:
    stream = joined(silence(500), voice(300))
    for played_ms, heard in ((20, True), (120, False)):
        listening = ear()
        hear(listening, stream, chunk=RATE // 10)  # its last 100 ms came at 700 ms
        listening.question_ended((700 + played_ms) * MS)
        hear(listening, silence(1600), 800)
        assert listening.answering == heard


def test_what_came_since_the_question_ended_had_not_been_heard_then() -> None:
    listening = ear()
    hear(listening, joined(silence(500), voice(300)))
    listening.question_ended(560 * MS)  # told when the frame was sent, 240 ms later
    hear(listening, silence(1600), 800)
    assert listening.answering


def test_words_that_came_before_their_sound_are_the_answers() -> None:
    listening = ear()
    hear(listening, voice(300))
    listening.hear(0, ReplyText("Welcome!"))
    hear(listening, silence(1000), 300)
    listening.question_began(1300 * MS)
    hear(listening, silence(500), 1300)
    listening.hear(0, ReplyText(" Paris"))
    hear(listening, voice(200), 1800)
    listening.question_ended(2000 * MS)
    assert listening.text() == ""
    listening.hear(0, ReplyText("."))
    hear(listening, joined(voice(200), silence(1600)), 2000)
    assert listening.text() == "Paris."


def test_odd_bytes_and_broken_audio_stop_nobody() -> None:  # PR-18
    listening = asked(ear())
    data = to_pcm16(joined(voice(400), silence(1600)))
    for first in range(0, len(data), 1023):
        listening.hear(0, ReplyAudio(data[first : first + 1023], "pcm16", RATE))
    assert listening.over_at() is not None
    pytest.importorskip("sphn")
    broken = ear()
    for _ in range(3):
        broken.hear(5, ReplyAudio(b"not Opus at all", "opus", RATE))
    assert broken.heard
    assert not broken.answering


async def test_a_silent_stream_is_waited_for_and_then_is_no_answer() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready")
        for count in range(1, 400):
            await peer.until(count, "audio")
            peer.say("sound " + bytes(320).hex())

    clock = FrozenClock()
    transport = ToyTransport(play)
    transport.now = clock.now
    traits = Traits(8_000, full_duplex=True)
    capture = await converse(
        ToyCodec(traits),
        transport,
        Address("toy://x"),
        Ask(question(), patience=BRIEF),
        clock=clock,
    )
    assert capture.outcome == "ended"
    assert capture.rows[0]["latency_kind"] == "duplex"
    assert not np.any(np.frombuffer(b"".join(data for _, data in capture.audio), "<i2"))
