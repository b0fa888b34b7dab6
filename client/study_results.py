"""What people preferred, read from what the page saved, and how far judges agree with them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from voxmeter.client.jsonlines import disk
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.study_files import KEY
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.agreement import Pair, preference, preference_agreement

CHOICES: Mapping[str, int] = {"a": 1, "b": -1, "tie": 0}
"""What was chosen, as a preference for A."""

Json = dict[str, Any]

_GUARD = re.compile(r"^'(?=[=+\-@\t\r])")
"""What the page puts before a cell that a spreadsheet would take for a formula."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's choice on one pair.

    Attributes:
        rater: Who chose; where nobody is named, the file's path without its ending, so that the
            JSON and the CSV of one person are one person's.
        pair: Number of the pair.
        prefers: 1 for A, -1 for B, 0 for neither.
    """

    rater: str
    pair: str
    prefers: int


def read_votes(path: Path) -> tuple[str, list[Vote]]:
    """Return the study's number and the choices in a file that the page saved.

    Args:
        path: JSON or CSV.

    Raises:
        UserError: If it is neither, or a row of it is wrong.
    """
    if not path.is_file():
        raise UserError(str(path), "no such file", "give the file that the page saved")
    with disk(path):
        data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(
            str(path), "is not UTF-8 text", "give the file that the page saved"
        ) from None
    if text.lstrip().startswith("{"):
        return _of_json(path, text)
    return _of_csv(path, text)


def _of_json(path: Path, text: str) -> tuple[str, list[Vote]]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(str(path), f"is not JSON ({error})", "save it again") from None
    match found:
        case {"study": str(study), "preferences": list(rows)}:
            rater = _rater(str(found.get("rater") or ""), path)
            return study, [_vote(path, number, rater, row) for number, row in enumerate(rows, 1)]
        case _:
            raise UserError(str(path), "holds no study", "give the file that the page saved")


def _of_csv(path: Path, text: str) -> tuple[str, list[Vote]]:
    rows = list(csv.DictReader(io.StringIO(text)))
    studies = {row.get("study") or "" for row in rows}
    if len(studies) != 1 or "" in studies:
        found = "holds no study" if not studies or "" in studies else "holds several studies"
        raise UserError(str(path), found, "give one file that the page saved")
    votes = [
        _vote(path, number, _rater(_GUARD.sub("", row.get("rater") or ""), path), row)
        for number, row in enumerate(rows, start=1)
    ]
    return studies.pop(), votes


def _rater(name: str, path: Path) -> str:
    return name.strip() or str(path.resolve().with_suffix(""))


def _vote(path: Path, number: int, rater: str, row: object) -> Vote:
    match row:
        case {"pair": str(pair), "choice": str(choice)} if choice in CHOICES:
            return Vote(rater, pair, CHOICES[choice])
        case _:
            found = f"choice {number} is none of {', '.join(CHOICES)}"
            raise UserError(str(path), found, "mend or delete it")


def find_key(study: str, file: Path, folder: Path | None) -> tuple[Path, Json]:
    """Return where a study's key lies, and what is in it.

    Args:
        study: The study's number.
        file: What the page saved; the key may lie beside it.
        folder: Where the user says it is.

    Raises:
        UserError: If it is in none of the places, or is another study's.
    """
    places = [folder] if folder is not None else [file.parent, Path(), *_studies(Path())]
    for place in places:
        if (place / KEY).is_file():
            with disk(place / KEY):
                found = _parsed(place / KEY)
            if found["study"] == study:
                return place / KEY, found
            if folder is not None:
                is_of = f"is the key of study {printable(str(found['study']), 40)}"
                raise UserError(str(place / KEY), is_of, f"give the folder of {study}")
    raise UserError(
        str(file), f"the key of study {printable(study, 40)} is not here", "give --study FOLDER"
    )


def _studies(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob(f"*/{KEY}"))


def _parsed(path: Path) -> Json:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    match found:
        case {"study": str(), "runs": dict(), "pairs": list()}:
            return dict(found)
        case _:
            raise UserError(str(path), "is damaged: no key of a study", "collect the study again")


def judge_scores(key: Path, held: Json) -> dict[str, dict[tuple[str, str], float]]:
    """Return what each judge gave: judge -> run and trial -> score.

    A judge's rating goes before its verdict on right and wrong.

    Raises:
        UserError: If a run is not where it was.
    """
    wanted = {
        (pair[side]["run"], pair[side]["key"]): pair[side]["attempt"]
        for pair in held["pairs"]
        for side in "ab"
    }
    found: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for name, places in held["runs"].items():
        with RunFolder.open(_run(key.parent, places)) as folder:
            rows: dict[tuple[str, str, str], float | None] = {}
            for row in folder.rows("scores"):
                metric, _, judge = row["metric"].partition(":")
                fits = wanted.get((name, row["key"])) == row["attempt"]
                if judge and fits and metric in {"judge_score", "judge_accuracy"}:
                    rows[judge, row["key"], metric] = row["value"]
        for metric in ("judge_accuracy", "judge_score"):
            for (judge, trial, one), value in rows.items():
                if one == metric and value is not None:
                    found[judge][name, trial] = float(value)
    return dict(found)


def _run(beside: Path, places: Mapping[str, str]) -> Path:
    near = beside / str(places.get("from_here", ""))
    return near if (near / "run.json").is_file() else Path(str(places.get("path", "")))


Where = Callable[[Json], bool]


def results(held: Json, votes: Sequence[Vote], scores: Mapping[str, Any]) -> Json:
    """Return how far each judge agrees with people, and people with each other.

    Args:
        held: The key.
        votes: Of everybody; the same one twice, as of two files of one person, counts once.
        scores: Of `judge_scores`.

    Raises:
        UserError: If a choice is about a pair that the study does not have, or one person made two
            choices on one pair.
    """
    votes = _each_once(str(held["study"]), votes)
    pairs = {pair["pair"]: pair for pair in held["pairs"]}
    for vote in votes:
        if vote.pair not in pairs:
            found = f"has no pair {printable(vote.pair, 40)}"
            raise UserError(f"study {held['study']}", found, "give files of one study")
    suites = sorted({str(pair["suite"]) for pair in pairs.values()})
    systems = sorted({_systems(pair) for pair in pairs.values()})
    seed = int(held.get("seed") or 0)

    def rows(judge: str) -> Iterator[Json]:
        every = list(_judged(pairs, votes, scores[judge]))
        yield {"suite": None, "systems": None, **_agreed(every, seed)}
        for suite in suites if len(suites) > 1 else ():
            chosen = [one for one in every if one[0]["suite"] == suite]
            yield {"suite": suite, "systems": None, **_agreed(chosen, seed)}
        for two in systems if len(systems) > 1 else ():
            chosen = [one for one in every if _systems(one[0]) == two]
            yield {"suite": None, "systems": list(two), **_agreed(chosen, seed)}

    return {
        "study": held["study"],
        "raters": len({vote.rater for vote in votes}),
        "votes": len(votes),
        "pairs": len({vote.pair for vote in votes}),
        "preferred": _preferred(pairs, votes),
        "judges": {judge: list(rows(judge)) for judge in sorted(scores)},
        "people": _people(pairs, votes, seed),
    }


def _each_once(study: str, votes: Sequence[Vote]) -> list[Vote]:
    names = {prefers: name for name, prefers in CHOICES.items()}
    found: dict[tuple[str, str], Vote] = {}
    for vote in votes:
        known = found.setdefault((vote.rater, vote.pair), vote)
        if known != vote:
            both = f"{names[known.prefers]} and {names[vote.prefers]}"
            raise UserError(
                f"study {study}",
                f"{printable(vote.rater)} chose both {both} on pair {printable(vote.pair, 40)}",
                "give the newest file of each person alone, and each person a name of their own",
            )
    return list(found.values())


def _systems(pair: Json) -> tuple[str, str]:
    one, other = sorted((str(pair["a"]["system"]), str(pair["b"]["system"])))
    return one, other


def _judged(
    pairs: Mapping[str, Json], votes: Sequence[Vote], given: Mapping[tuple[str, str], float]
) -> Iterator[tuple[Json, Pair]]:
    """Yield each vote on a pair of which the judge has rated both, with both preferences."""
    for vote in votes:
        pair = pairs[vote.pair]
        first, second = (given.get((pair[side]["run"], pair[side]["key"])) for side in "ab")
        if first is not None and second is not None:
            yield pair, _two(pair, vote.prefers, preference(first, second))


def _two(pair: Json, one: int, other: int) -> Pair:
    item = f"{pair['suite']}\n{pair['item']}"
    return Pair(f"{item}\n{pair['pair']}", f"{pair['suite']}\n{pair['cluster']}", one, other)


def _agreed(chosen: Sequence[tuple[Json, Pair]], seed: int) -> Json:
    pairs = [pair for _, pair in chosen]
    decided = [pair for pair in pairs if pair.one and pair.other]
    return {"agreement": _rate(pairs, seed), "without_ties": _rate(decided, seed)}


def _rate(pairs: Sequence[Pair], seed: int) -> Json:
    found = preference_agreement(pairs, seed)
    limits = (None, None, None) if found is None else tuple(found)
    named = zip(("value", "low", "high"), limits, strict=True)
    return {
        **{name: None if one is None else round(one, 6) for name, one in named},
        "n": len(pairs),
    }


def _preferred(pairs: Mapping[str, Json], votes: Sequence[Vote]) -> Json:
    """How often people preferred each system, and of how many choices."""
    won: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for vote in votes:
        pair = pairs[vote.pair]
        for side, sign in (("a", 1), ("b", -1)):
            name = str(pair[side]["system"])
            shown[name] += 1
            won[name] += vote.prefers == sign
    return {name: {"preferred": won[name], "shown": shown[name]} for name in sorted(shown)}


def _people(pairs: Mapping[str, Json], votes: Sequence[Vote], seed: int) -> Json:
    """How far people agree with each other on pairs that two of them chose on."""
    by_pair: dict[str, list[Vote]] = defaultdict(list)
    for vote in votes:
        by_pair[vote.pair].append(vote)
    both = [
        _two(pairs[name], one.prefers, other.prefers)
        for name, chosen in by_pair.items()
        for one, other in combinations(chosen, 2)
        if one.rater != other.rater
    ]
    return _rate(both, seed)
