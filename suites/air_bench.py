"""AIR-Bench: choices and open questions about recordings of speech, sound and music.

Facts are from the benchmark's repository and paper. The question is put in writing beside the
recording, as the benchmark does, or is spoken before or after it; `docs/suites.md` says where the
scores are drawn otherwise than by the published scripts, and why.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.air_bench_layout import (
    Folders,
    Listing,
    Row,
    parts_of,
    read_list,
    right,
)
from voxmeter.suites.air_bench_tasks import (
    PARTS,
    TASKS,
    Group,
    Part,
    Task,
    counts_of,
)
from voxmeter.suites.catalog import nearest
from voxmeter.suites.fields import Fields
from voxmeter.suites.folders import bad_clips, unusable
from voxmeter.suites.references import labels
from voxmeter.suites.suite import (
    QUESTION_VIA,
    TABLE_KEYS,
    Gap,
    Item,
    QuestionVia,
    Recording,
    Spoken,
    Suite,
)

OPTIONS = ("path", "question_via", "voice", "gap_ms", "part", "groups", "shuffle", "seed")
GROUPS: tuple[Group, ...] = get_args(Group)
GAP_MS = 500.0
"""Silence between a recording and the question spoken before or behind it."""

ALIGN, CHAT = "air-align", "air-chat"
"""Prompts of judges: which option a reply means where no rule can tell; how good a reply is."""

_ENOUGH = 0.9
"""Share of the items that the paper reports below which a task is called incomplete."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a `[[suite]]` table asks for.

    Attributes:
        name: The user's name for the suite.
        place: Starts errors.
        root: The download.
        parts: Parts that are asked; none for all that are there.
        groups: Groups that are asked.
        via: How the question is put.
        voice: Who speaks it, where it is spoken.
        gap_ms: Silence between recording and question.
        seed: Decides the order of options; None leaves that of the data.
    """

    name: str
    place: str
    root: Path
    parts: tuple[Part, ...]
    groups: tuple[str, ...]
    via: QuestionVia
    voice: str
    gap_ms: float
    seed: int | None


def load(name: str, config: Mapping[str, object], base: Path) -> Suite:
    """Return the suite of a download.

    Args:
        name: The user's name for it.
        config: Reads `path`, `question_via` (`text`), `voice` and `gap_ms` of a spoken question,
            and the options `part` (`foundation` or `chat`; both), `groups` (of `speech`, `sound`,
            `music`, `mixed`; all), `seed` (0) of the order of options, and `shuffle` (true).
        base: Folder that `path` starts from.

    Raises:
        UserError: If the download is not there, or a key is wrong.
    """
    wanted = _wanted(name, config, base)
    found = parts_of(wanted.root, wanted.place)
    items: list[Item] = []
    warnings: list[str] = []
    for part in wanted.parts or tuple(found):
        if part not in found:
            raise UserError(
                wanted.place, f'part = "{part}" is not in {wanted.root}', "download it as well"
            )
        _add(items, warnings, wanted, part, read_list(found[part], part))
    return Suite(
        name,
        "air-bench",
        tuple(items),
        scorer="judge" if any(item.kind == "open" for item in items) else "extract",
        aggregation=("macro", "macro", "macro"),
        warnings=tuple(warnings),
    )


def verify(path: Path) -> Iterator[str]:
    """Yield what is wrong with a download, one line for each; recordings are not opened.

    Args:
        path: Its folder.

    Raises:
        UserError: If it is no download of AIR-Bench.
    """
    for part, listed in parts_of(path, str(path)).items():
        listing = read_list(listed, part)
        yield from listing.problems
        folders = Folders(listing.root)
        known = [row for row in listing.rows if row.task in TASKS[part]]
        yield from _about_tasks(part, listing.rows)
        for few in _too_few(part, known):
            yield f"fewer questions in the {part} list than the paper reports: {few}"
        yield from _about_folders(folders, known)
        there = [row for row in known if folders.there(row)]
        for file, why in unusable(folders.recording(row) for row in there):
            yield f"{file.relative_to(folders.root)} is {why}"


def _wanted(name: str, config: Mapping[str, object], base: Path) -> _Wanted:
    table = Fields(f"[[suite]] {name}", config)
    table.known_only((*TABLE_KEYS, *OPTIONS))
    part = table.one_of("part", PARTS)
    groups = table.texts("groups")
    for group in groups:
        if group not in GROUPS:
            raise UserError(f"{table.place} groups", f"unknown {group!r}", nearest(group, GROUPS))
    shuffled = table.flag("shuffle") if "shuffle" in config else True
    return _Wanted(
        name,
        table.place,
        base / os.path.expanduser(table.required_text("path")),  # noqa: PTH111 - never raises
        parts=(part,) if part else (),
        groups=groups or GROUPS,
        via=table.one_of("question_via", QUESTION_VIA) or "text",
        voice=table.text("voice") or "hibari",
        gap_ms=table.number("gap_ms", GAP_MS),
        seed=int(table.number("seed", 0)) if shuffled else None,
    )


def _add(
    items: list[Item], warnings: list[str], wanted: _Wanted, part: Part, listing: Listing
) -> None:
    """Add the items of one part, and what a user should know of it."""
    if listing.problems:
        count = len(listing.problems)
        warnings.append(f"{_questions(count)} left out that cannot be asked: {listing.problems[0]}")
    folders = Folders(listing.root)
    tasks = TASKS[part]
    known = [row for row in listing.rows if row.task in tasks]
    kept = [row for row in known if tasks[row.task].group in wanted.groups]
    warnings += _about_tasks(part, listing.rows)
    warnings += _about_counts(part, known)
    warnings += _about_folders(folders, kept)
    asked = [(row, folders.recording(row)) for row in kept if folders.there(row)]
    warnings += bad_clips((path for _, path in asked), folders.root)
    names: Counter[str] = Counter()
    twice = 0
    for row, path in asked:
        name = f"{row.folder}-{row.uniq_id}"
        names[name] += 1
        if names[name] > 1:
            twice += 1
            name = f"{name}#{names[name]}"
        items.append(_item(wanted, tasks[row.task], row, name, path))
    if twice:
        warnings.append(f"{_questions(twice)} of a number that another one has: it got a suffix")


def _item(wanted: _Wanted, task: Task, row: Row, name: str, path: Path) -> Item:
    chat = not row.options
    order = _order(len(row.options), wanted.seed, name)
    options = tuple(row.options[place] for place in order)
    known = labels(len(options))
    reference = tuple(known[place] for place in right(options, row.answer))
    spoken = row.question if chat else aloud(row.question, options)
    return Item(
        wanted.name,
        name,
        "open" if chat else "choice",
        recipe=_recipe(wanted, path, spoken),
        question=row.question,
        reference=(row.answer,) if chat else reference,
        options=options,
        cluster=f"{row.folder}/{row.path}",  # questions about one recording move together
        groups=task.groups,
        question_via=wanted.via,
        written="" if chat else in_writing(row.question, options),
        rubric=CHAT if chat else ALIGN,
        told=row.told,
    )


def _recipe(wanted: _Wanted, path: Path, spoken: str) -> tuple[Recording | Gap | Spoken, ...]:
    match wanted.via:
        case "speech-after":
            return Recording(path), Gap(wanted.gap_ms), Spoken(spoken, wanted.voice)
        case "speech-before":
            return Spoken(spoken, wanted.voice), Gap(wanted.gap_ms), Recording(path)
        case "text":
            return (Recording(path),)


def _order(count: int, seed: int | None, name: str) -> tuple[int, ...]:
    """Return the places of options in the order in which they are shown; drawn for each item."""
    if seed is None:
        return tuple(range(count))
    drawn = {
        place: hashlib.sha256(f"{seed}\n{name}\n{place}".encode()).digest()
        for place in range(count)
    }
    return tuple(sorted(drawn, key=drawn.__getitem__))


def in_writing(question: str, options: Sequence[str]) -> str:
    """Return a choice as it is written to an endpoint: only the options that there are."""
    known = labels(len(options))
    lines = [f"{label}. {text}" for label, text in zip(known, options, strict=True)]
    ask = f"Choose the best answer to the question and reply with its letter: {_either(known)}."
    return "\n".join([ask, question, *lines])


def aloud(question: str, options: Sequence[str]) -> str:
    """Return a choice as it is spoken."""
    known = labels(len(options))
    ended = question if question.endswith(("?", ".", "!")) else f"{question}."
    shown = " ".join(f"{label}. {text}." for label, text in zip(known, options, strict=True))
    return f"{ended} Choose {_either(known)}. {shown}"


def _either(known: str) -> str:
    return f"{', '.join(known[:-1])} or {known[-1]}"


def _about_tasks(part: Part, rows: Sequence[Row]) -> Iterator[str]:
    for task, count in Counter(row.task for row in rows if row.task not in TASKS[part]).items():
        cure = nearest(task, tuple(TASKS[part])).partition(" (")[0]
        hint = f" ({cure})" if cure.startswith("did you mean") else ""
        yield f"{task} is no task of the {part} part{hint}: {_questions(count)} left out"


def _too_few(part: Part, rows: Sequence[Row]) -> list[str]:
    """Return what the list of a part has clearly less of than the paper reports."""
    found = Counter(TASKS[part][row.task].groups for row in rows)
    return [
        f"{groups[-1]} {found[groups]} of {count}"
        for groups, count in counts_of(part).items()
        if found[groups] < count * _ENOUGH
    ]


def _about_counts(part: Part, rows: Sequence[Row]) -> Iterator[str]:
    few = _too_few(part, rows)
    if few:
        more = f", and {len(few) - _SHOWN} more" if len(few) > _SHOWN else ""
        shown = ", ".join(few[:_SHOWN])
        yield f"the {part} list has fewer questions than the paper reports: {shown}{more}"


def _about_folders(folders: Folders, rows: Sequence[Row]) -> Iterator[str]:
    absent = Counter(row.folder for row in rows if not folders.there(row))
    for folder, count in absent.items():
        yield f"there is no folder {folders.root / folder}: {_questions(count)} left out"


def _questions(count: int) -> str:
    return "a question is" if count == 1 else f"{count} questions are"
