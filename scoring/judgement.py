"""Read the verdict out of a judge's reply; one that cannot be read is a reason, never a number."""

# ruff: noqa: RUF001 - characters of other scripts are the matter here

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from voxmeter.scoring.answers.polarity import read_polarity

Protocol = Literal["single", "pair", "binary", "json"]
_LONGEST = 40_000
_NUMBER = r"(?<![\w.,-])(?:-\s?)?(?:\d+(?:[.,]\d+)?|\.\d+)(?![A-Za-z0-9_]|[.,]\d)"
_SCORE = (
    r"(?:score|rating|rate|grade|mark|verdict|judge?ment|评分|得分|分数|打分|bewertung|note|punkte)"
)
_LABEL = re.compile(
    rf"(?P<overall>(?:overall|final|total|总体|综合|最终)[ _]?)?{_SCORE}s?\s*"
    r"(?:\([^)\n]{0,30}\)\s*)?(?:[:：=]|\bis\b|\bwould be\b|\bof\b|是|为|->|→|[-–—]\s)\s*"
    rf"[^\s\w.-]{{0,3}}(?P<value>{_NUMBER}|[A-Za-z]+)(?=(?P<rest>[^\n]{{0,24}}))",
    re.IGNORECASE,
)
_GOES_ON = r"(?:out|of|von|sur|on|points?|because|for|since|as|to|and|or|overall|here|in|with|but)"
_GIVEN = re.compile(
    rf"\b(?:give|gives|giving|deserves?|rate|rated|assign|award|is\s+an?|get|gets|earns?|worth)\s+"
    rf"(?:(?:it|this|that|the|a|an|of|response|reply|answer|score|rating|as|at|both)\s+){{0,4}}"
    rf"(?P<value>{_NUMBER})(?=(?P<rest>[^\n]{{0,24}}))(?!\s+(?!{_GOES_ON}\b)[^\W\d_])",
    re.IGNORECASE,
)
_DENOMINATOR = re.compile(r"^\s*(?:/|out of|of|von|sur|de|／)\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_RANGE = re.compile(
    r"^\s*(?:(?:-|–|—|~|～|to|and|or|&|\.\.+|至|到)\s*\d|[,;]\s*\d+\s*(?:\.?\s*$)|"
    r"(?:-|–|to|or)\s*(?:zero|one|two|three|four|five|six|seven|eight|nine|ten)\b)",
    re.IGNORECASE,
)
_CLAIM = re.compile(
    r"\b(?:wrote|writes|claim(?:s|ed)?|says|said|states|stated|asks|asked|planted|tells|demands?|"
    r"instructs?|itself|its own)\b[^.!?\n]*$|"
    r"\b(?:contain(?:s|ed|ing)?|includ(?:es?|ed|ing)|end(?:s|ed|ing)? (?:with|in)|"
    r"insert(?:s|ed)?|inject(?:s|ed)?|append(?:s|ed)?)\b[^.!?\n]{0,20}$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"\n]{0,2000}\"|“[^”\n]{0,2000}”|「[^」\n]{0,2000}」|«[^»\n]{0,2000}»")
_WORDS = {
    word: number
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
}
_NAMED = re.compile(
    r"\b(?:assistant|model|response|reply|answer|candidate|system|speaker)\s*#?\s*"
    r"(?P<name>1|2|a|b|one|two)\b['’s]*\s*(?:score|rating)?\s*"
    r"(?:[:：=]|gets|got|scores|scored|receives|received|earns|deserves|is|->|-)\s*(?:a\s+)?"
    rf"(?P<value>{_NUMBER})",
    re.IGNORECASE,
)
_HALF_VERDICT = re.compile(
    r"\b(?:partial(?:ly)?|partly|almost|nearly|mostly|somewhat|half|not entirely|not fully|"
    r"not completely|unclear|unsure|cannot|can't)\b",
    re.IGNORECASE,
)
_TWICE_NOT = re.compile(
    r"(?:\bnot|n['’]t|\bnever)\s+(?:\w+\s+)?(?:incorrect|wrong|false|inaccurate)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge's reply says.

    Attributes:
        value: A number, a pair of numbers, "yes" or "no"; None where there is no verdict.
        reason: Why there is none; None exactly when there is one.
    """

    value: float | tuple[float, float] | str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float | None
    high: float | None
    integer: bool

    def read(self, number: float) -> Judgement:
        """Return the number if it lies on the scale; it is never clamped or rounded."""
        if not math.isfinite(number):
            return Judgement(None, "not a finite number")
        below = self.low is not None and number < self.low
        if below or (self.high is not None and number > self.high):
            ends = ["..." if end is None else f"{end:g}" for end in (self.low, self.high)]
            return Judgement(None, f"{number:g} is outside {ends[0]} to {ends[1]}")
        if number == int(number):
            return Judgement(int(number))
        return Judgement(None, f"{number:g} is not whole") if self.integer else Judgement(number)


def read_judgement(
    raw: str | None,
    protocol: Protocol,
    *,
    low: float | None = None,
    high: float | None = None,
    integer: bool = False,
) -> Judgement:
    """Return the verdict in a judge's reply, or why there is none.

    Text in quotation marks is the candidate's, not the judge's, and is left out.

    Args:
        raw: The reply; None and "" are "no reply".
        protocol: `single`: one number on a scale; `pair`: one for each of two replies; `binary`:
            yes or no; `json`: an object with the key `score`.
        low: Least number of the scale, itself included; None for no limit.
        high: Greatest number of the scale, itself included.
        integer: Whether only whole numbers are on the scale.

    Raises:
        ValueError: If the protocol is unknown.
    """
    if protocol not in {"single", "pair", "binary", "json"}:
        raise ValueError(f"no judge protocol: {protocol!r}")
    if raw is None or not raw.strip():
        return Judgement(None, "no reply")
    scale = _Scale(low, high, integer)
    text = _without_thoughts(raw[:_LONGEST])
    if text is None:
        return Judgement(None, "cut off while reasoning")
    if protocol == "json":
        return _read_json(text, scale)
    text = _QUOTED.sub('"". ', unicodedata.normalize("NFKC", text)).translate(
        str.maketrans("", "", "*`#_\u200b")
    )
    if protocol == "binary":
        return _read_binary(text)
    return _read_pair(text, scale) if protocol == "pair" else _read_single(text, scale)


def _without_thoughts(text: str) -> str | None:
    """Return text without its reasoning block; None if the block never ends."""
    head, opened, rest = text.partition("<think>")
    if not opened:
        return text.rpartition("</think>")[2]
    _, closed, tail = rest.rpartition("</think>")
    return head + tail if closed else None


def _read_single(text: str, scale: _Scale) -> Judgement:
    """Return the one number on the scale that a reply gives.

    Two that differ are none: one of them may be the candidate's, and no place in a reply says
    which.
    """
    found = [*_bracketed(text, scale), *_labelled(text, scale)]
    if not found and (whole := re.fullmatch(rf"\s*\(?({_NUMBER})(.{{0,24}}?)\s*", text, re.DOTALL)):
        found = [_number(whole[1], whole[2], scale, whole=True)]
    if not found:
        found = [_number(m["value"], m["rest"], scale) for m in _GIVEN.finditer(text)]
    if not found:
        return Judgement(None, "no score")
    return found[0] if len(set(found)) == 1 else Judgement(None, "several scores")


def _bracketed(text: str, scale: _Scale) -> list[Judgement]:
    """Return the numbers in double brackets."""
    found = re.findall(rf"\[\[\s*(?:{_SCORE}\s*:\s*)?({_NUMBER})\s*([^\]]{{0,12}})\]\]", text)
    return [_number(value, rest, scale) for value, rest in found]


def _labelled(text: str, scale: _Scale) -> list[Judgement]:
    """Return the numbers behind "Score:", only overall ones if there are any; claims left out."""
    matches = [
        m
        for m in _LABEL.finditer(text)
        if not _CLAIM.search(text[max(0, m.start() - 120) : m.start()])
    ]
    matches = [m for m in matches if m["overall"]] or matches
    found = []
    for match in matches:
        value = match["value"]
        if value[0].isalpha() and value.casefold() not in _WORDS:
            if value.casefold() in {"nan", "inf", "infinity"}:
                found.append(Judgement(None, "not a finite number"))
            continue
        found.append(_number(value, match["rest"], scale))
    return found


def _number(value: str, rest: str, scale: _Scale, *, whole: bool = False) -> Judgement:
    """Return a number read with what stands behind it.

    Args:
        value: The number as written.
        rest: The next characters: a denominator, a percent sign, the other end of a range.
        scale: Where it must lie.
        whole: Whether the reply has nothing else; then nothing else may follow.
    """
    if _RANGE.match(rest):
        return Judgement(None, "a range or several scores")
    if re.fullmatch(r"\d+,\d{3}", value):
        return Judgement(None, f"{value} may be a thousand or a fraction")
    word = _WORDS.get(value.casefold())
    number = float(word) if word is not None else float(value.replace(" ", "").replace(",", "."))
    denominator = _DENOMINATOR.match(rest)
    if denominator and float(denominator[1]) != scale.high:
        return Judgement(None, f"out of {denominator[1]}, on another scale")
    if rest.lstrip().startswith("%") and scale.high != 100:
        return Judgement(None, "a percentage, on another scale")
    if whole and re.match(r"\s*[,;/]?\s*\d", rest) and not denominator:
        return Judgement(None, "several scores")
    return scale.read(number)


def _objects(text: str) -> Iterator[list[tuple[str, object]]]:
    """Return the JSON objects in a text, outermost only, each as its pairs."""
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    position, tries = 0, 0
    while (start := text.find("{", position)) >= 0 and tries < 500:
        tries += 1
        try:
            value, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        yield value.pairs


class _Pairs:
    """A JSON object as its pairs, so that a key given twice is seen."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        self.pairs = pairs


def _read_json(text: str, scale: _Scale) -> Judgement:
    """Return the `score` of the only object, or of several that agree."""
    if text.lstrip().startswith("["):
        return Judgement(None, "not an object")
    values = [value for pairs in _objects(text) for key, value in pairs if key == "score"]
    if not values:
        return Judgement(None, "no object with a score")
    read = [_json_number(value, scale) for value in values]
    if len({judgement.value for judgement in read}) > 1:
        return Judgement(None, "scores that disagree")
    return read[0]


def _json_number(value: object, scale: _Scale) -> Judgement:
    """Return a JSON value as a number on the scale; a numeral in quotes counts."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Judgement(None, f"score is {type(value).__name__}, not a number")
    try:
        return scale.read(float(value))
    except OverflowError:
        return Judgement(None, "not a finite number")


def _read_pair(text: str, scale: _Scale) -> Judgement:
    """Return the numbers for the first and the second reply."""
    named: dict[int, set[str]] = {1: set(), 2: set()}
    for match in _NAMED.finditer(text):
        named[1 if match["name"].casefold() in {"1", "a", "one"} else 2].add(match["value"])
    if named[1] or named[2]:
        if len(named[1]) != 1 or len(named[2]) != 1:
            return Judgement(None, "not one score for each reply")
        return _both(named[1].pop(), named[2].pop(), scale)
    line = next((line for line in text.splitlines() if line.strip()), "")
    line = re.sub(rf"^\s*{_SCORE}s?\s*[:：]", "", line, flags=re.IGNORECASE)
    found = re.fullmatch(
        rf"\s*[\[(]*\s*({_NUMBER})\]*\s*(?:,|;|\||and|vs\.?)?\s*\[*({_NUMBER})\s*[\])]*\.?\s*", line
    )
    if not found:
        return Judgement(None, "not two scores on the first line")
    return _both(found[1], found[2], scale)


def _both(first: str, second: str, scale: _Scale) -> Judgement:
    read = [
        scale.read(float(value.replace(" ", "").replace(",", "."))) for value in (first, second)
    ]
    for judgement in read:
        if judgement.value is None:
            return judgement
    one, two = read[0].value, read[1].value
    if isinstance(one, int | float) and isinstance(two, int | float):
        return Judgement((one, two))
    return Judgement(None, "not two numbers")


def _read_binary(text: str) -> Judgement:
    """Return "yes" or "no" where the reply is a plain verdict."""
    bare = re.sub(r"[\[\]{}]", " ", text)
    first = re.split(r"[.!\n]", bare.strip(), maxsplit=1)[0]
    if _HALF_VERDICT.search(first) or _TWICE_NOT.search(first):
        return Judgement(None, "no plain verdict")
    answer = read_polarity(bare, "yes-no", "en")
    if answer.value is None or answer.rule in {"inside", "statement"}:
        return Judgement(None, answer.reason or "no plain verdict")
    return Judgement(str(answer.value))
