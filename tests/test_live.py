"""A live talk: turns, marks and what is kept, against a truth that the test made itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from live_world import BLOCK_NS, DEVICE_RATE, TOY_RATE, silence, talking, tone, words

from voxmeter.client.live.updates import Words

QUESTION = np.concatenate((silence(600, DEVICE_RATE), tone(403.5, DEVICE_RATE)))
END_MS = 600 + 403.5
REPLY = np.concatenate((silence(50, TOY_RATE), tone(500, TOY_RATE)))


async def test_a_turn_is_marked_as_it_happens_and_kept_with_the_truth_of_the_devices(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        began_ns = await world.sound.hear(QUESTION)
        await world.sound.wait(300)
        packet_ns = world.clock.now()
        world.wire.say("started r1", words(REPLY), "text Hello.", "end")
        await world.sound.wait(2000)
    t0_ns = began_ns + round(END_MS * 1e6)
    (row,) = world.rows()
    heard_ns = world.sound.heard[0][1] + 50_000_000
    assert row["status"] == "ok"
    assert row["latency_kind"] == "live"
    assert row["t0_ns"] - t0_ns == 0
    assert row["latency"]["first_packet_ms"] == (packet_ns - t0_ns) / 1e6
    assert row["latency"]["first_audible_ms"] == (heard_ns - t0_ns) / 1e6
    assert [over.status for over in world.over()] == ["ok"]
    assert list(world.marks(1)) == ["speech_end", "first_packet", "first_audible", "reply_end"]
    assert Words("reply", 1, "Hello.") in world.shown
    assert BLOCK_NS > 0
