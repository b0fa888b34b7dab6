"""The folders of an ADU-Bench download: its lines and the recordings that they name.

Folders are listed and lines read; no recording is opened, as there are 20,715 of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from voxmeter.endpoints.errors import UserError

_LONGEST_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a file.

    Attributes:
        dataset: Folder of the file (`ADU-Skill`).
        file: Its name without ending (`physics`).
        line: From 1.
        question: Words of the recording; empty where there are none.
        answers: What a judge compares with; empty where there is none.
        source: Where it is from, as the line says.
        category: What the line calls it.
        audio: The recording, as the line names it.
        path: Where that is here.
        size: Bytes of it; None where it is not there.
    """

    dataset: str
    file: str
    line: int
    question: str
    answers: tuple[str, ...]
    source: str
    category: str
    audio: str
    path: Path
    size: int | None

    @property
    def name(self) -> str:
        """Its id: the benchmark has none of its own."""
        return f"{self.dataset}/{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Download:
    """What can be asked.

    Attributes:
        entries: In the order of the files.
        problems: One line for each that cannot be asked.
    """

    entries: tuple[Entry, ...]
    problems: tuple[str, ...]


def open_download(root: Path, place: str, datasets: Sequence[str]) -> Download:
    """Return the entries of a download.

    Args:
        root: The folder that holds `input/`, or the one that holds the folders of datasets; the
            recordings may lie beside `input/` as well as in it.
        place: Starts errors.
        datasets: Those to be read, as far as they are there.

    Raises:
        UserError: If there is no file of them.
    """
    inside = root / "input" if (root / "input").is_dir() else root
    files = [
        (dataset, path)
        for dataset in datasets
        for path in sorted((inside / dataset).glob("*.jsonl"))
    ]
    if not files:
        named = ", ".join(f"input/{dataset}/*.jsonl" for dataset in datasets)
        raise UserError(
            place,
            f"{root} has no {named}" if root.is_dir() else f"{root} is no folder",
            "give the folder of the download, the one that holds input/",
        )
    entries: list[Entry] = []
    problems: list[str] = []
    recordings = _Recordings((inside,) if inside == root else (inside, root))
    for dataset, path in files:
        for number, line in _lines(path):
            try:
                entries.append(_entry(dataset, path.stem, number, line, recordings))
            except ValueError as error:
                problems.append(f"{dataset}/{path.name}:{number}: {error}")
    return Download(tuple(entries), tuple(problems))


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that are not blank, cut off where they are far too long."""
    try:
        with path.open("rb") as file:
            number, start = 0, True
            while line := file.readline(_LONGEST_LINE):
                number += start
                if start and line.strip():
                    yield number, line
                start = line.endswith(b"\n")
    except OSError as error:
        raise UserError(str(path), f"cannot be read ({error.strerror})", "check the file") from None


def _entry(dataset: str, file: str, number: int, line: bytes, recordings: _Recordings) -> Entry:
    try:
        row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None
    if not isinstance(row, Mapping):
        raise ValueError("no JSON object")  # noqa: TRY004 - a line that cannot be asked
    audio = _text(row, "audio")
    if not audio:
        raise ValueError("no audio")
    path, size = recordings.find(dataset, file, audio)
    return Entry(
        dataset,
        file,
        number,
        _text(row, "question"),
        _answers(row.get("answer")),
        _text(row, "source"),
        _text(row, "category"),
        audio,
        path,
        size,
    )


def _text(row: Mapping[object, object], key: str) -> str:
    value = row.get(key)
    return _clean(value) if isinstance(value, str) else ""


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode().strip()


def _answers(value: object) -> tuple[str, ...]:
    """Return the answers that a line has: a text, a number, or a list of them; nothing for null."""
    listed = value if isinstance(value, list) else [value]
    texts = [
        _clean(one) if isinstance(one, str) else f"{one}"
        for one in listed
        if isinstance(one, str | int | float) and not isinstance(one, bool)
    ]
    return tuple(text for text in texts if text)


@dataclass(slots=True)
class _Recordings:
    """Where recordings lie, told by listing each folder once."""

    roots: tuple[Path, ...]
    listed: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def find(self, dataset: str, file: str, audio: str) -> tuple[Path, int | None]:
        """Return where a recording is and its size in bytes, None where it is not there.

        A line may name it from the folder of the download, of the dataset or of the domain, or
        as it lay on the machine of whoever made it.

        Raises:
            ValueError: If it leads out of the download.
        """
        if "\0" in audio:
            raise ValueError("audio is no path")
        parts = [part for part in PurePosixPath(audio.replace("\\", "/")).parts if part != "/"]
        if ".." in parts or not parts:
            raise ValueError(f"audio {audio!r:.80} leads out of the download")
        if dataset in parts:
            inner = parts[parts.index(dataset) + 1 :]
            ways = [(dataset, *inner)]
        else:
            ways = [(*home, *parts) for home in ((), (dataset,), (dataset, file))]
        places = [os.path.join(root, *way) for root in self.roots for way in ways]  # noqa: PTH118 - twice as fast
        for place in places:
            folder, name = os.path.split(place)
            size = self._sizes(folder).get(name)
            if size is not None:
                return Path(place), size
        return Path(places[0]), None

    def _sizes(self, folder: str) -> Mapping[str, int]:
        if folder not in self.listed:
            try:
                with os.scandir(folder) as found:
                    self.listed[folder] = {
                        one.name: one.stat().st_size for one in found if one.is_file()
                    }
            except OSError:
                self.listed[folder] = {}
        return self.listed[folder]
