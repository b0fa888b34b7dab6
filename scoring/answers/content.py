"""Find options by their text: whole, in other spelling, in part, or by what they stand for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from voxmeter.scoring.answers.languages import Language
from voxmeter.scoring.answers.mentions import Mention, Text, without_overlap
from voxmeter.scoring.answers.number import in_sum, results
from voxmeter.scoring.answers.numbers import Number, scan
from voxmeter.scoring.answers.tokens import Token, Transcript, tokenise

_SPELLINGS = {
    "grey": "gray",
    "colour": "color",
    "sulphur": "sulfur",
    "aluminium": "aluminum",
    "metre": "meter",
    "litre": "liter",
    "centre": "center",
    "theatre": "theater",
    "km": "kilometer",
    "kg": "kilogram",
    "cm": "centimeter",
    "mm": "millimeter",
    "kilometre": "kilometer",
    "centimetre": "centimeter",
    "millimetre": "millimeter",
    "favourite": "favorite",
    "behaviour": "behavior",
    "neighbour": "neighbor",
    "mum": "mom",
    "hr": "hour",
    "min": "minute",
    "sec": "second",
    "ml": "milliliter",
    "tyre": "tire",
    "aeroplane": "airplane",
    "fibre": "fiber",
    "labour": "labor",
    "catalogue": "catalog",
    "men": "man",
    "women": "woman",
    "children": "child",
    "feet": "foot",
    "mice": "mouse",
    "male": "man",
    "female": "woman",
    "teeth": "tooth",
    "geese": "goose",
    "leaves": "leaf",
    "wolves": "wolf",
    "knives": "knife",
}
_STOP = frozenset({
    "a", "an", "the", "of", "is", "it", "its", "to", "in", "and", "or", "be", "are", "that",
    "this", "for", "on", "with", "by", "as", "at", "from", "was", "were", "their", "has", "have",
    "had", "do", "does", "did", "can", "will", "would", "not", "no", "they", "he", "she", "you",
    "we", "i", "his", "her", "there", "than", "then", "more", "very", "into", "when", "if", "so",
    "but", "about", "which", "who", "what", "de", "la", "le", "el", "der", "die", "das", "und",
    "et", "y", "e", "o",
})  # fmt: skip
_ROMAN = {"ii": 2, "iii": 3, "iv": 4, "vi": 6, "vii": 7, "viii": 8, "ix": 9}
_ALIKE = str.maketrans("zkqyw", "scciv")  # letters that sound the same
_SHORT = 5  # letters; a shorter word must sound the same
_VOWELS = dict.fromkeys(map(ord, "aeiouy"))
_NOUNS = {"anger": "angry"}
_PEOPLE = {"boy": "man", "guy": "man", "gentleman": "man", "girl": "woman", "lady": "woman"}
_LEAST_WITHOUT_VOWELS = 6
_LONG = 9
_MARKS = frozenset("%$€£¥°")
_PRONOUN_ONE = frozenset({
    "that", "this", "the", "which", "no", "any", "each", "last", "right", "correct", "best",
    "only", "first", "second", "third", "fourth", "other", "another", "every", "some", "wrong",
    "middle", "final", "next", "previous",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Word:
    """A word or number in the form that is compared, and the tokens it stands for."""

    form: str
    first: int
    last: int


def words(transcript: Transcript, numbers: Sequence[Number]) -> list[Word]:
    """Return the words of a transcript as they are compared; numbers by what they are worth."""
    starts = {n.first: n for n in numbers if n.form != "ordinal" or n.last - n.first > 1}
    tokens = transcript.tokens
    found: list[Word] = []
    index = 0
    while index < len(tokens):
        number = starts.get(index)
        if number is not None and not _pronoun(tokens, number):
            form = f"{number.value.normalize():f}"
            found.append(
                Word(f"#{form}" if number.form != "ordinal" else f"@{form}", index, number.last)
            )
            index = number.last
            continue
        roman = _ROMAN.get(tokens[index].bare)
        if tokens[index].bare == "i" and index and tokens[index - 1].bare in {"war", "part"}:
            roman = 1
        if roman and tokens[index].raw.isupper():
            found.append(Word(f"#{roman}", index, index + 1))
        elif tokens[index].text not in _MARKS:
            found.append(Word(plain(tokens[index].bare), index, index + 1))
        index += 1
    return found


def _pronoun(tokens: Sequence[Token], number: Number) -> bool:
    """Return whether "one" stands for a thing rather than for the number."""
    if number.form != "one" or number.first == 0:
        return False
    return tokens[number.first - 1].bare in _PRONOUN_ONE


def plain(word: str) -> str:
    """Return a word without plural and in one spelling."""
    word = word.removesuffix("'s").replace("'", "")
    word = _SPELLINGS.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
        if word.endswith(("xe", "che", "she", "sse", "zze")):
            word = word[:-1]
    word = _SPELLINGS.get(word, word)
    for british, american in (
        ("isation", "ization"),
        ("ised", "ized"),
        ("ising", "izing"),
        ("ise", "ize"),
        ("yse", "yze"),
    ):
        if len(word) > 6 and word.endswith(british):
            return word.removesuffix(british) + american
    return word


@dataclass(frozen=True, slots=True)
class Option:
    """One option, in the words that are compared."""

    label: int
    forms: tuple[str, ...]
    transcript: Transcript

    @property
    def numeric(self) -> bool:
        """Whether the option is a number, whatever its unit."""
        return any(form.startswith("#") for form in self.forms)


def read_options(options: Sequence[str], language: Language) -> list[Option]:
    """Return the options in compared words, without a leading article or their own label."""
    read: list[Option] = []
    for label, text in enumerate(options):
        transcript = tokenise(text)
        found = words(transcript, scan(transcript.tokens, language))
        forms = [word.form for word in found]
        first = transcript.tokens[0] if transcript.tokens else None
        own = first is not None and first.bare == chr(97 + label) and len(forms) > 1
        if own and transcript.gap(1)[:1] in {".", ")", ":"}:
            forms = forms[1:]
        while len(forms) > 1 and forms[0] in language.articles:
            forms = forms[1:]
        read.append(Option(label, tuple(forms), transcript))
    return read


def find_whole(text: Text, options: Sequence[Option], said: Sequence[Word]) -> list[Mention]:
    """Return where an option's whole text stands, also in one word or in two."""
    joined: dict[str, list[int]] = {}
    for option in options:
        if option.forms:
            joined.setdefault(_run(option.forms), []).append(option.label)
    longest = max((len(option.forms) for option in options), default=0) + 1
    limit = max((len(form) for form in joined), default=0)
    found: list[Mention] = []
    for start in range(len(said)):
        form = ""
        for end in range(start, min(len(said), start + longest)):
            form = _run((form, said[end].form))
            if len(form) > limit:
                break
            labels = joined.get(form, ())
            if len(labels) == 1 and not _broken(text, said[start].first, said[end].last):
                found.append(Mention(said[start].first, said[end].last, labels[0], "content"))
    return without_overlap(found)


def _run(forms: Iterable[str]) -> str:
    """Return forms written together; a number after a letter as in "B12", which may be apart."""
    run = ""
    for form in forms:
        run += form.removeprefix("#") if run[-1:].isalpha() else form
    return run


def _broken(text: Text, first: int, last: int) -> bool:
    """Return whether a sentence ends within tokens `first` to `last`."""
    tokens = text.transcript.tokens
    return tokens[first].sentence != tokens[last - 1].sentence


def find_group_options(text: Text, options: Sequence[Option]) -> list[Mention]:
    """Return where "all of them", "neither", "can't tell" name the option that means it."""
    found: list[Mention] = []
    for name in ("all", "none", "both", "neither", "unknown", "unchanged"):
        meant = [o.label for o in options if o.transcript.tokens and _means(text, name, o)]
        if len(meant) != 1:
            continue
        index = 0
        while index < len(text.transcript.tokens):
            length = text.at(name, index)
            alone = text.back(index) == index and text.opens(index) and text.closes(index + length)
            if length > 1 or (length == 1 and (alone or text.before("cue", index))):
                found.append(Mention(index, index + length, meant[0], "content"))
            index += length or 1
    return found


def group_labels(text: Text, options: Sequence[Option]) -> dict[str, int]:
    """Return the labels of the options that mean all, both, none or neither of the others."""
    return {
        name: option.label
        for name in ("all", "both", "none", "neither")
        for option in options
        if option.transcript.tokens and _means(text, name, option)
    }


def _means(text: Text, name: str, option: Option) -> bool:
    """Return whether an option's own text is a phrase of the set, or begins or ends with one."""
    tokens = option.transcript.tokens
    phrases = text.language.phrases[name]
    return any(phrases.at(tokens, index) >= min(2, len(tokens)) for index in range(len(tokens)))


def find_percent(text: Text, options: Sequence[Option], numbers: Sequence[Number]) -> list[Mention]:
    """Return where a percentage is an option written as a part of one ("75 percent" for 0.75)."""
    worth = {o.forms[0]: o.label for o in options if len(o.forms) == 1 and o.numeric}
    found = []
    for number in numbers:
        after = [t.bare for t in text.transcript.tokens[number.last : number.last + 1]]
        label = worth.get(f"#{(number.value / 100).normalize():f}")
        if label is not None and after in (["percent"], ["%"]):
            found.append(Mention(number.first, number.last, label, "number"))
    return found


def find_parts(options: Sequence[Option], said: Sequence[Word]) -> list[Mention]:
    """Return where words that only one option has stand, if they are a third of its own."""
    counts = Counter(stem for option in options for stem in {_stem(f) for f in option.forms})
    owner = {
        _stem(form): option.label
        for option in options
        for form in option.forms
        if counts[_stem(form)] == 1 and form not in _STOP and len(form) > 1
    }
    own = Counter(owner.values())
    stems = [(word, _stem(word.form)) for word in said]
    stems = [(w, stem if stem in owner else _PEOPLE.get(w.form, stem)) for w, stem in stems]
    spoken = {stem for _, stem in stems}
    heard = Counter(label for stem, label in owner.items() if stem in spoken)
    heads = {o.label: o.forms[-1] for o in options if len(o.forms) > 1}
    stems_of = {o.label: {_stem(form) for form in o.forms} for o in options}
    return [
        Mention(word.first, word.last, owner[stem], "partial")
        for place, (word, stem) in enumerate(stems)
        if stem in owner
        and heard[owner[stem]] * 3 >= own[owner[stem]]
        and not _another_head(heads.get(owner[stem]), spoken, said[place : place + 2])
        and not (
            word.form == heads.get(owner[stem])
            and not spoken & (qualifiers := stems_of[owner[stem]] - {stem} - _STOP)
            and qualifiers
            and _otherwise_qualified(said[max(0, place - 2) : place + 1])
        )
    ]


def _otherwise_qualified(run: Sequence[Word]) -> bool:
    """Return whether another word qualifies the last: "a plastic spoon" is no wooden one."""
    if len(run) > 1 and run[-2].last != run[-1].first:
        return False
    return len(run) > 2 and run[-3].form in {"a", "an", "the"} and run[-2].form not in _STOP


def _another_head(head: str | None, spoken: AbstractSet[str], pair: Sequence[Word]) -> bool:
    """Return whether another noun is qualified: "carbon monoxide" is no carbon dioxide.

    Args:
        head: Last word of the option; None where it has no other.
        spoken: Stems of the words of the reply.
        pair: The word that the option has too, and the one behind it.
    """
    if head is None or len(pair) < 2 or pair[1].first != pair[0].last:
        return False
    form = pair[1].form
    numeric = pair[0].form.startswith("#") or form.startswith("#")
    if numeric or pair[0].form == head or _stem(head) in spoken:
        return False
    other = form not in _STOP | {"one"} and not form.endswith(("ing", "ly", "ed"))
    return other and _distance(head, form) > 1


def _stem(form: str) -> str:
    """Return a word without the ending of a verb or noun: "raining" and "rain" are one."""
    form = _NOUNS.get(form, form)
    for ending, least in (("ness", 3), ("ing", 4), ("ful", 4), ("ed", 4), ("e", 4)):
        if form.endswith(ending) and len(form) - len(ending) >= least:
            form = form.removesuffix(ending)
            break
    return form[:-1] + "i" if form.endswith("y") else form


def find_misheard(options: Sequence[Option], said: Sequence[Word]) -> list[Mention]:
    """Return where a word is one or two letters away from an option of one word."""
    targets = [(o.forms[0], o.label) for o in options if len(o.forms) == 1 and len(o.forms[0]) >= 3]
    found: list[Mention] = []
    for word in said[:80]:
        if len(word.form) < 3 or word.form.startswith("#"):
            continue
        near = [label for form, label in targets if _sounds_like(form, word.form)]
        if len(near) == 1:
            found.append(Mention(word.first, word.last, near[0], "partial"))
    return found


def _sounds_like(form: str, heard: str) -> bool:
    """Return whether a recogniser may have written `heard` for `form`."""
    one, other = (plain(word.translate(_ALIKE).replace("ph", "f")) for word in (form, heard))
    one, other = (re.sub(r"(.)\1", r"\1", word) for word in (one, other))
    if min(len(form), len(heard)) < _SHORT:
        return one == other
    return one[0] == other[0] and min(_distance(form, heard), _distance(one, other)) <= _allowed(
        form, heard
    )


def _allowed(form: str, heard: str) -> int:
    """Return how many letters may differ; vowels are misheard more easily than consonants."""
    same = form.translate(_VOWELS) == heard.translate(_VOWELS)
    vowels = same and min(len(form), len(heard)) >= _LEAST_WITHOUT_VOWELS
    return 2 if len(form) >= _LONG or vowels else 1


def _distance(one: str, other: str) -> int:
    """Return how many letters must be put in, taken out or changed."""
    if abs(len(one) - len(other)) > 2:
        return 3
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        previous, row[0] = row[0], number
        for place, candidate in enumerate(other, start=1):
            previous, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, previous + (letter != candidate)),
            )
    return row[-1]


def only_results(text: Text, found: Sequence[Mention], numbers: Sequence[Number]) -> list[Mention]:
    """Return mentions without the terms of a calculation whose result is an option too."""
    last = max((results(text, numbers)[-1:]), key=lambda n: n.first, default=None)
    terms = {n.first for n in numbers if last and n.first < last.first and in_sum(text, n)}
    kept = [mention for mention in found if mention.first not in terms]
    named = last is not None and any(mention.first == last.first for mention in kept)
    return kept if named else list(found)
