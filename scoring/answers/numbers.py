"""Find the numbers that a transcript says, in digits or in words, and what they are worth."""

# ruff: noqa: RUF001 - characters of other scripts are the matter here

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from voxmeter.scoring.answers.characters import read_characters
from voxmeter.scoring.answers.languages import Language
from voxmeter.scoring.answers.tokens import Token, ends_sentence
from voxmeter.scoring.answers.words import read_words, series_form

Form = Literal["digits", "words", "ordinal", "one", "year", "list"]
_SUFFIXES = frozenset({"st", "nd", "rd", "th", "er", "eme", "ieme", "e", "º", "ª"})
_MULTIPLES = {"k": Decimal(1000), "m": Decimal(10**6), "bn": Decimal(10**9), "b": Decimal(10**9)}
_GROUPED = re.compile(r"\d{1,3}(?:[,']\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}")


@dataclass(frozen=True, slots=True)
class Number:
    """A number at tokens `first` to `last`, the latter not included.

    Attributes:
        first: Its first token.
        last: One past its last token.
        value: What it is worth.
        form: "one" is a word that may also be an article or pronoun; "ordinal" a rank; "list"
            a run of single digits that may be one number read out or several.
    """

    first: int
    last: int
    value: Decimal
    form: Form


def scan(tokens: Sequence[Token], language: Language) -> list[Number]:
    """Return the numbers in order; clock times and codes such as "B2" are none."""
    found: list[Number] = []
    index = 0
    while index < len(tokens):
        number = _read(tokens, index, language)
        if number is None:
            index += _clock(tokens, index) or 1
            continue
        found.append(_signed(tokens, number, language, found))
        index = number.last
    return _with_powers(tokens, _with_degrees_below(tokens, found))


def _read(tokens: Sequence[Token], index: int, language: Language) -> Number | None:
    """Return the number that starts at a token, without its sign."""
    token = tokens[index]
    if token.text == "\\frac" and index + 2 < len(tokens):
        return _ratio(tokens, index, index + 1, index + 2, language)
    if token.text[0].isdigit():
        return (
            None
            if _clock(tokens, index) or _in_code(tokens, index)
            else _read_digits(tokens, index, language)
        )
    if (characters := read_characters(tokens, index, language.code)) is not None:
        last, value = characters
        return Number(index, last, value, "words")
    if (words := read_words(tokens, index, language)) is not None:
        last, value, form = words
        return Number(index, last, value, form)
    return None


def _in_code(tokens: Sequence[Token], index: int) -> bool:
    """Return whether digits end a name such as "COVID-19"."""
    before = tokens[index - 1] if index else None
    return before is not None and tokens[index].gap == "-" and before.raw.isupper()


def _clock(tokens: Sequence[Token], index: int) -> int:
    """Return how many tokens a clock time, ratio or d/m/y date takes; 0 for none."""
    count = 1
    while index + count < len(tokens) and _digit(tokens[index]) and count < 4:
        after = tokens[index + count]
        if not _digit(after) or after.gap not in {":", "/"}:
            break
        count += 1
    colon = count > 1 and tokens[index + 1].gap == ":"
    return count if colon or count > 2 else 0


def _digit(token: Token) -> bool:
    return token.text[0].isdigit()


def _read_digits(tokens: Sequence[Token], index: int, language: Language) -> Number | None:
    """Return a number that starts with digits."""
    if (row := _single_digits(tokens, index)) is not None:
        return row
    value = numeral(tokens[index].text, comma=language.comma)
    last = index + 1
    if value is None:
        return None
    while last < len(tokens) and _continues(tokens, index, last):
        value = value * 1000 + int(tokens[last].text)
        last += 1
    if last < len(tokens) and _digit(tokens[last]) and tokens[last].gap == "/":
        return _ratio(tokens, index, index, last, language)
    if last + 1 < len(tokens) and _digit(tokens[last + 1]) and tokens[last + 1].gap == "/":
        rest = _ratio(tokens, last, last, last + 1, language)
        if rest is not None and not ends_sentence(tokens[last].gap) and rest.value < 1:
            return Number(index, rest.last, value + rest.value, "digits")
    if last < len(tokens) and tokens[last].gap == "":
        suffix = tokens[last].bare
        if suffix in _SUFFIXES:
            return Number(index, last + 1, value, "ordinal")
        if suffix in {"k", "bn"}:
            return Number(index, last + 1, value * _MULTIPLES[suffix], "digits")
        exponent = re.fullmatch(r"e(\d{1,2})", suffix)
        if exponent:
            return Number(index, last + 1, value.scaleb(int(exponent[1])), "digits")
    if (part := _part(tokens, last, language)) is not None:
        return Number(index, last + 1, value / part, "digits")
    tail = read_words(tokens, last, language, head=value)
    if tail is not None:
        return Number(index, tail[0], tail[1], "digits")
    characters = read_characters(tokens, last, language.code, head=value)
    if characters is not None:
        return Number(index, characters[0], characters[1], "digits")
    return Number(index, last, value, "digits")


def _part(tokens: Sequence[Token], index: int, language: Language) -> int | None:
    """Return the denominator that a plural such as "hundredths" at a token stands for."""
    word = tokens[index].bare if index < len(tokens) else ""
    role, value = language.numbers.get(word, ("", ""))
    return int(value) if role == "part" and word.endswith("s") and int(value) > 2 else None


def _continues(tokens: Sequence[Token], index: int, last: int) -> bool:
    """Return whether a token is a further group of thousands written after a space."""
    group, head = tokens[last], tokens[index].text
    spaced = group.gap == " " or (group.gap == ", " and group.text.startswith("0"))
    return (
        spaced
        and re.fullmatch(r"\d{3}", group.text) is not None
        and re.fullmatch(r"[1-9]\d{0,2}", head) is not None
        and last - index < 5
    )


def _single_digits(tokens: Sequence[Token], index: int) -> Number | None:
    """Return three or more single digits, read out one by one, as one number."""
    last = index
    while (
        last < len(tokens)
        and re.fullmatch(r"\d", tokens[last].text)
        and (last == index or tokens[last].gap in {" ", ", ", "-"})
    ):
        last += 1
    digits = [int(token.text) for token in tokens[index:last]]
    if len(digits) < 3:
        return None
    return Number(index, last, Decimal("".join(map(str, digits))), series_form(digits))


def _ratio(
    tokens: Sequence[Token], first: int, top: int, bottom: int, language: Language
) -> Number | None:
    """Return a fraction of two numerals."""
    upper = numeral(tokens[top].text, comma=language.comma)
    lower = numeral(tokens[bottom].text, comma=language.comma)
    if upper is None or not lower:
        return None
    return Number(first, bottom + 1, upper / lower, "digits")


@lru_cache(maxsize=1024)
def numeral(text: str, *, comma: bool = False) -> Decimal | None:
    """Return what digits with points and commas are worth, or None where that is unclear.

    Args:
        text: Such as "1,234.5".
        comma: Whether the decimal mark is a comma ("1.234,5").
    """
    if len(text) > 40 or not text[:1].isdigit():
        return None
    if comma:
        text = text.translate(str.maketrans(".,", ",."))
    whole, _, part = text.partition(".")
    if "." in part or "," in part:
        return _swapped(text)
    if "," in whole or "'" in whole:
        if _GROUPED.fullmatch(whole) is None:
            return _swapped(text)
        whole = whole.replace(",", "").replace("'", "")
    elif comma and "." not in text and "," in text:
        return None
    return Decimal(f"{whole}.{part}" if part else whole)


def _swapped(text: str) -> Decimal | None:
    """Return a number written with the other decimal mark, where only that reading is possible."""
    decimal = re.fullmatch(r"(\d+),(\d{1,2}|\d{4,})", text)
    if decimal:
        return Decimal(f"{decimal[1]}.{decimal[2]}")
    whole = re.fullmatch(r"(\d{1,3})((?:\.\d{3}){2,}|(?:\.\d{3})+(?=,))(?:,(\d+))?", text)
    if whole:
        return Decimal(f"{whole[1]}{whole[2].replace('.', '')}.{whole[3] or 0}")
    return None


def _signed(
    tokens: Sequence[Token], number: Number, language: Language, found: Sequence[Number]
) -> Number:
    """Return the number with its sign; between two numbers a minus is a subtraction."""
    first, gap = number.first, tokens[number.first].gap
    after_number = bool(found) and found[-1].last == first
    if gap.endswith("-") and not after_number and (len(gap) > 1 or first == 0):
        return Number(first, number.last, -number.value, number.form)
    before = first - 1
    minus = before >= 0 and tokens[before].bare in language.minus and not ends_sentence(gap)
    if not minus or (found and found[-1].last == before and not ends_sentence(tokens[before].gap)):
        return number
    return Number(before, number.last, -number.value, number.form)


def _with_degrees_below(tokens: Sequence[Token], found: list[Number]) -> list[Number]:
    """Return the numbers with "five degrees below zero" read as one."""
    kept: list[Number] = []
    for number in found:
        below = number.first - 1
        if (
            kept
            and number.value == 0
            and below > 0
            and tokens[below].bare in {"below", "under", "unter", "bajo"}
            and below - kept[-1].last <= 2
        ):
            last = kept.pop()
            kept.append(Number(last.first, number.last, -abs(last.value), last.form))
        else:
            kept.append(number)
    return kept


def _with_powers(tokens: Sequence[Token], found: Sequence[Number]) -> list[Number]:
    """Return the numbers with "10^3", "ten to the third" and "6 times 10 to the 4" read as one."""
    kept: list[Number] = []
    for number in found:
        base = kept[-1] if kept else None
        if base is None or not _raises(tokens, base, number):
            kept.append(_power(tokens, number, None))
            continue
        power = _power(tokens, base, number)
        kept[-1] = power
        factor = kept[-2] if len(kept) > 1 else None
        between = tokens[factor.last].bare if factor and factor.last < len(tokens) else ""
        times = between in {"times", "x", "×", "mal", "fois", "por"}
        if factor and times and power.first == factor.last + 1 and base.value == 10:
            kept[-2:] = [Number(factor.first, power.last, factor.value * power.value, "digits")]
    return kept


def _raises(tokens: Sequence[Token], base: Number, exponent: Number) -> bool:
    """Return whether the second number is the exponent of the first."""
    if abs(exponent.value) > 30 or exponent.value % 1 or not 0 < abs(base.value) <= 1000:
        return False
    between = [token.bare for token in tokens[base.last : exponent.first]]
    if not between:
        return tokens[exponent.first].gap in {"^", "^-"}
    return between in (["to", "the"], ["to", "the", "power"], ["to", "the", "power", "of"])


def _power(tokens: Sequence[Token], base: Number, exponent: Number | None) -> Number:
    """Return a number raised to an exponent, or by the "squared" or "cubed" behind it."""
    if exponent is not None:
        last = exponent.last
        if last < len(tokens) and tokens[last].bare == "power":
            last += 1
        negative = tokens[exponent.first].gap == "^-"
        value = base.value ** (-int(exponent.value) if negative else int(exponent.value))
        return Number(base.first, last, value, "digits")
    after = tokens[base.last].bare if base.last < len(tokens) else ""
    raised = {"squared": 2, "cubed": 3}.get(after)
    if raised is None or abs(base.value) > 1000 or ends_sentence(tokens[base.last].gap):
        return base
    return Number(base.first, base.last + 1, base.value**raised, "digits")
