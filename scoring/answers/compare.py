"""Compare an extracted answer with a reference."""

# ruff: noqa: RUF001 - characters of other scripts are the matter here

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from voxmeter.scoring.answers.numbers import numeral
from voxmeter.scoring.answers.result import Answer, Kind, Value
from voxmeter.scoring.answers.tokens import tokenise

_ARTICLE = frozenset(
    [
        "the",
        "a",
        "an",
        "der",
        "die",
        "das",
        "le",
        "la",
        "les",
        "el",
        "los",
        "las",
        "il",
        "lo",
        "o",
        "os",
        "as",
        "het",
        "de",
    ]
)


def is_right(answer: Answer, kind: Kind, reference: str | Sequence[str]) -> bool:
    """Return whether an answer equals the reference or one of its aliases; none never does.

    Args:
        answer: What was extracted.
        kind: Kind of the question.
        reference: The right answer, or several that are all right.

    Raises:
        ValueError: If a reference to a number is not written as a number.
    """
    references = [reference] if isinstance(reference, str) else list(reference)
    value = answer.value
    if value is None:
        return False
    if kind == "number":
        return any(same_number(value, text) for text in references)
    if kind == "name":
        return any(same_name(str(value), text) for text in references)
    return any(str(value).casefold() == text.strip().casefold() for text in references)


def same_number(value: Value, reference: str) -> bool:
    """Return whether a number is the reference, or rounds to it at its last written digit.

    Args:
        value: The number said.
        reference: Such as "3.14" (within 0.005), "1,200", "7/8" or "-5".

    Raises:
        ValueError: If the reference is not written as a number.
    """
    if not isinstance(value, Decimal):
        return False
    text = reference.strip().replace("−", "-").rstrip("%").strip()
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    top, slash, bottom = digits.partition("/")
    written = numeral(top)
    lower = numeral(bottom) if slash else Decimal(1)
    if written is None or not lower:
        written, lower = _scientific(digits, reference), Decimal(1)
    expected = sign * written / lower
    if slash:
        return value == expected
    exponent = written.as_tuple().exponent
    half = Decimal(5).scaleb(int(exponent) - 1) if int(exponent) < 0 else Decimal("0.5")
    return value == expected or abs(value - expected) <= half


def _scientific(digits: str, reference: str) -> Decimal:
    try:
        number = Decimal(digits)
    except InvalidOperation:
        raise ValueError(f"not a number: {reference!r}") from None
    if not number.is_finite():
        raise ValueError(f"not a number: {reference!r}")
    return number


def same_name(name: str, reference: str) -> bool:
    """Return whether two names are equal but for case, punctuation and a leading article.

    An accent counts, however it is encoded: a reference that may be written without it has an
    alias for that.
    """
    return _plain(name) == _plain(reference) != ()


def _plain(name: str) -> tuple[str, ...]:
    folded = re.sub(r"['’.\-]", "", unicodedata.normalize("NFC", name))
    words = tuple(token.text for token in tokenise(folded).tokens)
    return words[1:] if len(words) > 1 and words[0] in _ARTICLE else words
