"""The speaking half under a bad clock: deadlines stay where they were, and lateness is told."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from captures import attempt_in
from fakes import FrozenClock, Play, ToyCodec, ToyTransport

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.finish import finish
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.endpoints.codec import Address, Traits

MS = 1_000_000
FRAME = 20 * MS
RATE = 8_000
SOUND = "sound " + ("0040" * 10 + "00c0" * 10) * 40
CLIP_FRAMES = 100


class BadClock(FrozenClock):
    """Wakes every sleeper late, and stands still once for a long while."""

    def __init__(self, late_ms: float = 0, stall_ms: float = 0, stall_at: int = -1) -> None:
        super().__init__()
        self.late, self.stall = int(late_ms * MS), int(stall_ms * MS)
        self.stall_at, self.sleeps = stall_at, 0

    async def sleep_until(self, t_ns: int) -> None:
        late = self.late if t_ns > self.t_ns else 0
        stalled = self.stall if self.sleeps == self.stall_at else 0
        self.sleeps += 1
        await super().sleep_until(t_ns + late + stalled)


async def answering(peer: ToyTransport) -> None:
    peer.say("ready")
    await peer.until(CLIP_FRAMES + 5, "audio")
    peer.say("started r", SOUND, "text Yes.", "end")


async def asked(clock: FrozenClock, play: Play = answering, **how: Any) -> Capture:
    transport = ToyTransport(play)
    transport.now = clock.now
    samples = CLIP_FRAMES * RATE // 50

    def question(rate: int) -> Utterance:
        return Utterance(b"\0\x20" * samples, rate, 0, samples)

    patience = Patience(drain_ms=0)
    traits = how.pop("traits", Traits(RATE))
    ask = Ask(question, patience=patience, **how)
    return await converse(ToyCodec(traits), transport, Address("toy://x"), ask, clock=clock)


def frames(capture: Capture) -> list[dict[str, Any]]:
    return [row for row in capture.rows if row["kind"] == "audio"][:CLIP_FRAMES]


def lateness_ms(capture: Capture) -> list[float]:
    return [(row["t_ns"] - row["due_ns"]) / MS for row in frames(capture)]


async def test_a_loop_that_always_wakes_late_never_falls_behind() -> None:  # PC-02
    capture = await asked(BadClock(late_ms=10))
    assert set(lateness_ms(capture)) == {10.0}
    due = [row["due_ns"] for row in frames(capture)]
    assert {b - a for a, b in itertools.pairwise(due)} == {FRAME}


async def test_how_late_frames_left_is_in_the_row(tmp_path: Path) -> None:  # PC-02
    row = finish(await asked(BadClock(late_ms=10)), attempt_in(tmp_path))
    lateness = row["audit"]["send_lateness_ms"]
    assert (lateness["p50"], lateness["max"]) == (10.0, 10.0)
    assert row["audit"]["latency_valid"] is True


async def test_after_a_stall_what_is_overdue_leaves_at_once_and_no_more() -> None:  # PC-03
    capture = await asked(BadClock(stall_ms=500, stall_at=50))
    late = lateness_ms(capture)
    assert late[:50] == [0.0] * 50
    assert late[50:76] == [float(ms) for ms in range(500, -20, -20)]
    assert late[76:] == [0.0] * 24
    burst = [bool(row.get("burst")) for row in frames(capture)]
    assert burst == [False] * 50 + [True] * 25 + [False] * 25


async def test_lateness_is_measured_when_a_frame_leaves_also_without_a_wait() -> None:  # PC-04
    capture = await asked(BadClock(stall_ms=500, stall_at=50))
    overdue = [ms for ms in lateness_ms(capture) if ms > 20]
    assert len(overdue) == 24
    assert max(overdue) == 500.0


@pytest.mark.parametrize(("stall_at", "valid"), [(10, True), (60, False), (90, False)])
async def test_a_stall_near_the_end_of_speech_spoils_the_latency_and_not_the_answer(
    stall_at: int, valid: bool, tmp_path: Path
) -> None:  # PC-03
    capture = await asked(BadClock(stall_ms=500, stall_at=stall_at))
    row = finish(capture, attempt_in(tmp_path))
    assert row["audit"]["latency_valid"] is valid
    assert (row["audit"]["late_frames"] > 0) == (not valid)
    assert row["audit"]["send_lateness_ms"]["max"] == 500.0
    assert (row["status"], row["reply_text"]) == ("ok", "Yes.")


async def test_the_end_of_speech_is_when_its_frame_really_left() -> None:
    clean, stalled = await asked(BadClock()), await asked(BadClock(stall_ms=30, stall_at=99))
    for capture, late in ((clean, 0), (stalled, 30)):
        last = frames(capture)[-1]
        assert last["t_ns"] - capture.rows[0]["t_ns"] == CLIP_FRAMES * FRAME + late * MS


@pytest.mark.parametrize("place_ms", [1, 7, 19])
async def test_a_staggered_session_keeps_its_own_place_in_the_beat_of_all(place_ms: int) -> None:
    plain = await asked(FrozenClock())
    moved = await asked(FrozenClock(), stagger_ns=place_ms * MS)
    start, at_once = moved.rows[0]["t_ns"], plain.rows[0]["t_ns"]
    assert start % FRAME == place_ms * MS  # whenever it began
    assert 0 <= start - at_once < FRAME
    assert all(row["due_ns"] % FRAME == place_ms * MS for row in frames(moved))


async def test_an_endpoint_that_never_greets_is_asked_all_the_same() -> None:
    async def silent(peer: ToyTransport) -> None:
        peer.say("ready")
        await peer.until(CLIP_FRAMES + 500, "audio")
        peer.say(SOUND, "end")

    capture = await asked(FrozenClock(), silent, traits=Traits(RATE, first_speaker="endpoint"))
    assert capture.outcome == "ended"
    assert capture.rows[0]["lead_in_samples"] == 10 * RATE


async def test_silence_that_a_protocol_wants_goes_before_the_clip() -> None:
    capture = await asked(FrozenClock(), traits=Traits(RATE, lead_in_ms=90))
    header = capture.rows[0]
    assert header["lead_in_samples"] == 5 * 160
    assert header["onset_sample"] == 5 * 160


async def test_fast_pacing_is_real_time_again_once_the_clip_has_left() -> None:
    capture = await asked(FrozenClock(), pacing="fast")
    silence = [row for row in capture.rows if row["kind"] == "audio"][CLIP_FRAMES:]
    gaps = [b["t_ns"] - a["t_ns"] for a, b in itertools.pairwise(silence)]
    assert set(gaps) == {FRAME}


@pytest.mark.parametrize("encoding", ["pcmu", "opus"])
async def test_the_question_is_sent_in_the_encoding_that_the_peer_takes(encoding: Any) -> None:
    if encoding == "opus":
        pytest.importorskip("sphn")
    capture = await asked(FrozenClock(), traits=Traits(RATE, input_encoding=encoding))
    sent = sum(row["bytes"] for row in frames(capture))
    assert 0 < sent < CLIP_FRAMES * 320 + CLIP_FRAMES * len("audio 320")
    assert sum(row["samples"] for row in frames(capture)) == CLIP_FRAMES * 160


async def test_a_server_that_closes_turns_itself_is_sent_no_commit() -> None:  # PR-10
    transport = ToyTransport(answering)
    clock = FrozenClock()
    ask = Ask(lambda rate: Utterance(bytes(2 * rate), rate, 0, rate), patience=Patience(drain_ms=0))
    await converse(ToyCodec(Traits(RATE)), transport, Address("toy://x"), ask, clock=clock)
    assert "commit" not in transport.sent
