"""The tables of AIR-Bench's paper: accuracy by task and group, and ratings by group.

What a download or an endpoint does not have is "/", as in the paper, never 0: an average over
fewer tasks than the paper's would be another figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from voxmeter.scoring.stats import Floats, Interval, mean_interval
from voxmeter.suites.air_bench_tasks import CHAT_COUNTS, CHAT_GROUPS, FOUNDATION, FOUNDATION_GROUPS
from voxmeter.suites.analysis import Answers, Cell, Measured, Table

ABSENT = "/"
ACCURACY, RATING = "judge_accuracy:", "judge_score:"
"""A judge's name stands behind these."""


def tables(
    answers: Mapping[str, Answers], _options: Mapping[str, object], seed: int = 0
) -> Sequence[Table]:
    """Return the tables of one endpoint, of each condition.

    Args:
        answers: By condition.
        _options: The suite's own; not used.
        seed: Seed of the intervals.
    """
    made: list[Table] = []
    for condition, one in answers.items():
        where = "" if condition == "clean" else f" ({condition})"
        name = "" if condition == "clean" else f":{condition}"
        if found := _foundation(one, seed):
            made.append(_named(found, name, where))
        if found := _chat(one, seed):
            made.append(_named(found, name, where))
    return made


def _named(table: Table, name: str, where: str) -> Table:
    return Table(
        f"{table.name}{name}",
        f"{table.title}{where}",
        table.heads,
        table.rows,
        table.note,
        table.unit,
    )


def _foundation(one: Answers, seed: int) -> Table | None:
    columns = {"by rules": _of_part(_plain(one), "foundation")}
    for name, measured in one.measured.items():
        if name.startswith(ACCURACY):
            judge = name.removeprefix(ACCURACY)
            columns[f"by rules, then {judge}"] = _of_part(measured, "foundation")
    columns = {name: found for name, found in columns.items() if len(found.items)}
    if not columns:
        return None
    paths = [task.groups for task in FOUNDATION.values()]
    rows: list[tuple[Cell, ...]] = []
    for group in FOUNDATION_GROUPS:
        inside = [path for path in paths if path[1] == group]
        for path in inside:
            shown = (_mean(found, path, seed, rate=True) for found in columns.values())
            rows.append((group, path[-1], *shown, _count(columns.values(), path)))
        means = (_macro(found, inside) for found in columns.values())
        rows.append((group, "mean of its tasks", *means, ""))
    averages = (_mean_of_groups(found, paths) for found in columns.values())
    rows.append(("", "mean of the three groups", *averages, ""))
    return Table(
        "foundation",
        "Foundation: accuracy by task",
        ("group", "task", *columns, "n"),
        tuple(rows),
        'A task without items is "/", and so is a mean that lacks one of its tasks. Guessing '
        "earns 25%, and 50% in speaker gender recognition and synthesized voice detection.",
        "fraction",
    )


def _chat(one: Answers, seed: int) -> Table | None:
    rows: list[tuple[Cell, ...]] = []
    for name, measured in one.measured.items():
        found = _of_part(measured, "chat")
        if not name.startswith(RATING) or not len(found.items):
            continue
        cells: list[float | None] = []
        shown: list[Cell] = []
        for group in CHAT_GROUPS:
            leaves = [path for path in CHAT_COUNTS if path[1] == group]
            mean = _macro_value(found, leaves)
            cells.append(mean)
            one_leaf = len(leaves) == 1
            shown.append(_mean(found, leaves[0], seed) if one_leaf else _cell(mean))
        whole = [cell for cell in cells if cell is not None]
        average = sum(whole) / len(whole) if len(whole) == len(CHAT_GROUPS) else None
        judge = name.removeprefix(RATING)
        rows.append((judge, *shown, _cell(average), len(found.items)))
    if not rows:
        return None
    return Table(
        "chat",
        "Chat: rating by group",
        ("judge", *CHAT_GROUPS, "average", "n"),
        tuple(rows),
        'Ratings from 1 to 10. "mixed" is the mean of its two tasks, the average that of the four '
        'groups; a group without rated replies is "/".',
    )


def _plain(one: Answers) -> Measured:
    return Measured(one.items, one.clusters, one.groups, one.accuracy)


def _of_part(measured: Measured, part: str) -> Measured:
    return measured.of(lambda groups: groups[:1] == (part,))


def _values(measured: Measured, path: tuple[str, ...]) -> tuple[Measured, Floats]:
    found = measured.of(lambda groups: groups == path)
    return found, found.values


def _mean(
    measured: Measured, path: tuple[str, ...], seed: int, *, rate: bool = False
) -> Interval | str:
    found, values = _values(measured, path)
    if not len(values):
        return ABSENT
    return mean_interval(values, found.items, found.clusters, rate=rate, seed=seed) or ABSENT


def _macro_value(measured: Measured, paths: Sequence[tuple[str, ...]]) -> float | None:
    """Return the mean of the means of groups, None where one of them has no items."""
    means = [_values(measured, path)[1] for path in paths]
    if not means or not all(len(values) for values in means):
        return None
    return float(np.mean([values.mean() for values in means]))


def _macro(measured: Measured, paths: Sequence[tuple[str, ...]]) -> Cell:
    return _cell(_macro_value(measured, paths))


def _mean_of_groups(measured: Measured, paths: Sequence[tuple[str, ...]]) -> Cell:
    means = [
        _macro_value(measured, [path for path in paths if path[1] == group])
        for group in FOUNDATION_GROUPS
    ]
    whole = [mean for mean in means if mean is not None]
    return _cell(sum(whole) / len(whole) if len(whole) == len(means) else None)


def _cell(value: float | None) -> Cell:
    return ABSENT if value is None else value


def _count(columns: Iterable[Measured], path: tuple[str, ...]) -> int:
    return max(len(_values(found, path)[1]) for found in columns)
