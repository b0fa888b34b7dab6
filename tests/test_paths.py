"""Paths in data sets cannot leave the folder of the data set, however they are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from air_world import foundation

from voxmeter.client.audio import write_flac
from voxmeter.client.import_answers import Answers
from voxmeter.endpoints.errors import UserError
from voxmeter.suites import catalog
from voxmeter.suites.folders import leads_out, link_out

OUT = (
    "/etc/passwd",
    "//etc/passwd",
    "../secret.flac",
    "a/../../secret.flac",
    "./../secret.flac",
    "a/b/../../../secret.flac",
    "..",
    "..\\secret.flac",
    "a\\..\\..\\secret.flac",
    "a/..\\..\\secret.flac",
    "\\secret.flac",
    "C:\\secret.flac",
    "C:secret.flac",
    "c:/secret.flac",
    "\\\\host\\share\\secret.flac",
    "//host/share/secret.flac",
    "\\\\?\\C:\\secret.flac",
    "\\\\.\\pipe\\x",
    "x\0.flac",
    "../download/../secret.flac",
)
IN = (
    "a.flac",
    "a/b.flac",
    "./a.flac",
    "a/../b.flac",
    "..a/b..flac",
    "...",
    "a b/ü.flac",
    "a:b.flac"[2:],
)


@pytest.mark.parametrize("name", OUT)
def test_a_path_that_leads_out_is_known(name: str) -> None:
    assert leads_out(name)


@pytest.mark.parametrize("name", IN)
def test_a_path_that_stays_inside_is_known(name: str) -> None:
    assert not leads_out(name)


def sound(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_flac(path, np.full(1600, 0.1, np.float32), 16_000)
    return path


def jsonl(root: Path, name: str) -> dict[str, object]:
    line = {"id": "q", "audio": name, "kind": "yes-no", "reference": "yes"}
    (root / "items.jsonl").write_text(json.dumps(line) + "\n")
    return {"path": str(root / "items.jsonl")}


def adu_bench(root: Path, name: str) -> dict[str, object]:
    folder = root / "input" / "ADU-Skill"
    folder.mkdir(parents=True, exist_ok=True)
    line = {"question": "a", "answer": "b", "audio": name, "source": "s", "category": "c"}
    (folder / "physics.jsonl").write_text(json.dumps(line) + "\n")
    return {"path": str(root)}


def air_bench(root: Path, name: str) -> dict[str, object]:
    row = foundation(1, path=name)
    (root / "Foundation" / f"{row['task_name']}_{row['dataset_name']}").mkdir(
        parents=True, exist_ok=True
    )
    (root / "Foundation" / "Foundation_meta.json").write_text(json.dumps([row]))
    return {"path": str(root)}


def voicebench(root: Path, name: str) -> dict[str, object]:
    (root / "alpacaeval").mkdir(parents=True, exist_ok=True)
    line = {"audio": name, "prompt": "a", "output": "b"}
    (root / "alpacaeval" / "test.jsonl").write_text(json.dumps(line) + "\n")
    return {"path": str(root)}


def big_bench_audio(root: Path, name: str) -> dict[str, object]:
    line = {"id": 1, "category": "formal_fallacies", "official_answer": "valid", "file_name": name}
    (root / "metadata.jsonl").write_text(json.dumps(line) + "\n")
    return {"path": str(root)}


Layout = Callable[[Path, str], dict[str, object]]
LAYOUTS: dict[str, Layout] = {
    "jsonl": jsonl,
    "adu-bench": adu_bench,
    "air-bench": air_bench,
    "voicebench": voicebench,
    "big-bench-audio": big_bench_audio,
}
"""Kinds whose lists name files; VoxEval's have numbers, and `demo` is ours."""


def files(kind: str, config: dict[str, object]) -> list[Path]:
    """Return the recordings of a suite; nothing where it is refused."""
    try:
        suite = catalog.load(kind, "s", config, Path())
    except UserError:
        return []
    return [file for item in suite.items for file in item.files()]


def test_every_kind_that_names_files_is_tried() -> None:
    assert {*LAYOUTS, "demo", "voxeval"} == set(catalog.BUILT_IN)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_no_list_of_a_download_names_a_file_outside_it(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "download"
    root.mkdir()
    sound(tmp_path / "secret.flac")
    for name in OUT:
        for file in files(kind, LAYOUTS[kind](root, name)):
            assert file.resolve().is_relative_to(root.resolve()), name
            assert not file.exists(), name
    assert files(kind, LAYOUTS[kind](root, "a.flac"))  # else nothing would have been tried


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("whole_folder", [False, True], ids=["file", "folder"])
def test_no_link_in_a_download_leads_out_of_it(
    kind: str, tmp_path: Path, *, whole_folder: bool
) -> None:
    root = tmp_path / "download"
    root.mkdir()
    outside = sound(tmp_path / "outside" / "secret.flac")
    name = "sub/secret.flac"
    (place,) = files(kind, LAYOUTS[kind](root, name))
    place.parent.parent.mkdir(parents=True, exist_ok=True)
    if whole_folder:
        place.parent.symlink_to(outside.parent)
    else:
        place.parent.mkdir()
        place.symlink_to(outside)
    with pytest.raises(UserError, match="is a link that leads out of"):
        catalog.load(kind, "s", LAYOUTS[kind](root, name), Path())


def test_links_inside_a_download_and_those_of_the_hub_s_cache_are_followed(tmp_path: Path) -> None:
    root = tmp_path / "datasets--a--b" / "snapshots" / "0123abcd"
    blob = sound(tmp_path / "datasets--a--b" / "blobs" / "ef01")
    root.mkdir(parents=True)
    (root / "q.flac").symlink_to(Path("../../blobs/ef01"))
    assert files("jsonl", jsonl(root, "q.flac")) == [root / "q.flac"]
    inside = sound(root / "real.flac")
    (root / "r.flac").symlink_to(inside.name)
    assert files("jsonl", jsonl(root, "r.flac"))
    assert link_out([root / "q.flac"], root) is None
    (root / "s.flac").symlink_to(sound(tmp_path / "other.flac"))
    assert link_out([root / "q.flac", root / "s.flac"], root) == root / "s.flac"
    assert blob.exists()


@pytest.mark.parametrize("name", OUT)
def test_answers_made_elsewhere_lie_beside_their_list(name: str, tmp_path: Path) -> None:
    root = tmp_path / "download"
    root.mkdir()
    sound(tmp_path / "secret.flac")
    (root / "answers.jsonl").write_text(json.dumps({"id": "q", "audio": name}) + "\n")
    with pytest.raises(UserError, match="leads out of its folder"):
        Answers(root / "answers.jsonl", "place")


def test_no_link_among_answers_leads_out(tmp_path: Path) -> None:
    outside = sound(tmp_path / "secret.flac")
    (tmp_path / "secret.txt").write_text("secret")
    for name, target in (("q.flac", outside), ("q.txt", tmp_path / "secret.txt")):
        folder = tmp_path / f"answers {name}"
        folder.mkdir()
        (folder / name).symlink_to(target)
        with pytest.raises(UserError, match="is a link that leads out of"):
            Answers(folder, "place")
    listed = tmp_path / "listed"
    listed.mkdir()
    (listed / "q.flac").symlink_to(outside)
    (listed / "answers.jsonl").write_text('{"id": "q", "audio": "q.flac"}\n')
    with pytest.raises(UserError, match="is a link that leads out of"):
        Answers(listed / "answers.jsonl", "place")
