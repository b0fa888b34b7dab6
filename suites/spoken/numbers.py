"""Numbers, years, dates, times and money in English words; the words themselves are num2words'."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from voxmeter.endpoints.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9])|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
"""A number as it is written: 1,234.5 or 12 or .5."""

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
SCALES = {"k": "thousand", "m": "million", "mn": "million", "b": "billion", "bn": "billion"}
_LONGEST = 15  # digits that are still one number and not a code
_SCALE_WORDS = ("thousand", "million", "billion", "trillion")
_MONTH = "|".join(name if len(name) < 4 else f"{name[:3]}(?:\\.|{name[3:]})?" for name in MONTHS)
# a four-digit number is a year where nothing that could be counted follows it
_AFTER_YEAR = (
    r"(?=\s*[,.;:?!)\]]|\s*$|\s+(?:[A-Z]|(?:a|an|and|as|at|because|but|by|did|for|from|had|has|he|in|"
    r"is|it|of|on|or|she|so|that|the|there|they|this|through|to|until|was|were|what|when|where|"
    r"which|while|who|why|with)\b))"
)
_YEAR = r"(1[0-9]{3}|20[0-9]{2})"


@cache
def cardinal(digits: str) -> str:
    """Return a whole number in words; codes (a leading zero, very long) digit by digit."""
    if len(digits) > 1 and digits.startswith("0"):
        return " ".join(_say(int(one)) for one in digits)
    if len(digits) > _LONGEST:
        return " ".join(_say(int(one)) for one in digits)
    return _say(int(digits))


@cache
def ordinal(number: int) -> str:
    """Return a place in words: third."""
    return _plain(_num2words()(number, to="ordinal", lang="en"))


@cache
def year(number: int) -> str:
    """Return a year in words: nineteen oh five, two thousand five, twenty twenty-four."""
    if number % 1000 == 0 or 2000 <= number < 2010 or number < 1000:
        return _say(number)
    return _plain(_num2words()(number, to="year", lang="en")).replace("oh-", "oh ")


def number(written: str) -> str:
    """Return a written number in words: 1,234.5 is one thousand ... point five."""
    if re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?", written):
        written = written.replace(",", "")
    whole, *rest = written.split(".")
    parts = [cardinal(whole) if whole else "zero"]
    if len(rest) == 1:
        parts.append(" ".join(_say(int(one)) for one in rest[0]))
    else:  # a version: 3.11.2
        parts.extend(cardinal(part) for part in rest if part)
    return " point ".join(parts)


def fraction(top: int, bottom: int) -> str:
    """Return a fraction in words: three quarters, one half, five over twelve hundred."""
    names = {1: "over one", 2: "half", 4: "quarter"}
    if bottom > 100 or bottom < 2 or top == 0 or (bottom > 20 and top > bottom):
        return f"{_say(top)} over {_say(bottom)}"
    name = names.get(bottom) or ordinal(bottom)
    if top != 1:
        name = "halves" if bottom == 2 else f"{name}s"
    return f"{_say(top)} {name}"


def counted(written: str, one: str, many: str) -> str:
    """Return a number with what is counted, in words."""
    return f"{number(written)} {one if written == '1' else many}"


def dates(text: str) -> str:
    """Speak dates: 2024-05-06, May 6, 2024, 6 May 2024, 12/25/2020 (month first, if it can be)."""

    def iso(found: re.Match[str]) -> str:
        return _date(int(found[3]), int(found[2]), found[1]) or found[0]

    def slashed(found: re.Match[str]) -> str:
        first, second = int(found[1]), int(found[2])
        day, month = (second, first) if first <= 12 else (first, second)
        return _date(day, month, found[3]) or found[0]

    def month_first(found: re.Match[str]) -> str:
        return _date(int(found[2]), _month(found[1]), found[3]) or found[0]

    def day_first(found: re.Match[str]) -> str:
        return _date(int(found[1]), _month(found[2]), found[3], turned=True) or found[0]

    text = re.sub(r"(?<![\w-])([12][0-9]{3})-([01][0-9])-([0-3][0-9])(?![\w-])", iso, text)
    text = re.sub(r"(?<![\w/])([0-9]{1,2})/([0-9]{1,2})/([12][0-9]{3})(?![\w/])", slashed, text)
    end = r"(?:,?\s+(?:of\s+)?([12][0-9]{3})\b(?![.,]?[0-9]))?"
    text = re.sub(
        rf"\b({_MONTH})\s+([0-3]?[0-9])(?:st|nd|rd|th)?\b(?![.,:/]?[0-9]|\s?%){end}",
        month_first,
        text,
    )
    day = r"(?<![\w.,:/$-])([0-3]?[0-9])(?:st|nd|rd|th)?\s+(?:of\s+)?"
    text = re.sub(rf"{day}({_MONTH})\b{end}", day_first, text)
    return re.sub(rf"\b({_MONTH}),?\s+{_YEAR}\b", _month_year, text)


def years(text: str) -> str:
    """Speak years, decades and spans of years, where the words around them say that they are."""
    text = re.sub(r"(?<![\w'])'?([0-9]{2})(?:'s|s)\b", _short_decade, text)
    text = re.sub(r"\b(1[0-9]|20)([0-9])0'?s\b", _decade, text)
    text = re.sub(rf"(?<![\w.,$]){_YEAR}\s?-\s?{_YEAR}(?![\w%]|[.,][0-9])", _span, text)
    text = re.sub(rf"(?<![\w.,$]){_YEAR}-([0-9]{{2}})(?![\w%-]|[.,][0-9])", _short_span, text)
    span = rf"\b([Ff]rom|[Bb]etween)\s+{_YEAR}\s+(to|and|until|through)\s+{_YEAR}{_AFTER_YEAR}"
    text = re.sub(span, _worded_span, text)
    before = (
        r"\b(in|since|until|till|during|circa|around|about|before|after|by|from|year|early|late|mid|"
        r"the|[A-Z]\w+ Act)(\s+)"
    )
    cased = before.replace("(in", "([Ii]n").replace("since", "[Ss]ince").replace("|by", "|[Bb]y")
    text = re.sub(rf"{cased}{_YEAR}{_AFTER_YEAR}", _known_year, text)
    text = re.sub(rf"\b([A-Z]\w+ of)(\s+){_YEAR}(?![\w,.]*[0-9])", _known_year, text)
    text = re.sub(rf"\(\s*{_YEAR}\s*\)", lambda found: f"({year(int(found[1]))})", text)
    return re.sub(r"\b([0-9]{1,4})\s*(BCE|BC|CE|AD)\b", _era, text)


def times(text: str) -> str:
    """Speak times of day and ratios: 3:30 p.m., 14:05, 3:1."""
    ratio = re.search(r"\b(?:ratio|odds|proportion)", text)

    def spoken(found: re.Match[str]) -> str:
        hour, minute = int(found[1]), found[2]
        half = " ".join((found[3] or "").replace(".", "").lower())
        clock = len(minute) == 2 and int(minute) < 60 and hour < 25 and not ratio
        if not half and not clock:
            return f"{cardinal(found[1])} to {cardinal(minute)}"
        words = [_say(hour)]
        if int(minute):
            words.append(f"oh {_say(int(minute))}" if int(minute) < 10 else _say(int(minute)))
        elif not half:
            words.append("o'clock" if hour < 13 else "hundred hours")
        return " ".join([*words, half] if half else words)

    half_day = r"(?:\s?(a\.m\.|p\.m\.|am|pm|AM|PM|A\.M\.|P\.M\.)(?!\w))?"
    text = re.sub(rf"(?<![\w:.])([0-9]{{1,2}}):([0-9]{{1,3}})(?![\w:]){half_day}", spoken, text)
    bare = r"(?<![\w:.])(1?[0-9])\s?(a\.m\.|p\.m\.|am|pm|AM|PM|A\.M\.|P\.M\.)(?!\w)"

    def whole_hour(found: re.Match[str]) -> str:
        return f"{_say(int(found[1]))} {' '.join(found[2].replace('.', '').lower())}"

    return re.sub(bare, whole_hour, text)


_MONEY = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "US$": ("U S dollar", "U S dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "", ""),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "USD": ("U S dollar", "U S dollars", "cent", "cents"),
    "EUR": ("euro", "euros", "cent", "cents"),
    "GBP": ("British pound", "British pounds", "penny", "pence"),
}


def money(text: str) -> str:
    """Speak amounts: $5.50, $3 million, 20 EUR, 5¢."""
    scale = r"(?:\s?(thousand|million|billion|trillion)\b|(k|K|M|mn|bn|B)\b)?"

    def before(found: re.Match[str]) -> str:
        sign = "minus " if found[1] else ""
        return sign + _amount(found[2], found[3], found[4] or SCALES.get((found[5] or "").lower()))

    def after(found: re.Match[str]) -> str:
        return _amount(found[2], found[1], None)

    text = re.sub(rf"([$€£])({NUMBER})\s?-\s?[$€£]?({NUMBER})(?![\w%])", r"\1\2 to \1\3", text)
    text = re.sub(rf"([$€£¢]{NUMBER}|{NUMBER}\s?[€£¢])/(?=[a-z])", r"\1 per ", text)
    text = re.sub(rf"(?<![\w])([-]?)(US\$|[$€£¥₹])\s?({NUMBER}){scale}", before, text)
    text = re.sub(rf"(?<![\w.,$])({NUMBER})\s?(USD|EUR|GBP|€|£|¥|₹)(?!\w)", after, text)
    return re.sub(
        rf"(?<![\w.,])({NUMBER})\s?¢", lambda found: counted(found[1], "cent", "cents"), text
    )


def ordinals(text: str) -> str:
    """Speak places: 21st, 3rd."""
    return re.sub(
        r"(?<![\w.,])([0-9]{1,9})(?:st|nd|rd|th)\b", lambda found: ordinal(int(found[1])), text
    )


def percents(text: str) -> str:
    """Speak shares: 5%, 5-10%."""
    text = re.sub(rf"({NUMBER})\s?-\s?({NUMBER})\s?%", r"\1 to \2 percent", text)
    text = re.sub(r"(?<=[0-9a-zA-Z)])\s?%-", " percent ", text)
    return re.sub(r"(?<=[0-9a-zA-Z)])\s?%", " percent", text).replace("‰", " per mille")


def numbers(text: str) -> str:
    """Speak what numbers are left; digits beside letters are spoken apart from them."""
    text = re.sub(r"(?<![\w.-])\+?[0-9]+(?:-[0-9]+){2,}(?![\w-])", _called, text)
    text = re.sub(r"(?<=[A-Za-z])-(?=[0-9])", " ", text)  # COVID-19 is no COVID minus 19
    text = re.sub(rf"(?<![\w.])({NUMBER})\s?-\s?({NUMBER})(?![\w.]?[0-9])", _ranged, text)
    text = re.sub(r"(?<![\w)])-\s?(?=\.?[0-9])", "minus ", text)
    text = re.sub(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])", " ", text)
    text = re.sub(r"(?<=[0-9a-zA-Z]),(?=[0-9a-zA-Z])(?![0-9]{3}(?![0-9]))", ", ", text)
    many = r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9])|[0-9]+(?:\.[0-9]+)*|\.[0-9]+"
    return re.sub(many, lambda found: number(found[0]), text)


def _called(found: re.Match[str]) -> str:
    """Return a number to be dialled digit by digit."""
    groups = re.findall(r"[0-9]+", found[0])
    return ", ".join(" ".join(cardinal(digit) for digit in group) for group in groups)


def _ranged(found: re.Match[str]) -> str:
    low, high = (float(one.replace(",", "")) for one in (found[1], found[2]))
    return f"{found[1]} {'to' if low < high else 'minus'} {found[2]}"


def _date(day: int, month: int, written: str | None, *, turned: bool = False) -> str | None:
    if not (1 <= day <= 31 and 1 <= month <= 12):
        return None
    name, place = MONTHS[month - 1], ordinal(day)
    words = f"the {place} of {name}" if turned else f"{name} {place}"
    return words if written is None else f"{words}, {year(int(written))}"


def _month(written: str) -> int:
    return next(
        number for number, name in enumerate(MONTHS, start=1) if name[:3] == written[:3].title()
    )


def _month_year(found: re.Match[str]) -> str:
    return f"{MONTHS[_month(found[1]) - 1]} {year(int(found[2]))}"


def _decade(found: re.Match[str]) -> str:
    tens = int(found[2]) * 10
    if tens == 0:
        return "two thousands" if found[1] == "20" else f"{_say(int(found[1]))} hundreds"
    return f"{_say(int(found[1]))} {_many_tens(tens)}"


def _short_decade(found: re.Match[str]) -> str:
    tens = int(found[1])
    return _many_tens(tens) if tens % 10 == 0 and tens >= 20 else f"{_say(tens)}s"


def _many_tens(tens: int) -> str:
    word = _say(tens)
    return f"{word}s" if word.endswith("n") else f"{word[:-1]}ies"


def _span(found: re.Match[str]) -> str:
    first, last = int(found[1]), int(found[2])
    return found[0] if first >= last else f"{year(first)} to {year(last)}"


def _short_span(found: re.Match[str]) -> str:
    first, last = int(found[1]), int(found[2])
    if first % 100 >= last or last < 10:
        return found[0]
    return f"{year(first)} to {_say(last)}"


def _worded_span(found: re.Match[str]) -> str:
    return f"{found[1]} {year(int(found[2]))} {found[3]} {year(int(found[4]))}"


def _known_year(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{year(int(found[3]))}"


def _era(found: re.Match[str]) -> str:
    return f"{year(int(found[1]))} {' '.join(found[2])}"


def _amount(sign: str, written: str, scale: str | None) -> str:
    one, many, cent, cents = _MONEY[sign]
    if scale:
        return f"{number(written)} {scale} {many}"
    whole, _, rest = written.replace(",", "").partition(".")
    if len(rest) != 2 or not cents:
        return counted(written.replace(",", ""), one, many)
    small = f"{_say(int(rest))} {cent if rest == '01' else cents}"
    if not int(rest):
        return counted(whole or "0", one, many)
    if not whole.strip("0"):
        return small
    return f"{counted(whole, one, many)} and {small}"


def _say(number: int) -> str:
    return _plain(_num2words()(number, lang="en"))


def _plain(words: str) -> str:
    return words.replace(",", "").replace(" and ", " ")


@cache
def _num2words() -> Callable[..., str]:
    try:
        from num2words import num2words
    except ImportError:
        raise MissingExtraError("numbers in words", "num2words", "build") from None
    return num2words  # type: ignore[no-any-return]


def other(language: str) -> Callable[[str], str | None] | None:
    """Return what speaks a written number of another language; None where num2words has it not.

    A point or a comma in a number stands before decimals; a number that num2words cannot say is
    None.
    """
    say = _num2words()
    from num2words import CONVERTER_CLASSES

    known = next(
        (one for one in (language.replace("-", "_"), language[:2]) if one in CONVERTER_CLASSES),
        None,
    )
    if known is None:
        return None

    def spoken(written: str) -> str | None:
        try:
            value = written.replace(",", ".")
            return say(float(value) if "." in value else int(value), lang=known)
        except (NotImplementedError, OverflowError, ValueError, TypeError, IndexError, KeyError):
            return None

    return spoken
