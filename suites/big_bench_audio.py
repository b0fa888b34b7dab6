"""Big Bench Audio: 1,000 spoken questions of reasoning in four categories.

Facts are from the data set's card. Its judge's prompt is not public, so answers are found by our
own rules, and a judge of the user's may read the replies beside them; see `docs/suites.md`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.catalog import nearest
from voxmeter.suites.fields import Fields
from voxmeter.suites.folders import bad_clips, leads_out, unusable
from voxmeter.suites.jsonl import object_lines
from voxmeter.suites.suite import TABLE_KEYS, Item, Kind, Recording, Suite

OPTIONS = ("path", "rubric", "categories")
RUBRIC = "bba"
"""Prompt of a judge that compares a reply's final answer with the official one."""

CATEGORIES: Mapping[str, Kind] = {
    "formal_fallacies": "choice",
    "navigate": "yes-no",
    "object_counting": "number",
    "web_of_lies": "yes-no",
}
"""What each category's official answers are."""

ASKED: Mapping[str, str] = {
    "formal_fallacies": "Is the argument, given its premises, deductively valid or invalid?",
    "navigate": "Does following the instructions lead back to the starting point?",
    "object_counting": "How many of the named things are there?",
    "web_of_lies": "Does the last person named tell the truth?",
}
"""What each category asks, in our words: the download has the questions as sound alone, and a judge
has to know what an answer is about."""

VALIDITY = ("valid", "invalid")
"""Answers to a question about an argument: two options that are named, never lettered."""

EACH = 250
"""Questions of each category."""


def load(name: str, config: Mapping[str, object], base: Path) -> Suite:
    """Return the suite of a download.

    Args:
        name: The user's name for it.
        config: Reads `path`, `rubric` (`bba` lets the bench's judges read every reply as well)
            and the option `categories` (some of the four; all).
        base: Folder that `path` starts from.

    Raises:
        UserError: If the download is not there, or a key is wrong.
    """
    table = Fields(f"[[suite]] {name}", config)
    table.known_only((*TABLE_KEYS, *OPTIONS))
    wanted = table.texts("categories") or tuple(CATEGORIES)
    for category in wanted:
        if category not in CATEGORIES:
            cure = nearest(category, tuple(CATEGORIES))
            raise UserError(f"{table.place} categories", f"unknown {category!r}", cure)
    root = base / os.path.expanduser(table.required_text("path"))  # noqa: PTH111 - never raises
    items, problems = read(root, name, table.place, table.text("rubric"))
    kept = tuple(item for item in items if item.groups[0] in wanted)
    warnings = [*_about_problems(problems), *_about_counts(items), *bad_clips(_files(kept), root)]
    return Suite(
        name,
        "big-bench-audio",
        kept,
        aggregation=("micro",),
        warnings=tuple(warnings),
    )


def verify(path: Path) -> Iterator[str]:
    """Yield what is wrong with a download, one line for each; recordings are not opened.

    Args:
        path: Its folder.

    Raises:
        UserError: If it is no download of Big Bench Audio.
    """
    items, problems = read(path, path.name, str(path))
    yield from problems
    yield from _about_counts(items)
    for file, why in unusable(_files(items)):
        yield f"{file.relative_to(path)} is {why}"


def read(root: Path, suite: str, place: str, rubric: str = "") -> tuple[list[Item], list[str]]:
    """Return the items of a download, and one line for each that cannot be asked.

    Args:
        root: Its folder.
        suite: Name of the suite they belong to.
        place: Starts errors.
        rubric: Prompt of a judge that reads each reply as well; empty for none.

    Raises:
        UserError: If the list of questions is not there or no JSON lines.
    """
    path = root / "metadata.jsonl"
    if not path.is_file():
        raise UserError(
            place,
            f"there is no {path}",
            "give the folder of the download, the one that holds metadata.jsonl and data/",
        )
    items: list[Item] = []
    problems: list[str] = []
    seen: set[str] = set()
    for number, row in object_lines(path):
        try:
            item = _item(row, root, suite, rubric)
            if item.item in seen:
                raise ValueError(f"{item.item} occurs twice")  # noqa: TRY301 - one way out
        except ValueError as error:
            problems.append(f"metadata.jsonl line {number}: {error}")
            continue
        seen.add(item.item)
        items.append(item)
    return items, problems


def _item(row: Mapping[str, object], root: Path, suite: str, rubric: str) -> Item:
    texts = {key: _text(row, key) for key in ("id", "category", "official_answer", "file_name")}
    for key, text in texts.items():
        if not text:
            raise ValueError(f"no {key}")
    category = texts["category"]
    if category not in CATEGORIES:
        raise ValueError(f"unknown category {category!r:.40}")
    file = PurePosixPath(texts["file_name"])
    if ".." in file.parts or leads_out(texts["file_name"]):
        raise ValueError(f"file_name {texts['file_name']!r:.60} leaves the download")
    kind = CATEGORIES[category]
    return Item(
        suite,
        f"question_{texts['id']}",
        kind,
        (Recording(root / file),),
        question=_text(row, "transcript") or f"{ASKED[category]} (The rest is in the recording.)",
        reference=(_reference(kind, texts["official_answer"]),),
        options=VALIDITY if kind == "choice" else (),
        groups=(category,),
        rubric=rubric,
    )


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value.strip() if isinstance(value, str) else ""


def _reference(kind: Kind, answer: str) -> str:
    """Return an official answer in the form that scoring compares with."""
    word = answer.casefold().strip(" .")
    match kind:
        case "choice" if word in VALIDITY:
            return "AB"[VALIDITY.index(word)]
        case "yes-no" if word in {"yes", "no"}:
            return word
        case "number" if word.isascii() and word.isdigit():
            return word
    raise ValueError(f"official_answer {answer!r:.40} is none of its category")


def _about_problems(problems: Sequence[str]) -> Iterator[str]:
    if problems:
        lines = "a line is" if len(problems) == 1 else f"{len(problems)} lines are"
        yield f"{lines} left out that cannot be asked: {problems[0]}"


def _about_counts(items: Sequence[Item]) -> Iterator[str]:
    counts = Counter(item.groups[0] for item in items)
    other = [f"{name} {counts[name]}" for name in CATEGORIES if counts[name] != EACH]
    if other:
        yield (
            f"not {EACH} questions in each category: {', '.join(other)}; the published figure "
            "is one of balanced categories"
        )


def _files(items: Sequence[Item]) -> Iterator[Path]:
    return (file for item in items for file in item.files())
