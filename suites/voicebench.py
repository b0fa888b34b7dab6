"""VoiceBench: spoken questions of eleven subsets, scored by judges and by rules.

Facts are from the benchmark's repository. Where its scripts guess or crash, this one does not;
`docs/suites.md` says where that changes figures.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.checks import REFUSAL, Check
from voxmeter.scoring.instructions import check_settings
from voxmeter.suites.catalog import nearest
from voxmeter.suites.fields import Fields
from voxmeter.suites.folders import bad_clips, unusable
from voxmeter.suites.references import labels
from voxmeter.suites.suite import TABLE_KEYS, Item, Recording, Suite
from voxmeter.suites.voicebench_layout import (
    Line,
    Split,
    instructions_of,
    options_of,
    read_split,
    splits_of,
)
from voxmeter.suites.voicebench_subsets import BBH_KINDS, RUBRICS, SUBSETS, Subset

OPTIONS = ("path", "subsets", "splits")
_LANGUAGE = "language:response_language"
_UNREAD = ("A", "B", "C", "D")
"""Options of a choice whose texts cannot be read out of its prompt."""


@dataclass(frozen=True, slots=True)
class _Made:
    """What was made of a split: items, and a line for each question that cannot be asked."""

    items: list[Item]
    problems: list[str]


def load(name: str, config: Mapping[str, object], base: Path) -> Suite:
    """Return the suite of an unpacked download.

    Args:
        name: The user's name for it.
        config: Reads `path` and the options `subsets` (those of the leaderboard that are there)
            and `splits` (of `sd-qa` the US one, of others all).
        base: Folder that `path` starts from.

    Raises:
        UserError: If the download is not there or not unpacked, or a key is wrong.
    """
    table = Fields(f"[[suite]] {name}", config)
    table.known_only((*TABLE_KEYS, *OPTIONS))
    root = base / os.path.expanduser(table.required_text("path"))  # noqa: PTH111 - never raises
    found = splits_of(root, table.place)
    wanted = _wanted(table, found)
    made = {split: _made(split, name) for split in wanted}
    items = tuple(item for one in made.values() for item in one.items)
    return Suite(
        name,
        "voicebench",
        items,
        scorer="judge" if any(item.rubric for item in items) else "extract",
        aggregation=("macro", "micro"),
        warnings=tuple(_warnings(root, found, made)),
    )


def verify(path: Path) -> Iterator[str]:
    """Yield what is wrong with an unpacked download; recordings are not opened.

    Args:
        path: Its folder.

    Raises:
        UserError: If it is none.
    """
    found = [one for one in splits_of(path, str(path)) if one.subset in SUBSETS]
    made = {split: _made(split, path.name) for split in found}
    for one in made.values():
        yield from one.problems
    yield from _about_counts(made)
    items = [item for one in made.values() for item in one.items]
    for file, why in unusable(file for item in items for file in item.files()):
        yield f"{file.relative_to(path)} is {why}"


def _wanted(table: Fields, found: Sequence[Split]) -> list[Split]:
    there = {split.subset for split in found}
    subsets = table.texts("subsets")
    for subset in subsets:
        if subset not in SUBSETS:
            cure = nearest(subset, tuple(SUBSETS))
            raise UserError(f"{table.place} subsets", f"unknown {subset!r}", cure)
        if subset not in there:
            raise UserError(f"{table.place} subsets", f"{subset} is not there", "unpack it as well")
    usual = [name for name, one in SUBSETS.items() if one.usual and name in there]
    if "alpacaeval_full" not in there and "alpacaeval" in there:
        usual.append("alpacaeval")
    splits = table.texts("splits")
    chosen: list[Split] = []
    for subset in subsets or usual or sorted(there & set(SUBSETS)):
        own = [split for split in found if split.subset == subset]
        named = [split for split in own if split.name in (splits or SUBSETS[subset].splits)]
        chosen += named or own
    return chosen


def _made(split: Split, suite: str) -> _Made:
    lines, problems = read_split(split)
    items: list[Item] = []
    for line in lines:
        try:
            items.append(_item(split, line, suite))
        except ValueError as error:
            where = f"{split.subset}/{split.path.name} line {line.number}"
            problems.append(f"{where}: {error}")
    return _Made(items, problems)


def _item(split: Split, line: Line, suite: str) -> Item:
    subset = SUBSETS[split.subset]
    prompt = line.text("prompt")
    item = Item(
        suite,
        f"{split.subset}-{split.name}-{line.number:04d}",
        "open",
        (Recording(line.audio),),
        question=prompt,
        cluster=f"{split.subset}/{_hash(prompt)}",  # one question in several voices moves together
        groups=(split.subset,) if split.name == "test" else (split.subset, split.name),
        rubric=RUBRICS.get(subset.scoring, ""),
    )
    return _scored(item, subset, line)


def _scored(item: Item, subset: Subset, line: Line) -> Item:
    """Return an item with what its scoring needs.

    Raises:
        ValueError: If the line lacks it.
    """
    match subset.scoring:
        case "open":
            return item
        case "qa":
            return replace(item, reference=_references(line))
        case "choice":
            return _choice(item, _reference(line))
        case "bbh":
            return _bbh(item, line)
        case "instructions":
            checks = tuple(Check(name, told) for name, told in instructions_of(line))
            for check in checks:
                check_settings(check)
            asked = (str(one.settings["language"]) for one in checks if one.name == _LANGUAGE)
            return replace(item, checks=checks, language=next(asked, "en"))
        case "refusal":
            return replace(item, checks=(Check(REFUSAL),))


def _reference(line: Line) -> str:
    reference = line.text("reference")
    if not reference:
        raise ValueError("no reference")
    return reference


def _references(line: Line) -> tuple[str, ...]:
    """Return every right answer: a list holds several, any of which is right."""
    value = line.values.get("reference")
    if not isinstance(value, list):
        return (_reference(line),)
    found = tuple(one.strip() for one in value if isinstance(one, str) and one.strip())
    if not found:
        raise ValueError("no reference")
    return found


def _choice(item: Item, reference: str) -> Item:
    options = options_of(item.question)
    label = reference.strip("().").upper()
    if label not in labels(len(options)):
        options = _UNREAD
    if label not in labels(len(options)):
        raise ValueError(f"reference {reference!r:.40} is no label of an option")
    return replace(item, kind="choice", options=options, reference=(label,))


def _bbh(item: Item, line: Line) -> Item:
    name = line.text("id")
    task = next((task for task in BBH_KINDS if task in name), None)
    if task is None:
        raise ValueError(f"id {name!r:.60} names none of {', '.join(BBH_KINDS)}")
    reference = _reference(line)
    grouped = replace(item, groups=(item.groups[0], task))
    if BBH_KINDS[task] == "choice":
        return _choice(grouped, reference)
    word = reference.casefold().strip(".")
    if word not in {"yes", "no"}:
        raise ValueError(f"reference {reference!r:.40} is neither yes nor no")
    return replace(grouped, kind="yes-no", reference=(word,))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _warnings(root: Path, found: Sequence[Split], made: Mapping[Split, _Made]) -> Iterator[str]:
    others = sorted({split.subset for split in found} - set(SUBSETS))
    if others:
        yield f"not asked: {', '.join(others)} (mtbench has questions of several turns)"
    problems = [problem for one in made.values() for problem in one.problems]
    if problems:
        count = "a question is" if len(problems) == 1 else f"{len(problems)} questions are"
        yield f"{count} left out that cannot be asked: {problems[0]}"
    items = [item for one in made.values() for item in one.items]
    unread = [item.item for item in items if item.options == _UNREAD]
    if unread:
        yield (
            f"the options of {len(unread)} questions cannot be read out of their prompts, such as "
            f"{unread[0]}: only letters are read in replies to them"
        )
    yield from _about_counts(made)
    yield from bad_clips((file for item in items for file in item.files()), root)


def _about_counts(made: Mapping[Split, _Made]) -> Iterator[str]:
    counts: dict[str, int] = {}
    for split, one in made.items():
        counts[split.subset] = counts.get(split.subset, 0) + len(one.items) + len(one.problems)
    splits = {name: sum(split.subset == name for split in made) for name in counts}
    few = [
        f"{name} {count} of {SUBSETS[name].rows}"
        for name, count in counts.items()
        if count < SUBSETS[name].rows * (splits[name] if SUBSETS[name].splits else 1)
    ]
    if few:
        yield f"fewer questions than published: {', '.join(few)}"
