"""Read which number a spoken reply answers with."""

# ruff: noqa: RUF001 - characters of other scripts are the matter here

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal

from voxmeter.scoring.answers.languages import language as load
from voxmeter.scoring.answers.mentions import Text
from voxmeter.scoring.answers.money import with_money
from voxmeter.scoring.answers.numbers import Number, scan
from voxmeter.scoring.answers.result import Answer, no_answer
from voxmeter.scoring.answers.tokens import tokenise

_MONTHS = frozenset({
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december", "januar", "februar", "marz", "mai", "juni", "juli",
    "oktober", "dezember", "janvier", "fevrier", "mars", "avril", "juin", "juillet", "aout",
    "septembre", "octobre", "novembre", "decembre", "enero", "febrero", "marzo", "abril", "mayo",
    "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
})  # fmt: skip
_OPERATORS = frozenset({
    "plus", "minus", "times", "divided", "multiplied", "over", "out", "squared", "cubed", "×",
    "+", "=", "mal", "durch", "fois", "por", "per", "moins", "menos", "menu", "more", "less",
    "modulo", "percent", "%", "of", "x",
})  # fmt: skip
_RANGE = frozenset({
    "to", "or", "and", "through", "bis", "oder", "und", "a", "à", "ou", "o", "y", "e", "tot",
    "of", "en", "или", "и", "до",
})  # fmt: skip

_BECAUSE = frozenset({"because", "since", "weil", "denn", "car", "porque", "perché", "perche"})
_CLAUSE = 12  # tokens
_ONE_AFTER = frozenset({
    "that", "this", "the", "which", "no", "any", "each", "another", "every", "right", "correct",
    "only", "last", "first", "other", "wrong", "some", "good", "hard", "tough",
})  # fmt: skip
_ONE_BEFORE = frozenset({
    "of", "moment", "second", "thing", "more", "another", "can", "could", "would", "might",
    "should",
})  # fmt: skip


def read_number(transcript: str, code: str) -> Answer:
    """Return the number that a reply answers with; several without a result are no answer."""
    text = Text(tokenise(transcript), load(code))
    if not text.transcript.tokens:
        return no_answer("empty", "nothing was said")
    numbers = with_money(text, scan(text.transcript.tokens, text.language))
    others = len({n.value for n in numbers}) > 1
    numbers = [n for n in numbers if not (others and _is_label(text, n))]
    cardinals = [
        n
        for n in numbers
        if n.form != "ordinal" and not _is_pronoun(text, n) and not _is_doubled(text, n)
    ]
    numbers = _without_dates(text, cardinals) or [n for n in numbers if n.form == "ordinal"]
    numbers = _without_denied(text, _without_withdrawn(text, numbers))
    numbers = _without_grounds(text, _without_hedged(text, numbers))
    if not numbers and (zero := _zero(text)):
        return zero
    if not numbers:
        return no_answer("no-number", "no number is said")
    asked = text.transcript.questions
    stated = [n for n in numbers if text.transcript.tokens[n.first].sentence not in asked]
    if not stated and all(n.form == "ordinal" for n in numbers):
        return no_answer("asked", "the reply asks and gives no number")
    numbers = stated or numbers
    numbers = [n for n in numbers if n.form != "list"] or numbers
    if any(n.form == "list" for n in numbers):
        return no_answer("digits", "digits in a row may be one number or several")
    for rule, chosen in (
        ("answer", _cued(text, numbers)),
        ("opening", _opening(text, numbers)),
        ("result", results(text, numbers)),
        ("result", _besides_sums(text, numbers)),
        ("only", numbers),
    ):
        if chosen and len({n.value for n in chosen}) == 1:
            if rule == "only" and _repeats(chosen):
                break
            last = chosen[-1]
            if _in_range(text, last, numbers):
                return no_answer("range", "a range is given")
            if _is_bound(text, last):
                return no_answer("bound", "a limit is given, not a number")
            if rule != "answer" and in_sum(text, last):
                return no_answer("sum", "a calculation without its result")
            return Answer(last.value, rule, text.transcript.span(last.first, last.last))
    values = ", ".join(str(value) for value in sorted({n.value for n in numbers})[:5])
    return no_answer("several", f"more than one number is said: {values}")


def _zero(text: Text) -> Answer | None:
    """Return zero for "there are none left"."""
    tokens = text.transcript.tokens
    for index, token in enumerate(tokens):
        last = index + text.at("nothing_left", index)
        for place in range(index + 2, min(index + 5, len(tokens))) if token.bare == "no" else ():
            if not any(text.bounded(between) for between in range(index + 1, place + 1)):
                last = max(
                    last, place + text.at("left_over", place) if text.at("left_over", place) else 0
                )
        if last > index:
            return Answer(Decimal(0), "nothing-left", text.transcript.span(index, last))
    return None


def _is_bound(text: Text, number: Number) -> bool:
    """Return whether a number is only a limit ("more than 100"), not one counted from another."""
    tokens = text.transcript.tokens
    for place in (text.back(number.first), number.first):
        if length := text.before("bound", place):
            start = place - length
            return start == 0 or not tokens[start - 1].text[0].isdigit()
    return False


def _repeats(chosen: Sequence[Number]) -> bool:
    """Return whether one number is said over and over without a word between."""
    pairs = itertools.pairwise(chosen)
    return len(chosen) > 4 and all(a.last == b.first for a, b in pairs)


def _besides_sums(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return the numbers that are no terms of the calculations in a reply with some."""
    left = [number for number in numbers if not in_sum(text, number)]
    return left if len(left) < len(numbers) else []


def _opening(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return the number that is a reply's whole first sentence, if what follows only explains."""
    first = numbers[0]
    places = range(text.back(first.first), first.first + 1)
    start = min(place - text.before("weak", place) for place in places)
    if start or not text.closes(first.last) or len(numbers) == 1:
        return []
    for number in numbers[1:]:
        begin = text.back(number.first)
        result = any(
            text.before(name, place) and not _counts(text, place)
            for name in ("weak", "final", "number_cue")
            for place in (begin, number.first)
        )
        if result or (text.opens(begin) and text.closes(number.last)):
            return []
    return [first]


def _counts(text: Text, index: int) -> bool:
    """Return whether "there are", "it has" or the like ends before a token."""
    before = [t.bare for t in text.transcript.tokens[max(0, index - 2) : index]]
    return before[-1:] in (["has"], ["have"], ["had"], ["contains"]) or before[:1] == ["there"]


def _is_label(text: Text, number: Number) -> bool:
    """Return whether a number only counts steps, options or pages."""
    labelled = text.before("number_label", number.first) > 0
    gap = text.transcript.gap(number.last)
    heads_list = text.opens(number.first) and number.form == "digits" and gap[:1] == ")"
    return labelled or heads_list


def _is_pronoun(text: Text, number: Number) -> bool:
    """Return whether "one" stands for a thing or is an article."""
    if number.form != "one":
        return False
    tokens = text.transcript.tokens
    before = tokens[number.first - 1].bare if number.first else ""
    after = tokens[number.last].bare if number.last < len(tokens) else ""
    earlier = tokens[number.first - 2].bare if number.first > 1 else ""
    only = before == "only" and earlier not in text.language.articles and earlier != "my"
    pronoun = (before in _ONE_AFTER and not only) or after in _ONE_BEFORE
    word = tokens[number.first].bare
    article = word in text.language.articles and not text.closes(number.last)
    return pronoun or article


def _is_doubled(text: Text, number: Number) -> bool:
    """Return whether "double" or "triple" stands before: the digits cannot be told."""
    before = text.transcript.tokens[number.first - 1].bare if number.first else ""
    return before in {"double", "triple"}


def _without_dates(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return numbers with the day of a date that also names a year left out."""
    tokens = text.transcript.tokens
    kept = list(numbers)
    for index, token in enumerate(tokens):
        if token.bare not in _MONTHS:
            continue
        near = [n for n in kept if index - 2 <= n.first <= index + 4]
        years = [n for n in near if 1000 <= n.value <= 2100]
        if years:
            kept = [n for n in kept if n not in near or n in years]
    return kept


def _without_withdrawn(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return numbers from the last correction on."""
    for place in range(len(numbers) - 1, 0, -1):
        one, other = numbers[place - 1], numbers[place]
        for index in range(one.last, other.first):
            length = text.at("correction", index)
            bare = text.transcript.tokens[index].bare in {
                "no",
                "nein",
                "non",
                "nee",
                "nope",
                "não",
                "нет",
            }
            if (length and (length > 1 or text.bounded(index))) or (
                bare
                and text.bounded(index)
                and (text.bounded(index + 1) or index + 1 == other.first)
            ):
                return list(numbers[place:])
    return list(numbers)


def _without_denied(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return numbers without those that are denied ("not sixteen")."""
    kept = []
    for number in numbers:
        start = text.back(number.first)
        denied = any(
            text.before(name, index)
            and not text.opens(index)
            and "," not in text.transcript.gap(index)
            for index in {start, number.first}
            for name in ("not", "not_claim")
        )
        than = number.first and text.transcript.tokens[number.first - 1].bare in {"than", "menos"}
        if not denied or than:
            kept.append(number)
    return kept


def _without_hedged(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return numbers without those only thought of ("I thought 12, but"), if others are left."""
    left = []
    for number in numbers:
        before = [t.bare for t in text.transcript.tokens[max(0, number.first - 2) : number.first]]
        maybe = before[-1:] == ["be"] and before[0] in {"could", "might", "may"}
        hedged = maybe or text.at("seems", number.last) > 0
        for index in range(number.first - 1, max(-1, number.first - _CLAUSE), -1):
            if hedged or text.at("contrast", index):
                break
            hedged = text.at("hedge", index) > 1
            if text.opens(index):
                break
        if not hedged:
            left.append(number)
    return left or list(numbers)


def _without_grounds(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return numbers without those behind a "because" that has one before it."""
    tokens = text.transcript.tokens
    kept: list[Number] = []
    for number in numbers:
        answered = kept and tokens[kept[-1].first].sentence == tokens[number.first].sentence
        between = range(kept[-1].last, number.first) if answered else ()
        grounds = any(tokens[index].bare in _BECAUSE for index in between)
        if not grounds:
            kept.append(number)
    return kept


def _cued(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return the numbers announced as the answer; after a conclusion, only the last."""
    found = []
    for number in numbers:
        start = text.back(number.first)
        tokens = text.transcript.tokens
        concluded = any(text.before("final", i) for i in {start, number.first}) and _ends(
            text, number
        )
        if concluded or text.before("final", number.first):
            found = [number]
        elif any(text.before("cue", i) for i in {start, number.first}) and number.first:
            before = tokens[number.first - 1].bare
            weak = before in {"makes", "say", "to"} and text.before("cue", start) < 2
            if not weak and before != "take":  # "you take 2 from 10" counts
                found.append(number)
    return found


def _ends(text: Text, number: Number) -> bool:
    return (
        text.closes(number.last)
        or text.bounded(number.last)
        or number.last + 3 > len(text.transcript.tokens)
    )


def results(text: Text, numbers: Sequence[Number]) -> list[Number]:
    """Return the number after the last "is" or "equals" of the reply."""
    found = [
        number
        for number in numbers
        if (
            any(text.before("number_cue", i) for i in {text.back(number.first), number.first})
            or _is_year(text, number)
        )
        and not in_sum(text, number, before_only=False)
    ]
    if len({n.value for n in found}) > 1 and (concluded := _concluded(text, found, numbers)):
        return concluded
    equations = [
        n
        for n in found
        if text.transcript.tokens[n.first - 1].bare in {"=", "equals", "equal", "makes"}
        or (n.first and text.before("number_cue", n.first) > 1)
    ]
    if len({n.value for n in found}) > 1 and equations:
        return equations[-1:]
    return found


def _concluded(text: Text, found: Sequence[Number], numbers: Sequence[Number]) -> list[Number]:
    """Return the last number of those found that has a "so" before it in its own clause."""
    for number in reversed(found):
        stop = max((n.last for n in numbers if n.last <= number.first), default=0)
        for index in range(number.first - 1, stop - 1, -1):
            if text.at("final", index) and text.bounded(index):
                return [number]
            if text.opens(index):
                break
    return []


def _is_year(text: Text, number: Number) -> bool:
    """Return whether a number is a year by the "in" before it."""
    before = text.transcript.tokens[number.first - 1].bare if number.first else ""
    return 1000 <= number.value <= 2100 and before in {"in", "en", "im", "em", "nel"}


def in_sum(text: Text, number: Number, *, before_only: bool = False) -> bool:
    """Return whether a number is a term of a calculation."""
    tokens = text.transcript.tokens
    after = tokens[number.last].bare if number.last < len(tokens) else ""
    before = tokens[number.first - 1].bare if number.first else ""
    inside = _OPERATORS - {"%", "percent", "of", "out", "="}
    follows = (
        after in inside
        and not text.closes(number.last)
        and after not in {"more", "less", "per", "a", "out"}
    )
    return (follows and not before_only) or before in (inside - {"more", "less", "per", "a"})


def _in_range(text: Text, number: Number, numbers: Sequence[Number]) -> bool:
    """Return whether a number is an end of a range or one of two alternatives."""
    tokens = text.transcript.tokens
    for other in numbers:
        if other.value == number.value:
            continue
        left, right = (other, number) if other.first < number.first else (number, other)
        between = [t.bare for t in tokens[left.last : right.first]]
        gap = text.transcript.gap(right.first).strip()
        if not between and gap in {"-", "--", ""} and left.last == right.first:
            return True
        unit = [t.bare for t in tokens[right.last : right.last + len(between) - 1]]
        if between[:-1] and between[:-1] == unit and text.at("or", right.first - 1):
            return True
        if len(between) == 1 and between[0] in _RANGE and not text.opens(right.first):
            return True
    return False
