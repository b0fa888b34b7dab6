"""Read whether a reply says yes or no, true or false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from voxmeter.scoring.answers.languages import language as load
from voxmeter.scoring.answers.mentions import Text
from voxmeter.scoring.answers.result import Answer, no_answer
from voxmeter.scoring.answers.tokens import tokenise

_CLAUSE = 12  # tokens
_DO = frozenset({"do", "does", "did"})  # "You do return" answers; "you return" only tells
_NAMES = {"yes-no": ("yes", "no"), "true-false": ("true", "false")}
Standing = Literal["stated", "leading", "alone", "inside"]
_ORDER: tuple[Standing, ...] = ("stated", "leading", "alone", "inside")


@dataclass(frozen=True, slots=True)
class Pole:
    """A word or phrase that says yes or no.

    Attributes:
        first: First token.
        last: One past the last token.
        value: What it says, denials before it taken into account.
        standing: How plainly it is the answer.
    """

    first: int
    last: int
    value: str
    standing: Standing


def read_polarity(transcript: str, kind: str, code: str) -> Answer:
    """Return what a reply answers to a question of kind "yes-no" or "true-false"."""
    text = Text(tokenise(transcript), load(code))
    if not text.transcript.tokens:
        return no_answer("empty", "nothing was said")
    positive, negative = _NAMES[kind]
    found, open_ended = _poles(text, positive, negative)
    found = _without_hedged(text, _without_questions(text, found))
    found = _without_withdrawn(text, found, kind)
    for standing in _ORDER:
        chosen = [pole for pole in found if pole.standing == standing]
        if standing == "leading":
            chosen = _unless_taken_back(text, chosen, found)
        if open_ended and standing != "stated":
            continue
        if chosen:
            return _single(text, standing, chosen)
    if found and not open_ended:
        return no_answer("several", "both are said")
    if open_ended or text.at("refusal", 0):
        return no_answer("undecided", "the reply leaves it open")
    return _by_statement(text, positive, negative) if kind == "yes-no" else _nothing()


def _nothing() -> Answer:
    return no_answer("nothing-said", "neither is said")


def _poles(text: Text, positive: str, negative: str) -> tuple[list[Pole], bool]:
    """Return the poles in order, and whether a phrase leaves the answer open."""
    found: list[Pole] = []
    open_ended = False
    index = 0
    while index < len(text.transcript.tokens):
        lengths = {
            name: text.at(name, index)
            for name in ("neutral", "either", "phantom", negative, positive)
        }
        longest = max(lengths.values())
        if not longest:
            index += 1
            continue
        name = next(name for name, length in lengths.items() if length == longest)
        if name == "either":
            known = text.transcript.tokens[index + longest - 1].bare == "know"
            open_ended = open_ended or not known or text.bounded(index + longest)
        elif name == positive and _intensifies(text, index, longest):
            pass
        elif name in {positive, negative} and not _determiner(text, index, longest):
            found.append(_pole(text, index, index + longest, name, (positive, negative)))
        index += longest
    return found, open_ended


def _intensifies(text: Text, index: int, length: int) -> bool:
    """Return whether an adverb such as "definitely" only strengthens a pole behind it."""
    after = index + length
    if text.at("intensifier", index) < length or text.bounded(after):
        return False
    return any(text.at(name, after) for name in ("yes", "no", "true", "false", "statement_not"))


def _determiner(text: Text, index: int, length: int) -> bool:
    """Return whether a "no" belongs to the noun behind it ("no cats")."""
    tokens = text.transcript.tokens
    word = tokens[index].bare
    if length > 1 or word not in {
        "no",
        "right",
        "clear",
        "correct",
        "never",
        "sure",
        "true",
        "so",
        "es",
        "is",
        "é",
        "wrong",
        "false",
    }:
        return False
    if index + 1 >= len(tokens) or text.bounded(index + 1):
        return False
    follows = {
        "it",
        "i",
        "that",
        "this",
        "they",
        "he",
        "she",
        "we",
        "you",
        "there",
        "because",
        "not",
        "the",
        "these",
        "those",
        "indeed",
        "and",
        "but",
        "of",
        "as",
        "since",
        "sir",
        "is",
        "a",
    }
    if word == "no" and text.language.code in {"es", "it"}:
        return False
    if word == "no" and index and tokens[index - 1].bare in {"a", "definite", "clear"}:
        return False
    if word == "no" and index == 0 and tokens[1].bare in follows | {"my", "your", "humans", "we"}:
        return False
    return word in {"no", "right", "never", "sure"} and tokens[index + 1].bare not in follows


def _pole(text: Text, first: int, last: int, name: str, names: tuple[str, str]) -> Pole:
    """Return a pole with its denials resolved and how plainly it stands."""
    start = first
    stated = False
    tokens = text.transcript.tokens
    for _ in range(3):
        length = text.before("claim", start)
        if not length or (
            text.bounded(start)
            and tokens[start - 1].bare
            not in {
                "answer",
                "antwort",
                "respuesta",
                "réponse",
                "reponse",
                "resposta",
                "risposta",
                "ответ",
            }
            and ":" not in text.transcript.gap(start)
        ):
            break
        stated, start = True, start - length
    near = text.before("denial", first) if not text.bounded(first) else 0
    far = text.before("denial", start) if stated and not text.bounded(start) else 0
    denied = (near > 0) + (far > 0 and first - near >= start)  # one denial counts once
    value = name if denied % 2 == 0 else names[1 - names.index(name)]
    back = text.back(start)
    standing: Standing = "inside"
    if stated and _substantive(text, start, first):
        standing = "stated"
    elif back == 0 or _only_sighs(text, back):
        standing = "leading"
    elif (text.opens(back) and text.closes(text.forward(last))) or text.opens(back) or stated:
        standing = "alone"
    return Pole(first, last, value, standing)


def _substantive(text: Text, start: int, first: int) -> bool:
    """Return whether the announcement is of the answer itself, not "it is" or "I think"."""
    words = {token.bare for token in text.transcript.tokens[start:first]}
    return bool(words & {
        "answer", "verdict", "antwort", "reponse", "respuesta", "risposta", "resposta", "antwoord",
        "ответ", "cevap", "odpowiedz", "statement", "claim", "sentence", "aussage", "afirmacion",
        "affermazione", "afirmacao", "stelling", "bewering", "conclusion", "say", "答", "答案",
        "therefore", "so", "also", "overall", "balance", "whole", "утверждение", "proposition",
        "<answer>", "\\boxed",
    })  # fmt: skip


def _only_sighs(text: Text, index: int) -> bool:
    """Return whether nothing but fillers and sentences without content stands before."""
    tokens = text.transcript.tokens
    place = 0
    while place < index:
        length = text.at("filler", place)
        if not length and tokens[place].bare in {
            "oh",
            "ah",
            "hmm",
            "uh",
            "um",
            "well",
            "ach",
            "na",
            "eh",
        }:
            length = 1
        if not length:
            return False
        place += length
    return True


def _without_questions(text: Text, found: Sequence[Pole]) -> list[Pole]:
    """Return poles without those in questions, if others are left."""
    asked = text.transcript.questions
    tokens = text.transcript.tokens
    left = [pole for pole in found if tokens[pole.first].sentence not in asked]
    if left or not found:
        return left
    sentence = [t for t in tokens if t.sentence == tokens[found[0].first].sentence]
    return list(found) if len(sentence) <= found[0].last - found[0].first + 1 else []


def _without_hedged(text: Text, found: Sequence[Pole]) -> list[Pole]:
    """Return poles without those that others might say ("some think so"), if others are left."""
    left = [pole for pole in found if not _hedged(text, pole)]
    return left or list(found)


def _hedged(text: Text, pole: Pole) -> bool:
    for index in range(pole.first - 1, max(-1, pole.first - _CLAUSE), -1):
        if text.at("contrast", index):
            return False
        if text.at("hedge", index) > 1 or text.at("concession", index):
            return True
        if text.opens(index):
            break
    return False


def _without_withdrawn(text: Text, found: Sequence[Pole], kind: str) -> list[Pole]:
    """Return poles from the last correction on; a "no" that corrects is no answer."""
    kept = list(found)
    tokens = text.transcript.tokens
    for index in range(len(tokens) - 1, 0, -1):
        length = text.at("correction", index)
        no = kind == "true-false" and tokens[index].bare in {"no", "nope"}
        length = length or int(no and text.bounded(index + 1))
        if not length or not text.bounded(index):
            continue
        before = [pole for pole in kept if pole.last <= index]
        after = [pole for pole in kept if pole.first >= index + length]
        if before and after:
            return [
                Pole(pole.first, pole.last, pole.value, "stated") if pole is after[0] else pole
                for pole in after
            ]
    return kept


def _unless_taken_back(text: Text, leading: list[Pole], found: Sequence[Pole]) -> list[Pole]:
    """Return the leading pole; with others beside it if a bare contrary follows at once."""
    if not leading:
        return []
    chosen = [leading[0]]
    for pole in found:
        bare = text.closes(pole.last) or text.bounded(pole.last)
        start = text.back(pole.first)
        start -= text.before("contrast", start) or text.before("and", start)
        lone = text.opens(start) or text.bounded(start)
        if text.at("intensifier", pole.first) >= pole.last - pole.first:
            continue  # "No, of course."
        if (
            pole is not leading[0]
            and pole.value != leading[0].value
            and bare
            and lone
            and pole.last - pole.first == 1
        ):
            chosen.append(pole)
    return chosen


def _single(text: Text, standing: str, chosen: Sequence[Pole]) -> Answer:
    """Return what all chosen poles say, or none."""
    values = {pole.value for pole in chosen}
    if standing == "stated" and len(values) > 1:
        last = chosen[-1]
        values = {last.value} if text.before("final", last.first) else values
    if len(values) > 1:
        return no_answer("several", "both are said")
    last = chosen[-1] if standing == "stated" else chosen[0]
    return Answer(last.value, standing, text.transcript.span(last.first, last.last))


def _i_do_not(text: Text, first: int) -> int:
    """Return the length of "I don't." and the like, where nothing follows that is denied."""
    words = [token.bare for token in text.transcript.tokens[first : first + 3]]
    whole = words[:1] == ["i"] and words[2:] == ["not"] and text.closes(first + 3)
    return 3 if whole and text.at("statement", first) == 2 else 0


def _by_statement(text: Text, positive: str, negative: str) -> Answer:
    """Return the answer of a short statement such as "It does." or "They can't."."""
    tokens = text.transcript.tokens
    for index in range(len(tokens)):
        if not text.opens(index):
            continue
        skipped = text.at("filler", index)
        first = index + skipped if skipped else index
        first += text.at("opinion", first)
        if skipped and not text.opens(first):
            first = text.forward(first)
        denied = text.at("statement_not", first) or _i_do_not(text, first)
        if denied:
            return Answer(negative, "statement", text.transcript.span(first, first + denied))
        said = text.at("statement", first)
        emphatic = said and tokens[first].bare != "i" and tokens[first + 1].bare in _DO
        if said and (text.closes(first + said) or (emphatic and not text.bounded(first + said))):
            return Answer(positive, "statement", text.transcript.span(first, first + said))
    return _nothing()
