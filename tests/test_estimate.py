"""How long clips are, before any of them is made: few files are opened, and none twice."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile
from voxeval_world import mp3, small

from voxmeter.client.estimate import ClipLengths
from voxmeter.suites import catalog
from voxmeter.suites.suite import Item, Recording, Suite


def suite(root: Path, **config: object) -> Suite:
    return catalog.load("voxeval", "v", {"kind": "voxeval", "path": str(root)} | config, Path())


def test_examples_and_gaps_count_and_what_is_cut_away_does_not(tmp_path: Path) -> None:
    root = small(tmp_path).write()
    whole = 480 + 2 * (380 + 1000 + 280 + 1000)
    assert ClipLengths()(suite(root).items[0]) == pytest.approx(480, abs=1)
    assert ClipLengths()(suite(root, few_shot=2).items[0]) == pytest.approx(whole, abs=2)
    cut = suite(root, few_shot=2, keep_last_ms=3000)
    assert ClipLengths()(cut.items[0]) == 3000
    earlier = suite(root, few_shot=2, few_shot_via="history")
    assert ClipLengths()(earlier.items[0]) == pytest.approx(480, abs=1)


def test_beyond_some_files_the_size_tells_the_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = []
    for number, ms in enumerate((2000, 4000, 8000, 2000)):
        path = tmp_path / f"{number}.mp3"
        path.write_bytes(mp3(ms))
        items.append(Item("s", str(number), "open", (Recording(path),)))
    opened: list[str] = []
    genuine = soundfile.info

    def info(path: str) -> object:
        opened.append(path)
        return genuine(path)

    monkeypatch.setattr(soundfile, "info", info)
    lengths = ClipLengths(opened=2)
    found = [lengths(item) for item in (*items, *items)]
    assert len(opened) == lengths.opened == 2
    assert lengths.by_size == 2
    assert found[:4] == found[4:]
    assert found[2] == pytest.approx(8080, rel=0.25)  # a header is much of so short a file


def test_a_broken_file_takes_no_time_and_spoils_no_estimate(tmp_path: Path) -> None:
    (tmp_path / "bad.mp3").write_bytes(b"no sound")
    (tmp_path / "good.mp3").write_bytes(mp3(1000))
    lengths = ClipLengths(opened=1)
    bad, good = (
        Item("s", name, "open", (Recording(tmp_path / f"{name}.mp3"),)) for name in ("bad", "good")
    )
    assert lengths(bad) == 0
    assert lengths(good) == pytest.approx(1080, abs=1), "nothing to compare its size with yet"
    assert lengths(Item("s", "x", "open", (Recording(tmp_path / "gone.mp3"),))) == 0
