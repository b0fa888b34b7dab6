"""The demo suite is as it is advertised: enough items, voices, kinds and sources, and small."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from voxmeter.client import audio, clips
from voxmeter.client.clips import Clip
from voxmeter.client.speakers import Speaker
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.loudness import measure
from voxmeter.suites import catalog, demo
from voxmeter.suites.suite import Suite

FOLDER = demo.ITEMS.parent
ROWS = [json.loads(line) for line in demo.ITEMS.read_text(encoding="utf-8").splitlines()]
CHOICE_SENTENCE = "Choose one letter from A to D, and answer in a full sentence."


@pytest.fixture(scope="module")
def suite() -> Suite:
    return catalog.load("demo", "demo", {"kind": "demo"}, Path("/nowhere"))


@pytest.fixture(scope="module")
def spoken(suite: Suite) -> dict[str, Clip]:
    """Return every clip by item id."""
    return {item.item: clips.render(item, _no_voice) for item in suite.items}


def _no_voice(name: str) -> Speaker:
    raise AssertionError(f"the demo suite is recorded; it asked for {name}")


def test_it_has_at_least_24_items_of_every_kind_in_three_voices(suite: Suite) -> None:
    assert len(suite.items) == 32
    assert Counter(str(item.kind) for item in suite.items) == {
        "choice": 9,
        "number": 6,
        "yes-no": 5,
        "true-false": 4,
        "name": 4,
        "open": 4,
    }
    voices = Counter(row["voice"] for row in ROWS)
    assert set(voices) == {"hibari", "piper", "espeak-ng"}
    assert min(voices.values()) >= 4


def test_every_item_names_its_source_and_licence() -> None:
    for row in ROWS:
        assert row["source"].startswith("written for voxmeter; ")
        assert row["licence"] == "Apache-2.0"


def test_every_item_has_a_reference_a_group_and_a_question_in_words(suite: Suite) -> None:
    for item in suite.items:
        assert item.reference
        assert item.groups
        assert item.question
        assert item.cluster


def test_choices_have_the_spoken_form_question_sentence_options(suite: Suite) -> None:
    for item in suite.items:
        if item.kind == "choice":
            options = " ".join(f"{a}. {b}." for a, b in zip("ABCD", item.options, strict=True))
            assert item.question.endswith(f"? {CHOICE_SENTENCE} {options}")
    right = Counter(item.reference[0] for item in suite.items if item.kind == "choice")
    assert set(right) == set("ABCD")
    assert max(right.values()) <= 3


def test_yes_and_no_true_and_false_are_balanced(suite: Suite) -> None:
    right = Counter(item.reference for item in suite.items if item.kind in {"yes-no", "true-false"})
    assert max(right.values()) - min(right.values()) <= 1


def test_one_question_in_two_voices_is_one_cluster(suite: Suite) -> None:
    clusters = Counter(item.cluster for item in suite.items)
    assert {name for name, count in clusters.items() if count == 2} == {
        "planet-red",
        "capital-japan",
    }


def test_all_its_files_are_used_and_small() -> None:
    assert {path.name for path in FOLDER.glob("*.ogg")} == {row["audio"] for row in ROWS}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3_000_000


def test_every_clip_is_voiced_short_and_reads_without_a_warning(spoken: dict[str, Clip]) -> None:
    for name, clip in spoken.items():
        assert clip.pcm.warnings == (), name
        assert (clip.pcm.rate, clip.end_kind) == (24_000, "speech"), name
        longest = 10_500 if "Choose one" in _row(name)["question"] else 3500
        assert 1000 < clip.ms < longest, name


def test_every_clip_begins_and_ends_in_silence(spoken: dict[str, Clip]) -> None:
    for name, clip in spoken.items():
        assert 100 < clip.onset_ms < 170, name
        assert 100 < clip.ms - clip.speech_end_ms < 170, name


def test_no_pause_inside_a_clip_is_taken_for_the_end_of_a_turn(spoken: dict[str, Clip]) -> None:
    for name, clip in spoken.items():
        levels = measure(clip.pcm.samples, clip.pcm.rate).levels
        gap_frames = 0
        for level in levels[int(clip.onset_ms // 5) : int(clip.speech_end_ms // 5)]:
            gap_frames = gap_frames + 1 if level < -60 else 0
            assert gap_frames * 5 <= 150, name


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_the_first_eight_are_of_all_kinds_and_under_30_seconds(
    suite: Suite, spoken: dict[str, Clip], seed: int
) -> None:
    first = suite.limit(8, seed).items
    assert Counter(str(item.kind) for item in first) == {
        "choice": 2,
        "number": 2,
        "yes-no": 1,
        "true-false": 1,
        "name": 1,
        "open": 1,
    }
    assert sum(spoken[item.item].ms for item in first) < 30_000
    assert all(item.first for item in first)


def test_the_clips_differ(spoken: dict[str, Clip]) -> None:
    assert len({clip.sha256 for clip in spoken.values()}) == len(spoken)
    assert all(audio.sha256(clip.pcm) == clip.sha256 for clip in spoken.values())


def test_an_option_of_no_use_is_refused() -> None:
    with pytest.raises(UserError, match="unknown key 'path'"):
        catalog.load("demo", "demo", {"path": "x"}, Path())


def _row(name: str) -> dict[str, str]:
    row: dict[str, str] = next(row for row in ROWS if row["id"] == name)
    return row
