"""Clips for a run: kept as long as there is room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from voxmeter.client import clips
from voxmeter.client.audio import Pcm
from voxmeter.client.clip_source import ClipSource
from voxmeter.client.clips import Clip
from voxmeter.client.speakers import Speaker
from voxmeter.endpoints.errors import ClipError
from voxmeter.suites.suite import Item, Recording

BYTES = 2 * 4 * 8_000
"""What one second at 8 kHz takes, as it is and as it is sent."""


def item(name: str) -> Item:
    return Item("mine", name, "open", (Recording(Path(f"{name}.wav")),))


def nobody(name: str) -> Speaker:
    raise AssertionError(name)


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let every item be one second of tone; return the names of those that were rendered."""
    names: list[str] = []

    def render(asked: Item, speaker_for: object) -> Clip:
        assert speaker_for is nobody
        names.append(asked.item)
        if asked.item == "bad":
            raise ClipError("bad.wav", "no such file")
        tone = np.sin(np.arange(8_000)).astype(np.float32)
        return clips.clip(Pcm(tone, 8_000), asked.item)

    monkeypatch.setattr(clips, "render", render)
    return names


def test_a_clip_that_is_asked_for_again_is_not_rendered_again(rendered: list[str]) -> None:
    source = ClipSource(nobody)
    assert source(item("a")) is source(item("a"))
    assert rendered == ["a"]


def test_what_was_not_asked_for_the_longest_makes_room(rendered: list[str]) -> None:
    source = ClipSource(nobody, kept_bytes=2 * BYTES)
    for name in "abaca":
        source(item(name))
    assert rendered == ["a", "b", "c"]
    source(item("b"))
    assert rendered == ["a", "b", "c", "b"]


def test_what_is_kept_does_not_grow_with_the_number_of_items(rendered: list[str]) -> None:
    source = ClipSource(nobody, kept_bytes=2 * BYTES)
    for number in range(20):
        source(item(str(number)))
    assert len(source._kept) == 2
    assert len(rendered) == 20


def test_a_clip_larger_than_all_the_room_is_kept_until_the_next(rendered: list[str]) -> None:
    source = ClipSource(nobody, kept_bytes=1)
    source(item("a"))
    source(item("a"))
    source(item("b"))
    source(item("a"))
    assert rendered == ["a", "b", "a"]


def test_a_bad_clip_is_bad_every_time(rendered: list[str]) -> None:
    source = ClipSource(nobody)
    for _ in range(2):
        with pytest.raises(ClipError, match="no such file"):
            source(item("bad"))
    assert rendered == ["bad", "bad"]


def test_the_same_name_in_two_suites_is_two_clips(rendered: list[str]) -> None:
    source = ClipSource(nobody)
    other = Item("yours", "a", "open", (Recording(Path("a.wav")),))
    assert source(item("a")) is not source(other)
    assert rendered == ["a", "a"]


def test_a_condition_alters_the_clip_by_a_seed_of_its_own_for_every_item(
    rendered: list[str],
) -> None:
    seeds: list[str] = []

    def louder(clip: Clip, seed: str) -> Clip:
        seeds.append(seed)
        return replace(clip, params={"gain_db": 6})

    source = ClipSource(nobody, {"loud": louder}, 7)
    assert source(item("a")).params == {}
    assert source(item("a"), "loud").params == {"gain_db": 6}
    assert source(item("a"), "loud") is source(item("a"), "loud")
    assert source(item("a"), "of the suite's own").params == {}
    source(item("b"), "loud")
    assert seeds == ["7/loud/mine/a", "7/loud/mine/b"]
