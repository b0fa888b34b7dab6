"""Model names to checked files, with the real packages and with small ones made here."""

from __future__ import annotations

import hashlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from voxmeter.client import model_files, models
from voxmeter.client.model_files import file_sha256, join
from voxmeter.client.models import PACKAGED, Packaged, hears, licences, locate, model_hash
from voxmeter.endpoints.errors import MissingExtraError, UserError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "voxmeter"


@pytest.fixture
def package(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Packaged:
    """A model in two parts, in a package of its own."""
    folder = tmp_path / "site" / "tiny_package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "model.part1").write_bytes(b"first ")
    (folder / "model.part2").write_bytes(b"second")
    (folder / "config.json").write_bytes(b"{}")
    monkeypatch.syspath_prepend(tmp_path / "site")
    model = Packaged(
        name="pieces",
        kind="whisper",
        package="tiny_package",
        distribution="tiny-package",
        folder=".",
        files={
            "model.bin": hashlib.sha256(b"first second").hexdigest(),
            "config.json": hashlib.sha256(b"{}").hexdigest(),
        },
        parts=(("tiny_package", "model.part1"), ("tiny_package", "model.part2")),
        size_mb=0.0,
        licence="CC0-1.0",
        used_for="a test",
    )
    monkeypatch.setattr(models, "PACKAGED", {**PACKAGED, "pieces": model})
    return model


@pytest.mark.parametrize("model", PACKAGED.values(), ids=lambda model: model.name)
def test_every_packaged_model_is_found_and_is_the_pinned_one(model: Packaged) -> None:
    found = locate(model.name, model.kind)
    assert found.pinned
    assert found.sha256 == next(iter(model.files.values())) == model_hash(model.name, model.kind)
    assert found.path.is_dir() == (model.kind == "whisper")
    folder = found.path if found.path.is_dir() else found.path.parent
    size = sum((folder / file).stat().st_size for file in model.files) / 1e6
    assert size == pytest.approx(model.size_mb, abs=6)  # hibari's dictionaries come on top


def test_a_split_model_is_joined_once_by_two_processes_at_a_time(
    package: Packaged, cache: Path
) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: locate("pieces", "whisper"), range(16)))
    assert [one.path for one in found] == [cache / "models" / "pieces"]
    folder = cache / "models" / "pieces"
    assert (folder / "model.bin").read_bytes() == b"first second"
    assert {path.name for path in folder.iterdir()} == {"model.bin", "config.json"}


def test_a_damaged_copy_in_the_cache_is_made_anew(package: Packaged, cache: Path) -> None:
    joined = locate("pieces", "whisper").path / "model.bin"
    joined.write_bytes(b"first sec0nd")
    assert locate("pieces", "whisper").sha256 == package.files["model.bin"]
    assert joined.read_bytes() == b"first second"


def test_a_tampered_package_names_the_file_both_hashes_and_the_cure(
    package: Packaged, tmp_path: Path
) -> None:
    part = tmp_path / "site" / "tiny_package" / "model.part2"
    part.write_bytes(b"sec0nd")
    found = hashlib.sha256(b"first sec0nd").hexdigest()
    with pytest.raises(UserError) as caught:
        locate("pieces", "whisper")
    text = str(caught.value)
    assert str(part) in text or "model.part2" in text
    assert found[:12] in text
    assert package.files["model.bin"][:12] in text
    assert "pip install --force-reinstall tiny-package" in text


def test_a_file_changed_after_its_hash_was_recorded_is_found(
    package: Packaged, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "_SETTLED_S", -1.0)
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    stamp = path.stat()
    first = file_sha256(path)
    assert list((cache / "checked").iterdir())
    path.write_bytes(b"two")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert file_sha256(path) != first


def test_a_recorded_hash_spares_reading_the_file(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "_SETTLED_S", -1.0)
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    first = file_sha256(path)
    monkeypatch.setattr(model_files, "_hash", lambda path: pytest.fail(f"{path} was read again"))
    assert file_sha256(path) == first


def test_a_file_that_has_just_changed_is_not_recorded(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    file_sha256(path)
    assert not (cache / "checked").exists()


def test_a_damaged_record_only_costs_time(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "_SETTLED_S", -1.0)
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    first = file_sha256(path)
    for record in (cache / "checked").iterdir():
        record.write_text('{"stamp": 3')
    assert file_sha256(path) == first


def test_a_cache_that_cannot_be_written_still_gives_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "_SETTLED_S", -1.0)
    (tmp_path / "file").write_bytes(b"in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert file_sha256(tmp_path / "file") == hashlib.sha256(b"in the way").hexdigest()
    with pytest.raises(UserError, match="set XDG_CACHE_HOME to a folder that can be written"):
        join([tmp_path / "file"], tmp_path / "file" / "out", "0" * 64)


def test_a_wrong_join_leaves_nothing_behind(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"x")
    target = tmp_path / "out" / "model"
    assert join([tmp_path / "part"], target, "0" * 64) == hashlib.sha256(b"x").hexdigest()
    assert list(target.parent.iterdir()) == []


def test_leftovers_of_a_killed_process_are_swept(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"x")
    folder = tmp_path / "out"
    folder.mkdir()
    old, new = folder / "model.a.part", folder / "model.b.part"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    join([tmp_path / "part"], folder / "model", hashlib.sha256(b"x").hexdigest())
    assert {path.name for path in folder.iterdir()} == {"model", "model.b.part"}


def test_a_path_is_taken_before_any_name(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"mine")
    found = locate(str(tmp_path), "whisper")
    assert (found.path, found.pinned) == (tmp_path, False)
    assert found.sha256 == hashlib.sha256(b"mine").hexdigest()


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("tiny_en", "whisper", ["nearest: tiny.en", "pip install 'voxmeter[local]'"]),
        ("gema", "llm", ["nearest: gemma-3-270m"]),
        ("tiny.en", "llm", ["no such model", "gemma-3-270m"]),
        ("./no/such/folder", "whisper", ["no such file", "model.bin"]),
        ("/", "whisper", ["no model.bin in it"]),
        ("large-v3", "whisper", ["allow_downloads = true", "tiny.en, base"]),
    ],
)
def test_a_name_that_means_nothing_says_what_does(
    name: str, kind: models.Kind, said: list[str]
) -> None:
    with pytest.raises(UserError) as caught:
        locate(name, kind)
    for words in said:
        assert words in str(caught.value)


def test_a_missing_package_says_how_to_install_it(
    package: Packaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = replace(package, package="voxmeter_no_such_package", parts=())
    monkeypatch.setattr(models, "PACKAGED", {"pieces": gone})
    with pytest.raises(MissingExtraError, match=r"pip install 'voxmeter\[local\]'"):
        locate("pieces", "whisper")


@pytest.mark.parametrize(
    ("name", "language", "can"),
    [("tiny.en", "en", True), ("tiny.en", "de", False), ("base", "de", True)],
)
def test_a_models_name_tells_what_it_hears(name: str, language: str, can: object) -> None:
    assert hears(name, language) is can


def test_licences_name_every_model_with_size_and_licence() -> None:
    rows = licences()
    assert {row.name for row in rows} >= set(PACKAGED)
    assert all(row.size_mb > 0 and row.licence and row.used_for and row.package for row in rows)


def test_the_module_loads_nothing_heavy() -> None:
    import subprocess

    code = (
        "import sys, voxmeter.client.models; "
        "print([m for m in ('numpy', 'faster_whisper', 'onnxruntime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
