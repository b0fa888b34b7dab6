"""Text of replies: a normaliser for word error rate, lengths, and a test for repetition loops.

The normaliser takes away what two honest writings of the same speech differ in (case,
punctuation, `100` against `one hundred`, `it's` against `it is`) and nothing else. English is
treated in full; other languages get case, punctuation and, where text2num knows them, number
words.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from dataclasses import dataclass

from voxmeter.scoring.types import Scored, Unscored

TEXT_VERSION = "text-1"
"""Changes whenever the same texts could give another word error rate, length or flag."""

_NUMBER_WORDS = frozenset({"en", "fr", "es", "de", "it", "pt", "nl"})
_CHARACTER_SCRIPTS = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"\d+(?:\.\d+)?[^\W\d_]*|[^\W_]+(?:'[^\W_]+)*")
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u2212": "-"})
_SYMBOLS = {"%": " percent ", "&": " and ", "\u00b0": " degrees ", "+": " plus ", "=": " equals "}
_CURRENCIES = {"$": "dollars", "\u00a3": "pounds", "\u20ac": "euros"}
_MONEY = re.compile(r"([$\u00a3\u20ac])\s?(\d+(?:\.\d+)?)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MINUS = re.compile(r"(?<![\w.])-(?=\d)")
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_SCALED = re.compile(r"\b(\d+(?:\.\d+)?) (hundred|thousand|million|billion)\b")
_ONE_SCALE = re.compile(r"\ban? (?=hundred\b|thousand\b|million\b|billion\b)")
_YEAR = re.compile(r"\b(1[1-9]|20) (\d\d)\b")
_CONTRACTIONS = [
    (re.compile(pattern), written)
    for pattern, written in [
        (r"\bwon't\b", "will not"),
        (r"\bcan't\b|\bcannot\b", "can not"),
        (r"\bshan't\b", "shall not"),
        (r"n't\b", " not"),
        (r"\b(it|that|there|here|what|who|where|how|he|she)'s\b", r"\1 is"),
        (r"\blet's\b", "let us"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
        (r"'d\b", " would"),
        (r"\bi'm\b", "i am"),
        (r"\bper cent\b", "percent"),
        (r"\bok\b", "okay"),
    ]
]


def normal_words(text: str, language: str = "en") -> list[str]:
    """Return the words of `text` in the form in which two transcripts are compared.

    Chinese and Japanese characters are one word each; numbers are digits; the rest is case-folded
    and without punctuation.

    Args:
        text: Any text; it is only read.
        language: Code such as `en` or `de-AT`; decides on contractions and number words.
    """
    code = language.lower().partition("-")[0]
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()
    text = _THOUSANDS.sub("", text) if code == "en" else text
    text = _MONEY.sub(lambda found: f"{found[2]} {_CURRENCIES[found[1]]}", text)
    if code == "en":
        text = _MINUS.sub("minus ", text)
        for symbol, word in _SYMBOLS.items():
            text = text.replace(symbol, word)
        for pattern, written in _CONTRACTIONS:
            text = pattern.sub(written, text)
    text = " ".join(_WORD.findall(_CHARACTER_SCRIPTS.sub(r" \g<0> ", text)))
    if code in _NUMBER_WORDS:
        text = _digits(text, code)
    return text.split()


def _digits(text: str, code: str) -> str:
    """Write number words as digits; `nineteen eighty four` is a year."""
    from text_to_num import alpha2digit

    if code == "en":
        text = _SCALED.sub(_scale, _ONE_SCALE.sub("one ", text))
    text = str(alpha2digit(text, code, 0))
    if code == "en":
        text = re.sub(r"(?<!\d )\bpoint (?=\d)", "0.", text)
    return _YEAR.sub(r"\1\2", text)


def _scale(found: re.Match[str]) -> str:
    from decimal import Decimal

    product = Decimal(found[1]) * _SCALES[found[2]]
    return str(int(product)) if product == int(product) else str(product)


def word_error_rate(reference: str, hypothesis: str, language: str = "en") -> Scored | Unscored:
    """Return word errors per word of the reference, both texts normalised.

    Can be over 1 (insertions). For Chinese and Japanese the unit is the character.

    Args:
        reference: What was to be said.
        hypothesis: What was heard; empty is a rate of 1, not missing.
        language: Language of both texts.

    Returns:
        Unscored when the reference has no word: nothing can be divided by it.
    """
    import jiwer

    wanted, heard = normal_words(reference, language), normal_words(hypothesis, language)
    if not wanted:
        return Unscored("empty reference")
    counts = jiwer.process_words(" ".join(wanted), " ".join(heard))
    detail = {
        "substitutions": int(counts.substitutions),
        "deletions": int(counts.deletions),
        "insertions": int(counts.insertions),
        "reference_words": len(wanted),
    }
    return Scored(float(counts.wer), detail)


@dataclass(frozen=True, slots=True)
class Length:
    """How long a reply is.

    Attributes:
        words: Words as people count them; None for text in a script that has no word breaks.
        characters: Letters and digits, without spaces and punctuation.
    """

    words: int | None
    characters: int


def length(text: str) -> Length:
    """Return how many words and characters `text` has."""
    found = _WORD.findall(unicodedata.normalize("NFKC", text).translate(_QUOTES))
    characters = sum(map(len, found))
    unbroken = len(_CHARACTER_SCRIPTS.findall(text))
    return Length(None if 2 * unbroken > characters else len(found), characters)


@dataclass(frozen=True, slots=True)
class Repetition:
    """The longest stretch of a text that says one phrase again and again.

    Attributes:
        looped: Whether this looks like a recognition or generation loop: a phrase at least three
            times in a row that makes up half of the text and twelve words.
        phrase: The phrase that is repeated, normalised; empty when there is none.
        times: How often it comes in a row, 1 when nothing is repeated.
        share: Share of the words inside that stretch.
        compression: Length over compressed length; Whisper itself calls over 2.4 suspicious.
    """

    looped: bool
    phrase: str
    times: int
    share: float
    compression: float


def repetition(text: str, *, longest_phrase: int = 30) -> Repetition:
    """Return the most repeated stretch of `text`; the text itself is never changed.

    Args:
        text: A transcript of any length.
        longest_phrase: Longest phrase looked for, in words; the work grows with it.
    """
    words = _WORD.findall(_CHARACTER_SCRIPTS.sub(r" \g<0> ", text.casefold()))
    raw = text.encode("utf-8", errors="replace")
    compression = len(raw) / len(zlib.compress(raw)) if raw else 0.0
    covered, period, start = _longest_run(words, longest_phrase)
    if not period:
        return Repetition(looped=False, phrase="", times=1, share=0.0, compression=compression)
    share, times = covered / len(words), covered // period
    return Repetition(
        looped=times >= 3 and covered >= 12 and share >= 0.5,
        phrase=" ".join(words[start : start + period]),
        times=times,
        share=share,
        compression=compression,
    )


def _longest_run(words: list[str], longest_phrase: int) -> tuple[int, int, int]:
    """Words covered, length of the phrase and start of the longest stretch of repeats."""
    best = (0, 0, 0)
    for period in range(1, min(longest_phrase, len(words) // 2) + 1):
        run = 0
        for index in range(period, len(words)):
            run = run + 1 if words[index] == words[index - period] else 0
            if run >= period and run + period > best[0]:
                best = (run + period, period, index - run - period + 1)
    return best
