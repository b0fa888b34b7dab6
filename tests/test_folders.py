"""What lies in a folder of a download."""

from __future__ import annotations

import os
from pathlib import Path

from voxmeter.suites.folders import listed, unusable


def test_what_is_no_file_is_missing_and_the_files_beside_it_are_there(tmp_path: Path) -> None:
    (tmp_path / "whole.mp3").write_bytes(b"sound")
    (tmp_path / "empty.mp3").touch()
    (tmp_path / "link.mp3").symlink_to("whole.mp3")
    (tmp_path / "nowhere.mp3").symlink_to("gone.mp3")
    (tmp_path / "round.mp3").symlink_to("round.mp3")
    (tmp_path / "folder.mp3").mkdir()
    os.mkfifo(tmp_path / "pipe.mp3")
    assert listed(tmp_path) == {"whole.mp3": 5, "empty.mp3": 0, "link.mp3": 5}
    names = ("whole", "empty", "link", "nowhere", "round", "folder", "pipe", "absent")
    found = unusable(tmp_path / f"{name}.mp3" for name in names)
    assert {(path.stem, why) for path, why in found} == {
        ("empty", "empty"),
        *((name, "missing") for name in ("nowhere", "round", "folder", "pipe", "absent")),
    }
    assert listed(tmp_path / "absent") is None
