"""Whether a download is whole and sound: its layout, its questions, and every recording in it.

Headers of all recordings are read; whole they are decoded on request, or some of them. What is
remembered of a recording is a few bytes, so a download of any size takes little memory.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from voxmeter.client import audio, clips
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.suites import catalog
from voxmeter.suites.recognise import JSONL, recognised

if TYPE_CHECKING:
    from voxmeter.suites.suite import Item, Suite

DECODED = 200
"""Recordings that are decoded when not all of them are."""

_SOUND = frozenset({".wav", ".flac", ".ogg", ".opus", ".mp3"})
_BEGINNINGS = frozenset({b"RIFF", b"RF64", b"fLaC", b"OggS"})
_SHOWN = 5
"""Lines of one sort that are told; the others are counted."""
_COMMON = 10  # a question that more items share is a heading and no question of its own


@dataclass(slots=True)
class Recordings:
    """What was found in the recordings.

    Attributes:
        count: How many there are, each counted once.
        ms: Their length together, by their headers.
        decoded: How many were decoded whole and had sound in them.
        rates: Recordings of each rate, samples a second.
        channels: Recordings of more than one channel.
        faults: One line for each that cannot be used.
        notes: One line for each oddity of one that can.
        twins: Pairs with the same content, byte for byte.
    """

    count: int = 0
    ms: float = 0.0
    decoded: int = 0
    rates: Counter[int] = field(default_factory=Counter)
    channels: int = 0
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    twins: list[tuple[Path, Path]] = field(default_factory=list)


def opened(path: Path, kind: str | None) -> tuple[str, Path]:
    """Return the kind of a download and the path that its loader wants.

    Args:
        path: Folder or file.
        kind: What the user says it is; None to find out.

    Raises:
        UserError: If it is not there, or looks like nothing that is known.
    """
    if not path.exists():
        raise UserError(str(path), "no such file or folder", "check the path")
    found = kind or recognised(path)
    known = tuple(sorted(catalog.CHECKS))
    if found is None:
        own = next(path.glob("*.jsonl"), None)
        cure = f"give the folder of the download, or say what it is: --kind {'|'.join(known)}"
        cure = f"give the file itself: {own}" if own is not None else cure
        raise UserError(str(path), "looks like no benchmark that is known", cure)
    if found not in known:
        raise UserError("--kind", f"unknown kind {found!r}", catalog.nearest(found, known))
    if found == "jsonl" and path.is_dir():
        path = path / JSONL
    return found, path


def load(kind: str, path: Path) -> Suite:
    """Return the suite of a download; where the usual speaker is not in it, another one's.

    Raises:
        UserError: If it cannot be loaded.
    """
    table: dict[str, object] = {"path": str(path.resolve())}
    if kind == "voxeval":
        from voxmeter.suites.voxeval_layout import SETTINGS, settings_of

        own = settings_of(path)
        table["speaker"] = own[0] if own else SETTINGS[0]
    return catalog.load(kind, path.stem, table, Path())


def files_of(suite: Suite, folder: Path | None = None) -> Iterator[Path]:
    """Yield every recording of a suite once, in all its conditions, then others that lie there.

    Args:
        suite: The suite.
        folder: Of the download; None for no others.
    """
    seen: set[int] = set()  # hashes of names: a fifth of what the names would take
    for path in _asked(suite):
        name = hash(os.path.normpath(path))
        if name not in seen:
            seen.add(name)
            yield path
    if folder is None:
        return
    root = folder.resolve()
    for path in root.rglob("*"):
        if path.suffix.lower() in _SOUND and hash(str(path)) not in seen:
            yield path


def _asked(suite: Suite) -> Iterator[Path]:
    for condition in ("clean", *suite.conditions):
        for item in suite.items:
            yield from suite.asked(item, condition).files()


def repeated(items: Iterable[Item]) -> Iterator[str]:
    """Yield a line for each question that is asked twice and not known to be one."""
    asked: dict[tuple[object, ...], list[tuple[str, str]]] = {}
    for item in items:
        words = " ".join(item.question.casefold().split())
        about = item.files() if item.question_via else ()
        if words:
            key = (words, item.options, item.language, about)
            asked.setdefault(key, []).append((item.item, item.cluster or item.item))
    for same in asked.values():
        if 1 < len({cluster for _, cluster in same}) <= _COMMON:
            others = ", ".join(name for name, _ in same[1:4])
            yield f"the question of {same[0][0]} is also that of {others}"


def recordings(
    files: Iterable[Path],
    total: int,
    *,
    decode: bool,
    lacking: bool,
    on_file: Callable[[int], None] = lambda _: None,
) -> Recordings:
    """Return what is found in recordings.

    Args:
        files: Each once.
        total: About how many they are: some of them, evenly spread, are decoded.
        decode: Whether all of them are.
        lacking: Whether those that are missing or empty are told; else they are known already.
        on_file: Called after each with the number so far.
    """
    found = Recordings()
    step = 1 if decode else max(1, total // DECODED)
    sizes: dict[int, Path | None] = {}
    contents: dict[bytes, Path] = {}
    for number, path in enumerate(files):
        problem, size = _unreadable(path)
        if problem:
            found.faults += [f"{path}: {problem}"] if lacking or size else []
        else:
            found.count += 1
            if _header(path, found) and number % step == 0:
                _decoded(path, found)
            _compared(path, size, sizes, contents, found)
        on_file(number + 1)
    return found


def _unreadable(path: Path) -> tuple[str, int]:
    """Return why a file cannot be opened, and its size."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return "no such file", 0
    except (OSError, ValueError) as error:
        return f"cannot be read ({error})", 0
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file", 0
    return ("" if status.st_size else "is empty"), status.st_size


def _header(path: Path, found: Recordings) -> bool:
    """Note what a header says; return whether it is one of sound that can be used."""
    import soundfile

    try:
        if not _begins_as_sound(path):
            raise RuntimeError  # noqa: TRY301 - libraries print what they think of it
        header = soundfile.info(str(path))
    except (OSError, RuntimeError):
        try:  # some that the library does not know by their headers can be decoded all the same
            pcm = audio.read(path)
        except ClipError as error:
            found.faults.append(str(error))
            return False
        found.rates[pcm.rate] += 1
        found.ms += pcm.ms
        return True
    found.rates[int(header.samplerate)] += 1
    found.channels += header.channels > 1
    seconds = header.frames / header.samplerate
    if not header.frames:
        found.faults.append(f"{path}: holds no samples")
        return False
    if seconds > audio.LIMIT_S:
        found.faults.append(
            f"{path}: {seconds:.0f} s; clips over {audio.LIMIT_S:.0f} s are refused"
        )
        return False
    found.ms += seconds * 1000
    return True


def _begins_as_sound(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(4)
    frame = start[:1] == b"\xff" and start[1:2] >= b"\xe0"  # of MP3, without a tag before it
    return frame or start in _BEGINNINGS or start.startswith(b"ID3")


def _decoded(path: Path, found: Recordings) -> None:
    try:
        clip = clips.clip(audio.read(path), str(path))
    except ClipError as error:
        found.faults.append(str(error))
        return
    found.decoded += 1
    usual = ("channels",)
    found.notes.extend(
        f"{path}: {warning}"
        for warning in clip.pcm.warnings
        if not any(word in warning for word in usual)
    )


def _compared(
    path: Path,
    size: int,
    sizes: dict[int, Path | None],
    contents: dict[bytes, Path],
    found: Recordings,
) -> None:
    """Compare a file with those of its size; one of a size of its own is never hashed."""
    if size not in sizes:
        sizes[size] = path
        return
    first = sizes[size]
    if first is not None:
        contents[_hash(first)] = first
        sizes[size] = None
    twin = contents.setdefault(_hash(path), path)
    if twin is not path and not twin.samefile(path):
        found.twins.append((twin, path))


def _hash(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()[:16]


def some(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first lines of a sort, then how many more there are."""
    rest = 0
    for number, line in enumerate(lines):
        if number < _SHOWN:
            yield line
        else:
            rest += 1
    if rest:
        yield f"... and {rest} more like it"
