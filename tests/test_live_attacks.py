"""Talks that something or somebody makes hard: floods, replies without an end, long silence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from live_world import DEVICE_RATE, TOY_RATE, World, silence, talking, tone, words
from test_live import QUESTION, REPLY, ask

from voxmeter.client.live.exchange import Exchange

SECOND = tone(1000, TOY_RATE)


async def test_who_talks_over_every_reply_gets_a_turn_each_time(tmp_path: Path) -> None:
    times = 20
    async with talking(tmp_path) as world:
        for number in range(1, times + 1):
            world_reply = np.concatenate((silence(50, TOY_RATE), tone(3000, TOY_RATE)))
            await ask(world, f"r{number}", world_reply)
            await world.sound.wait(300)
            await world.sound.hear(QUESTION[: DEVICE_RATE * 8 // 10])
            world.wire.say("cancelled")
            await world.sound.hear(QUESTION[DEVICE_RATE * 8 // 10 :])
            await world.sound.wait(300)
            world.wire.say(f"started a{number}", words(REPLY), "end")
            await world.sound.wait(1500)
        assert exchange(world).turns.open == []
    rows = world.rows()
    assert [row["item"] for row in rows] == [f"turn-{n}" for n in range(1, 2 * times + 1)]
    assert [over.status for over in world.over()] == ["interrupted", "ok"] * times
    assert all(row["status"] == "ok" for row in rows)


async def test_ten_minutes_of_a_reply_at_once_are_cut_by_the_user_and_hold_nobody_up(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        await world.sound.hear(QUESTION)
        await world.sound.wait(300)
        world.wire.say("started r1", *([words(SECOND)] * 600), "end")
        await world.sound.wait(400)
        ahead = len(world.sound._queue) / DEVICE_RATE
        assert ahead < 3  # the rest waits as it came, and is thrown away with one word
        assert world.talk._playback.pending_ms > 590_000
        world.talk.interrupt()
        assert world.talk._playback.pending == 0
        world.wire.say("cancelled")
        await world.sound.wait(300)
        await ask(world, "r2")
        await world.sound.wait(1500)
    first, second = world.rows()
    assert first["latency"]["reply_ms"] < 1000
    assert (second["status"], second["latency"]["reply_ms"]) == ("ok", 500)


async def test_a_reply_without_an_end_is_written_down_at_the_limit_and_the_talk_goes_on(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, reply_limit_s=5.0) as world:
        await world.sound.hear(QUESTION)
        await world.sound.wait(300)
        world.wire.say("started r1")
        for _ in range(7):
            world.wire.say(words(SECOND))
            await world.sound.wait(1000)
        assert any(one.startswith("cancel") for one in world.wire.sent)
        world.wire.say("end")
        await world.sound.wait(1500)
        await ask(world, "r2")
        await world.sound.wait(1500)
    assert [row["status"] for row in world.rows()] == ["truncated", "ok"]


async def test_minutes_of_a_muted_microphone_take_no_memory(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        await ask(world)
        await world.sound.wait(1500)
        world.talk.mute(muted=True)
        kept = []
        for _ in range(3):
            await world.sound.wait(20_000)
            kept.append(held(world))
        world.shown.clear()
    assert kept[2] <= kept[1]


def exchange(world: World) -> Exchange:
    found = world.talk._exchange
    assert found is not None
    return found


def held(world: World) -> int:
    """Return how many things a talk's tape holds."""
    tape, microphone = exchange(world)._tape, exchange(world)._microphone
    assert microphone is not None
    parts = (tape.rows, tape._sent, tape._sounds, tape._puts, tape._blocks, tape._tags)
    return sum(len(part) for part in parts) + len(microphone._anchors)


async def test_a_reply_in_pieces_that_come_a_little_late_is_played_without_a_gap(
    tmp_path: Path,
) -> None:
    gaps = []
    for buffer_ms in (0, 20):
        async with talking(tmp_path / str(buffer_ms), jitter_buffer_ms=buffer_ms) as world:
            await world.sound.hear(QUESTION)
            await world.sound.wait(300)
            world.wire.say("started r1")
            piece = words(tone(20, TOY_RATE))
            for number in range(50):
                if number != 10:
                    world.wire.say(piece)
                if number == 11:  # the tenth comes with the eleventh
                    world.wire.say(piece)
                await world.sound.wait(20)
            world.wire.say("end")
            await world.sound.wait(1500)
        (row,) = world.rows()
        assert row["audit"]["jitter_buffer_ms"] == buffer_ms
        gaps.append((row["latency"]["stalls"], row["latency"]["first_audible_ms"]))
    (stalls, without), (none, with_buffer) = gaps
    assert (stalls, none) == (1, 0)
    assert with_buffer - without == pytest.approx(20, abs=0.001)


async def test_a_reply_that_ran_dry_makes_the_next_ones_wait_longer_but_not_for_ever(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, jitter_buffer_ms=20) as world:
        for number in range(1, 5):
            await ask(world, f"r{number}")
            world.sound.tell("starved")
            await world.sound.wait(1500)
    waits = [row["audit"]["jitter_buffer_ms"] for row in world.rows()]
    assert waits == [20, 40, 60, 60]
