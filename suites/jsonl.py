"""A user's own suite: one JSON object a line, each with an audio file or a text to be spoken.

The file is the user's work, so every line counts: one that is torn, doubled or wrong stops the
load with its line number. That goes for a torn last line too: leaving it out would quietly change
what is measured. A last line that only lacks its line end is whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.catalog import nearest
from voxmeter.suites.fields import Fields
from voxmeter.suites.folders import leads_out
from voxmeter.suites.references import references
from voxmeter.suites.suite import (
    KINDS,
    QUESTION_VIA,
    TABLE_KEYS,
    Gap,
    Item,
    Part,
    QuestionVia,
    Recording,
    Spoken,
    Suite,
)

KEYS = (
    *("id", "audio", "text", "kind", "question", "options", "reference", "language"),
    *("cluster", "groups", "voice", "first", "rubric", "told", "source", "licence", "made"),
)
"""Keys of a line; the last three are for readers of the file."""

GAP_MS = 500.0
"""Silence between a clip and the question spoken before or behind it."""

_LONGEST_LINE = 1 << 20


def load(name: str, config: Mapping[str, object], base: Path) -> Suite:
    """Return the suite of a file.

    Args:
        name: The user's name for the suite.
        config: Reads `path`, `question_via`, `voice` (speaks texts; by language when absent),
            `gap_ms` (silence between a clip and its question) and `rubric` (prompt by which a
            judge rates open questions that name none).
        base: Folder that `path` starts from.

    Raises:
        UserError: Naming file, line and, for broken JSON, column.
    """
    table = Fields(f"[[suite]] {name}", config)
    path = base / os.path.expanduser(table.required_text("path"))  # noqa: PTH111 - never raises
    table.known_only((*TABLE_KEYS, "path", "question_via", "voice", "gap_ms", "rubric"))
    items = read_items(
        path,
        name,
        voice=table.text("voice") or None,
        question_via=table.one_of("question_via", QUESTION_VIA),
        gap_ms=table.number("gap_ms", GAP_MS),
        rubric=table.text("rubric"),
    )
    return Suite(name, "jsonl", tuple(items))


def read_items(
    path: Path,
    suite: str,
    *,
    voice: str | None = None,
    question_via: QuestionVia | None = None,
    gap_ms: float = GAP_MS,
    rubric: str = "",
) -> list[Item]:
    """Return the items of a file, in its order.

    Args:
        path: The file: UTF-8, with or without a byte-order mark, any line ends, blank lines left
            out.
        suite: Name of the suite they belong to.
        voice: Speaks texts and questions of items that name no voice.
        question_via: How a question about the clip is put; None when the clip is the question.
        gap_ms: Silence between clip and spoken question.
        rubric: Prompt by which a judge rates open questions that name none.

    Raises:
        UserError: As `load`.
    """
    items: list[Item] = []
    lines: dict[str, int] = {}
    for number, row in object_lines(path):
        item = read_line(
            path, number, row, suite, voice=voice, question_via=question_via, gap_ms=gap_ms
        )
        if rubric and item.kind == "open" and not item.rubric:
            item = replace(item, rubric=rubric)
        if item.item in lines:
            raise UserError(
                f"{path}:{number}",
                f"id {item.item!r} is already on line {lines[item.item]}",
                "give every item its own id",
            )
        lines[item.item] = number
        items.append(item)
    return items


def read_line(
    path: Path,
    number: int,
    row: Mapping[str, object],
    suite: str,
    *,
    voice: str | None = None,
    question_via: QuestionVia | None = None,
    gap_ms: float = GAP_MS,
) -> Item:
    """Return the item of one line; arguments as for `read_items`.

    Raises:
        UserError: Naming file and line.
    """
    fields = Fields(f"{path}:{number}", row)
    fields.known_only(KEYS)
    return _item(fields, suite, path.parent, voice, question_via, gap_ms)


def object_lines(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the number and the object of every line of a user's file that is not blank.

    Args:
        path: As for `read_items`. Numbers in it are kept as texts.

    Raises:
        UserError: Naming file, line and, for broken JSON, column.
    """
    for number, found in checked_lines(path):
        if isinstance(found, UserError):
            raise found
        yield number, found


def checked_lines(path: Path) -> Iterator[tuple[int, Mapping[str, object] | UserError]]:
    """Yield the number of every line that is not blank, and its object or what is wrong with it.

    Args:
        path: As for `object_lines`.

    Raises:
        UserError: If the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            lines = iter(lambda: file.readline(_LONGEST_LINE + 1), b"")
            for number, line in enumerate(lines, start=1):
                found = _checked(line, f"{path}:{number}", first=number == 1)
                if found is not None:
                    yield number, found
                if len(line) > _LONGEST_LINE:
                    return  # what follows is the rest of it
    except OSError as error:
        raise UserError(str(path), error.strerror or "cannot be read", "check the path") from error


def _checked(line: bytes, place: str, *, first: bool) -> Mapping[str, object] | UserError | None:
    try:
        text = _decoded(line, place, first=first).strip()
        return _object(text, place, torn=not line.endswith(b"\n")) if text else None
    except UserError as error:
        return error


def _decoded(line: bytes, place: str, *, first: bool) -> str:
    if first and line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(place, "the file is UTF-16", "save it as UTF-8")
    if len(line) > _LONGEST_LINE:
        raise UserError(place, f"a line over {_LONGEST_LINE} bytes", "give one JSON object a line")
    try:
        return line.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{place}:{error.start + 1}", f"not UTF-8 ({error.reason})", "save the file as UTF-8"
        ) from error


def _object(text: str, place: str, *, torn: bool) -> Mapping[str, object]:
    try:
        row = json.loads(text, object_pairs_hook=_pairs, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        if torn:
            raise UserError(
                f"{place}:{error.colno}",
                f"the last line is torn ({error.msg})",
                "complete or delete it",
            ) from error
        raise UserError(
            f"{place}:{error.colno}", f"not JSON ({error.msg})", "give one JSON object a line"
        ) from error
    except (RecursionError, _DoubledKeyError) as error:
        found = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UserError(place, found, "give one plain JSON object a line") from error
    if not isinstance(row, dict):
        raise UserError(place, "not a JSON object", 'write {"id": …, "audio": …, "kind": …}')
    return row


class _DoubledKeyError(Exception):
    pass


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _DoubledKeyError(f"key {twice!r} occurs twice")
    return row


def _item(
    fields: Fields,
    suite: str,
    folder: Path,
    voice: str | None,
    question_via: QuestionVia | None,
    gap_ms: float,
) -> Item:
    kind = fields.one_of("kind", KINDS)
    if kind is None:
        raise UserError(fields.place, "no kind", nearest("", KINDS))
    options = fields.texts("options")
    language = fields.language("language")
    speaker = fields.text("voice") or voice or default_voice(language)
    text = fields.text("text")
    question = fields.text("question") or ("" if question_via else text)
    if question_via and not question:
        raise UserError(fields.place, "no question", f"question_via = {question_via!r} needs one")
    clip = _clip(fields, folder, text, speaker)
    name = fields.required_text("id")
    return Item(
        suite=suite,
        item=name,
        kind=kind,
        recipe=_recipe(clip, question, question_via, speaker, gap_ms),
        question=question,
        reference=references(fields, kind, options),
        options=options,
        language=language,
        cluster=fields.text("cluster") or name,
        groups=fields.texts("groups"),
        question_via=question_via,
        rubric=fields.text("rubric"),
        told=fields.text("told"),
        first=fields.flag("first"),
    )


def default_voice(language: str) -> str:
    """Return the voice that speaks a language when the user names none."""
    return "hibari" if language.split("-", maxsplit=1)[0] == "en" else f"espeak-ng:{language}"


def _clip(fields: Fields, folder: Path, text: str, speaker: str) -> Part:
    audio = fields.text("audio")
    if bool(audio) == bool(text):
        found = "both audio and text" if audio else "neither audio nor text"
        raise UserError(fields.place, found, "give exactly one of the two")
    if text:
        return Spoken(text, speaker)
    if leads_out(audio):
        raise UserError(
            fields.place,
            f"audio {audio!r} leaves the suite's folder",
            "put the audio beside or below the suite file and give its path from there",
        )
    return Recording(folder / os.path.normpath(audio))


def _recipe(
    clip: Part, question: str, via: QuestionVia | None, speaker: str, gap_ms: float
) -> tuple[Part, ...]:
    match via:
        case "speech-after":
            return (clip, Gap(gap_ms), Spoken(question, speaker))
        case "speech-before":
            return (Spoken(question, speaker), Gap(gap_ms), clip)
        case _:
            return (clip,)
