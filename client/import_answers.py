"""Answers that were made elsewhere, found by the question that they answer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from voxmeter.client import keys
from voxmeter.client.jsonlines import disk
from voxmeter.client.terminal import printable
from voxmeter.endpoints.codec import Asked
from voxmeter.endpoints.errors import UserError
from voxmeter.suites.fields import Fields
from voxmeter.suites.folders import leads_out, link_out
from voxmeter.suites.jsonl import object_lines

SOUNDS = (".wav", ".flac", ".ogg", ".opus", ".mp3")
"""Suffixes of files that are spoken answers; `.txt` files are written ones."""

_KEYS = ("id", "text", "audio", "suite", "condition", "trial")


class _Question(NamedTuple):
    """What an answer answers; None is any."""

    suite: str | None
    item: str
    condition: str = "clean"
    trial: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        text: Its words, where they are known.
        audio: Its sound, where there is any.
    """

    text: str | None = None
    audio: Path | None = None


class Answers:
    """A folder or a file of answers.

    An answer that names no condition answers the clean clip alone: what was said to one clip says
    nothing about what would have been said to another.

    Args:
        path: A folder of `ITEM.wav`, `SUITE/ITEM.wav` or `SUITE/CONDITION/ITEM.wav`, or a file of
            JSON lines with `id`, and `text` or `audio` or both.
        place: Where the path stands in bench.toml, for errors.

    Raises:
        UserError: If there are no answers there, or two to one question.
    """

    def __init__(self, path: Path, place: str) -> None:
        self.path = path
        shown = printable(str(path))
        if path.is_dir():
            with disk(path):
                self._answers = _of_folder(path)
        elif path.is_file():
            self._answers = _of_file(path)
        else:
            found = f"there is no {shown}"
            raise UserError(place, found, "give a folder of audio files, or a file of JSON lines")
        if not self._answers:
            raise UserError(place, f"{shown} has no answers", "name the files ITEM.wav")
        files = (one.audio for one in self._answers.values() if one.audio is not None)
        led = link_out(files, path if path.is_dir() else path.parent)
        if led is not None:
            found = f"{printable(str(led))} is a link that leads out of {shown}"
            raise UserError(place, found, "put a copy there")

    @property
    def spoken(self) -> bool:
        """Whether any answer has sound."""
        return any(one.audio is not None for one in self._answers.values())

    @property
    def written(self) -> bool:
        """Whether any answer has words."""
        return any(one.text is not None for one in self._answers.values())

    def find(self, asked: Asked) -> Answer | None:
        """Return the answer to a question, the one that says most exactly that it is."""
        trial = max(1, asked.trial)  # a warm-up turn asks what the first trial asks
        for suite in (asked.suite, keys.part(asked.suite), None):
            for item in (asked.item, keys.part(asked.item)):
                for number in (trial, None):
                    found = self._answers.get(_Question(suite, item, asked.condition, number))
                    if found is not None:
                        return found
        return None


def _of_folder(folder: Path) -> dict[_Question, Answer]:
    found: dict[_Question, Answer] = {}
    for path in _files(folder):
        *where, name = path.relative_to(folder).parts
        suite = where[0] if where else None
        item = name[: -len(path.suffix)]
        question = _Question(suite, item, where[1]) if where[1:] else _Question(suite, item)
        before = found.get(question, Answer())
        if path.suffix.lower() == ".txt":
            if link_out([path], folder) is not None:
                told = "is a link that leads out of its folder"
                raise UserError(printable(str(path)), told, "put a copy there")
            text = path.read_text(encoding="utf-8-sig", errors="replace").strip()
            found[question] = Answer(text, before.audio)
        elif before.audio is not None:
            other = f"answers what {printable(before.audio.name)} answers"
            raise UserError(printable(str(path)), other, "keep one of them")
        else:
            found[question] = Answer(before.text, path)
    return found


def _files(folder: Path, depth: int = 0) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and depth < 2:
            yield from _files(path, depth + 1)
        elif path.suffix.lower() in (*SOUNDS, ".txt") and path.is_file():
            yield path


def _of_file(path: Path) -> dict[_Question, Answer]:
    found: dict[_Question, Answer] = {}
    lines: dict[_Question, int] = {}
    for number, row in object_lines(path):
        fields = Fields(f"{path}:{number}", row)
        fields.known_only(_KEYS)
        question = _Question(
            fields.text("suite") or None,
            fields.required_text("id"),
            fields.text("condition") or "clean",
            _trial(fields),
        )
        if question in found:
            told = f"answers what line {lines[question]} answers"
            raise UserError(fields.place, told, "keep one of them")
        found[question], lines[question] = _answer(fields, row, path.parent), number
    return found


def _answer(fields: Fields, row: Mapping[str, object], folder: Path) -> Answer:
    name = fields.text("audio")
    name = name.removeprefix(f"{folder}{os.sep}")
    if name and leads_out(name):
        found = f"audio {printable(name, 80)} leads out of its folder"
        raise UserError(fields.place, found, "put the audio beside or below the file of answers")
    audio = folder / name if name else None
    if audio is not None and not audio.is_file():
        raise UserError(fields.place, f"there is no file {printable(name)}", "correct the path")
    if audio is None and row.get("text") is None:
        raise UserError(fields.place, "no answer", "give text, audio or both")
    return Answer(None if row.get("text") is None else fields.text("text"), audio)


def _trial(fields: Fields) -> int | None:
    text = fields.text("trial")
    if not text:
        return None
    if not text.isdecimal() or int(text[:9]) < 1:
        raise UserError(fields.place, f"trial is {text[:20]!r}", "give a number from 1 up")
    return int(text[:9])
