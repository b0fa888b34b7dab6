"""The time rules proved twice: `scoring/marks.py` against `second_opinion.py`, log by log.

`recordings/attempts` holds sessions with the built-in servers over a real socket, at real time:
the log that `voxmeter run` wrote (fields that no figure needs left out) and the reply's audio.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile
from second_opinion import NAMES, second_latency
from second_opinion_draws import drawn
from second_opinion_live import live_log
from second_opinion_logs import MADE_UP, Samples, Script, sound

from voxmeter.scoring import log, marks
from voxmeter.scoring.log import Row

RECORDED = sorted((Path(__file__).parent / "recordings" / "attempts").glob("*.jsonl"))
SEEDS = range(200)
WITHIN_MS = 1.0
WITHIN = {"stalls": 0.0, "delivery_rate": 0.005}
"""The rest is in ms; a rate is a ratio of two times, each of them within 1 ms."""

NEVER_MEASURED = {"yield_ms", "overlap_ms"}  # no suite interrupts yet


def recorded(path: Path) -> tuple[Sequence[Row], Samples]:
    audio, rate = soundfile.read(path.with_suffix(".flac"), dtype="float32")
    rows = log.load(path.read_text())
    assert rate == rows[0]["output_rate"]
    return rows, np.asarray(audio, dtype=np.float32)


@cache
def opinion_of_drawn(seed: int) -> dict[str, float | None]:
    return second_latency(*drawn(seed).log())


def differences(
    rows: Sequence[Row], stream: Samples, second: dict[str, float | None] | None = None
) -> list[str]:
    """Return where the two disagree, in words."""
    second = second_latency(rows, stream) if second is None else second
    first = marks.latency(rows, stream).latency
    assert set(first) == set(second) == set(NAMES)
    return [
        f"{name}: {first[name]} or {second[name]}"
        for name in NAMES
        if not agree(first[name], second[name], WITHIN.get(name, WITHIN_MS))
    ]


def agree(first: float | None, second: float | None, within: float) -> bool:
    if first is None or second is None:
        return first is second
    return abs(first - second) <= within


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_both_read_the_same_times_from_a_recorded_session(path: Path) -> None:
    assert differences(*recorded(path)) == []


@pytest.mark.parametrize("script", MADE_UP, ids=lambda script: script.__name__)
def test_both_read_the_same_times_from_a_log_that_was_made_up(script: Callable[[], Script]) -> None:
    assert differences(*script().log()) == []


NOT_LIVE = {"rows_without_a_possible_time", "request", "before_the_request"}
"""The first would be played for hours; a request has no frames that a microphone took."""


@pytest.mark.parametrize(
    "script",
    [one for one in MADE_UP if one.__name__ not in NOT_LIVE],
    ids=lambda script: script.__name__,
)
def test_both_read_the_same_times_from_a_talk_that_was_made_up(
    script: Callable[[], Script],
) -> None:
    assert differences(*live_log(script())) == []


def test_the_second_opinion_itself_knows_a_mouth_and_an_ear() -> None:
    script = Script(speech_end_ms=1200.0).flow(1300, sound(900), pace=0.0)
    found = second_latency(*live_log(script))
    assert found["first_packet_ms"] == pytest.approx(100 + 7.3, abs=0.2)
    assert found["first_audible_ms"] == pytest.approx(100 + 7.3 + 31.7, abs=0.2)


def test_both_read_the_same_times_from_logs_that_nobody_would_think_of() -> None:
    found = {seed: differences(*drawn(seed).log(), second=opinion_of_drawn(seed)) for seed in SEEDS}
    assert {seed: words for seed, words in found.items() if words} == {}


def test_the_logs_reach_every_kind_of_latency_and_every_figure() -> None:
    kinds = Counter(drawn(seed).kind for seed in SEEDS)
    assert min(kinds[kind] for kind in ("server-vad", "commit", "request", "duplex", "text")) >= 20
    figures = Counter[str]()
    for seed in SEEDS:
        found = opinion_of_drawn(seed).items()
        figures.update(name for name, value in found if value is not None)
    assert min(figures[name] for name in set(NAMES) - NEVER_MEASURED) >= 20
    assert not NEVER_MEASURED & set(figures)


def test_the_second_opinion_itself_knows_a_wait_of_50_ms() -> None:
    script = Script(speech_end_ms=1200.0, late_ms=lambda _: 0.0)
    burst = MADE_UP[0]().pieces
    script.piece(1300, burst[0]).piece(1300 + 40 + 50, burst[1])
    script.flow(1430, np.concatenate(burst[2:]), pace=0.0)
    found = second_latency(*script.log())
    assert found["first_audible_ms"] == pytest.approx(100, abs=0.2)
    assert found["stall_ms"] == pytest.approx(50, abs=0.2)
    assert found["reply_end_ms"] == pytest.approx(1050, abs=0.2)


def test_the_recordings_are_of_all_three_servers_and_small() -> None:
    assert {path.stem.split("_")[0] for path in RECORDED} == {"metronome", "echo", "cascade"}
    files = RECORDED[0].parent.iterdir()
    assert sum(file.stat().st_size for file in files) < 400_000
