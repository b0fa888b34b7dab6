"""A listening study: pairs of replies from runs, for people who do not know whose they are."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from voxmeter.client.runfolder import RunFolder
from voxmeter.client.transcripts import known_transcripts
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.metrics import WITH_REPLY

Row = Mapping[str, Any]

PER_DOMAIN = 5
"""Items of each domain, as in the studies of the benchmarks' papers."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One system's reply to one item.

    Attributes:
        run: Name of the run's folder.
        key: The trial's.
        attempt: Its newest.
        text: What was heard, or written.
        audio: The spoken reply; None for one in writing.
    """

    run: str
    key: str
    attempt: int
    text: str
    audio: Path | None


@dataclass(frozen=True, slots=True)
class System:
    """Who replied: one endpoint of one run.

    Attributes:
        name: How people who may know are told: the endpoint, and the run where two have it.
        replies: By suite and item.
    """

    name: str
    replies: Mapping[tuple[str, str], Reply]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replies to one item.

    Attributes:
        id: Its number in the study.
        item: Row of items.jsonl.
        systems: Names of those who gave A and B.
        replies: A and B.
    """

    id: str
    item: Row
    systems: tuple[str, str]
    replies: tuple[Reply, Reply]


@dataclass(frozen=True, slots=True)
class Study:
    """What people are to compare.

    Attributes:
        id: A number of its own, made from what is in it.
        pairs: In the order in which they are shown.
        seed: Of all draws.
    """

    id: str
    pairs: Sequence[Pair]
    seed: int


def draw(
    folders: Sequence[RunFolder],
    *,
    condition: str = "clean",
    systems: Sequence[str] = (),
    per_domain: int = PER_DOMAIN,
    seed: int = 0,
) -> Study:
    """Return a study of all pairs of systems, on a seeded sample of each domain's open items.

    A domain is the first group of an item within its suite. Which of two is A is drawn as well.

    Args:
        folders: Runs, open for reading.
        condition: Replies of this condition alone.
        systems: Names of those to be compared; all of them by default.
        per_domain: Items of each domain.
        seed: The same seed and runs give the same study.

    Raises:
        UserError: If there are no two systems with replies to one open item, a name is unknown, or
            two folders have one name.
    """
    _check_names(folders)
    items = {(row["suite"], row["item"]): row for one in folders for row in _open_items(one)}
    if not items:
        found = "none of their items is open or has a rubric"
        raise UserError("voxmeter judge collect", found, "give runs with open questions")
    chosen = _chosen(_systems(folders, items, condition), systems)
    pairs = [
        (item, one, other)
        for one, other in combinations(chosen, 2)
        for item in _sample(items, one, other, per_domain, seed)
    ]
    if not pairs:
        names = ", ".join(one.name for one in chosen) or "no one"
        few = f'only {names} replied in condition "{condition}"'
        none = f"{names} replied to no open item in common"
        raise UserError(
            "voxmeter judge collect",
            none if len(chosen) > 1 else few,
            "a pair takes a run with two endpoints, or two runs of the same suite",
        )
    pairs.sort(key=lambda pair: _draw(seed, "order", *pair[0], pair[1].name, pair[2].name))
    made = [
        _pair(f"p{number:04d}", items[item], item, one, other, seed)
        for number, (item, one, other) in enumerate(pairs, start=1)
    ]
    told = "\n".join(
        f"{reply.run} {reply.key} {reply.attempt}" for one in made for reply in one.replies
    )
    return Study(_draw(seed, told)[:12], made, seed)


def _check_names(folders: Sequence[RunFolder]) -> None:
    """Refuse runs that the key, which knows a run by its folder's name, could not tell apart."""
    known: dict[str, Path] = {}
    for folder in folders:
        other = known.setdefault(folder.path.name, folder.path)
        if other is not folder.path:
            found = f"has the name of {other}, and a study tells runs apart by name"
            raise UserError(str(folder.path), found, "rename one of the two folders")


def _open_items(folder: RunFolder) -> Iterator[Row]:
    return (row for row in folder.items() if row.get("rubric") or row.get("kind") == "open")


def _systems(
    folders: Sequence[RunFolder], items: Mapping[tuple[str, str], Row], condition: str
) -> list[System]:
    found: dict[tuple[str, str], dict[tuple[str, str], Reply]] = {}
    for folder in folders:
        heard = known_transcripts(folder)
        for trial in folder.newest_trials():
            item = (str(trial["suite"]), str(trial["item"]))
            fits = trial["condition"] == condition and not trial.get("warmup")
            if item not in items or not fits or trial["status"] not in WITH_REPLY:
                continue
            replies = found.setdefault((folder.path.name, str(trial["endpoint"])), {})
            if item not in replies:  # of several trials the first one is heard
                known = heard.get(trial["key"])
                replies[item] = _reply(folder, trial, known.text if known else None)
    names = [endpoint for _, endpoint in found]
    return [
        System(endpoint if names.count(endpoint) == 1 else f"{endpoint} of {run}", replies)
        for (run, endpoint), replies in found.items()
    ]


def _reply(folder: RunFolder, trial: Row, heard: str | None) -> Reply:
    audio = folder.attempt_paths(trial).reply
    spoken = trial.get("reply_channel") != "text" and audio.is_file()
    if spoken and folder.leads_out(audio):  # people would be sent what is none of the run's
        found = "leads out of the run folder, through a link"
        raise UserError(str(audio), found, "put there what it leads to, or delete it")
    text = (heard if spoken else str(trial.get("reply_text") or "")) or ""
    run = folder.path.name
    return Reply(run, trial["key"], trial["attempt"], text, audio if spoken else None)


def _chosen(found: Sequence[System], wanted: Sequence[str]) -> list[System]:
    known = [one.name for one in found]
    for name in wanted:
        if name not in known:
            from voxmeter.client import nearest

            raise UserError("--systems", f'no system "{name}"', nearest.cure(name, known))
    return [one for one in found if not wanted or one.name in wanted]


def _sample(
    items: Mapping[tuple[str, str], Row], one: System, other: System, per_domain: int, seed: int
) -> Iterator[tuple[str, str]]:
    domains: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for item in items:
        if item in one.replies and item in other.replies:
            groups = items[item].get("groups") or [""]
            domains[item[0], str(groups[0])].append(item)
    for _, members in sorted(domains.items()):
        yield from sorted(members, key=lambda item: _draw(seed, "item", *item))[:per_domain]


def _pair(
    number: str, row: Row, item: tuple[str, str], one: System, other: System, seed: int
) -> Pair:
    turned = int(_draw(seed, "side", *item, one.name, other.name), 16) % 2
    first, second = (other, one) if turned else (one, other)
    return Pair(number, row, (first.name, second.name), (first.replies[item], second.replies[item]))


def _draw(seed: int, *what: str) -> str:
    text = "\n".join([str(seed), *what])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
