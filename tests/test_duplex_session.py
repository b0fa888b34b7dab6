"""Whole full-duplex sessions, from the first frame to the files, against a scripted Moshi server.

The server's output is known to the sample, and so is when each message is due (`moshi_world`); what
is asserted are the marks, roles and files that follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from attempt_logs import Samples, silence, voice
from captures import attempt_in
from moshi_world import (
    LAG_MS,
    ONSET_MS,
    OPUS_MS,
    PATIENCE,
    RATE,
    T0_MS,
    Script,
    World,
    converse_with,
)

from voxmeter.client.audio import read
from voxmeter.client.capture import Capture
from voxmeter.client.finish import finish
from voxmeter.client.speaking import Patience
from voxmeter.endpoints.codec import Json

pytest.importorskip("sphn")

ONSET_EDGE_MS, EDGE_MS = 15, 45
"""Opus delays sound and spreads its hard edges by no more than this: ends ring on."""


@dataclass(frozen=True)
class Trial:
    """What a session came to."""

    row: dict[str, Any]
    capture: Capture
    world: World
    reply: Samples
    stream: Samples

    @property
    def roles(self) -> list[str]:
        return [segment["role"] for segment in self.row["segments"]]

    def ms(self, name: str) -> float:
        value = self.row["latency"][name]
        assert isinstance(value, float | int), name
        return value


async def trial(
    folder: Path,
    script: Script,
    patience: Patience = PATIENCE,
    *,
    fast: bool = False,
    **options: Json,
) -> Trial:
    capture, world = await converse_with(script, patience, fast=fast, **options)
    attempt = attempt_in(folder)
    row = finish(capture, attempt)
    reply = samples_of(attempt.paths.reply)
    stream = samples_of(attempt.paths.stream) if attempt.paths.stream.exists() else reply
    return Trial(row, capture, world, reply, stream)


def samples_of(file: Path) -> Samples:
    """Return what a file holds; one of no samples, or none at all, holds nothing."""
    return read(file).samples if file.exists() and file.stat().st_size else silence(0)


def near(ms: float) -> Any:
    """Be what an onset is about, ms."""
    return pytest.approx(ms, abs=ONSET_EDGE_MS)


def about(ms: float) -> Any:
    """Be what an end or a length is about, ms."""
    return pytest.approx(ms, abs=EDGE_MS)


def sounding_ms(samples: Samples) -> float:
    """Return how much of it is sound, in pieces of 5 ms."""
    frames = samples[: samples.size // 120 * 120].reshape(-1, 120)
    return float((np.abs(frames).max(axis=1) > 0.02).sum() * 5)


async def test_an_answer_has_a_latency_by_the_clock_and_one_in_the_stream(tmp_path: Path) -> None:
    script = Script([(1800, voice(700))], [(1720, " Par"), (1800, "is.")])
    found = await trial(tmp_path, script)
    assert (found.row["status"], found.row["latency_kind"]) == ("ok", "duplex")
    assert found.roles == ["answer"]
    assert found.ms("stream_first_audible_ms") == near(1800 - T0_MS)
    assert found.ms("first_audible_ms") == near(1800 + LAG_MS - T0_MS)
    gap = found.ms("first_audible_ms") - found.ms("stream_first_audible_ms")
    assert gap == pytest.approx(LAG_MS, abs=0.1)
    assert found.row["latency"]["first_packet_ms"] is None
    assert found.row["latency"]["leading_silence_ms"] is None
    assert found.ms("reply_ms") == about(700)
    assert found.ms("first_text_ms") == 1680 + LAG_MS - T0_MS  # the frame that holds 1720 ms
    assert found.ms("stalls") == 0
    assert found.row["reply_text"] == "Paris."
    assert found.row["audit"]["latency_valid"]
    assert found.row["fault"] is None


async def test_the_reply_file_is_the_answer_alone_and_the_stream_file_everything(
    tmp_path: Path,
) -> None:
    script = Script([(500, voice(300)), (2600, voice(600))])
    found = await trial(tmp_path, script)
    assert sounding_ms(found.reply) == about(600)
    assert found.reply.size / RATE * 1000 == about(600)
    assert sounding_ms(found.stream) == pytest.approx(900, abs=2 * EDGE_MS)
    # From the answer's end it took 1.5 s of quiet, whole frames, and no more.
    assert found.stream.size / RATE * 1000 == pytest.approx(2600 + 600 + 1500, abs=160)
    both, rate = _channels(tmp_path)
    assert rate == RATE
    asked = np.flatnonzero(np.abs(both[:, 0]) > 0.02)
    assert asked[0] / RATE * 1000 == pytest.approx(ONSET_MS, abs=1)
    assert asked[-1] / RATE * 1000 == pytest.approx(T0_MS, abs=1)
    heard = np.flatnonzero(np.abs(both[:, 1]) > 0.02)
    assert heard[0] / RATE * 1000 == near(500 + LAG_MS)


async def test_the_server_hears_the_question_whole_after_its_lead_in(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script([(1800, voice(300))]))
    heard = np.concatenate(found.world.heard)
    loud = np.flatnonzero(np.abs(heard) > 0.05)
    assert loud[0] / RATE * 1000 == near(ONSET_MS + OPUS_MS)
    assert loud[-1] / RATE * 1000 == about(T0_MS + OPUS_MS)
    rows = [row for row in found.capture.rows if row["kind"] == "audio"]
    assert {row["samples"] for row in rows} == {1920}
    assert all(row["t_ns"] == row["due_ns"] for row in rows)


@pytest.mark.parametrize("frame_ms", [20, 40])
async def test_shorter_frames_change_no_latency(tmp_path: Path, frame_ms: int) -> None:
    found = await trial(tmp_path, Script([(1800, voice(400))]), frame_ms=frame_ms)
    assert found.row["status"] == "ok"
    assert found.ms("stream_first_audible_ms") == near(1800 - T0_MS)
    assert found.ms("first_audible_ms") == near(1800 + LAG_MS - T0_MS)
    sizes = [row["bytes"] for row in found.capture.rows if row["kind"] == "audio"]
    assert (0 in sizes) == (frame_ms == 20)  # a page of Opus holds 40 ms


async def test_a_greeting_is_heard_out_before_the_question(tmp_path: Path) -> None:
    script = Script([(200, voice(600)), (6000, voice(500))], [(240, "Hello!"), (5950, " Paris.")])
    found = await trial(tmp_path, script, first_speaker="endpoint")
    assert found.roles == ["greeting", "answer"]
    header = found.capture.rows[0]
    greeted_ms = 200 + 600 + 1500 + LAG_MS
    asked_ms = header["lead_in_samples"] / RATE * 1000
    assert greeted_ms <= asked_ms <= greeted_ms + 240 + 2 * 80
    t0_ms = header["speech_end_sample"] / RATE * 1000
    assert found.ms("stream_first_audible_ms") == near(6000 - t0_ms)
    assert found.row["reply_text"] == "Paris."
    assert sounding_ms(found.reply) == about(500)
    greeting = found.row["segments"][0]
    assert greeting["end_ms"] == about(200 + 600 + LAG_MS - t0_ms)
    assert greeting["end_ms"] < 0


async def test_a_server_that_does_not_greet_is_asked_after_a_while(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script([(6000, voice(400))]), first_speaker="endpoint")
    lead_in_ms = found.capture.rows[0]["lead_in_samples"] / RATE * 1000
    assert 3000 <= lead_in_ms <= 3000 + 240 + 2 * 80
    assert found.roles == ["answer"]


async def test_a_greeting_that_goes_on_into_the_question_is_no_answer(tmp_path: Path) -> None:
    script = Script([(100, voice(1400)), (3400, voice(500))], [(120, "Hello!"), (3300, " Paris.")])
    found = await trial(tmp_path, script)
    assert found.roles == ["greeting", "answer"]
    assert found.row["status"] == "ok"
    assert found.ms("stream_first_audible_ms") == near(3400 - T0_MS)
    assert found.row["reply_text"] == "Paris."


async def test_a_greeting_across_the_question_alone_is_no_reply(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script([(100, voice(1400))]))
    assert found.roles == ["greeting"]
    assert found.row["status"] == "no_reply"
    assert found.row["fault"] == (
        "what it said had begun before the question, and went on behind it"
    )
    assert found.reply.size == 0
    assert sounding_ms(found.stream) == about(1400)
    assert all(value is None for value in found.row["latency"].values())


async def test_a_backchannel_within_the_question_is_not_the_answer(tmp_path: Path) -> None:
    script = Script([(500, voice(300)), (2600, voice(600))], [(500, "Mhm."), (2550, " Paris.")])
    found = await trial(tmp_path, script)
    assert found.roles == ["backchannel", "answer"]
    assert found.row["segments"][0]["end_ms"] == about(800 + LAG_MS - T0_MS)
    assert found.ms("stream_first_audible_ms") == near(2600 - T0_MS)
    assert found.ms("first_text_ms") == 2480 + LAG_MS - T0_MS  # not the backchannel's
    assert found.row["reply_text"] == "Paris."


async def test_a_backchannel_that_nothing_follows_is_no_reply(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script([(500, voice(300))]))
    assert found.roles == ["backchannel"]
    assert found.row["status"] == "no_reply"
    assert found.row["latency"]["first_audible_ms"] is None


async def test_talk_over_is_a_negative_latency_and_an_answer(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script([(800, voice(1200))], [(820, "Paris!")]))
    assert found.row["status"] == "ok"
    assert found.roles == ["talk-over"]
    assert found.ms("first_audible_ms") == near(800 + LAG_MS - T0_MS)
    assert found.ms("first_audible_ms") < 0
    assert found.ms("reply_ms") == about(1200)
    assert sounding_ms(found.reply) == about(1200)
    assert found.row["reply_text"] == "Paris!"


async def test_a_sound_that_a_listener_still_hears_at_the_end_of_the_question_is_talk_over(
    tmp_path: Path,
) -> None:
    # Its last piece has arrived by t0, and is still playing.
    found = await trial(tmp_path, Script([(700, voice(400))]))
    assert found.roles == ["talk-over"]
    assert found.row["status"] == "ok"
    assert found.row["segments"][0]["end_ms"] == about(700 + 400 + LAG_MS - T0_MS)
    silent_ms = found.stream.size / RATE * 1000 - (700 + 400)
    assert silent_ms == pytest.approx(1500, abs=160)  # it ended there, by no time-out


@pytest.mark.parametrize("pause_ms", [300, 800, 1400])
async def test_pauses_inside_of_an_answer_do_not_end_it(tmp_path: Path, pause_ms: int) -> None:
    places = [1800, 1800 + 400 + pause_ms, 1800 + 2 * (400 + pause_ms)]
    found = await trial(tmp_path, Script([(at, voice(400)) for at in places]))
    assert found.roles == ["answer"]
    assert found.ms("reply_ms") == about(3 * 400 + 2 * pause_ms)
    assert sounding_ms(found.reply) == pytest.approx(1200, abs=3 * EDGE_MS)
    assert found.ms("stalls") == 0


async def test_a_second_and_a_half_of_quiet_ends_an_answer(tmp_path: Path) -> None:
    script = Script([(1800, voice(400)), (1800 + 400 + 1560, voice(400))])
    found = await trial(tmp_path, script)
    assert found.roles == ["answer"]
    assert found.row["status"] == "ok"
    assert sounding_ms(found.reply) == about(400)
    assert sounding_ms(found.stream) == about(400)  # nobody stayed to hear the rest


async def test_what_comes_later_is_no_part_of_the_answer(tmp_path: Path) -> None:
    script = Script([(1800, voice(400)), (1800 + 400 + 1560, voice(300))])
    found = await trial(tmp_path, script, replace(PATIENCE, quiet_ms=2500))
    assert found.roles == ["answer", "later"]
    assert sounding_ms(found.reply) == about(400)
    assert sounding_ms(found.stream) == pytest.approx(700, abs=2 * EDGE_MS)
    assert found.ms("reply_ms") == about(400)


async def test_a_model_that_never_stops_is_cut_and_scored_on_what_came(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script([(1800, voice(30_000))]))
    assert found.row["status"] == "truncated"
    assert found.roles == ["answer"]
    limit_ms = PATIENCE.reply_limit_s * 1000
    assert found.reply.size / RATE * 1000 == pytest.approx(T0_MS + limit_ms - 1800, abs=400)
    assert found.ms("first_audible_ms") == near(1800 + LAG_MS - T0_MS)


async def test_a_model_that_has_babbled_from_the_beginning_gave_no_answer(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script([(at, voice(300)) for at in range(0, 30_000, 500)]))
    assert found.roles == ["greeting"]
    assert found.row["status"] == "no_reply"
    assert found.reply.size == 0
    assert found.stream.size > 0


async def test_a_stream_that_stays_silent_is_no_reply(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script(words=[(1800, "(sighs)")]))
    assert found.row["status"] == "no_reply"
    assert found.roles == []
    assert found.ms("first_text_ms") == 1760 + LAG_MS - T0_MS
    assert found.row["reply_text"] == "(sighs)"
    limit_ms = PATIENCE.first_reply_timeout_s * 1000
    assert found.stream.size / RATE * 1000 == pytest.approx(T0_MS + limit_ms, abs=400)
    assert found.row["latency"]["stream_first_audible_ms"] is None


async def test_a_hiss_under_everything_changes_nothing(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script([(1800, voice(700))], floor=0.002))
    assert found.roles == ["answer"]
    assert found.ms("stream_first_audible_ms") == near(1800 - T0_MS)
    assert found.ms("reply_ms") == about(700)
    assert found.stream.size / RATE * 1000 == pytest.approx(1800 + 700 + 1500, abs=160)


async def test_a_server_slower_than_real_time_is_not_taken_for_a_silent_one(
    tmp_path: Path,
) -> None:
    # A pause of 1.2 s in the stream takes 1.8 s by the clock.
    script = Script([(1800, voice(400)), (3400, voice(400))], pace=1.5)
    found = await trial(tmp_path, script, replace(PATIENCE, reply_limit_s=20))
    assert found.row["status"] == "ok"
    assert found.roles == ["answer"]
    assert found.ms("reply_ms") == about(2000)
    assert sounding_ms(found.reply) == pytest.approx(800, abs=2 * EDGE_MS)
    assert found.ms("stream_first_audible_ms") == near(1800 - T0_MS)  # as on a fast machine
    late_ms = 0.5 * 1760  # by the frame that holds the onset
    assert found.ms("first_audible_ms") == near(1800 + late_ms + LAG_MS - T0_MS)
    assert found.ms("stall_ms") == pytest.approx(0.5 * 2000, abs=80)
    assert found.ms("delivery_rate") == pytest.approx(1 / 1.5, abs=0.01)


async def test_after_a_hiccup_the_player_drops_silence_and_the_answer_is_not_late(
    tmp_path: Path,
) -> None:
    script = Script([(2600, voice(600))], hiccups={1400: 600})
    found = await trial(tmp_path, script)
    assert found.ms("first_audible_ms") == near(2600 + LAG_MS - T0_MS)
    assert found.ms("stream_first_audible_ms") == near(2600 - T0_MS)
    assert found.ms("stalls") == 0


async def test_a_hiccup_just_before_the_answer_is_in_the_latency_by_the_clock_alone(
    tmp_path: Path,
) -> None:
    script = Script([(2600, voice(600))], hiccups={2560: 500})
    found = await trial(tmp_path, script)
    assert found.ms("first_audible_ms") == near(2600 + 500 + LAG_MS - T0_MS)
    assert found.ms("stream_first_audible_ms") == near(2600 - T0_MS)


async def test_a_hiccup_within_the_answer_is_a_stall_and_nothing_is_lost(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script([(1800, voice(900))], hiccups={2300: 600}))
    assert found.row["status"] == "ok"
    assert found.ms("stalls") == 1
    assert found.ms("stall_ms") == pytest.approx(600, abs=1)
    assert found.ms("reply_ms") == about(900)
    assert sounding_ms(found.reply) == about(900)
    assert found.ms("reply_end_ms") == about(1800 + 900 + 600 + LAG_MS - T0_MS)


async def test_a_connection_dropped_amid_the_answer_is_disconnected_with_what_came(
    tmp_path: Path,
) -> None:
    found = await trial(tmp_path, Script([(1800, voice(900))], drop_ms=2300))
    assert found.row["status"] == "disconnected"
    assert "1006" in found.row["fault"]
    assert found.roles == ["answer"]
    assert sounding_ms(found.reply) == about(2240 - 1800)
    assert found.ms("first_audible_ms") == near(1800 + LAG_MS - T0_MS)


async def test_a_server_whose_lock_another_session_holds_is_disconnected_with_a_clear_text(
    tmp_path: Path,
) -> None:
    found = await trial(tmp_path, Script(taken=True), replace(PATIENCE, connect_timeout_s=0.3))
    assert found.row["status"] == "disconnected"
    assert found.row["fault"] == "connected, but no session within 0.3 s: busy?"
    assert found.row["connect_ms"] is None
    assert found.row["t0_ns"] is None
    assert not any(row["kind"] == "audio" for row in found.capture.rows)


@pytest.mark.parametrize(("first", "role"), [((100, 400), "greeting"), ((500, 300), "backchannel")])
async def test_a_question_without_pacing_is_answered_by_places_in_the_stream(
    tmp_path: Path, first: tuple[int, int], role: str
) -> None:
    # All of the question has left before anything of the stream has come.
    sound = [(first[0], voice(first[1])), (2700, voice(500))]
    script = Script(sound, [(first[0], "Hello!"), (2650, "Paris.")])
    found = await trial(tmp_path, script, fast=True)
    assert found.row["status"] == "ok"
    assert found.roles == [role, "answer"]
    assert sounding_ms(found.reply) == about(500)
    assert found.row["reply_text"] == "Paris."
    assert all(value is None for value in found.row["latency"].values())


async def test_the_rust_server_tells_its_settings_first_and_sends_headers_alone(
    tmp_path: Path,
) -> None:
    metadata = b'\4{"lm_model_file":"model.q8.gguf"}'
    script = Script([(1800, voice(400))], greets=(metadata, bytes(9)))
    found = await trial(tmp_path, script)
    assert found.row["status"] == "ok"
    ready = next(row for row in found.capture.rows if row["kind"] == "ready")
    assert ready["note"] == metadata[1:].decode()


async def test_an_error_of_the_servers_refuses_the_trial_in_its_own_words(tmp_path: Path) -> None:
    found = await trial(tmp_path, Script(greets=(b"\5no model is loaded",)))
    assert (found.row["status"], found.row["fault"]) == ("refused", "server: no model is loaded")


async def test_pages_that_are_none_end_no_session_and_are_told_of(tmp_path: Path) -> None:
    script = Script([(1800, voice(400))], greets=(b"\0", b"\1not Opus"))
    found = await trial(tmp_path, script)
    assert found.row["status"] == "ok"  # what follows them is heard
    assert found.row["fault"].startswith("a piece of opus audio could not be decoded: ")


@pytest.mark.parametrize("seed", range(12))
async def test_a_trial_ends_behind_what_its_marks_call_the_answer(
    tmp_path: Path, seed: int
) -> None:
    draw = Random(seed)  # noqa: S311 - a draw that repeats
    at_ms, sound = draw.uniform(0, 1500), []
    for _ in range(draw.randint(0, 5)):
        length_ms = draw.choice([60, 150, 300, 700, 1500])
        sound.append((at_ms, voice(length_ms)))
        at_ms += length_ms + draw.choice([100, 200, 500, 1000, 1400, 1600, 2500])
    hiccups = {draw.uniform(0, 4000): draw.choice([100, 400, 900])}
    script = Script(sound, pace=draw.choice([1.0, 1.2]), hiccups=hiccups)
    found = await trial(tmp_path, script, replace(PATIENCE, reply_limit_s=15))
    heard_ms = found.stream.size / RATE * 1000
    if {"answer", "talk-over"} & set(found.roles):
        assert found.row["status"] == "ok"
        quiet_ms = heard_ms - found.row["segments"][-1]["stream_end_ms"]
        assert quiet_ms == pytest.approx(1500, abs=160)
        assert found.reply.size
    else:
        assert found.row["status"] == "no_reply"
        waited_ms = (found.capture.ended_ns - found.row["t0_ns"]) / 1e6
        assert waited_ms >= PATIENCE.first_reply_timeout_s * 1000
        assert not found.reply.size


def _channels(folder: Path) -> tuple[Samples, int]:
    import soundfile

    samples, rate = soundfile.read(folder / "audio" / "one.flac", dtype="float32")
    return samples, rate
