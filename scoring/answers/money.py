"""Read sums of money that are said in two parts: "three dollars and fifty cents"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from voxmeter.scoring.answers.mentions import Text
from voxmeter.scoring.answers.numbers import Number

_HUNDREDTHS = frozenset({
    "cents", "cent", "cts", "pence", "centimes", "centavos", "centimos",
})  # fmt: skip
_MONEY = frozenset({
    "dollar", "dollars", "euro", "euros", "pound", "pounds", "pesos", "buck", "bucks",
})  # fmt: skip


def with_money(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return numbers with "three dollars and fifty cents" read as one."""
    tokens = text.transcript.tokens
    joined: list[Number] = []
    for number in numbers:
        last = joined[-1] if joined else None
        unit = tokens[number.last].bare if number.last < len(tokens) else ""
        between = {t.bare for t in tokens[last.last : number.first]} if last else set()
        if (
            last
            and unit in _HUNDREDTHS
            and between & _MONEY
            and len(between) <= 2
            and number.value < 100
        ):
            joined[-1] = replace(last, last=number.last + 1, value=last.value + number.value / 100)
        else:
            joined.append(_dollar_and(text, number) or number)
    return joined


def _dollar_and(text: Text, number: Number) -> Number | None:
    """Return "a dollar and twenty-five cents" as one number, if that stands at a number."""
    tokens = text.transcript.tokens
    before = [t.bare for t in tokens[max(0, number.first - 3) : number.first]]
    cents = [t.bare for t in tokens[number.last : number.last + 1]]
    if len(before) < 3 or before[0] not in text.language.articles or before[1] not in _MONEY:
        return None
    if before[2] not in text.language.join or not _HUNDREDTHS.intersection(cents):
        return None
    return replace(number, first=number.first - 3, value=1 + number.value / 100)
