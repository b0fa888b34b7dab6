"""The folders of VoiceBench once it is unpacked: a list of questions and a folder of sound a split.

The download has both in Parquet files, which `voxmeter suites build voicebench` unpacks. Lists are
read and folders listed; no recording is opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.folders import leads_out

_MARK = re.compile(r"(?:(?<=\s)|^|(?<=[.,;:?!]))\(?(?P<label>[A-Z])[.):]\s+")


@dataclass(frozen=True, slots=True)
class Split:
    """One split of one subset.

    Attributes:
        subset: Name of the subset.
        name: Name of the split.
        path: Its list of questions.
    """

    subset: str
    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Line:
    """One question of a list.

    Attributes:
        number: Its line, from 1.
        values: What the data say of it.
        audio: Where its recording lies, or would lie.
    """

    number: int
    values: Mapping[str, object]
    audio: Path

    def text(self, key: str) -> str:
        """Return a text, empty where there is none."""
        value = self.values.get(key)
        return value.strip() if isinstance(value, str) else ""


def splits_of(root: Path, place: str) -> list[Split]:
    """Return the splits that are there, in the order of their names.

    Args:
        root: The folder that holds one folder for each subset.
        place: Starts errors.

    Raises:
        UserError: If there is none.
    """
    found = [
        Split(path.parent.name, path.stem, path)
        for path in sorted(root.glob("*/*.jsonl"))
        if not path.name.startswith(".")
    ]
    if found:
        return found
    if any(root.glob("*/*.parquet")):
        raise UserError(
            place,
            f"{root} holds Parquet files, which have to be unpacked once",
            f"voxmeter suites build voicebench {root} -o FOLDER, and give that folder",
        )
    raise UserError(
        place,
        f"there is no list in {root}, such as alpacaeval_full/test.jsonl",
        "give the folder that voxmeter suites build voicebench made",
    )


def read_split(split: Split) -> tuple[list[Line], list[str]]:
    """Return the questions of a split, and one line for each that cannot be asked.

    Raises:
        UserError: If its list cannot be read.
    """
    lines: list[Line] = []
    problems: list[str] = []
    try:
        text = split.path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(str(split.path), f"cannot be read ({error})", "unpack it again") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            lines.append(_line(split, number, line))
        except (ValueError, RecursionError) as error:
            problems.append(f"{split.subset}/{split.path.name} line {number}: {error}")
    return lines, problems


def _line(split: Split, number: int, line: str) -> Line:
    values = json.loads(line)
    if not isinstance(values, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - a line that cannot be asked
    name = values.get("audio")
    if not isinstance(name, str) or not name:
        raise ValueError("no audio")
    relative = PurePosixPath(name)
    if ".." in relative.parts or leads_out(name):
        raise ValueError(f"audio {name!r:.60} leaves its folder")
    found = Line(number, values, split.path.parent / relative)
    if not found.text("prompt"):
        raise ValueError("no prompt")
    return found


def options_of(prompt: str) -> tuple[str, ...]:
    """Return the texts of the options that a prompt reads out, none where it is not plain.

    They stand behind `A.`, `(A)`, `A)` or `A:`, each in its turn.
    """
    marks: list[re.Match[str]] = []
    for found in _MARK.finditer(prompt):
        if found["label"] == chr(ord("A") + len(marks)):
            marks.append(found)
    if len(marks) < 2:
        return ()
    ends: Sequence[int] = [*(mark.start() for mark in marks[1:]), len(prompt)]
    texts = [prompt[mark.end() : end].strip(" \n,;") for mark, end in zip(marks, ends, strict=True)]
    same = len({text.casefold() for text in texts}) < len(texts)
    return () if same or not all(texts) else tuple(texts)


def instructions_of(line: Line) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the instructions of a question with their settings; absent settings are left out.

    Raises:
        ValueError: If names and settings do not fit each other.
    """
    names, settings = line.values.get("instruction_id_list"), line.values.get("kwargs")
    if not isinstance(names, list) or not names:
        raise ValueError("no instruction_id_list")
    if not isinstance(settings, list) or len(settings) != len(names):
        raise ValueError("kwargs do not fit instruction_id_list")
    for name, one in zip(names, settings, strict=True):
        told = json.loads(one) if isinstance(one, str) else one
        if not isinstance(name, str) or not isinstance(told, dict | None):
            raise ValueError("an instruction is not a name with settings")  # noqa: TRY004
        yield name, {key: _whole(value) for key, value in (told or {}).items() if value is not None}


def _whole(value: object) -> object:
    """Return 300.0 as 300: tables keep a column of numbers with gaps as fractions."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
