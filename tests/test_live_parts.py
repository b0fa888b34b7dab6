"""The parts of a live talk: resampling, frames, playing, effects on a stream, lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from live_world import FakeSound, SteppedClock, silence, tone

from voxmeter.client.audio import from_pcm16, to_pcm16
from voxmeter.client.effects import steps
from voxmeter.client.live.microphone import Microphone
from voxmeter.client.live.plain import Lines
from voxmeter.client.live.playback import Playback, Put
from voxmeter.client.live.resampling import Resampler
from voxmeter.client.live.sound import Block, Played
from voxmeter.client.live.stream_effects import condition
from voxmeter.client.live.updates import (
    Level,
    Mark,
    Notice,
    PhaseChanged,
    Running,
    Saved,
    TurnOver,
    Words,
)

RATES = [(48_000, 24_000), (48_000, 8_000), (44_100, 16_000), (22_050, 48_000), (24_000, 48_000)]


@pytest.mark.parametrize(("old", "new"), RATES)
def test_what_comes_out_lies_where_it_went_in(old: int, new: int) -> None:
    resampler = Resampler(old, new)
    wave = 0.5 * np.sin(2 * np.pi * 900 * np.arange(old) / old).astype(np.float32)
    pieces = [resampler.push(wave[first : first + 441]) for first in range(0, old, 441)]
    made = np.concatenate([*pieces, resampler.finish()])
    truth = 0.5 * np.sin(2 * np.pi * 900 * np.arange(new) / new)
    assert made.size == new
    assert float(np.abs(made - truth)[new // 20 : -new // 20].max()) < 1e-3


@pytest.mark.parametrize(("old", "new"), RATES)
def test_a_stream_is_held_back_by_a_few_ms_at_most(old: int, new: int) -> None:
    resampler = Resampler(old, new)
    given = 0
    for number in range(1, 51):
        given += resampler.push(np.zeros(old // 50, dtype=np.float32)).size
        assert number * new // 50 - given <= resampler.lag <= new // 250 + 1


def test_what_would_alias_is_taken_away() -> None:
    resampler = Resampler(48_000, 8_000)
    wave = np.sin(2 * np.pi * 5_000 * np.arange(48_000) / 48_000).astype(np.float32)
    made = np.concatenate((resampler.push(wave), resampler.finish()))
    assert float(np.abs(made[400:-400]).max()) < 1e-3


def test_every_frame_says_when_its_first_sample_was_taken() -> None:
    microphone = Microphone(16_000, 20)
    frames = []
    for number in range(10):
        late = 5_000_000 if number >= 5 else 0  # the device lost 5 ms
        taken_ns = 1_000_000_000 + number * 20_000_000 + late
        frames += microphone.take(Block(bytes(1920), taken_ns, taken_ns + 30_000_000), 48_000)
    lag_ns = 2_000_000  # the filter's 32 samples come first
    assert len(frames) == 10
    assert [one.start for one in frames] == [320 * number for number in range(10)]
    for number, frame in enumerate(frames):
        late = 5_000_000 if number > 5 else 0
        truth = 1_000_000_000 + number * 20_000_000 - lag_ns + late
        assert abs(frame.taken_ns - truth) < 1000


LAG = Resampler(24_000, 48_000).lag
"""Device samples of silence before a reply, for what the filter holds back."""


async def test_what_was_played_is_found_in_the_reply_again() -> None:
    sound = FakeSound(SteppedClock())
    playback = Playback(sound, 0)
    playback.play(tone(100, 24_000), 24_000, 0)
    playback.flush()
    assert playback.pending == LAG + 4800
    assert playback.played(Played(0, LAG + 960, 0)) == [Put(0, 480, LAG * 10**9 // 48_000)]
    assert playback.played(Played(LAG + 960, 3840, 20_005_000)) == [Put(480, 1920, 20_005_000)]
    assert playback.pending == 0


async def test_a_reply_that_comes_in_pieces_is_given_whole_pieces() -> None:
    sound = FakeSound(SteppedClock())
    playback = Playback(sound, 0)
    for number in range(1, 6):
        playback.play(tone(20, 24_000), 24_000, (number - 1) * 480)
        assert playback.pending >= 960 * number


async def test_what_was_thrown_away_is_never_taken_for_what_comes_after_it() -> None:
    sound = FakeSound(SteppedClock())
    playback = Playback(sound, 0)
    playback.play(tone(100, 24_000), 24_000, 0)
    playback.played(Played(0, 960, 0))
    playback.clear()
    assert playback.pending == 0
    given = sound.cleared
    playback.play(tone(100, 24_000), 24_000, 2400)
    (put,) = playback.played(Played(given + LAG, 960, 7_000))
    assert put == Put(2400, 480, 7_000)


async def test_other_sound_than_a_reply_is_no_part_of_it() -> None:
    sound = FakeSound(SteppedClock())
    playback = Playback(sound, 0)
    playback.play(tone(100, 24_000), 24_000, None)
    playback.play(tone(100, 24_000), 24_000, 0)
    playback.flush()
    (put,) = playback.played(Played(0, 9600 + 2 * LAG, 0))
    assert put == Put(0, 2400, (4800 + 2 * LAG) * 10**9 // 48_000)


def done(name: str, chain: list[dict[str, object]], wave: np.ndarray) -> np.ndarray:
    made = condition(name, steps.checked(chain), "seed")  # type: ignore[arg-type]
    assert made.left_out == ()
    pieces = [made(wave[first : first + 960], 48_000) for first in range(0, wave.size, 960)]
    return np.concatenate(pieces)


@pytest.mark.parametrize(
    ("hz", "left"), [(100.0, 0.1), (1000.0, 1.0), (6000.0, 0.1)], ids=["low", "speech", "high"]
)
def test_a_telephone_lets_the_band_of_speech_through(hz: float, left: float) -> None:
    wave = tone(1000, 48_000, hz=hz)
    made = done("line", [{"effect": "telephone"}], wave)
    gain = float(np.std(made[9600:]) / np.std(wave))
    assert gain == pytest.approx(left, rel=0.15) if left == 1.0 else gain < left


def test_noise_stands_at_its_ratio_to_the_speech() -> None:
    wave = tone(4000, 48_000, level=0.2)
    made = done("noise", [{"effect": "gaussian-noise", "snr_db": 12}], wave)
    noise = (made - wave)[-48_000:]
    ratio_db = 20 * np.log10(np.std(wave) / np.std(noise))
    assert ratio_db == pytest.approx(12, abs=0.5)


def test_a_share_of_packets_is_lost() -> None:
    chain: list[dict[str, object]] = [
        {"effect": "packet-loss", "loss_percent": 20, "concealment": "silence"}
    ]
    made = done("loss", chain, np.ones(480_000, dtype=np.float32) * 0.5)
    lost = (made.reshape(-1, 960) == 0).all(axis=1)
    assert 0.1 < lost.mean() < 0.3
    assert ((made.reshape(-1, 960) == 0).any(axis=1) == lost).all()


def test_filters_of_blocks_are_those_of_the_whole() -> None:
    wave = tone(500, 48_000, hz=3000.0) + tone(500, 48_000, hz=200.0)
    chain: list[dict[str, object]] = [{"effect": "low-pass", "cutoff_hz": 1000}]
    made = condition("dull", steps.checked(chain), "seed")  # type: ignore[arg-type]
    np.testing.assert_allclose(done("dull", chain, wave), made(wave, 48_000), atol=1e-5)


@pytest.mark.parametrize("effect", ["tempo", "pitch", "babble", "room-impulse-response"])
def test_what_a_stream_cannot_have_is_left_out_by_name(effect: str) -> None:
    made = condition("odd", steps.checked([{"effect": effect}, {"effect": "gain"}]), "seed")
    assert made.left_out == (effect,)
    assert [step.effect for step in made.steps] == ["gain"]


def test_a_line_is_said_for_everything_but_levels(tmp_path: Path) -> None:
    said: list[str] = []
    lines = Lines(said.append)
    for update in (
        Level("user", -20.0),
        PhaseChanged("listening"),
        Mark(1, "speech_end", 0.0),
        Words("user", 1, "What is\x1b[31m it?", whole=True),
        Mark(1, "first_audible", 412.4),
        Words("reply", 1, "It is "),
        Words("reply", 1, "five."),
        TurnOver(1, "ok", {"first_packet_ms": 300.4, "first_audible_ms": 412.0}, "far"),
        Running({"first_audible_ms": (1, 412.0, 412.0)}),
        Notice("the microphone is gone", serious=True),
        Saved(tmp_path, 1),
    ):
        lines.show(update)
    assert said == [
        "- listening: speak when you like",
        "1 you stopped speaking",
        "1 you: What is\\x1b[31m it?",
        "1 first audible sound (mouth to ear) after 412 ms",
        "1 reply: It is five.",
        "1 ok (far): first packet 300 ms, first audible 412 ms, from the log",
        "so far: first audible p50 412 ms, p90 412 ms (n = 1)",
        "! the microphone is gone",
        f"saved 1 turn in {tmp_path}",
    ]


def test_silence_and_full_scale_survive_the_way_to_frames() -> None:
    microphone = Microphone(48_000, 20)
    loud = np.concatenate((silence(10, 48_000), np.full(480, -1.0, dtype=np.float32)))
    (frame,) = microphone.take(Block(to_pcm16(loud), 0, 1), 48_000)
    assert from_pcm16(frame.pcm).tolist() == loud.tolist()
