"""The folders of a VoxEval download: which subjects, rows and recordings are in it.

Folders are listed and tables read; no recording is opened, as there are up to 150,000 of them.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.folders import listed

SPEAKERS = ("alloy", "echo", "fable", "nova", "onyx", "shimmer")
SETTINGS = (
    *SPEAKERS,
    "alloy_noise",
    "alloy_pitch",
    "alloy_tempo",
    "alloy_env_acoustics",
    "alloy_linguistic_variation",
)
"""What VoxEval has every question in: six voices, and one of them spoken otherwise or disturbed."""

EXAMPLES, CHAINS = "all_fewshot_examples", "math_CoT_fewshot"
MOST_EXAMPLES, MOST_CHAINS = 5, 3

_COLUMNS = 6
_LABELS = "ABCD"
_FAMILIES = ("_4o", "_test")
"""Ends of the names of tables, the one that is preferred first: questions that were rewritten so
that they can be spoken, and questions as MMLU has them."""
_LONGEST_FIELD = 1 << 20


@dataclass(frozen=True, slots=True)
class Subject:
    """One subject of a download.

    Attributes:
        name: MMLU's name of it (`college_physics`).
        stem: Name of its table and of its folders (`college_physics_test`).
    """

    name: str
    stem: str

    def question_file(self, row: int) -> str:
        """Return where the recording of a row lies in the folder of a setting."""
        return f"{self.stem}/{row:08d}_question.mp3"

    @property
    def examples(self) -> str:
        """Name of the folder of its worked examples."""
        return self.stem.replace("_test", "_val")

    @property
    def chains(self) -> str:
        """Name of the folder of its examples with chains of thought."""
        return f"{self.name}_dev_4o"


class Row(NamedTuple):
    """One question of a table; its number, from 0, is that of its recording."""

    number: int
    question: str
    options: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Table:
    """The questions of one subject.

    Attributes:
        rows: Those that can be asked.
        problems: One line for each row that cannot.
    """

    rows: tuple[Row, ...]
    problems: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Rows of the table, good and bad."""
        return len(self.rows) + len(self.problems)


@dataclass(frozen=True, slots=True)
class Recordings:
    """How the recordings of one subject in one setting fit its table.

    Attributes:
        missing: Rows without one.
        empty: Rows whose file has no bytes.
        beyond: Files of questions that the table has no row for.
    """

    missing: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """The subjects of a download.

    Attributes:
        subjects: By name.
        oddities: One line for each table that is not as expected.
    """

    subjects: tuple[Subject, ...]
    oddities: tuple[str, ...]


def open_download(root: Path, place: str) -> Found:
    """Return the subjects of a download, which are its tables.

    Args:
        root: Its folder.
        place: Starts errors.

    Raises:
        UserError: If it is no download of VoxEval.
    """
    test = root / "test"
    try:
        names = sorted(name for name in os.listdir(test) if name.endswith(".csv"))  # noqa: PTH208 - names are enough
    except OSError as error:
        raise UserError(
            place,
            f"{test} cannot be listed ({error.strerror})",
            "give the folder of the download, the one that holds test/ and all_fewshot_examples/",
        ) from None
    tables: dict[str, list[Subject]] = {}
    for name in names:
        if not name.startswith("."):  # what macOS writes beside files
            subject = _subject(name.removesuffix(".csv"))
            tables.setdefault(subject.name, []).append(subject)
    if not tables:
        raise UserError(place, f"no table in {test}", "download the .csv files as well")
    oddities: list[str] = []
    for name, several in tables.items():
        several.sort(key=_rank)
        if len(several) > 1:
            both = " and ".join(f"{one.stem}.csv" for one in several)
            oddities.append(f"{name} has {both}: {several[0].stem} is asked, the other is not")
    return Found(tuple(several[0] for several in tables.values()), tuple(oddities))


def _subject(stem: str) -> Subject:
    for end in _FAMILIES:
        if stem.endswith(end):
            return Subject(stem.removesuffix(end), stem)
    return Subject(stem, stem)


def _rank(subject: Subject) -> int:
    """Return the place of a table among those of one subject; the first is asked."""
    return (*_FAMILIES, "").index(subject.stem.removeprefix(subject.name))


def read_table(path: Path) -> Table:
    """Return the rows of a table without a header: question, A, B, C, D, letter.

    Rows are counted as the benchmark's own reader counts them: blank lines are none.

    Raises:
        UserError: If the file cannot be read as a table at all.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    good: list[Row] = []
    problems: list[str] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, cells in enumerate(filter(None, csv.reader(file))):
                problem = _problem(cells)
                if problem is None:
                    texts = tuple(cell.strip() for cell in cells)
                    good.append(Row(number, texts[0], texts[1:5], texts[5].upper()))
                else:
                    problems.append(f"{path.name} row {number}: {problem}")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(str(path), f"cannot be read ({error})", "download it again") from None
    return Table(tuple(good), tuple(problems))


def _problem(cells: list[str]) -> str | None:
    if len(cells) < _COLUMNS:
        columns = "column" if len(cells) == 1 else "columns"
        return f"{len(cells)} {columns}, not question, A, B, C, D and letter"
    answer = cells[5].strip().upper()
    if len(answer) != 1 or answer not in _LABELS:
        return f"answer {cells[5].strip()!r:.40} is none of A to D"
    return None


def settings_of(root: Path) -> tuple[str, ...]:
    """Return the settings that a download has folders of, in the benchmark's order."""
    return tuple(one for one in SETTINGS if (root / "test" / one).is_dir())


def recordings(root: Path, setting: str, subject: Subject, table: Table) -> Recordings:
    """Return how the recordings of a subject in one setting fit its table."""
    sizes = listed(root / "test" / setting / subject.stem) or {}
    found = Recordings()
    names = {Path(subject.question_file(row.number)).name: row.number for row in table.rows}
    for name, number in names.items():
        if name not in sizes:
            found.missing.append(number)
        elif not sizes[name]:
            found.empty.append(number)
    known = {f"{number:08d}_question.mp3" for number in range(table.count)}
    found.beyond.extend(
        sorted(name for name in sizes if name.endswith("_question.mp3") and name not in known)
    )
    return found


class Example(NamedTuple):
    """The recordings of one worked example."""

    question: Path
    answer: Path


def example_folder(root: Path, setting: str, subject: Subject, *, chains: bool) -> Path:
    """Return the folder of a subject's worked examples in a setting."""
    if chains:
        return root / CHAINS / setting / subject.chains
    return root / EXAMPLES / setting / subject.examples


def examples(folder: Path, count: int, *, chains: bool) -> list[Example]:
    """Return the first worked examples of a folder, in order, whether they are there or not."""
    end = "CoT_answer" if chains else "answer"
    return [
        Example(folder / f"{number:08d}_question.mp3", folder / f"{number:08d}_{end}.mp3")
        for number in range(count)
    ]


def absent(wanted: list[Example]) -> Iterator[Path]:
    """Yield the recordings of examples that are not there or have no bytes."""
    if wanted:
        sizes = listed(wanted[0].question.parent) or {}
        for path in (path for example in wanted for path in example):
            if not sizes.get(path.name):
                yield path


def example_answers(root: Path, subject: Subject) -> tuple[str, ...]:
    """Return what the answers of a subject's examples say, nothing where no table tells.

    VoxEval has recordings of them alone. MMLU's own table of the examples
    (`val/<subject>_val.csv`) may be put beside their folders.
    """
    path = root / EXAMPLES / f"{subject.examples}.csv"
    if not path.is_file():
        return ()
    told = {row.number: f"The correct answer is {row.answer}." for row in read_table(path).rows}
    return tuple(told.get(number, "") for number in range(MOST_EXAMPLES))
