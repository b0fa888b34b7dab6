"""Questions to be spoken, from MMLU's CSV or from JSON lines; bad rows are told by line."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.fields import Fields
from voxmeter.suites.jsonl import KEYS, checked_lines
from voxmeter.suites.references import labels, references
from voxmeter.suites.suite import KINDS, Kind

_LONGEST_FIELD = 1 << 20
_FEWEST_CELLS, _MOST_CELLS = 4, 28


@dataclass(frozen=True, slots=True)
class Written:
    """One question, as it is written.

    Attributes:
        name: Its id.
        line: Where it stands in the source.
        kind: How a reply is scored.
        question: Its words, without the options.
        options: Of a choice.
        reference: The right answers.
        language: Its code.
        whole: Whether `question` is all that is to be said, options or none.
        groups: Outermost first.
        cluster: What it moves together with.
        voice: Who speaks it, where it says so itself.
        rubric: Prompt of a judge.
        source: Where it comes from.
        licence: Under which.
    """

    name: str
    line: int
    kind: Kind
    question: str
    options: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    language: str = "en"
    whole: bool = False
    groups: tuple[str, ...] = ()
    cluster: str = ""
    voice: str = ""
    rubric: str = ""
    source: str = ""
    licence: str = ""


Row = Written | UserError
"""A question, or what is wrong with its line."""


def rows(path: Path, language: str = "en") -> Iterator[Row]:
    """Yield the questions of a file, and what is wrong with rows that are none.

    Args:
        path: `.csv` without a header (question, options, letter), anything else is JSON lines with
            the keys of a `jsonl` suite.
        language: Of questions that name none.

    Raises:
        UserError: If the file cannot be read at all.
    """
    seen: dict[str, int] = {}
    read = _table if path.suffix.lower() == ".csv" else _lines
    for row in read(path, language):
        if isinstance(row, Written):
            before = seen.setdefault(row.name, row.line)
            if before != row.line:
                found = f"id {row.name!r} is already on line {before}"
                yield UserError(f"{path}:{row.line}", found, "give every question its own id")
                continue
        yield row


def _table(path: Path, language: str) -> Iterator[Row]:
    csv.field_size_limit(_LONGEST_FIELD)
    subject = path.stem.removesuffix("_test").removesuffix("_4o")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.reader(file, strict=True)
            for number, cells in enumerate(filter(None, table)):
                yield _cells(path, table.line_num, f"{subject}-{number:04d}", cells, language)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(str(path), f"cannot be read ({reason})", "give a CSV in UTF-8") from None


def _cells(path: Path, line: int, name: str, cells: list[str], language: str) -> Row:
    place = f"{path}:{line}"
    question, *options, letter = (cell.strip() for cell in cells)
    if not _FEWEST_CELLS <= len(cells) <= _MOST_CELLS:
        found = f"{len(cells)} cells"
        return UserError(place, found, "write question, option, option, ..., letter")
    known = labels(len(options))
    if len(letter) != 1 or letter.upper() not in known:
        found = f"answer {letter!r:.40} is none of {known[0]} to {known[-1]}"
        cure = "a table has no header" if line == 1 else "give the letter of the right option"
        return UserError(place, found, cure)
    if not question or not all(options):
        found = "no question" if not question else f"option {known[options.index('')]} is empty"
        return UserError(place, found, "fill it or delete the row")
    if len({option.casefold() for option in options}) < len(options):
        return UserError(place, "two options are the same", "make them different")
    return Written(
        name,
        line,
        "choice",
        question,
        tuple(options),
        (letter.upper(),),
        language,
        groups=(name.rpartition("-")[0],),
    )


def _lines(path: Path, language: str) -> Iterator[Row]:
    for line, found in checked_lines(path):
        if isinstance(found, UserError):
            yield found
            continue
        try:
            yield _object(path, line, found, language)
        except UserError as error:
            yield error


def _object(path: Path, line: int, row: Mapping[str, object], language: str) -> Written:
    fields = Fields(f"{path}:{line}", {"language": language, **row})
    fields.known_only(KEYS)
    if fields.text("audio"):
        raise UserError(fields.place, "has audio already", "take the line out")
    kind = fields.one_of("kind", KINDS) or ("choice" if fields.texts("options") else "open")
    options = fields.texts("options")
    text, question = fields.text("text"), fields.text("question")
    if not (text or question):
        raise UserError(fields.place, "neither question nor text", "give the question in words")
    name = fields.text("id") or f"{os.fspath(path.stem)}-{line:04d}"
    return Written(
        name,
        line,
        kind,
        text or question,
        options,
        references(fields, kind, options),
        fields.language("language"),
        whole=bool(text) and kind == "choice",
        groups=fields.texts("groups"),
        cluster=fields.text("cluster") or name,
        voice=fields.text("voice"),
        rubric=fields.text("rubric"),
        source=fields.text("source"),
        licence=fields.text("licence"),
    )
