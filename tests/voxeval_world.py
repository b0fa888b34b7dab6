"""A download of VoxEval in small: the real folders and names, tables, and MP3 files of ours."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import soundfile
from attempt_logs import joined, silence, voice

RATE = 24_000
LETTERS = "BDAC"
VOICES = ("alloy", "nova")


def question_row(subject: str, number: int, letter: str) -> list[str]:
    """A row as MMLU has it: question, four options, letter."""
    options = [f"{subject} {number} {name}" for name in ("one", "two", "three", "four")]
    return [f"Which of them, number {number}?", *options, letter]


@cache
def mp3(ms: int) -> bytes:
    """Sound of ours between short silences, as an MP3 file; encoded once a length."""
    sound = joined(silence(40), voice(ms), silence(40))
    file = io.BytesIO()
    soundfile.write(file, np.asarray(sound, np.float32), RATE, format="MP3")
    return file.getvalue()


@dataclass
class Download:
    """What is written where.

    Attributes:
        root: The folder of the download.
        tables: Stem of each table and its rows.
        settings: Folders of recordings.
        examples: Worked examples a subject, in the settings that have them.
        example_settings: Those; all by default.
        chains: The same with chains of thought, for the tables of mathematics.
        lengths: Length of recordings in ms by sort: `question`, `example`, `answer`, `chain`.
    """

    root: Path
    tables: Mapping[str, Sequence[Sequence[str]]]
    settings: Sequence[str] = VOICES
    examples: int = 5
    example_settings: Sequence[str] | None = None
    chains: int = 0
    lengths: Mapping[str, int] = field(default_factory=dict)

    def write(self) -> Path:
        """Write the files; return the folder of the download."""
        for stem, rows in self.tables.items():
            path = self.root / "test" / f"{stem}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(rows)
            for setting in self.settings:
                folder = self.root / "test" / setting / stem
                for number in range(len(rows)):
                    self._put(folder / f"{number:08d}_question.mp3", "question", 400)
                    self._put(folder / f"{number:08d}_answer.mp3", "answer", 200)
            for setting in (
                self.settings if self.example_settings is None else self.example_settings
            ):
                self._examples(setting, stem)
        return self.root

    def _examples(self, setting: str, stem: str) -> None:
        folder = self.root / "all_fewshot_examples" / setting / stem.replace("_test", "_val")
        for number in range(self.examples):
            self._put(folder / f"{number:08d}_question.mp3", "example", 300)
            self._put(folder / f"{number:08d}_answer.mp3", "answer", 200)
        folder = self.root / "math_CoT_fewshot" / setting / stem.replace("_4o", "_dev_4o")
        for number in range(self.chains if "mathematics" in stem else 0):
            self._put(folder / f"{number:08d}_question.mp3", "example", 300)
            self._put(folder / f"{number:08d}_CoT_answer.mp3", "chain", 500)

    def _put(self, path: Path, sort: str, usual_ms: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(mp3(self.lengths.get(sort, usual_ms)))


def rows(subject: str, count: int = 4) -> list[list[str]]:
    """A table of `count` rows whose letters are B, D, A, C, B, …"""
    return [question_row(subject, n, LETTERS[n % 4]) for n in range(count)]


def small(root: Path, **changes: object) -> Download:
    """Three subjects of both families, two voices."""
    tables = {
        "college_physics_test": rows("college_physics"),
        "elementary_mathematics_4o": rows("elementary_mathematics"),
        "virology_test": rows("virology", 2),
    }
    return Download(root, **{"tables": tables, **changes})  # type: ignore[arg-type]
