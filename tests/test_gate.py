"""The live gate opens on speech, waits out stops and pauses, and adapts to noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from voxmeter.client.servers.gate import Change, Gate
from voxmeter.client.servers.voice import babble

RATE = 16_000
FRAME = RATE // 200


def silence(ms: float) -> NDArray[np.float32]:
    return np.zeros(round(ms * RATE / 1000), np.float32)


def noise(ms: float, level_db: float, seed: int = 1) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).standard_normal(round(ms * RATE / 1000))
    return (drawn * 10 ** (level_db / 20)).astype(np.float32)


def tone(ms: float, level: float = 0.3) -> NDArray[np.float32]:
    time = np.arange(round(ms * RATE / 1000)) / RATE
    return (level * np.sin(2 * np.pi * 440 * time)).astype(np.float32)


def changes(*parts: NDArray[np.float32], quiet_ms: int = 200, message: int = 320) -> list[Change]:
    gate, stream = Gate(RATE, quiet_ms), np.concatenate(parts)
    return [
        change
        for start in range(0, len(stream), message)
        for change in gate.hear(stream[start : start + message])
    ]


def test_speech_in_digital_silence_is_found_to_the_frame() -> None:
    sound = babble(RATE, 0.5)
    started, stopped = changes(silence(300), sound, silence(300))
    assert started == ("started", 300 * RATE // 1000)
    assert stopped.kind == "stopped"
    assert abs(stopped.sample - (300 * RATE // 1000 + len(sound))) <= FRAME


@pytest.mark.parametrize("message", [1, 7, 320, 333, 100_000])
def test_how_the_audio_is_cut_into_messages_changes_nothing(message: int) -> None:
    parts = (silence(103), babble(RATE, 0.3), silence(300))
    assert changes(*parts, message=message) == changes(*parts)


def test_a_click_is_not_speech() -> None:
    assert changes(silence(200), tone(40), silence(500)) == []


def test_a_stop_consonant_does_not_part_a_word() -> None:
    found = changes(silence(200), tone(40), silence(80), babble(RATE, 0.3), silence(300))
    assert [one.kind for one in found] == ["started", "stopped"]
    assert found[0].sample == 200 * RATE // 1000


def test_a_pause_shorter_than_the_quiet_is_part_of_the_turn() -> None:
    word = babble(RATE, 0.3)
    parts = (silence(100), word, silence(180), word, silence(400))
    assert [one.kind for one in changes(*parts)] == ["started", "stopped"]
    assert [one.kind for one in changes(*parts, quiet_ms=150)] == ["started", "stopped"] * 2


@pytest.mark.parametrize("level_db", [-70, -50, -40, -30])
def test_speech_is_found_in_steady_noise_that_never_ends(level_db: float) -> None:
    sound = np.concatenate([silence(1000), babble(RATE, 1.0), silence(3500)])
    stream = sound + noise(1000 * len(sound) / RATE, level_db)
    started, stopped = changes(stream)
    assert started.kind == "started"
    assert abs(started.sample - RATE) <= 0.1 * RATE
    assert stopped.kind == "stopped"
    assert abs(stopped.sample - 2 * RATE) <= 0.1 * RATE


def test_a_tone_that_was_there_from_the_first_sample_is_known_once_it_stops() -> None:
    started, stopped = changes(tone(1500), silence(600))
    assert started == ("started", 0)
    assert abs(stopped.sample - 1500 * RATE // 1000) <= FRAME


def test_a_long_steady_sound_does_not_become_the_floor() -> None:
    found = changes(silence(500), tone(8000), silence(600))
    assert [one.kind for one in found] == ["started", "stopped"]
    assert abs(found[1].sample - 8500 * RATE // 1000) <= FRAME


def test_silence_and_noise_alone_are_no_turn() -> None:
    assert changes(silence(5000)) == []
    assert changes(noise(8000, -30)) == []
