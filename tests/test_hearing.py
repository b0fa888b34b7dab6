"""Turns of known audio: what is captured of them, and when their speech really ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from voxmeter.client.audio import read, resample
from voxmeter.client.servers.hearing import Captured, Hearing, Piece
from voxmeter.client.servers.voice import babble
from voxmeter.scoring.speech import speech_bounds

RATE = 24_000
FRAME = RATE // 50
NS = 1_000_000_000
START = 7_000_000_000


def silence(ms: float) -> NDArray[np.float32]:
    return np.zeros(round(ms * RATE / 1000), np.float32)


def arrival(sample: int) -> int:
    """When a sample exists, in a stream that is sent in real time."""
    return START + sample * NS // RATE


def listen(stream: NDArray[np.float32], hearing: Hearing, frame: int = FRAME) -> list[Captured]:
    """Feed a stream frame by frame, each on time; return the turns that its quiet closes."""
    turns = []
    for start in range(0, len(stream), frame):
        part = stream[start : start + frame]
        changes = hearing.hear(part, arrival(start + len(part)))
        turns += [hearing.close() for change in changes if change.kind == "stopped"]
    return turns


def hearing(*, detect: bool = True, limit_s: float = 60) -> Hearing:
    return Hearing(RATE, 200, limit_s=limit_s, detect=detect)


CLIPS = {
    "babble": babble(RATE, 0.7),
    "a short word": babble(RATE, 0.15),
    "soft": babble(RATE, 0.7) * 0.05,
    "with a stop": np.concatenate([babble(RATE, 0.3), silence(80), babble(RATE, 0.2)]),
    "fading": babble(RATE, 0.8) * np.linspace(1, 0.02, round(0.8 * RATE), dtype=np.float32),
}


@pytest.mark.parametrize("lead_ms", [60, 333.3, 5000])
@pytest.mark.parametrize("name", CLIPS)
def test_the_end_is_when_the_last_voiced_sample_arrived(name: str, lead_ms: float) -> None:
    clip = CLIPS[name]
    stream = np.concatenate([silence(lead_ms), clip, silence(400)])
    (turn,) = listen(stream, hearing())
    wanted = arrival(len(silence(lead_ms)) + len(clip))
    assert abs(turn.end_ns(turn.samples()) - wanted) <= 5_000_000


@pytest.mark.parametrize("frame", [240, 480, 1111, 2400])
def test_the_end_does_not_depend_on_the_length_of_messages(frame: int) -> None:
    stream = np.concatenate([silence(100), CLIPS["babble"], silence(500)])
    (turn,) = listen(stream, hearing(), frame)
    wanted = arrival(len(silence(100)) + len(CLIPS["babble"]))
    assert abs(turn.end_ns(turn.samples()) - wanted) <= 1_000


def test_a_late_message_moves_the_end_by_as_much() -> None:
    clip = np.concatenate([silence(100), CLIPS["babble"], silence(10)])
    late = 50_000_000
    turn = Captured((Piece(0, clip, START + late), Piece(len(clip), silence(300), START)), RATE)
    assert turn.end_ns(turn.samples()) == pytest.approx(START + late - 10_000_000, abs=1_000)


def test_without_anything_audible_the_end_is_the_last_arrival() -> None:
    turn = Captured((Piece(0, silence(100), START), Piece(2400, silence(100), START + 5)), RATE)
    assert turn.end_ns(turn.samples()) == START + 5


def test_a_forgotten_turn_is_no_part_of_the_next() -> None:
    ears = hearing()
    first = np.concatenate([silence(100), CLIPS["babble"], silence(210)])
    (turn,) = listen(first, ears)
    ears.forget()
    (second,) = listen(first, ears)
    assert len(second.samples()) <= len(turn.samples()) + FRAME


def test_a_turn_that_was_not_forgotten_goes_on() -> None:
    ears = hearing()
    stream = np.concatenate([silence(100), CLIPS["babble"], silence(210)])
    listen(stream, ears)
    (both,) = listen(stream, ears)
    assert len(both.samples()) > 2 * len(CLIPS["babble"])


def test_quiet_before_speech_is_kept_for_seconds_only() -> None:
    ears = hearing()
    listen(silence(60_000), ears)
    assert len(ears.close().samples()) <= 4 * RATE


@pytest.mark.parametrize("speech_s", [3, 8, 20])
def test_a_turn_that_quiet_ends_is_whole_however_long_it_is(speech_s: float) -> None:
    clip = babble(RATE, speech_s)
    stream = np.concatenate([silence(300), clip, silence(400)])
    (turn,) = listen(stream, hearing())
    assert len(turn.samples()) >= len(silence(300)) + len(clip)


def test_of_a_turn_over_the_limit_the_beginning_is_lost() -> None:
    ears = hearing(detect=False, limit_s=2)
    listen(np.concatenate([babble(RATE, 5.0), silence(100)]), ears)
    turn = ears.close().samples()
    assert len(turn) <= 2 * RATE + FRAME
    assert not turn[-2400:].any()


def test_cleared_audio_is_gone() -> None:
    ears = hearing(detect=False)
    listen(CLIPS["babble"], ears)
    ears.clear()
    listen(silence(40), ears)
    assert len(ears.close().samples()) == len(silence(40))


SPOKEN = ["hamlet", "plants-gas", "capital-japan-espeak", "planet-red-piper", "two-hours"]


@pytest.mark.parametrize("name", SPOKEN)
def test_real_speech_is_one_turn_that_ends_where_the_clean_clip_does(name: str) -> None:
    from voxmeter import suites

    (folder,) = suites.__path__
    clip = resample(read(Path(folder) / "demo_items" / f"{name}.ogg"), RATE).samples
    bounds = speech_bounds(clip, RATE)
    assert bounds is not None
    stream = np.concatenate([silence(100), clip, silence(400)])
    (turn,) = listen(stream, hearing())
    wanted = arrival(len(silence(100)) + bounds.end_sample)
    assert abs(turn.end_ns(turn.samples()) - wanted) <= 5_000_000
