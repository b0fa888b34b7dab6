"""Read the name, or other short answer in words, that a spoken reply gives."""

from __future__ import annotations

from itertools import pairwise

from voxmeter.scoring.answers.languages import language as load
from voxmeter.scoring.answers.mentions import Text
from voxmeter.scoring.answers.result import Answer, no_answer
from voxmeter.scoring.answers.tokens import Transcript, tokenise

_BREAKS = ',;:()[]"—\n'
_BE = {
    "de": frozenset(["ist", "war", "sind", "waren", "heißt"]),
    "es": frozenset(["es", "fue", "son", "era", "eran"]),
    "fr": frozenset(["est", "était", "sont", "etait"]),
    "it": frozenset(["è", "e", "era", "sono", "fu"]),
    "nl": frozenset(["is", "was", "zijn", "waren", "heet"]),
    "pt": frozenset(["é", "e", "foi", "era", "são", "sao"]),
    "en": frozenset(["is", "was", "are", "were"]),
}
_SMALL = frozenset({
    "of", "and", "van", "von", "de", "da", "di", "del", "della", "du", "la", "le", "der", "den",
    "bin", "al", "el", "y", "the",
})  # fmt: skip
_ARTICLES = frozenset({
    "the", "a", "an", "der", "die", "das", "ein", "eine", "le", "la", "les", "un", "une", "el",
    "los", "las", "una", "il", "lo", "o", "os", "as", "het", "de", "een",
})  # fmt: skip
_PRONOUNS = frozenset({"they", "he", "she", "it", "we", "people", "you"})
_PLACES = frozenset({"in", "on", "at", "to", "from", "near"})
_OBJECTS = frozenset({
    "the", "a", "an", "it", "them", "this", "that", "its", "his", "her", "our", "your", "their",
})  # fmt: skip
_LONGEST = 8


def read_name(transcript: str, code: str) -> Answer:
    """Return the name that a reply gives, as the reply wrote it."""
    text = Text(tokenise(transcript), load(code))
    tokens = text.transcript.tokens
    if not tokens:
        return no_answer("empty", "nothing was said")
    if text.at("phantom", 0) and text.closes(text.at("phantom", 0)):
        return no_answer("phantom", "words that recognisers write over silence")
    candidates = [c for start, end in _clauses(text) if (c := _read_clause(text, start, end))]
    if not candidates:
        refused = any(text.at("refusal", index) for index in range(len(tokens)))
        reason = "the reply declines" if refused else "no name is said"
        return no_answer("refusal" if refused else "no-name", reason)
    first, last, rule = _chosen(text, candidates)
    return Answer(
        _written(transcript, text.transcript, first, last), rule, text.transcript.span(first, last)
    )


def _clauses(text: Text) -> list[tuple[int, int]]:
    """Return the transcript cut at sentence ends, commas and contrasts, as token ranges."""
    tokens = text.transcript.tokens
    starts = [0]
    for index in range(1, len(tokens)):
        gap = text.transcript.gap(index)
        cut = text.opens(index) and not _initial(text, index)
        if (
            cut
            or any(c in _BREAKS for c in gap)
            or (text.at("contrast", index) and index > starts[-1])
        ):
            starts.append(index)
    return list(zip(starts, [*starts[1:], len(tokens)], strict=True))


def _initial(text: Text, index: int) -> bool:
    """Return whether a full stop before a token only ends an initial or a title."""
    before = text.transcript.tokens[index - 1]
    after = text.transcript.tokens[index]
    short = (
        len(before.text) == 1 and before.raw.isupper() and after.raw[:1].isupper()
    ) or before.bare in {
        "mr",
        "mrs",
        "dr",
        "st",
        "ms",
        "prof",
        "jr",
    }
    return short and text.transcript.gap(index).strip() == "."


def _read_clause(text: Text, start: int, end: int) -> tuple[int, int, str] | None:
    """Return the name in tokens `start` to `end`, and the rule that found it."""
    tokens = text.transcript.tokens
    if tokens[start].sentence in text.transcript.questions and end - start > 3:
        return None
    for name in ("chatter", "correction", "yes", "no"):
        if text.at(name, start) >= end - start:
            return None
    for index in range(start, end):
        if text.at("refusal", index) or (index == start and text.at("phantom", index) >= 2):
            return None
    first, framed = _subject_after_place(text, start, end), False
    for _ in range(8):
        if first >= end or (skipped := _frame(text, first, end)) == 0:
            break
        framed = framed or any(t.bare in _be(text) for t in tokens[first : first + skipped])
        first += skipped
    if first >= end or text.at("not", first) or text.at("denial", first):
        return None
    if tokens[first].bare == "i" and first + 1 < end and text.at("statement", first):
        return None
    predicate = _after_copula(text, first, end) or _object(text, first, end)
    if predicate is not None:
        return predicate
    last = _end_of_name(text, first, end)
    for index in range(first + 1, end):
        if (length := _by(text, index)) and index + length < end:
            return index + length, _end_of_name(text, index + length, end), "made-by"
    if first == start and last == end:
        last = _before_verb(text, first, end)
    first = _behind_description(text, first, last)
    if first >= last or last - first > _LONGEST:
        return None
    rule = "frame" if framed else ("whole" if first == start and last == end else "subject")
    return first, last, rule


def _subject_after_place(text: Text, start: int, end: int) -> int:
    """Return where "people speak …" starts behind "In Brazil"; else `start`."""
    tokens = text.transcript.tokens
    if tokens[start].bare not in _PLACES:
        return start
    return next((i for i in range(start + 2, end - 2) if tokens[i].bare in _PRONOUNS), start)


def _frame(text: Text, index: int, end: int) -> int:
    """Return how many tokens of a frame ("I think it was") start at a token."""
    for name in ("correction", "contrast", "name_cue", "final"):
        length = text.at(name, index)
        if length and index + length <= end:
            return length
    return 0


def _by(text: Text, index: int) -> int:
    """Return the length of "by", "painted by", … at a token."""
    length = text.at("name_cue", index)
    tokens = text.transcript.tokens
    by = {"by", "von", "par", "por", "da", "door"}
    made_of = length and tokens[index].bare == "made"
    return length if made_of or (length and tokens[index + length - 1].bare in by) else 0


def _after_copula(text: Text, first: int, end: int) -> tuple[int, int, str] | None:
    """Return the name in "The capital of France is Paris" or "Paris is the capital"."""
    tokens = text.transcript.tokens
    place = next((i for i in range(first + 1, end - 1) if tokens[i].bare in _be(text)), None)
    equals = next((i for i in range(first + 1, end - 1) if text.at("name_equals", i)), None)
    if equals is not None and (place is None or equals <= place):
        place = equals + text.at("name_equals", equals) - 1
    if place is None or place + 1 >= end:
        return None
    by = next((i for i in range(place + 1, end - 1) if _by(text, i)), None)
    if by is not None:
        start = by + _by(text, by)
        return start, _end_of_name(text, start, end), "made-by"
    after = place + 1
    while after < end and (skipped := _frame(text, after, end)):
        after += skipped
    if text.at("not", place + 1) or after >= end:
        return None
    described = tokens[after].bare in _ARTICLES
    if (
        equals is None
        and _named(text, first, place)
        and (described or not _named(text, after, end))
    ):
        return first, _end_of_name(text, first, place), "subject"
    return after, _end_of_name(text, after, end), "predicate"


def _object(text: Text, first: int, end: int) -> tuple[int, int, str] | None:
    """Return the name in "They speak Spanish" and "It happened in New York"."""
    tokens = text.transcript.tokens
    place = first + 2
    if tokens[first].bare not in _PRONOUNS or place >= end or not tokens[first + 1].raw.islower():
        return None
    while place < end - 1 and tokens[place].bare in _PLACES | _ARTICLES:
        place += 1
    return place, _end_of_name(text, place, end), "object"


def _be(text: Text) -> frozenset[str]:
    """Return the words for "is" and "was" in the language of the reply."""
    return _BE.get(text.language.code, _BE["en"])


def _named(text: Text, first: int, last: int) -> bool:
    """Return whether the words, but for small ones, are all written as names."""
    words = [t for t in text.transcript.tokens[first:last] if t.bare not in _ARTICLES | _SMALL]
    lead = text.transcript.tokens[first].bare in _ARTICLES
    proper = [t for t in words if t.raw[:1].isupper() or not t.raw.isascii()]
    return bool(words) and len(proper) == len(words) and not (lead and len(words) == 0)


def _end_of_name(text: Text, first: int, end: int) -> int:
    """Return where a name that starts at `first` ends."""
    tokens = text.transcript.tokens
    index = first
    while index < end:
        if (
            index > first
            and text.at("name_after", index)
            and (tokens[index].bare == "i" or not tokens[index].raw[:1].isupper())
        ):
            break
        if index > first and (text.at("not", index) or text.at("aside", index)):
            break
        index += 1
    if index < end and index - 1 > first and tokens[index - 1].bare in {"and", "or"}:
        index -= 1
    return index


def _before_verb(text: Text, first: int, end: int) -> int:
    """Return where the subject of a sentence such as "The heart pumps the blood" ends."""
    tokens = text.transcript.tokens
    for index in range(first + 1, end - 1):
        verb = tokens[index].raw.islower() and tokens[index].bare.endswith(("s", "ed"))
        if verb and tokens[index + 1].bare in _OBJECTS and tokens[index - 1].bare not in _SMALL:
            return index
    return end


def _behind_description(text: Text, first: int, last: int) -> int:
    """Return where the name starts in "the mathematician Ada Lovelace"."""
    tokens = text.transcript.tokens
    if first >= last or tokens[first].bare not in _ARTICLES:
        return first
    place = next((i for i in range(first + 1, last) if not tokens[i].raw.islower()), last)
    name = range(place, last)
    whole = place > first + 1 and name and all(tokens[i].raw[:1].isupper() for i in name)
    return place if whole else first


def _chosen(text: Text, candidates: list[tuple[int, int, str]]) -> tuple[int, int, str]:
    """Return the name meant: after a correction the last, else framed before bare, else first."""
    for place in range(len(candidates) - 1, 0, -1):
        between = range(candidates[place - 1][1], candidates[place][0])
        if any(text.at("correction", i) or text.transcript.tokens[i].bare == "no" for i in between):
            return candidates[place]
    concluded = [
        later
        for sooner, later in pairwise(candidates)
        if any(text.at("final", index) for index in range(sooner[1], later[0]))
    ]
    if concluded:
        return concluded[-1]
    candidates = [c for c in candidates if not _weighed(text, c)] or candidates
    if _then_described(text, candidates):
        return candidates[0]
    for rule in ("predicate", "made-by", "frame", "object"):
        found = [c for c in candidates if c[2] == rule]
        if found:
            return found[0]
    return candidates[0]


def _then_described(text: Text, candidates: list[tuple[int, int, str]]) -> bool:
    """Return whether a name of its own sentence is only described behind: "It's 8 km high"."""
    first, last, rule = candidates[0]
    tokens = text.transcript.tokens
    own = rule == "whole" and text.opens(first) and text.closes(last) and _named(text, first, last)
    return (
        own
        and len(candidates) > 1
        and all(
            tokens[c[0]].raw[0].isdigit() or tokens[c[0]].bare in _ARTICLES for c in candidates[1:]
        )
    )


def _weighed(text: Text, candidate: tuple[int, int, str]) -> bool:
    """Return whether the sentence only says what others think, or where."""
    first = candidate[0]
    if text.transcript.tokens[first].bare in _PLACES:
        return True
    for index in range(first - 1, max(-1, first - _LONGEST), -1):
        if text.at("hedge", index) > 1:
            return True
        if text.opens(index):
            break
    return False


def _written(transcript: str, read: Transcript, first: int, last: int) -> str:
    """Return a name as the reply wrote it."""
    start, end = read.span(first, last)
    return " ".join(transcript[start:end].split())
