"""The tables of VoxEval's paper: settings against chance, groups, boxes over subjects, mathematics.

Pure functions on the accuracies of items; a question without a clear answer was answered wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from voxmeter.scoring.stats import Floats, Interval, mean_interval
from voxmeter.suites.analysis import Answers, Cell, Table
from voxmeter.suites.voxeval_layout import SPEAKERS
from voxmeter.suites.voxeval_subjects import MATHS, PUBLISHED_COUNTS

CLEAN = "clean"

NAMES: Mapping[str, str] = {
    **{voice: voice.capitalize() for voice in SPEAKERS},
    "alloy_linguistic_variation": "Linguistic",
    "alloy_tempo": "Speed",
    "alloy_pitch": "Pitch",
    "alloy_noise": "Noise",
    "alloy_env_acoustics": "Other Env Acoustics",
}
"""What the paper's table calls each setting."""

_RANGES = {2: 1.128, 3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534}
"""How far the best and the worst of so many draws from one normal distribution lie apart on
average, in standard deviations."""


def tables(
    answers: Mapping[str, Answers], options: Mapping[str, object], seed: int = 0
) -> Sequence[Table]:
    """Return the tables of one endpoint.

    Args:
        answers: By condition.
        options: The suite's own; `speaker` names the setting that is `clean`.
        seed: Seed of the intervals.
    """
    speaker = str(options.get("speaker") or SPEAKERS[0])
    by_setting = {speaker if name == CLEAN else name: one for name, one in answers.items()}
    known = [name for name in NAMES if name in by_setting]
    ordered = {
        name: by_setting[name]
        for name in (*known, *(one for one in by_setting if one not in NAMES))
        if len(by_setting[name])
    }
    if not ordered:
        return ()
    made = (
        _overall(ordered, speaker, seed),
        _groups(ordered, seed),
        _boxes(ordered, speaker),
        _mathematics(ordered, str(options.get("prompt_mode") or "regular"), seed),
    )
    return [table for table in made if table is not None]


def below_chance(accuracy: Interval, chance: float) -> str:
    """Return where an accuracy stands to guessing: below, at or above it, by its interval."""
    if accuracy.high is not None and accuracy.high < chance:
        return "below chance"
    if accuracy.low is not None and accuracy.low > chance:
        return "above chance"
    return "no different from chance"


def _overall(answers: Mapping[str, Answers], speaker: str, seed: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    clean = answers.get(speaker)
    for name, one in answers.items():
        accuracy = _mean(one, seed)
        chance = float(one.chance.mean())
        change = None if clean is None or name == speaker else _change(one, clean, seed)
        verdict = below_chance(accuracy, chance)
        rows.append((NAMES.get(name, name), accuracy, change, chance, verdict, len(one)))
    return Table(
        "overall",
        "Accuracy in each setting",
        ("setting", "accuracy", f"change from {NAMES.get(speaker, speaker)}", "chance", "", "n"),
        tuple(rows),
        "A change is over the questions that were asked in both settings, question by question. "
        "An accuracy below chance is a sign of replies without a clear answer, which count as "
        "wrong: see parse_rate.",
        "fraction",
    )


def _groups(answers: Mapping[str, Answers], seed: int) -> Table | None:
    every = dict.fromkeys(groups[0] for one in answers.values() for groups in one.groups if groups)
    names = [*(name for name in PUBLISHED_COUNTS if name in every)]
    names += sorted(name for name in every if name not in PUBLISHED_COUNTS)
    if not names:
        return None
    rows = [
        (NAMES.get(setting, setting), *(_mean_of(one, name, 0, seed) for name in names))
        for setting, one in answers.items()
    ]
    note = "Each group over its questions, so that a subject counts as often as it is asked."
    heads = ("setting", *names)
    return Table("groups", "Accuracy by group of subjects", heads, tuple(rows), note, "fraction")


def _mathematics(answers: Mapping[str, Answers], mode: str, seed: int) -> Table | None:
    asked = {groups[-1] for one in answers.values() for groups in one.groups if groups}
    levels = {subject: level for subject, level in MATHS.items() if subject in asked}
    if not levels:
        return None
    rows = [
        (NAMES.get(setting, setting), *(_mean_of(one, name, -1, seed) for name in levels))
        for setting, one in answers.items()
    ]
    note = (
        "Worked examples reason step by step (chains of thought)."
        if mode == "cot"
        else 'Without chains of thought; prompt_mode = "cot" asks with them.'
    )
    return Table(
        "mathematics",
        "Mathematics by level",
        ("setting", *levels.values()),
        tuple(rows),
        note,
        "fraction",
    )


def box(values: Floats) -> tuple[float, float, float, float, float] | None:
    """Return minimum, lower quartile, median, upper quartile and maximum; None of nothing."""
    if not len(values):
        return None
    found = np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0])
    return tuple(float(one) for one in found)  # type: ignore[return-value]  # five of them


def _boxes(answers: Mapping[str, Answers], speaker: str) -> Table | None:
    """How far settings move a subject's accuracy, over all subjects that were asked in them."""
    subjects = {setting: subject_accuracies(one) for setting, one in answers.items()}
    rows = [
        row
        for name, spread, base in _spreads(subjects, speaker)
        for row in _box_rows(name, spread, base)
    ]
    if not rows:
        return None
    note = (
        "Of each subject: the best voice less the worst (speakers), or a setting less "
        f"{NAMES.get(speaker, speaker)}: its size, as the paper draws it, and with its sign. In "
        f"percent: of the accuracy with {NAMES.get(speaker, speaker)}, where that is above 0."
    )
    note += _by_chance(answers, speaker)
    heads = ("box", "of", "lowest", "lower quartile", "median", "upper quartile", "highest", "n")
    return Table("boxes", "Settings, subject by subject", heads, tuple(rows), note)


def _by_chance(answers: Mapping[str, Answers], speaker: str) -> str:
    """Return how large sizes are where no setting makes any difference: sizes are never below 0."""
    clean = answers[speaker]
    count = int(np.median(list(_counts(clean).values())))
    share = float(clean.accuracy.mean())
    points = 100 * float(np.sqrt(share * (1 - share) / count))
    voices = min(sum(name in answers for name in SPEAKERS), max(_RANGES))
    two, several = points * _RANGES[2], points * _RANGES.get(voices, 0.0)
    told = (
        f"Where replies are drawn anew each time, chance alone makes sizes of some {two:.1f} points"
    )
    if voices > 2:
        told += f", and of {several:.1f} between the best and the worst of {voices} voices,"
    return f" {told} in a subject of {count} questions."


def _spreads(
    subjects: Mapping[str, Mapping[str, float]], speaker: str
) -> Iterator[tuple[str, Mapping[str, float], Mapping[str, float]]]:
    """Yield the name of each box, what is in it by subject, and what a share is taken of."""
    clean = subjects.get(speaker)
    if clean is None:
        return
    voices = [subjects[name] for name in SPEAKERS if name in subjects]
    if len(voices) > 1:
        common = [one for one in clean if all(one in voice for voice in voices)]
        ranges = {
            one: max(voice[one] for voice in voices) - min(voice[one] for voice in voices)
            for one in common
        }
        yield f"speakers ({len(voices)})", ranges, clean
    for name, found in subjects.items():
        if name not in SPEAKERS and name != speaker:
            common = [one for one in clean if one in found]
            change = {one: found[one] - clean[one] for one in common}
            shown = NAMES.get(name, name)
            yield f"{shown}, size", {one: abs(change[one]) for one in common}, clean
            yield f"{shown}, change", change, clean


def _box_rows(
    name: str, spread: Mapping[str, float], base: Mapping[str, float]
) -> Iterator[tuple[Cell, ...]]:
    points = box(np.array([100 * value for value in spread.values()], np.float64))
    shares = [100 * value / base[one] for one, value in spread.items() if base[one] > 0]
    if points is not None:
        yield (name, "points", *(round(one, 2) for one in points), len(spread))
    relative = box(np.array(shares, np.float64))
    if relative is not None:
        yield (name, "percent", *(round(one, 2) for one in relative), len(shares))


def subject_accuracies(answers: Answers) -> dict[str, float]:
    """Return the accuracy of each subject, the innermost group of its items."""
    right: dict[str, float] = {}
    for groups, accuracy in zip(answers.groups, answers.accuracy.tolist(), strict=True):
        if groups:
            right[groups[-1]] = right.get(groups[-1], 0.0) + accuracy
    counts = _counts(answers)
    return {subject: total / counts[subject] for subject, total in right.items()}


def _counts(answers: Answers) -> dict[str, int]:
    counts: dict[str, int] = {}
    for groups in answers.groups:
        if groups:
            counts[groups[-1]] = counts.get(groups[-1], 0) + 1
    return counts


def _mean(answers: Answers, seed: int) -> Interval:
    found = mean_interval(answers.accuracy, answers.items, answers.clusters, rate=True, seed=seed)
    return found or Interval(float("nan"), None, None)


def _mean_of(answers: Answers, name: str, depth: int, seed: int) -> Interval | None:
    """Return the accuracy over the items that have this group at this depth."""
    chosen = answers.of(lambda groups: bool(groups) and groups[depth] == name)
    return _mean(chosen, seed) if len(chosen) else None


def _change(one: Answers, clean: Answers, seed: int) -> Interval | None:
    """Return the mean difference of the items that were asked in both, with its interval."""
    common, mine, other = np.intersect1d(one.items, clean.items, return_indices=True)
    if not len(common):
        return None
    change = one.accuracy[mine] - clean.accuracy[other]
    return mean_interval(change, common, one.clusters[mine], seed=seed)
