"""A live talk: turns, marks and what is kept, against a truth that the test made itself."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from fakes import ToyTransport
from live_world import (
    BENCH,
    DEVICE_RATE,
    OUTPUT_NS,
    TOY_RATE,
    Samples,
    World,
    silence,
    talking,
    tone,
    words,
)

from voxmeter.client.live.updates import Notice, PhaseChanged, Running, Saved, TurnOver, Words
from voxmeter.client.runfolder import RunFolder
from voxmeter.endpoints.errors import UserError

LEAD_MS = 600
SPOKEN_MS = 403.5
END_MS = LEAD_MS + SPOKEN_MS
QUESTION = np.concatenate((silence(LEAD_MS, DEVICE_RATE), tone(SPOKEN_MS, DEVICE_RATE)))
REPLY = np.concatenate((silence(50, TOY_RATE), tone(500, TOY_RATE)))
LONG = np.concatenate((silence(50, TOY_RATE), tone(3000, TOY_RATE)))


async def ask(world: World, name: str = "r1", reply: Samples = REPLY) -> tuple[int, int]:
    """Put a question and let it be answered; return its true end and when the answer was sent."""
    began_ns = await world.sound.hear(QUESTION)
    await world.sound.wait(300)
    packet_ns = world.clock.now()
    world.wire.say(f"started {name}", words(reply), "text Hello.", "end")
    await world.sound.wait(20)
    return began_ns + round(END_MS * 1e6), packet_ns


async def test_a_turn_is_marked_as_it_happens_and_kept_with_the_truth_of_the_devices(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        t0_ns, packet_ns = await ask(world)
        await world.sound.wait(2000)
    (row,) = world.rows()
    heard_ns = world.sound.heard[0][1] + world.sound.lag_ns + 50_000_000
    assert (row["status"], row["latency_kind"]) == ("ok", "live")
    assert (row["suite"], row["item"], row["condition"]) == ("live", "turn-1", "clean")
    assert row["t0_ns"] == t0_ns
    assert row["latency"]["first_packet_ms"] == (packet_ns - t0_ns) / 1e6
    assert row["latency"]["first_audible_ms"] == pytest.approx((heard_ns - t0_ns) / 1e6, abs=0.001)
    assert row["latency"]["reply_ms"] == 500
    assert row["audit"]["hop_ms"] == {"p50": 0.0, "p99": 0.0, "max": 0.0}
    assert [over.status for over in world.over()] == ["ok"]
    assert list(world.marks(1)) == ["speech_end", "first_packet", "first_audible", "reply_end"]
    assert Words("reply", 1, "Hello.") in world.shown


async def test_a_provisional_mark_is_near_what_the_log_says(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        await ask(world)
        await world.sound.wait(2000)
    (row,) = world.rows()
    for mark, name in (("first_packet", "first_packet_ms"), ("first_audible", "first_audible_ms")):
        assert abs(world.marks(1)[mark] - row["latency"][name]) < 10


async def test_turns_follow_each_other_in_one_session_each_with_a_log_of_its_own(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        truth = []
        for number in (1, 2, 3):
            truth.append(await ask(world, f"r{number}"))
            await world.sound.wait(1500)
    rows = world.rows()
    assert [row["item"] for row in rows] == ["turn-1", "turn-2", "turn-3"]
    assert len(world.target.wires) == 1
    for row, (t0_ns, packet_ns) in zip(rows, truth, strict=True):
        assert row["t0_ns"] == t0_ns
        assert row["latency"]["first_packet_ms"] == (packet_ns - t0_ns) / 1e6
        assert len(row["segments"]) == 1
    running = [one for one in world.shown if isinstance(one, Running)]
    assert [one.figures["first_audible_ms"][0] for one in running] == [1, 2, 3]


async def test_a_pause_for_breath_does_not_end_a_turn(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        await world.sound.hear(QUESTION)
        await world.sound.wait(400)
        t0_ns, _ = await ask(world)
        await world.sound.wait(1500)
    (row,) = world.rows()
    assert row["t0_ns"] == t0_ns


async def test_every_frame_leaves_with_the_block_that_completes_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        before = world.wire.sent.count("audio 320")
        await world.sound.wait(1000)
        assert world.wire.sent.count("audio 320") - before == 50


async def test_who_speaks_into_a_reply_begins_a_turn_and_what_is_queued_is_thrown_away(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        await ask(world, reply=LONG)
        await world.sound.wait(500)
        began_ns = await world.sound.hear(QUESTION[: DEVICE_RATE * 8 // 10])
        world.wire.say("cancelled")
        await world.sound.hear(QUESTION[DEVICE_RATE * 8 // 10 :])
        await world.sound.wait(300)
        world.wire.say("started r2", words(REPLY), "end")
        await world.sound.wait(1500)
    first, second = world.rows()
    assert world.sound.cleared > 0
    assert [over.status for over in world.over()] == ["interrupted", "ok"]
    assert first["audit"]["interrupted"]
    assert first["latency"]["reply_ms"] < 2000
    assert second["t0_ns"] == began_ns + round(END_MS * 1e6)
    assert second["latency"]["reply_ms"] == 500


async def test_a_reply_that_was_sent_at_once_stops_when_the_endpoint_hears_the_user(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        await ask(world, reply=LONG)
        await world.sound.wait(500)
        await world.sound.hear(QUESTION[: DEVICE_RATE * 8 // 10])
        world.wire.say("speech")
        await world.sound.hear(QUESTION[DEVICE_RATE * 8 // 10 :])
        await world.sound.wait(300)
        assert any(one.startswith("cancel") for one in world.wire.sent)
        world.wire.say("started r2", words(REPLY), "end")
        await world.sound.wait(1500)
    assert world.sound.cleared > 0
    assert [over.status for over in world.over()] == ["interrupted", "ok"]


async def test_a_reply_is_cut_by_hand_and_the_endpoint_is_told_how_much_was_heard(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        await ask(world, reply=LONG)
        await world.sound.wait(980)
        world.talk.interrupt()
        await world.sound.wait(200)
        (cancel,) = [one for one in world.wire.sent if one.startswith("cancel")]
        played_ms = world.sound.played.size * 1000 / DEVICE_RATE - world.sound.lag_ns / 1e6
        assert abs(int(cancel.split()[1]) - played_ms) <= OUTPUT_NS / 1e6 + 20
        world.wire.say("cancelled")
        await world.sound.wait(1000)
        heard = world.sound.played.size
        await world.sound.wait(500)
        assert world.sound.played.size == heard
        await world.sound.wait(1500)
    (row,) = world.rows()
    assert [over.status for over in world.over()] == ["interrupted"]
    assert abs(row["latency"]["reply_ms"] - (played_ms - 50)) < 1


async def test_a_muted_microphone_sends_silence(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        world.talk.mute(muted=True)
        await world.sound.hear(QUESTION)
        await world.sound.wait(500)
        assert PhaseChanged("user") not in world.shown
        world.talk.mute(muted=False)
        await ask(world)
        await world.sound.wait(1500)
    assert len(world.rows()) == 1


async def test_a_device_that_goes_and_comes_back_ends_no_talk_and_spoils_the_latency(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        await world.sound.hear(QUESTION)
        world.sound.tell("lost")
        before = world.wire.sent.count("audio 320")
        await world.sound.wait(400)
        assert world.wire.sent.count("audio 320") - before >= 15  # silence is sent meanwhile
        world.sound.tell("back")
        world.wire.say("started r1", words(REPLY), "end")
        await world.sound.wait(2000)
        await ask(world, "r2")
        await world.sound.wait(2000)
    first, second = world.rows()
    assert first["status"] == "ok"
    assert not first["audit"]["latency_valid"]
    assert [one["problem"] for one in first["audit"]["troubles"]] == ["lost", "back"]
    assert second["audit"]["latency_valid"]
    assert Notice("the device says lost", serious=True) in world.shown
    (told,) = (one.text for one in world.shown if isinstance(one, Notice) and "turn" in one.text)
    assert told.startswith("turn 1: its latency is in no figure")
    assert [one.latency_valid for one in world.shown if isinstance(one, TurnOver)] == [False, True]


@pytest.mark.parametrize(("before_ms", "valid"), [(500, False), (1500, True)])
async def test_trouble_within_a_second_before_the_end_of_a_short_word_spoils_its_latency(
    tmp_path: Path, before_ms: int, valid: bool
) -> None:
    async with talking(tmp_path) as world:
        await world.sound.wait(300)
        world.sound.tell("dropped")
        await world.sound.wait(before_ms - 400)
        await world.sound.hear(tone(400, DEVICE_RATE))
        await world.sound.wait(300)
        world.wire.say("started r1", words(REPLY), "end")
        await world.sound.wait(2000)
    (row,) = world.rows()
    assert row["audit"]["latency_valid"] is valid
    assert len(row["audit"]["troubles"]) == (0 if valid else 1)


async def test_a_device_that_is_gone_is_another_phase_than_an_endpoint_that_is(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        await world.sound.wait(100)
        world.sound.tell("lost")
        await world.sound.wait(100)
        world.wire.hang_up(1006, "gone")
        await world.sound.wait(200)
        world.sound.tell("back")
        await world.sound.wait(2000)
    phases = [one.phase for one in world.shown if isinstance(one, PhaseChanged)]
    assert phases == [
        "connecting",
        "listening",
        "no-device",
        "disconnected",  # as it was when there was a device again
        "connecting",
        "listening",
        "ended",
    ]


async def test_the_devices_of_every_turn_are_in_run_json(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        await ask(world)
        await world.sound.wait(1500)
        world.sound.tell("lost")
        world.sound.microphone = "another microphone"
        world.sound.tell("back")
        for name in ("r2", "r3"):
            await ask(world, name)
            await world.sound.wait(1500)
    assert world.talk.folder is not None
    run = json.loads((world.talk.folder / "run.json").read_text())
    devices = run["live"]["devices"]
    assert [one["microphone"] for one in devices] == ["fake microphone", "another microphone"]
    assert devices[1]["since"] == world.rows()[1]["started_at"]


async def test_what_was_said_is_kept_when_the_endpoint_leaves_in_the_middle_of_a_reply(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        await world.sound.hear(QUESTION)
        await world.sound.wait(300)
        world.wire.say("started r1", words(REPLY))
        await world.sound.wait(200)
        world.wire.hang_up(1006, "gone")
        await world.sound.wait(3000)
        assert len(world.target.wires) == 2
        await ask(world, "r2")
        await world.sound.wait(1500)
    first, second = world.rows()
    assert (first["item"], first["status"]) == ("turn-1", "disconnected")
    assert "gone" in first["fault"]
    assert first["latency"]["reply_ms"] == 500
    assert (second["item"], second["status"]) == ("turn-2", "ok")
    assert any(isinstance(one, PhaseChanged) and one.phase == "disconnected" for one in world.shown)


async def test_an_endpoint_that_is_not_there_is_given_up(tmp_path: Path) -> None:
    async def leave(wire: ToyTransport) -> None:
        wire.hang_up(1001, "closing time")

    async with talking(tmp_path, play=leave) as world:
        await world.sound.wait(20_000)
        assert world.talk.fault is not None
        assert "closing time" in world.talk.fault
    assert not world.talk.answered
    assert world.talk.folder is None


async def test_a_cough_that_nobody_answers_is_no_turn(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        await world.sound.hear(np.concatenate((silence(500, DEVICE_RATE), tone(150, DEVICE_RATE))))
        await world.sound.wait(4000)
        await ask(world)
        await world.sound.wait(1500)
    assert [row["item"] for row in world.rows()] == ["turn-1"]


async def test_a_question_that_nobody_answers_is_kept_as_a_timeout(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        await world.sound.hear(QUESTION)
        await world.sound.wait(4000)
    (row,) = world.rows()
    assert row["status"] == "timeout"
    assert set(row["latency"].values()) == {None}


async def test_every_turn_lies_whole_on_the_disk_while_the_talk_goes_on(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        await ask(world)
        await world.sound.wait(1500)
        path = await world.talk.save()
        copy = tmp_path / "what a killed process leaves"
        shutil.copytree(path, copy)
        saved = [one for one in world.shown if isinstance(one, Saved)]
        assert [(one.folder, one.turns) for one in saved] == [(path, 1)]
        await world.sound.hear(QUESTION)
    with RunFolder.open(copy, write=True) as folder:
        (row,) = folder.newest_trials()
        paths = folder.attempt_paths(row)
        assert [item["item"] for item in folder.items()] == ["turn-1"]
    assert all(path.is_file() for path in (paths.events, paths.audio, paths.reply))


async def test_who_leaves_before_the_reply_blames_nobody_and_who_leaves_in_it_keeps_it(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as world:
        await ask(world, reply=LONG)
        await world.sound.wait(1000)
    (row,) = world.rows()
    assert (row["status"], row["audit"]["interrupted"]) == ("ok", True)
    async with talking(tmp_path / "second") as world:
        await world.sound.hear(QUESTION)
        await world.sound.wait(300)
    assert world.talk.folder is None


async def test_a_folder_that_cannot_be_made_ends_the_talk_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("in the way")
    with pytest.RaisesGroup(UserError):
        async with talking(tmp_path) as world:
            await ask(world)
            await world.sound.wait(1500)
            async with asyncio.timeout(20):
                await asyncio.Event().wait()  # the talk's end ends this too


async def test_a_talk_can_be_scored_and_looked_at_like_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from voxmeter.client.cli import main

    async with talking(tmp_path) as world:
        await ask(world)
        await world.sound.wait(1500)
    path = world.talk.folder
    assert path is not None
    before = world.rows()[0]["latency"]
    summary = json.loads((path / "summary.json").read_text())
    (cell,) = summary["cells"]
    assert (cell["suite"], cell["latency_kind"], cell["planned"]) == ("live", "live", 1)
    assert cell["metrics"]["first_audible_ms"]["p50"]["value"] == before["first_audible_ms"]
    assert (path / "report.html").is_file()
    assert main(["report", str(path), "--format", "md", "-o", str(tmp_path / "again")]) == 0
    async with talking(tmp_path / "second") as world:
        await ask(world)
        await world.sound.wait(1500)
    assert main(["compare", str(path), str(world.talk.folder)]) == 2
    told = capsys.readouterr()
    assert "toy/live/clean  first_audible_ms" in told.out
    assert "1 item from 1 source" in told.err  # one turn each gates nothing


async def test_a_condition_is_done_to_the_microphone_and_not_to_the_end_of_speech(
    tmp_path: Path,
) -> None:
    bench = BENCH + (
        '[[condition]]\nname = "far"\nchain = [{effect = "gain", gain_db = -6},'
        ' {effect = "gaussian-noise", snr_db = 5}, {effect = "tempo", factor = 1.5}]\n'
    )
    async with talking(tmp_path, bench=bench) as world:
        assert world.talk.next_condition() == "far"
        t0_ns, _ = await ask(world)
        await world.sound.wait(1500)
        assert world.talk.next_condition() == "clean"
        await ask(world, "r2")
        await world.sound.wait(1500)
    first, second = world.rows()
    assert (first["condition"], second["condition"]) == ("far", "clean")
    assert first["t0_ns"] == t0_ns
    assert first["condition_params"]["left_out"] == ["tempo"]
    assert first["clip"]["sha256"] != second["clip"]["sha256"]
    assert Notice('"far" without tempo: not possible live.') in world.shown


@pytest.mark.parametrize("rate", [44_100, 16_000])
async def test_a_device_of_another_rate_is_as_exact(tmp_path: Path, rate: int) -> None:
    async with talking(tmp_path, rate=rate) as world:
        question = np.concatenate((silence(600, rate), tone(400, rate)))
        began_ns = await world.sound.hear(question)
        await world.sound.wait(300)
        world.wire.say("started r1", words(REPLY), "end")
        await world.sound.wait(2000)
    (row,) = world.rows()
    assert abs(row["t0_ns"] - began_ns - 1_000_000_000) < 1e9 / TOY_RATE
    heard_ns = world.sound.heard[0][1] + world.sound.lag_ns + 50_000_000
    truth_ms = (heard_ns - row["t0_ns"]) / 1e6
    assert abs(row["latency"]["first_audible_ms"] - truth_ms) < 0.2
