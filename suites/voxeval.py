"""VoxEval: spoken multiple choice over the subjects of MMLU, in up to eleven settings.

Facts are from the benchmark's repository and paper. Its script stops at transcripts, so answers are
found by our own rules; `docs/suites.md` says where that differs from what was published.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from voxmeter.endpoints.errors import UserError
from voxmeter.suites import voxeval_layout as layout
from voxmeter.suites.catalog import nearest
from voxmeter.suites.fields import Fields
from voxmeter.suites.suite import (
    SHOTS_VIA,
    TABLE_KEYS,
    Item,
    Recording,
    Shot,
    ShotsVia,
    Suite,
)
from voxmeter.suites.voxeval_layout import SETTINGS, Row, Subject, Table
from voxmeter.suites.voxeval_subjects import GROUP_OF, MATHS, count_warning, group_of

KEEP_LAST_MS = 80_000.0
"""How much of the end of examples and question is sent, as the benchmark's script does."""

GAP_MS = 1000.0
"""Silence between recordings, likewise."""

MODES = ("regular", "cot")
OPTIONS = ("path", "speaker", "prompt_mode", "few_shot_via", "keep_last_ms")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a `[[suite]]` table asks for.

    Attributes:
        name: The user's name for the suite.
        place: Starts errors.
        root: The download.
        speaker: The setting that is `clean`.
        chains: Whether examples reason step by step before they answer.
        shots: Worked examples before each question.
        via: How those are put.
        keep_last_ms: How much of the end of a prompt is sent; None for all.
        conditions: Those that the suite lists.
    """

    name: str
    place: str
    root: Path
    speaker: str
    chains: bool
    shots: int
    via: ShotsVia
    keep_last_ms: float | None
    conditions: tuple[str, ...]

    @property
    def used(self) -> tuple[str, ...]:
        """Settings that are asked in, the clean one first."""
        return (self.speaker, *(one for one in self.conditions if one in SETTINGS))


def load(name: str, config: Mapping[str, object], base: Path) -> Suite:
    """Return the suite of a download.

    Args:
        name: The user's name for it.
        config: Reads `path`, `few_shot` (0 to 5; 1 to 3 with chains of thought), `conditions`,
            and the options `speaker` (which setting is `clean`; `alloy`), `prompt_mode` (`regular`
            or `cot`), `few_shot_via` (`clip` or `history`) and `keep_last_ms` (80,000; 0 sends
            everything).
        base: Folder that `path` starts from.

    Raises:
        UserError: If the download, a setting or worked examples are not there, or a key is wrong.
    """
    wanted = _wanted(name, config, base)
    found = layout.open_download(wanted.root, wanted.place)
    own = layout.settings_of(wanted.root)
    _check_settings(wanted, own)
    subjects = {one.name: one for one in found.subjects if not wanted.chains or one.name in MATHS}
    if not subjects:
        raise UserError(
            wanted.place,
            'prompt_mode = "cot", and no table of mathematics is there',
            f"download the tables of {', '.join(MATHS)}",
        )
    tables = {
        one: layout.read_table(wanted.root / "test" / f"{one.stem}.csv")
        for one in subjects.values()
    }
    examples = _Examples(wanted)
    warnings = (
        *found.oddities,
        *_subject_warnings(subjects, whole=not wanted.chains),
        *_row_warnings(tables),
        *_recording_warnings(wanted, tables),
        *examples.check(tables),
    )

    def variant(item: Item, condition: str) -> Item:
        subject, _, number = item.item.rpartition("-")
        file = _question(wanted.root, condition, subjects[subject], int(number))
        shots = examples.of(condition, subjects[subject])
        return replace(item, recipe=(Recording(file),), shots=shots)

    return Suite(
        name,
        "voxeval",
        tuple(_items(wanted, tables, examples)),
        warnings=warnings,
        conditions=tuple(one for one in own if one != wanted.speaker),
        variant=variant,
    )


def _wanted(name: str, config: Mapping[str, object], base: Path) -> _Wanted:
    table = Fields(f"[[suite]] {name}", config)
    table.known_only((*TABLE_KEYS, *OPTIONS))
    path = base / os.path.expanduser(table.required_text("path"))  # noqa: PTH111 - never raises
    chains = table.one_of("prompt_mode", MODES) == "cot"
    shots = int(table.number("few_shot", 0))
    if chains:
        shots = shots or layout.MOST_CHAINS
    most = layout.MOST_CHAINS if chains else layout.MOST_EXAMPLES
    if shots > most:
        mode = " with chains of thought" if chains else ""
        raise UserError(
            f"{table.place} few_shot",
            f"is {shots}, and VoxEval has {most} worked examples a subject{mode}",
            f"write {most} or less",
        )
    keep = table.number("keep_last_ms", KEEP_LAST_MS)
    return _Wanted(
        name,
        table.place,
        path,
        speaker=table.one_of("speaker", SETTINGS) or SETTINGS[0],
        chains=chains,
        shots=shots,
        via=table.one_of("few_shot_via", SHOTS_VIA) or "clip",
        keep_last_ms=keep or None,
        conditions=table.texts("conditions"),
    )


def _check_settings(wanted: _Wanted, own: Sequence[str]) -> None:
    if wanted.speaker in wanted.conditions:
        raise UserError(
            f"{wanted.place} conditions",
            f'"{wanted.speaker}" is the setting that is asked as "clean"',
            'write "clean" for it, or choose another one by speaker',
        )
    for setting in wanted.used:
        if setting not in own:
            raise UserError(
                wanted.place,
                f'setting "{setting}" is not in the download: there is no folder '
                f"{wanted.root / 'test' / setting}",
                f"download it, or use one of: {', '.join(own)}"
                if own
                else "download the folders of recordings as well",
            )


def _items(wanted: _Wanted, tables: Mapping[Subject, Table], examples: _Examples) -> Iterator[Item]:
    for subject, table in tables.items():
        groups = (group_of(subject.name), subject.name)
        shots = examples.of(wanted.speaker, subject)
        for row in table.rows:
            file = _question(wanted.root, wanted.speaker, subject, row.number)
            yield Item(
                wanted.name,
                _name(subject, row),
                "choice",
                (Recording(file),),
                question=row.question,
                reference=(row.answer,),
                options=row.options,
                cluster=f"{subject.name}/{row.number}",
                groups=groups,
                shots=shots,
                shots_via=wanted.via,
                shot_gap_ms=GAP_MS,
                keep_last_ms=wanted.keep_last_ms if shots else None,
            )


def _name(subject: Subject, row: Row) -> str:
    return f"{subject.name}-{row.number:04d}"


def _question(root: Path, setting: str, subject: Subject, number: int) -> Path:
    return Path(f"{root}/test/{setting}/{subject.question_file(number)}")  # one join of 150,000


@dataclass(slots=True)
class _Examples:
    """The worked examples of each subject in each setting, made once and shared by its items."""

    wanted: _Wanted
    made: dict[tuple[str, Subject], tuple[Shot, ...]] = field(default_factory=dict)

    def of(self, setting: str, subject: Subject) -> tuple[Shot, ...]:
        """Return the examples that come before a subject's questions."""
        key = (setting, subject)
        if key not in self.made:
            self.made[key] = self._make(setting, subject) if self.wanted.shots else ()
        return self.made[key]

    def check(self, subjects: Sequence[Subject] | Mapping[Subject, object]) -> Iterator[str]:
        """Yield what is odd about the examples of the settings that are asked in.

        Raises:
            UserError: If an example is not there: no question would be asked as it should be.
        """
        if not self.wanted.shots:
            return
        for setting in self.wanted.used:
            borrowed = [one.name for one in subjects if self._home(setting, one) != setting]
            lacking = [
                path
                for subject in subjects
                for path in layout.absent(self._files(self._home(setting, subject), subject))
            ]
            if lacking:
                raise UserError(
                    f"{self.wanted.place} few_shot",
                    f"{len(lacking)} recordings of worked examples are missing or empty, "
                    f"such as {lacking[0]}",
                    "download them, or write few_shot = 0",
                )
            if borrowed:
                yield (
                    f"{setting} has no worked examples of its own for {len(borrowed)} subjects: "
                    f"those of {_voice(setting)} are spoken before its questions"
                )

    def _home(self, setting: str, subject: Subject) -> str:
        """Return the setting whose examples are used: the published tree lists the voices alone."""
        folder = layout.example_folder(
            self.wanted.root, setting, subject, chains=self.wanted.chains
        )
        return setting if folder.is_dir() else _voice(setting)

    def _files(self, setting: str, subject: Subject) -> list[layout.Example]:
        chains = self.wanted.chains
        folder = layout.example_folder(self.wanted.root, setting, subject, chains=chains)
        return layout.examples(folder, self.wanted.shots, chains=chains)

    def _make(self, setting: str, subject: Subject) -> tuple[Shot, ...]:
        told = () if self.wanted.chains else layout.example_answers(self.wanted.root, subject)
        files = self._files(self._home(setting, subject), subject)
        return tuple(
            Shot(
                (Recording(one.question),),
                (Recording(one.answer),),
                answer_text=told[number] if number < len(told) else "",
            )
            for number, one in enumerate(files)
        )


def _voice(setting: str) -> str:
    return setting.partition("_")[0]


def _subject_warnings(subjects: Mapping[str, Subject], *, whole: bool) -> Iterator[str]:
    for name, subject in subjects.items():
        if name not in GROUP_OF:
            cure = nearest(name, tuple(GROUP_OF)).partition(" (")[0]
            hint = f" ({cure})" if cure.startswith("did you mean") else ""
            yield f'{subject.stem}.csv is no subject of MMLU{hint}: its group is "unknown"'
    if whole and (warning := count_warning(subjects)):
        yield warning


def _row_warnings(tables: Mapping[Subject, Table]) -> Iterator[str]:
    problems = [problem for table in tables.values() for problem in table.problems]
    if problems:
        rows = (
            "a row cannot be asked and is"
            if len(problems) == 1
            else (f"{len(problems)} rows cannot be asked and are")
        )
        yield f"{rows} left out: {problems[0]}"


def _recording_warnings(wanted: _Wanted, tables: Mapping[Subject, Table]) -> Iterator[str]:
    """Yield what does not fit between tables and recordings, one sentence a setting and sort."""
    for setting in wanted.used:
        found = {
            subject: layout.recordings(wanted.root, setting, subject, table)
            for subject, table in tables.items()
        }
        unusable = [
            _question(wanted.root, setting, subject, number)
            for subject, one in found.items()
            for number in (*one.missing, *one.empty)
        ]
        beyond = [f"{subject.stem}/{name}" for subject, one in found.items() for name in one.beyond]
        if unusable:
            yield (
                f"{setting}: {_recordings(len(unusable))} missing or empty, such as "
                f"{unusable[0]}; those questions end as bad_clip"
            )
        if beyond:
            yield (
                f"{setting}: {_recordings(len(beyond))} of no row of their table, such as "
                f"{beyond[0]}; they are not asked"
            )


def _recordings(count: int) -> str:
    return "a recording is" if count == 1 else f"{count} recordings are"
