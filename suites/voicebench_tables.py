"""VoiceBench's leaderboard row: nine columns and their mean, the three ratings brought to 100."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from voxmeter.scoring.aggregate import Rounding
from voxmeter.scoring.checked import ASKED, KEPT, KEPT_LOOSELY, LOOSE
from voxmeter.suites.analysis import Answers, Cell, Measured, Table
from voxmeter.suites.voicebench_subsets import COLUMNS, SUBSETS

ABSENT = "/"
RATING, VERDICT = "judge_score:", "judge_accuracy:"
TWENTY = 20.0
"""Ratings from 1 to 5 count so much each beside percentages."""


def tables(
    answers: Mapping[str, Answers], _options: Mapping[str, object], _seed: int = 0
) -> Sequence[Table]:
    """Return the leaderboard row of one endpoint, one for each condition and judge.

    Args:
        answers: By condition.
        _options: The suite's own; not used.
        _seed: Not used: intervals of the columns stand with the suite's groups.
    """
    rows: list[tuple[Cell, ...]] = []
    for condition, one in answers.items():
        names = (name for name in one.measured if name.startswith((RATING, VERDICT)))
        judges = list(dict.fromkeys(name.partition(":")[2] for name in names)) or [""]
        for judge in judges:
            found = columns_of(one, judge)
            whole = overall(found)
            shown = (_shown(found[name]) for name in COLUMNS)
            rows.append((condition, judge or ABSENT, *shown, _shown(whole)))
    if not any(cell != ABSENT for row in rows for cell in row[2:]):
        return ()
    return [
        Table(
            "leaderboard",
            "The leaderboard's columns",
            ("condition", "judge", *COLUMNS.values(), "overall"),
            tuple(rows),
            "AlpacaEval, CommonEval and WildVoice are ratings from 1 to 5, all others per cent. "
            "Overall is the mean of the nine with ratings taken twenty times, and there is none "
            'while a column is "/". SD-QA is the judge\'s half of the published column alone.',
        )
    ]


def columns_of(one: Answers, judge: str) -> dict[str, float | None]:
    """Return the nine columns by subset, None where there is nothing to draw one from.

    Args:
        one: The answers in one condition.
        judge: Whose ratings count.
    """
    accuracy = Measured(one.items, one.clusters, one.groups, one.accuracy)
    found: dict[str, float | None] = {}
    for name in COLUMNS:
        match SUBSETS[name].scoring:
            case "open":
                found[name] = _mean(one.measured.get(f"{RATING}{judge}"), name)
            case "qa":
                found[name] = _percent(_mean(one.measured.get(f"{VERDICT}{judge}"), name))
            case "instructions":
                found[name] = _percent(_instructions(one, accuracy, name))
            case _:
                found[name] = _percent(_mean(accuracy, name))
    return found


def overall(columns: Mapping[str, float | None]) -> float | None:
    """Return the mean of the nine columns, None where one of them is not there."""
    points: list[float] = []
    for name in COLUMNS:
        value = columns.get(name)
        if value is None:
            return None
        points.append(value * TWENTY if SUBSETS[name].scoring == "open" else value)
    return sum(points) / len(points)


def _mean(measured: Measured | None, subset: str) -> float | None:
    """Return the mean over the items of a subset; `alpacaeval` stands in for its longer sister."""
    names = (subset, "alpacaeval") if subset == "alpacaeval_full" else (subset,)
    for name in names:
        values = [] if measured is None else _values(measured, name)
        if values:
            return sum(values) / len(values)
    return None


def _values(measured: Measured, subset: str) -> list[float]:
    return [float(one) for one in measured.of(lambda groups: groups[:1] == (subset,)).values]


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


def _instructions(one: Answers, accuracy: Measured, subset: str) -> float | None:
    """Return the mean of four shares: of questions and of instructions, strict and loose.

    Instructions count alike over the whole subset, however many a question has.
    """
    asked = _mean(one.measured.get(ASKED), subset)
    shares = [
        _mean(accuracy, subset),
        _mean(one.measured.get(LOOSE), subset),
        *(
            None if kept is None or not asked else kept / asked
            for kept in (
                _mean(one.measured.get(KEPT), subset),
                _mean(one.measured.get(KEPT_LOOSELY), subset),
            )
        ),
    ]
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if len(known) == len(shares) else None


def _shown(value: float | None) -> Cell:
    return ABSENT if value is None else float(Rounding(2).text(value))
