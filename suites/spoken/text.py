"""Text as a voice should say it: an ordered list of small rules, English; other languages: numbers.

Voices differ in what they make of "10^-3" or "World War II"; words leave them no choice, so that
every voice asks the same question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from voxmeter.suites.spoken import maths, numbers, units, words


class Rule(NamedTuple):
    """One step from what is written to what is said.

    Attributes:
        name: For `--show`, tests and docs.
        apply: Returns the text with it applied; unchanged where it has nothing to do.
    """

    name: str
    apply: Callable[[str], str]


RULES: Sequence[Rule] = (
    Rule("forms", maths.forms),
    Rule("latex", maths.latex),
    Rule("blanks", maths.blanks),
    Rule("abbreviations", words.abbreviations),
    Rule("chemistry", words.chemistry),
    Rule("dates", numbers.dates),
    Rule("years", numbers.years),
    Rule("times", numbers.times),
    Rule("money", numbers.money),
    Rule("percents", numbers.percents),
    Rule("ordinals", numbers.ordinals),
    Rule("roman", words.roman),
    Rule("functions", maths.functions),
    Rule("brackets", maths.brackets),
    Rule("operators", maths.operators),
    Rule("fractions", maths.fractions),
    Rule("units", units.units),
    Rule("quotients", maths.quotients),
    Rule("powers", maths.powers),
    Rule("greek", maths.greek),
    Rule("numbers", numbers.numbers),
    Rule("signs", maths.signs),
    Rule("tidy", maths.tidy),
)
"""From first to last: each finds what those before it have left."""

_WHOLE = re.compile(r"(?<![\w.,])-?[0-9]+(?:[.,][0-9]+)?(?![\w]|[.,][0-9])")


_A_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_ASKS_WHEN = re.compile(r"\b(?:[Yy]ear|[Dd]ate|[Ww]hen)\b")


class Spoken(NamedTuple):
    """Text to be said.

    Attributes:
        text: In words.
        rules: Names of those that changed something.
    """

    text: str
    rules: tuple[str, ...]


def spoken(text: str, language: str = "en", about: str = "") -> Spoken:
    """Return a text as it is said.

    Args:
        text: As it is written.
        language: Its code. English is put into words whole; of other languages that num2words
            knows, whole numbers and decimals are; the rest is left to the voice.
        about: The question that it is an option of: where that asks for a year, a bare number of
            four digits is one.

    Raises:
        MissingExtraError: If num2words is not installed.
    """
    if language.partition("-")[0] != "en":
        said = _other(text, language)
        return Spoken(said, ("numbers",) if said != text else ())
    if _A_YEAR.fullmatch(text.strip()) and _ASKS_WHEN.search(about):
        return Spoken(numbers.year(int(text)), ("years",))
    used: list[str] = []
    for rule in RULES:
        said = rule.apply(text)
        if said != text:
            used.append(rule.name)
        text = said
    return Spoken(text, tuple(used))


def _other(text: str, language: str) -> str:
    say = numbers.other(language)
    if say is None:
        return text

    def worded(found: re.Match[str]) -> str:
        return say(found[0]) or found[0]

    return _WHOLE.sub(worded, text)
