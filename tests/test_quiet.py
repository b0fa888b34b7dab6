"""How long a stream has been quiet, as it comes."""

from __future__ import annotations

import numpy as np
import pytest
import spoken
from attempt_logs import RATE, Samples, joined, silence, voice
from hypothesis import given, settings
from hypothesis import strategies as st

from voxmeter.scoring.quiet import QuietDetector
from voxmeter.scoring.speech import speech_bounds


def hiss(ms: float, dbfs: float) -> Samples:
    noise = spoken.white(round(ms * RATE / 1000), np.random.default_rng(4))
    return np.asarray(noise * 10 ** (dbfs / 20), dtype=np.float32)


def heard(stream: Samples, chunk: int = 480) -> QuietDetector:
    detector = QuietDetector(RATE)
    for start in range(0, stream.size, chunk):
        detector.feed(stream[start : start + chunk])
    return detector


@pytest.mark.parametrize(
    ("stream", "onset_ms", "end_ms"),
    [
        (joined(silence(500), voice(800), silence(700)), 500, 1300),
        (joined(voice(800), silence(700)), 0, 800),
        (joined(silence(500), voice(40), silence(80), voice(600), silence(300)), 500, 1220),
        (joined(silence(500), voice(40), silence(400), voice(600), silence(300)), 940, 1540),
        (joined(silence(500), voice(600), silence(400), voice(40), silence(300)), 500, 1100),
        (joined(hiss(2000, -70), voice(900), hiss(1600, -70)), 2000, 2900),
        (joined(hiss(2000, -60), voice(900), hiss(1600, -60)), 2000, 2900),
        (joined(hiss(2000, -50), voice(900), hiss(1600, -50)), 2000, 2900),
    ],
)
def test_the_last_audible_sample_is_known_to_the_frame(
    stream: Samples, onset_ms: float, end_ms: float
) -> None:
    detector = heard(stream)
    assert detector.onset is not None
    assert detector.last_audible is not None
    assert detector.onset * 1000 / RATE == pytest.approx(onset_ms, abs=5)
    assert detector.last_audible * 1000 / RATE == pytest.approx(end_ms, abs=5)
    quiet_ms = stream.size * 1000 / RATE - end_ms
    assert detector.quiet_ms == pytest.approx(quiet_ms, abs=5)


@pytest.mark.parametrize(
    "stream", [silence(1000), hiss(3000, -70), hiss(3000, -55), joined(silence(500), voice(60))]
)
def test_where_nothing_is_audible_all_of_it_is_quiet(stream: Samples) -> None:
    detector = heard(stream)
    assert (detector.onset, detector.last_audible) == (None, None)
    assert detector.quiet_ms == stream.size * 1000 / RATE


def test_quiet_grows_with_stream_time_alone() -> None:
    detector = heard(joined(silence(200), voice(300)))
    assert detector.quiet_ms == pytest.approx(0, abs=5)
    detector.feed(silence(0))
    detector.feed(silence(250))
    assert detector.quiet_ms == pytest.approx(250, abs=5)


def test_a_burst_counts_once_it_is_long_enough() -> None:
    detector = heard(joined(silence(200), voice(90)))
    assert detector.last_audible is None
    detector.feed(voice(20))
    assert detector.onset == pytest.approx(200 * RATE / 1000, abs=120)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 600), st.integers(0, 600)), min_size=1, max_size=4),
    st.integers(1, 5000),
)
def test_chunks_do_not_change_what_is_heard(parts: list[tuple[int, int]], chunk: int) -> None:
    stream = joined(*(joined(silence(quiet), voice(sound)) for quiet, sound in parts))
    one, other = heard(stream), heard(stream, chunk)
    assert (one.onset, one.last_audible) == (other.onset, other.last_audible)
    assert one.samples == other.samples == stream.size


@pytest.mark.parametrize("voice_name", ["hibari", "espeak-ng@180"])
def test_it_agrees_with_the_bounds_that_are_found_afterwards(voice_name: str) -> None:
    for one in spoken.utterances(voice_name):
        stream, _, _ = spoken.in_silence(one, 400, 800)
        detector = QuietDetector(one.rate)
        for chunk in np.array_split(stream, 37):
            detector.feed(chunk)
        bounds = speech_bounds(stream, one.rate)
        assert bounds is not None
        assert detector.last_audible is not None
        assert abs(detector.last_audible - bounds.end_sample) <= one.rate * 5 / 1000 + 1


def test_a_stretch_begins_behind_a_second_and_a_half_of_quiet_and_goes_on_over_less() -> None:
    detector = QuietDetector(RATE)
    assert (detector.began, detector.parted_at) == (None, 0)
    detector.feed(joined(silence(200), voice(300), silence(1400), voice(300)))
    assert detector.began is not None
    assert abs(detector.began - RATE // 5) <= RATE // 100
    assert detector.parted_at == 0
    ended = detector.last_audible
    detector.feed(joined(silence(1510), voice(300)))
    assert detector.parted_at == ended
    assert abs(detector.began - 3710 * RATE // 1000) <= RATE // 100
