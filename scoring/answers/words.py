"""Numbers in words, for languages that are written with spaces."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from voxmeter.scoring.answers.languages import Language
from voxmeter.scoring.answers.tokens import Token, ends_sentence

Form = Literal["words", "ordinal", "one", "year", "list"]
_BY_LIBRARY = frozenset({"de", "es", "fr", "it", "nl", "pt"})
_LONGEST = 14
_A = frozenset(
    ["a", "an", "un", "une", "una", "uno", "um", "uma", "ein", "eine", "einen", "einem", "een"]
)


def read_words(
    tokens: Sequence[Token], index: int, language: Language, head: Decimal | None = None
) -> tuple[int, Decimal, Form] | None:
    """Return where a number in words ends, its value and its form, or None.

    Args:
        tokens: Of the transcript.
        index: Where it starts.
        language: Whose words.
        head: A number in digits that stands just before ("3 million", "2 and a half").
    """
    reader = _Reader(tokens[index : index + _LONGEST], language)
    if head is not None:
        value, length = reader.tail(head, 0)
        return None if not length else (index + length, value, "words")
    start = reader.start()
    if start is None:
        return None
    length, value, form = start
    value, more = reader.tail(value, length) if form != "ordinal" else (value, length)
    return index + more, value, form


class _Reader:
    """Reads one number from the first tokens of a list."""

    def __init__(self, tokens: Sequence[Token], language: Language) -> None:
        self._language = language
        self._words: list[str] = []
        self._exact: list[str] = []
        for position, token in enumerate(tokens):
            if position and (ends_sentence(token.gap) or "," in token.gap or ":" in token.gap):
                break
            self._words.append(token.bare)
            self._exact.append(token.text)

    def start(self) -> tuple[int, Decimal, Form] | None:
        """Return length, value and form of the number at the first word."""
        if not self._words:
            return None
        if self._word(0) in self._language.point and (digits := self._digits(1)):
            return 1 + len(digits), Decimal(f"0.{digits}"), "words"
        if fraction := self._fraction(0):
            return fraction[1], fraction[0], "words"
        if self._language.code in _BY_LIBRARY:
            found = _by_library(tuple(self._exact), self._language)
        else:
            found = self._own()
        if found is not None:
            return found
        ordinal = self._language.ordinals.get(self._word(0), 0)
        return (1, Decimal(ordinal), "ordinal") if ordinal > 0 else None

    def tail(self, value: Decimal, at: int) -> tuple[Decimal, int]:
        """Return value and length with decimals, fractions and scales that follow."""
        pointed = self._word(at) in self._language.point and value == value.to_integral_value()
        if pointed and (digits := self._digits(at + 1)):
            value, at = Decimal(f"{value}.{digits}"), at + 1 + self._used
        joined = at + (self._word(at) in self._language.join)
        if (fraction := self._fraction(joined)) and fraction[0] < 1 and (joined > at or at):
            value, at = value + fraction[0], fraction[1]
        if value < 1 and self._words[at : at + 2] in (["of", "a"], ["of", "one"]):
            at += 2 if self._role(at + 2) == "scale" else 0
        while self._role(at) in {"scale", "hundred"}:
            value, at = value * Decimal(self._value(at)), at + 1
        return value, at

    def _word(self, at: int) -> str:
        return self._words[at] if at < len(self._words) else ""

    def _role(self, at: int) -> str:
        return self._language.numbers.get(self._word(at), ("", ""))[0]

    def _value(self, at: int) -> int:
        return int(self._language.numbers[self._word(at)][1])

    def _digits(self, at: int) -> str:
        """Return the digits after a point, one word each or one numeral; "" for none."""
        self._used = 0
        if self._word(at).isdigit():
            self._used = 1
            return self._word(at)
        digits = ""
        while self._role(at + self._used) == "unit" and self._value(at + self._used) < 10:
            digits += str(self._value(at + self._used))
            self._used += 1
        if not digits:
            rest = _Reader((), self._language)
            rest._words, rest._exact = self._words[at:], self._exact[at:]
            library = self._language.code in _BY_LIBRARY
            small = _by_library(tuple(rest._exact), self._language) if library else rest._own()
            if small is not None and small[1] < 100:
                self._used = small[0]
                digits = str(small[1])
        return digits

    def _fraction(self, at: int) -> tuple[Decimal, int] | None:
        """Return value and end of "three fifths", "a half", "half a"."""
        role, top = self._role(at), Decimal(1)
        if role == "part" and self._value(at) == 2:
            after = at + 1 + (self._word(at + 1) in _A)
            return Decimal("0.5"), after if self._role(after) == "scale" else at + 1
        if self._word(at) in _A:
            pass
        elif role == "unit":
            top = Decimal(self._value(at))
        elif not self._word(at).isdigit() or len(self._word(at)) > 4:
            return None
        else:
            top = Decimal(self._word(at))
        if self._role(at + 1) != "part" or (top > 1 and self._word(at + 1) == "second"):
            return None
        return top / Decimal(self._value(at + 1)), at + 2

    def _own(self) -> tuple[int, Decimal, Form] | None:
        """Return length, value and form of a cardinal in the language's own words."""
        series = self._series()
        if series:
            return series
        article = self._word(0) in _A and self._role(1) in {"hundred", "scale"}
        form: Form = "words"
        at, total, current = int(article), 0, int(article)
        used = at
        while True:
            role = self._role(at)
            joined = used and not role and self._word(at) in self._language.join
            if joined and self._role(at + 1) in {"unit", "ten"} and (total or current >= 100):
                at += 1
                continue
            if (
                role == "unit"
                and (
                    not current % 100
                    or (current % 10 == 0 and self._value(at) < 10 and current % 100 >= 20)
                )
            ) or (role == "ten" and current % 100 == 0):
                current += self._value(at)
            elif (role == "ten" and used and total == 0 and 10 <= current < 100) or (
                role == "unit" and self._value(at) >= 10 and total == 0 and 10 < current < 100
            ):
                return self._year(at, current)
            elif role == "hundred" and current < 100:
                current = (
                    max(current, 1) * 100 if self._value(at) == 100 else current + self._value(at)
                )
            elif role == "hundred" and self._value(at) != 100:
                current += self._value(at)
            elif role == "scale" and (current or not used):
                total, current = total + max(current, 1) * self._value(at), 0
            else:
                break
            at, used = at + 1, at + 1
        if not used or (used == 1 and article) or self._word(0) == "oh":
            return None
        rank = self._language.ordinals.get(self._word(used), 0)
        if (
            0 < rank < 10
            and current % 10 == 0
            and current % 100 >= 20
            and self._word(used) != "second"
        ):
            return used + 1, Decimal(total + current + rank), "ordinal"
        if used == 1 and self._word(0) == "one":
            form = "one"
        return used, Decimal(total + current), form

    def _year(self, at: int, head: int) -> tuple[int, Decimal, Form]:
        """Return "nineteen eighty four" as 1984; `head` is the first pair."""
        tail, end = self._value(at), at + 1
        if self._role(at) == "ten" and self._role(end) == "unit" and self._value(end) < 10:
            tail, end = tail + self._value(end), end + 1
        return end, Decimal(head * 100 + tail), "year"

    def _series(self) -> tuple[int, Decimal, Form] | None:
        """Return digits read out one by one, or a year such as "nineteen oh five"."""
        values: list[int] = []
        while self._role(len(values)) == "unit":
            values.append(self._value(len(values)))
        if len(values) == 3 and values[0] >= 10 and values[1] == 0 and values[2] < 10:
            return 3, Decimal(values[0] * 100 + values[2]), "year"
        century = self._role(0) == "ten" and self._word(1) in {"oh", "zero"}
        if century and self._role(2) == "unit" and 0 < self._value(2) < 10:
            return 3, Decimal(self._value(0) * 100 + self._value(2)), "year"
        if len(values) < 3 or max(values) > 9 or self._role(len(values)) == "scale":
            return None
        return len(values), Decimal("".join(map(str, values))), series_form(values)


def series_form(digits: Sequence[int]) -> Literal["words", "list"]:
    """Return "list" for digits that count up or repeat: they may be several numbers."""
    counted = all(later - sooner == 1 for sooner, later in pairwise(digits))
    repeated = len(set(digits)) == 1
    return "list" if counted or repeated else "words"


@lru_cache(maxsize=4096)
def _word_value(word: str, code: str) -> int | None:
    """Return what one word is worth, by the library's tables."""
    from text_to_num import text2num

    try:
        return int(text2num(word, code))
    except ValueError:
        return None


def _by_library(words: tuple[str, ...], language: Language) -> tuple[int, Decimal, Form] | None:
    """Return length, value and form of the longest number at the first word."""
    from text_to_num import text2num

    length = 0
    for position, word in enumerate(words):
        joins = position and word in language.join
        if not joins and _word_value(word, language.code) is None:
            break
        length = position + 1
    for end in range(length, 0, -1):
        if words[end - 1] in language.join:
            continue
        try:
            value = Decimal(int(text2num(" ".join(words[:end]), language.code)))
        except ValueError:
            continue
        form: Form = "one" if end == 1 and value == 1 else "words"
        return end, value, form
    return None
