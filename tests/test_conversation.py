"""One served session: where turns end, what the brain is told, who may break in."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np
import pytest
from plain_wire import (
    RATE,
    Scripted,
    client,
    question,
    rows,
    served,
    silence,
    speech,
)

from voxmeter.client.audio import from_pcm16, to_pcm16
from voxmeter.client.servers.brain import Heard, Speech, Spoken, Terms, UserTurn, Words
from voxmeter.client.servers.voice import babble

NS = 1_000_000


async def test_a_turn_reaches_the_brain_with_all_that_was_asked() -> None:
    brain = Scripted(speech())
    async with served(brain, query={"shade": "blue"}) as url, client(url, "?tag=me") as one:
        await one.do("set", instructions="Be brief.", voice="low", temperature=0.5)
        await one.say(question())
        await one.until("reply_ended")
    (turn,) = brain.turns
    assert (turn.tag, turn.session, turn.number, turn.committed) == ("me", 1, 1, False)
    assert (turn.instructions, turn.voice, turn.temperature) == ("Be brief.", "low", 0.5)
    assert turn.query == {"shade": "blue", "tag": "me"}
    assert turn.rate == turn.output_rate == RATE
    loud = np.flatnonzero(np.abs(turn.samples) > 0.01)
    assert loud[-1] - loud[0] == pytest.approx(0.4 * RATE, abs=20)


async def test_server_vad_tells_where_speech_is_on_the_sessions_audio_clock() -> None:
    async with served(Scripted(speech())) as url, client(url) as one:
        await one.say(question(lead_ms=100))
        await one.until("reply_ended")
    started, stopped = one.got[1], one.got[2]
    assert started == {"is": "speech_started", "at": 100}
    assert stopped["is"] == "speech_stopped"
    assert abs(stopped["at"] - 500) <= 5


async def test_the_client_may_ask_for_another_quiet_unless_the_terms_fix_it() -> None:
    for fixed, turns in ((False, 1), (True, 2)):
        brain = Scripted(speech(), terms=Terms(endpoint_ms=100, endpoint_fixed=fixed))
        async with served(brain) as url, client(url) as one:
            await one.do("set", silence_ms=300)
            for _ in range(2):
                await one.say(question(tail_ms=150))
                if fixed:
                    await one.until("reply_ended")
            await one.say(silence(400))
            if not fixed:
                await one.until("reply_ended")
        assert len(brain.turns) == turns


async def test_a_turn_is_answered_only_when_asked_where_the_client_said_so() -> None:
    brain = Scripted(speech())
    async with served(brain) as url, client(url) as one:
        await one.do("set", auto_reply=False)
        for _ in range(2):
            await one.say(question())
            await one.until("speech_stopped")
        await one.do("request")
        await one.until("reply_ended")
    (turn,) = brain.turns
    assert turn.committed
    assert len(turn.samples) > 2 * 0.4 * RATE
    assert one.names().count("reply_started") == 1


async def test_commits_in_pieces_are_one_turn_and_cleared_audio_is_in_none() -> None:
    brain = Scripted(speech())
    async with served(brain) as url, client(url) as one:
        await one.do("set", turn_end="commit")
        await one.say(babble(RATE, 0.5))
        await one.do("clear")
        for _ in range(2):
            await one.say(babble(RATE, 0.2))
            await one.do("commit")
        await one.do("request")
        await one.until("reply_ended")
    assert len(brain.turns[0].samples) == round(0.4 * RATE)


async def test_a_written_question_is_answered_without_audio() -> None:
    brain = Scripted(Words("Four."))
    async with served(brain) as url, client(url) as one:
        await one.do("say", text="Two and two?")
        await one.do("request")
        await one.until("reply_ended")
    (turn,) = brain.turns
    assert len(turn.samples) == 0
    assert [(one.role, one.text) for one in turn.history] == [("user", "Two and two?")]


async def test_a_question_in_one_piece_ends_when_it_has_arrived(tmp_path: Path) -> None:
    brain = Scripted(speech())
    truth = tmp_path / "truth.jsonl"
    async with served(brain, truth) as url, client(url) as one:
        pcm = base64.b64encode(to_pcm16(question(tail_ms=5000))).decode()
        await one.do("ask", pcm=pcm)
        await one.do("request")
        await one.until("reply_ended")
    (turn,) = brain.turns
    assert turn.committed
    assert turn.history == ()
    assert len(turn.samples) == len(question(tail_ms=5000))
    (line,) = rows(truth)
    assert line["user_end_ns"] == turn.end_ns
    assert line["first_packet_ns"] - line["user_end_ns"] < 5_000 * NS


async def test_what_was_said_is_the_history_of_the_next_turn() -> None:
    brain = Scripted(Heard("Hello"), Words("Good "), Words("day."), speech())
    async with served(brain) as url, client(url) as one:
        for _ in range(2):
            await one.say(question())
            await one.until("reply_ended")
    assert brain.turns[0].history == ()
    said = [(turn.role, turn.text) for turn in brain.turns[1].history]
    assert said == [("user", "Hello"), ("assistant", "Good day.")]
    assert one.names().count("heard") == 2


async def test_words_that_were_never_heard_leave_the_history() -> None:
    brain = Scripted(Words("one two three four"), speech(1.0))
    async with served(brain) as url, client(url) as one:
        await one.say(question())
        await one.until("reply_ended")
        await one.do("truncate")
        await one.say(question())
        await one.until("reply_ended")
    assert [turn.text for turn in brain.turns[1].history] == ["one two"]


async def test_speech_during_a_reply_stops_it(tmp_path: Path) -> None:
    brain = Scripted(*[speech()] * 3)
    brain.held.clear()
    truth = tmp_path / "truth.jsonl"
    async with served(brain, truth) as url, client(url) as one:
        await one.say(question())
        for _ in range(3):
            await one.until("audio")
        await one.say(question())
        await one.until("reply_ended")
        assert one.got[-1]["reason"] == "cancelled"
        assert one.names()[-3:] == ["reply_started", "speech_started", "reply_ended"]
        for _ in range(3):
            await one.until("audio")
    assert [turn.number for turn in brain.turns] == [1, 2]
    assert brain.ended == ["cancelled", "cancelled"]
    first, second = sorted(rows(truth), key=lambda row: int(row["turn"]))
    assert (first["outcome"], second["outcome"]) == ("cancelled", "disconnected")
    assert first["reply_samples"] == len(one.audio) // 4


async def test_speech_does_not_stop_a_reply_where_the_client_said_so() -> None:
    brain = Scripted(speech())
    brain.held.clear()
    async with served(brain) as url, client(url) as one:
        await one.do("set", interruptible=False)
        await one.say(question())
        await one.until("audio")
        await one.say(question(tail_ms=0))
        await one.until("speech_started")
        brain.held.set()
        await one.until("reply_ended")
        assert one.got[-1]["reason"] == "completed"


async def test_the_client_can_cancel_a_reply() -> None:
    brain = Scripted(speech())
    brain.held.clear()
    async with served(brain) as url, client(url) as one:
        await one.say(question())
        await one.until("audio")
        await one.do("cancel")
        await one.until("reply_ended")
        assert one.got[-1]["reason"] == "cancelled"
        await one.do("cancel")
        brain.held.set()
        await one.say(question())
        await one.until("reply_ended")
        assert one.got[-1]["reason"] == "completed"


async def test_a_pause_before_anything_was_said_is_a_pause_within_the_turn(tmp_path: Path) -> None:
    brain = Scripted()
    brain.held.clear()
    truth = tmp_path / "truth.jsonl"
    async with served(brain, truth) as url, client(url) as one:
        await one.say(question(tail_ms=150))
        await brain.asked.get()
        await one.say(question())
        await brain.asked.get()
    assert [turn.number for turn in brain.turns] == [1, 1]
    assert len(brain.turns[1].samples) > len(brain.turns[0].samples) + 0.4 * RATE
    (line,) = rows(truth)
    assert line["turn"] == 1
    assert line["user_end_ns"] == brain.turns[1].end_ns


async def test_speech_long_after_the_turn_is_a_new_turn_though_nothing_was_said(
    tmp_path: Path,
) -> None:
    brain = Scripted()
    brain.held.clear()
    truth = tmp_path / "truth.jsonl"
    async with served(brain, truth) as url, client(url) as one:
        await one.say(question(tail_ms=200))
        await brain.asked.get()
        await one.say(question(lead_ms=1600))
        await brain.asked.get()
    assert [turn.number for turn in brain.turns] == [1, 2]
    assert [row["outcome"] for row in rows(truth)] == ["cancelled", "disconnected"]


async def test_a_reply_that_was_asked_for_is_not_taken_back_but_stopped() -> None:
    brain = Scripted()
    brain.held.clear()
    async with served(brain) as url, client(url) as one:
        await one.do("say", text="Two and two?")
        await one.do("request")
        await brain.asked.get()
        await one.say(question())
        await brain.asked.get()
    assert [turn.number for turn in brain.turns] == [1, 2]


async def test_long_speech_is_sent_a_second_at_a_time(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    brain = Scripted(Speech(np.concatenate([silence(1500), babble(RATE, 1.0)])))
    async with served(brain, truth) as url, client(url) as one:
        await one.say(question())
        sizes = []
        for _ in range(3):
            before = len(one.audio)
            await one.until("audio")
            sizes.append((len(one.audio) - before) // 2)
        await one.until("reply_ended")
    assert sizes == [RATE, RATE, RATE // 2]
    (line,) = rows(truth)
    # The onset was searched for, since this brain did not tell it.
    assert line["first_audible_ns"] - line["first_packet_ns"] >= 1500 * NS


async def test_the_user_end_is_the_arrival_of_the_last_voiced_sample(tmp_path: Path) -> None:
    brain = Scripted(speech())
    truth = tmp_path / "truth.jsonl"
    async with served(brain, truth) as url, client(url) as one:
        # All in one message: what follows the last voiced sample is taken off its arrival.
        await one.say(question(tail_ms=400), frame=RATE * 10)
        await one.until("reply_ended")
    (line,) = rows(truth)
    assert line["first_packet_ns"] - line["user_end_ns"] >= 400 * NS - 100
    assert line["user_end_ns"] == brain.turns[0].end_ns


async def test_a_brain_with_nothing_to_say_says_that_its_reply_is_over() -> None:
    async with served(Scripted()) as url, client(url) as one:
        await one.say(question())
        await one.until("reply_ended")
    assert one.names()[-2:] == ["reply_started", "reply_ended"]


async def test_a_brain_that_fails_ends_its_reply_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Failing(Scripted):
        async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
            yield speech()
            raise RuntimeError("no\nidea")

    async with served(Failing()) as url, client(url) as one:
        for _ in range(2):
            await one.say(question())
            told = await one.until("fault")
            assert (told["kind"], told["message"]) == ("server", "RuntimeError: no\nidea")
    assert "session 1, turn 2: RuntimeError: no\\nidea" in capsys.readouterr().err


async def test_samples_split_between_messages_are_put_together() -> None:
    brain = Scripted(speech())
    sound = question()
    pcm = (sound * 32767).astype("<i2").tobytes()
    async with served(brain) as url, client(url) as one:
        for start in range(0, len(pcm), 333):
            await one.connection.send(pcm[start : start + 333])
        await one.until("reply_ended")
    heard = brain.turns[0].samples
    assert np.array_equal(heard, from_pcm16(pcm[: 2 * len(heard)]))
