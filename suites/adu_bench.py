"""ADU-Bench: 28 domains of open spoken dialogue, rated by a judge on a scale of 0 to 10.

The download is read as it lies and never altered. What cannot be asked is left out and said so;
`docs/suites.md` tells where our rules differ from the published script.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from voxmeter.endpoints.errors import UserError
from voxmeter.suites import adu_layout as layout
from voxmeter.suites.adu_domains import (
    BINARY,
    COUNTS,
    DATASET_RULES,
    DATASETS,
    LANGUAGES,
    domain_of,
)
from voxmeter.suites.adu_layout import Entry
from voxmeter.suites.fields import Fields
from voxmeter.suites.suite import TABLE_KEYS, Item, Origin, Recording, Suite
from voxmeter.suites.written_references import read_references

OPTIONS = ("path", "datasets", "references", "real_sources", "synthetic_sources")

_REAL = ("common_voice", "common voice", "commonvoice", "slue", "human", "recorded", "real")
_SYNTHETIC = ("neural", "azure", "tts", "synthe")
"""Parts of a file's name or of the field `source` that tell who speaks: Azure's voices end in
Neural, Common Voice and SLUE are recordings of people."""


@dataclass(frozen=True, slots=True)
class _Sources:
    """What tells a recording of a person from synthetic speech; the user's words come first."""

    real: tuple[str, ...] = ()
    synthetic: tuple[str, ...] = ()

    def origin(self, entry: Entry) -> Origin:
        told, name = entry.source.casefold(), Path(entry.audio).name.casefold()
        if told in self.real:
            return "real"
        if told in self.synthetic:
            return "synthetic"
        for text in (name, told):
            if any(word in text for word in _SYNTHETIC):
                return "synthetic"
            if any(word in text for word in _REAL):
                return "real"
        return ""


def load(name: str, config: Mapping[str, object], base: Path) -> Suite:
    """Return the suite of a download.

    Args:
        name: The user's name for it.
        config: Reads `path` (the folder that holds `input/`, or that folder itself), and the
            options `datasets` (those to be asked; all that are there when absent), `references`
            (a file of `voxmeter suites build references`), `real_sources` and
            `synthetic_sources` (words of the field `source`).
        base: Folder that `path` and `references` start from.

    Raises:
        UserError: If there is nothing to ask, or a key is wrong.
    """
    table = Fields(f"[[suite]] {name}", config)
    table.known_only((*TABLE_KEYS, *OPTIONS))
    root = _from(base, table.required_text("path"))
    found = layout.open_download(root, table.place, _datasets(table))
    own = table.text("references")
    answers = read_references(_from(base, own)) if own else {}
    sources = _Sources(
        tuple(word.casefold() for word in table.texts("real_sources")),
        tuple(word.casefold() for word in table.texts("synthetic_sources")),
    )
    items = [_item(name, entry, sources, answers) for entry in found.entries]
    names = {item.item for item in items}
    unknown = [one for one in answers if one not in names]
    warnings = [*_warnings(found, items)]
    if unknown:
        warnings.append(
            f"{len(unknown)} references are of no question here, such as {unknown[0]!r}"
        )
    return Suite(
        name,
        "adu-bench",
        tuple(items),
        scorer="judge",
        aggregation=("macro", DATASET_RULES),
        warnings=tuple(warnings),
    )


def verify(path: Path) -> Iterator[str]:
    """Yield every fault of a download, one line each; no recording is opened.

    Lines that are there twice, and domains that have more entries than in the paper, are none.

    Raises:
        UserError: If it is no download of ADU-Bench.
    """
    found = layout.open_download(path, str(path), DATASETS)
    yield from found.problems
    items = [_item("adu-bench", entry, _Sources(), {}) for entry in found.entries]
    for entry, item in zip(found.entries, items, strict=True):
        if entry.size is None:
            yield f"{item.item}: {entry.path} is missing"
        elif not entry.size:
            yield f"{item.item}: {entry.path} is empty"
        if not item.reference:
            yield f"{item.item}: no answer"
        if not item.question:
            yield f"{item.item}: no question"
    for domain, count in _other_counts(found.entries).items():
        if count < COUNTS[domain]:
            yield f"{'/'.join(domain)} has {count} entries, and the paper counts {COUNTS[domain]}"
    yield from _unknown(found.entries)


def _from(base: Path, text: str) -> Path:
    return base / os.path.expanduser(text)  # noqa: PTH111 - never raises


def _datasets(table: Fields) -> tuple[str, ...]:
    wanted = table.texts("datasets")
    for one in wanted:
        if one not in DATASETS:
            raise UserError(
                f"{table.place} datasets", f"unknown {one!r}", f"use {', '.join(DATASETS)}"
            )
    return tuple(one for one in DATASETS if one in wanted or not wanted)


def _item(
    suite: str, entry: Entry, sources: _Sources, answers: Mapping[str, tuple[str, ...]]
) -> Item:
    domain = _domain(entry)
    words = " ".join(entry.question.casefold().split())
    return Item(
        suite,
        entry.name,
        "open",
        (Recording(entry.path),),
        question=entry.question,
        reference=answers.get(entry.name, entry.answers),
        language=LANGUAGES.get(domain, "en") if entry.dataset == "ADU-Multilingual" else "en",
        cluster=f"{entry.dataset}: {words}" if words else entry.name,
        groups=(entry.dataset, domain),
        rubric="adu-binary" if domain in BINARY else "adu",
        origin=sources.origin(entry),
    )


def _domain(entry: Entry) -> str:
    """Return the domain by the file's name, else by the entry's category, else the name itself."""
    for name in (entry.file, entry.category):
        found = domain_of(entry.dataset, name)
        if found is not None:
            return found
    return entry.file


def _warnings(found: layout.Download, items: Sequence[Item]) -> Iterator[str]:
    if found.problems:
        yield f"{_lines(len(found.problems))} left out: {found.problems[0]}"
    for state, word in ((None, "missing"), (0, "empty")):
        paths = [one.path for one in found.entries if one.size == state]
        if paths:
            yield (
                f"{len(paths)} recordings are {word}, such as {paths[0]}; those questions end as "
                "bad_clip"
            )
    without = [item.item for item in items if not item.reference]
    if without:
        yield (
            f"{len(without)} questions have no answer to compare with, such as {without[0]}; no "
            "judge rates them, and they leave n (voxmeter suites build references writes some)"
        )
    silent = [item.item for item in items if not item.question]
    if silent:
        yield f"{len(silent)} entries have no question in words, such as {silent[0]}"
    yield from _repeated(found.entries)
    yield from _counted(found.entries)
    known = sum(bool(item.origin) for item in items)
    if 0 < known < len(items):
        yield (
            f"who speaks is not known of {len(items) - known} recordings, so they are in no "
            "comparison of people with synthesisers: name their sources (real_sources, "
            "synthetic_sources)"
        )


def _lines(count: int) -> str:
    return (
        "a line cannot be asked and is"
        if count == 1
        else (f"{count} lines cannot be asked and are")
    )


def _repeated(entries: Sequence[Entry]) -> Iterator[str]:
    """Lines that are there twice are both asked, as the published counts hold them."""
    first: dict[tuple[str, str, str], str] = {}
    twice = [
        (entry.name, one)
        for entry in entries
        if (one := first.setdefault((entry.dataset, entry.question, entry.audio), entry.name))
        != entry.name
    ]
    if twice:
        lines = "a line repeats" if len(twice) == 1 else f"{len(twice)} lines repeat"
        yield (
            f"{lines} an earlier one ({twice[0][0]} is {twice[0][1]}): both are asked, and move "
            "together in intervals"
        )


def _other_counts(entries: Sequence[Entry]) -> Mapping[tuple[str, str], int]:
    """Return the domains of the datasets that are there whose size is not the paper's."""
    counts = Counter((entry.dataset, _domain(entry)) for entry in entries)
    datasets = {dataset for dataset, _ in counts}
    return {
        domain: counts[domain]
        for domain, told in COUNTS.items()
        if domain[0] in datasets and counts[domain] != told
    }


def _counted(entries: Sequence[Entry]) -> Iterator[str]:
    other = _other_counts(entries)
    if other:
        listed = ", ".join(
            f"{'/'.join(domain)} {count} ({COUNTS[domain]})" for domain, count in other.items()
        )
        yield f"entries where the paper counts others (in brackets): {listed}"
    yield from _unknown(entries)
    datasets = {entry.dataset for entry in entries}
    absent = [one for one in DATASETS if one not in datasets]
    if absent:
        yield (
            f"{', '.join(absent)} is not asked, so the overall figure is of "
            f"{len(DATASETS) - len(absent)} of 4"
        )


def _unknown(entries: Sequence[Entry]) -> Iterator[str]:
    counts = Counter((entry.dataset, _domain(entry)) for entry in entries)
    for domain, count in counts.items():
        if domain not in COUNTS:
            yield f"{'/'.join(domain)} ({count} entries) is none of the paper's 28 domains"
