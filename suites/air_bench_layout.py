"""The folders of an AIR-Bench download: its lists of questions and the recordings beside them.

A list is one JSON file a part; recordings lie in one folder for each task and source. Folders are
listed, no recording is opened: there are more than 20,000 of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.air_bench_tasks import PARTS, Part
from voxmeter.suites.folders import leads_out, listed

_FOLDERS: Mapping[Part, str] = {"foundation": "Foundation", "chat": "Chat"}
_LETTERS = ("a", "b", "c", "d")
_ENDINGS = (".wav", ".flac", ".mp3")


@dataclass(frozen=True, slots=True)
class Row:
    """One question of a list.

    Attributes:
        number: Its place in the list, from 0.
        task: Name of its task, as the data have it.
        dataset: Where its recording is from.
        path: The recording's name in the folder of task and source.
        question: The question.
        answer: The right answer in words.
        options: Texts of the options in the order of the data; empty for open questions.
        told: What the recording holds, in words; empty for choices.
        uniq_id: The benchmark's own number for it.
    """

    number: int
    task: str
    dataset: str
    path: str
    question: str
    answer: str
    options: tuple[str, ...] = ()
    told: str = ""
    uniq_id: str = ""

    @property
    def folder(self) -> str:
        """Name of the folder of its recording."""
        return f"{self.task}_{self.dataset}"


@dataclass(frozen=True, slots=True)
class Listing:
    """One list of questions.

    Attributes:
        root: The folder that it lies in.
        rows: Those that can be asked.
        problems: One line for each row that cannot.
    """

    root: Path
    rows: tuple[Row, ...]
    problems: tuple[str, ...] = ()


def parts_of(root: Path, place: str) -> Mapping[Part, Path]:
    """Return the parts of a download and the list of each.

    Args:
        root: The folder that holds `Foundation/` and `Chat/`, or one of the two.
        place: Starts errors.

    Raises:
        UserError: If there is no list.
    """
    found: dict[Part, Path] = {}
    for part in PARTS:
        name = f"{_FOLDERS[part]}_meta.json"
        for path in (root / _FOLDERS[part] / name, root / name):
            if path.is_file():
                found[part] = path
                break
    if not found:
        raise UserError(
            place,
            f"{root} has neither Foundation/Foundation_meta.json nor Chat/Chat_meta.json",
            "give the folder of the download, the one that holds Foundation/ and Chat/",
        )
    return found


def read_list(path: Path, part: Part) -> Listing:
    """Return the questions of one part.

    Raises:
        UserError: If the file is no list in JSON.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(str(path), f"cannot be read ({error})", "download it again") from None
    if not isinstance(entries, list):
        raise UserError(str(path), "is not a list of questions", "download it again")
    rows: list[Row] = []
    problems: list[str] = []
    for number, entry in enumerate(entries):
        try:
            rows.append(_row(number, entry, part))
        except ValueError as error:
            problems.append(f"{path.name} entry {number}: {error}")
    return Listing(path.parent, tuple(rows), tuple(problems))


def _row(number: int, entry: object, part: Part) -> Row:
    if not isinstance(entry, Mapping):
        raise ValueError("no JSON object")  # noqa: TRY004 - an entry that cannot be asked
    texts = {key: _text(entry, key) for key in ("task_name", "dataset_name", "path", "question")}
    for key, text in texts.items():
        if not text:
            raise ValueError(f"no {key}")
    relative = PurePosixPath(texts["path"])
    if ".." in relative.parts or leads_out(texts["path"]):
        raise ValueError(f"path {texts['path']!r:.60} leaves the folder of its task")
    answer = _text(entry, "answer_gt")
    if not answer:
        raise ValueError("no answer_gt")
    return Row(
        number,
        texts["task_name"],
        texts["dataset_name"],
        texts["path"],
        texts["question"],
        answer,
        options=_options(entry, answer) if part == "foundation" else (),
        told=_text(entry, "meta_info") if part == "chat" else "",
        uniq_id=_text(entry, "uniq_id") or str(number),
    )


def _text(entry: Mapping[object, object], key: str) -> str:
    value = entry.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else ""


def _options(entry: Mapping[object, object], answer: str) -> tuple[str, ...]:
    """Return the texts of the options that there are.

    Questions of two options have no c and d; the benchmark's script shows those as "None", and a
    list that was made from what it shows has that word in both.
    """
    texts = [_text(entry, f"choice_{letter}") for letter in _LETTERS]
    if texts[2:] == ["None", "None"]:
        texts = texts[:2]
    options = tuple(text for text in texts if text)
    if len(options) < 2:
        raise ValueError(f"{len(options)} options")
    if not any(_same(option, answer) for option in options):
        raise ValueError(f"answer {answer!r:.60} is none of its options")
    return options


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def right(options: tuple[str, ...], answer: str) -> tuple[int, ...]:
    """Return the places of the options that are the answer: several where texts are the same.

    An option in the very same letters goes before one that differs in case.
    """
    exact = tuple(place for place, option in enumerate(options) if option == answer)
    return exact or tuple(place for place, option in enumerate(options) if _same(option, answer))


@dataclass(slots=True)
class Folders:
    """The recordings of a part, each folder listed once.

    Attributes:
        root: Folder that holds those of the tasks.
    """

    root: Path
    _sizes: dict[Path, Mapping[str, int] | None] = field(default_factory=dict)
    _stems: dict[Path, Mapping[str, str]] = field(default_factory=dict)

    def there(self, row: Row) -> bool:
        """Return whether the folder of a question's recording is there."""
        return self._listed(self.root / row.folder) is not None

    def recording(self, row: Row) -> Path:
        """Return where the recording of a question lies, or would lie.

        The list's names end in `.wav` where the files are FLAC (Audio_Grounding), so a file of
        the same name but for its ending is the one.
        """
        path = self.root / row.folder / row.path
        sizes = self._listed(path.parent)
        if not sizes or path.name in sizes:
            return path
        found = self._by_stem(path.parent, sizes).get(path.stem)
        return path.with_name(found) if found else path

    def _listed(self, folder: Path) -> Mapping[str, int] | None:
        if folder not in self._sizes:
            self._sizes[folder] = listed(folder)
        return self._sizes[folder]

    def _by_stem(self, folder: Path, sizes: Mapping[str, int]) -> Mapping[str, str]:
        if folder not in self._stems:
            names = (name for name in sizes if name.lower().endswith(_ENDINGS))
            self._stems[folder] = {Path(name).stem: name for name in names}
        return self._stems[folder]
