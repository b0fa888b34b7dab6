"""A live talk over every kind of protocol: committed turns, requests, full duplex; and aloud."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from fakes import ToyTransport
from live_world import (
    DEVICE_RATE,
    INPUT_NS,
    OUTPUT_NS,
    TOY_RATE,
    Samples,
    World,
    silence,
    talking,
    tone,
    words,
)

from voxmeter.client.live.aloud import NOT_HEARD, Asked
from voxmeter.client.live.exchange import TURN_QUIET_MS
from voxmeter.client.live.turn import Question
from voxmeter.endpoints.codec import Traits

QUESTION = np.concatenate((silence(600, DEVICE_RATE), tone(403.5, DEVICE_RATE)))
END_NS = 1_003_500_000
REPLY = np.concatenate((silence(50, TOY_RATE), tone(500, TOY_RATE)))


async def test_a_committed_turn_has_the_speech_and_some_quiet_and_nothing_in_between(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, traits=Traits(TOY_RATE, turn_end="commit")) as world:
        await world.sound.wait(2000)
        assert "audio 320" not in world.wire.sent
        began_ns = await world.sound.hear(QUESTION)
        await world.sound.wait(TURN_QUIET_MS + 60)
        assert world.wire.sent.count("commit") == 1
        sent = world.wire.sent.count("audio 320")
        assert 50 <= sent <= 85  # 500 ms of lead-in, 400 ms of speech, 700 ms of quiet
        world.wire.say("started r1", words(REPLY), "end")
        await world.sound.wait(2000)
        assert world.wire.sent.count("audio 320") == sent
        await world.sound.hear(QUESTION)
        await world.sound.wait(TURN_QUIET_MS + 60)
        assert world.wire.sent.count("commit") == 2
        world.wire.say("started r2", words(REPLY), "end")
        await world.sound.wait(2000)
    first, second = world.rows()
    assert first["t0_ns"] == began_ns + END_NS
    assert (first["status"], second["status"]) == ("ok", "ok")
    assert first["audit"]["turn_quiet_ms"] == TURN_QUIET_MS
    assert first["audit"]["latency_valid"]
    assert first["latency"]["first_packet_ms"] > TURN_QUIET_MS


async def test_who_goes_on_after_a_commit_cuts_the_reply_and_asks_again(tmp_path: Path) -> None:
    async with talking(tmp_path, traits=Traits(TOY_RATE, turn_end="commit")) as world:
        await world.sound.hear(QUESTION)
        await world.sound.wait(TURN_QUIET_MS + 60)
        world.wire.say("started r1", words(np.concatenate((REPLY, REPLY, REPLY))))
        await world.sound.wait(400)
        await world.sound.hear(QUESTION)
        assert [one for one in world.wire.sent if one.startswith("cancel")]
        world.wire.say("cancelled")
        await world.sound.wait(TURN_QUIET_MS + 60)
        world.wire.say("started r2", words(REPLY), "end")
        await world.sound.wait(2000)
    assert [over.status for over in world.over()] == ["interrupted", "ok"]


async def test_a_request_protocol_is_asked_turn_by_turn_in_sessions_of_its_own(
    tmp_path: Path,
) -> None:
    async def answer(wire: ToyTransport) -> None:
        wire.say("ready")
        await wire.until(1, "commit")
        wire.say("started r1", words(REPLY), "text Yes.", "end")

    traits = Traits(TOY_RATE, turn_end="request", reply_end="final", history=True)
    async with talking(tmp_path, traits=traits, play=answer) as world:
        began_ns = await world.sound.hear(QUESTION)
        await world.sound.wait(TURN_QUIET_MS + 2000)
        await world.sound.hear(QUESTION)
        await world.sound.wait(TURN_QUIET_MS + 2000)
        assert len(world.target.wires) == 2
        said = [one for one in world.wire.sent if one.startswith("history")]
        assert said == ["history user ", "history assistant Yes."]
    first, second = world.rows()
    assert (first["status"], second["status"]) == ("ok", "ok")
    assert first["latency_kind"] == "live"
    assert first["t0_ns"] == began_ns + END_NS
    heard_ns = world.sound.heard[0][1] + world.sound.lag_ns + 50_000_000
    truth_ms = (heard_ns - first["t0_ns"]) / 1e6
    assert first["latency"]["first_audible_ms"] == pytest.approx(truth_ms, abs=0.001)
    assert first["latency"]["first_packet_ms"] > TURN_QUIET_MS


async def test_a_request_that_fails_is_kept_and_the_talk_goes_on(tmp_path: Path) -> None:
    async def refuse(wire: ToyTransport) -> None:
        wire.say("fault quota")

    traits = Traits(TOY_RATE, turn_end="request", reply_end="final")
    async with talking(tmp_path, traits=traits, play=refuse) as world:
        for _ in range(2):
            await world.sound.hear(QUESTION)
            await world.sound.wait(TURN_QUIET_MS + 1000)
    assert [row["status"] for row in world.rows()] == ["refused", "refused"]


async def test_replies_are_found_in_a_stream_that_never_ends(tmp_path: Path) -> None:
    async def flow(wire: ToyTransport) -> None:
        wire.say("ready")

    traits = Traits(TOY_RATE, full_duplex=True, reply_end="quiet")
    quiet = silence(20, TOY_RATE)
    async with talking(tmp_path, traits=traits, play=flow) as world:

        async def both(user: Samples, reply: Samples) -> int:
            began_ns = world.clock.now() - INPUT_NS
            size, out = DEVICE_RATE // 50, TOY_RATE // 50
            for number in range(max(-(-user.size // size), -(-reply.size // out))):
                piece = reply[number * out : (number + 1) * out]
                world.wire.say(words(piece if piece.size else quiet))
                heard = user[number * size : (number + 1) * size]
                await world.sound.hear(heard if heard.size else silence(20, DEVICE_RATE))
            return began_ns

        for _ in range(2):
            began_ns = await both(QUESTION, silence(1300, TOY_RATE))
            await both(silence(20, DEVICE_RATE), tone(600, TOY_RATE))
            await both(silence(20, DEVICE_RATE), silence(2200, TOY_RATE))
    first, second = world.rows()
    assert [one["role"] for one in first["segments"]] == ["answer"]
    assert [one["role"] for one in second["segments"]] == ["answer"]
    assert second["t0_ns"] == began_ns + END_NS
    assert second["latency"]["first_packet_ms"] is None
    found_ms = second["latency"]["first_audible_ms"]
    truth_ms = (1_300_000_000 - END_NS + INPUT_NS + OUTPUT_NS + 20_000_000) / 1e6
    assert abs(found_ms - truth_ms) < 20  # the first piece waits for a block of the device
    assert second["latency"]["stream_first_audible_ms"] is None


def questions(count: int) -> list[Asked]:
    sound = np.concatenate((silence(300, TOY_RATE), tone(500, TOY_RATE)))
    rows: list[dict[str, object]] = [
        {"suite": "quiz", "item": f"q{number}", "kind": "open", "language": "en"}
        for number in range(1, count + 1)
    ]
    return [
        Asked(Question("quiz", str(row["item"]), 1, row), lambda: (sound, TOY_RATE)) for row in rows
    ]


async def test_the_questions_of_a_suite_are_asked_aloud_and_heard_by_the_microphone(
    tmp_path: Path,
) -> None:
    async def answer(wire: ToyTransport) -> None:
        wire.say("ready")

    async with talking(tmp_path, play=answer, questions=lambda: questions(2)) as world:
        world.sound.room = True
        for number in (1, 2):
            await _until_asked(world, number)
            world.wire.say(f"started r{number}", words(REPLY), "end")
            await world.sound.wait(1500)
    first, second = world.rows()
    assert (first["suite"], first["item"], second["item"]) == ("quiz", "q1", "q2")
    assert (first["status"], second["status"]) == ("ok", "ok")
    assert first["latency"]["reply_ms"] == 500
    assert len(world.over()) == 2  # the reply itself was never taken for a user


async def _until_asked(world: World, number: int) -> None:
    for _ in range(100):
        await world.sound.wait(100)
        await asyncio.sleep(0.01)  # the clip is made in a thread, in time that no test moves
        if "speech_end" in world.marks(number):
            return
    raise AssertionError(f"question {number} was not asked")


async def test_a_question_that_no_microphone_hears_is_said_to_be_unheard(tmp_path: Path) -> None:
    async with talking(tmp_path, questions=lambda: questions(1)) as world:
        for _ in range(50):
            await world.sound.wait(100)
            await asyncio.sleep(0.01)
            if world.sound.played.size > DEVICE_RATE // 2:
                break
        await world.sound.wait(2500)
    (row,) = world.rows()
    assert (row["status"], row["fault"]) == ("bad_clip", NOT_HEARD)
