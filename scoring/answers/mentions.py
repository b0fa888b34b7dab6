"""A place in a transcript that names one of the options, whatever it says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from voxmeter.scoring.answers.languages import Language
from voxmeter.scoring.answers.tokens import Transcript, ends_sentence

How = Literal["letter", "sound", "position", "number", "content", "partial", "conflict"]
Role = Literal[
    "plain", "alone", "explicit", "concluded", "rejected", "weighed", "listed", "withdrawn"
]


_MOST_FILLERS = 12


@dataclass(frozen=True, slots=True)
class Mention:
    """One option named at tokens `first` to `last`, the latter not included.

    Attributes:
        first: First token.
        last: One past the last token.
        label: Number of the option; -1 where the words name two at once.
        how: By its letter, a letter's name written as a word, its place in the list, a bare
            number, its text, a part of its text; "conflict" where letter and text disagree.
        role: What the sentence says about it.
    """

    first: int
    last: int
    label: int
    how: How
    role: Role = "plain"

    def as_role(self, role: Role) -> Mention:
        """Return the mention in another role."""
        return replace(self, role=role)


@dataclass(frozen=True, slots=True)
class Text:
    """A transcript with the language it is read in."""

    transcript: Transcript
    language: Language

    def at(self, name: str, index: int) -> int:
        """Return how many tokens the longest phrase of a set takes at `index`; 0 for none."""
        if name == "and" and self.transcript.tokens[index].text in {"é", "è"}:
            return 0  # the verb, which only its accent tells from "and"
        return self.language.phrases[name].at(self.transcript.tokens, index)

    def before(self, name: str, index: int) -> int:
        """Return how many tokens the longest phrase of a set that ends before `index` takes."""
        return self.language.phrases[name].before(self.transcript.tokens, index)

    def bounded(self, index: int) -> bool:
        """Return whether punctuation, or the end, stands before token `index`."""
        if index >= len(self.transcript.tokens):
            return True
        return any(c in ',.:;!?()[]{}<>"-—/\n。、…|' for c in self.transcript.gap(index))

    def opens(self, index: int) -> bool:
        """Return whether a sentence starts at token `index`."""
        tokens = self.transcript.tokens
        return index == 0 or (
            index < len(tokens) and tokens[index].sentence != tokens[index - 1].sentence
        )

    def closes(self, index: int) -> bool:
        """Return whether a sentence ends just before token `index`."""
        return index >= len(self.transcript.tokens) or self.opens(index)

    def back(self, index: int, stop: int = 0) -> int:
        """Return where the fillers before `index` begin, within its sentence and after `stop`."""
        for _ in range(_MOST_FILLERS):
            if index <= stop or self.opens(index):
                break
            taken = self.before("filler", index)
            if not taken or index - taken < stop:
                break
            index -= taken
        return index

    def announced(self, index: int, names: Sequence[str] = ("cue", "weak")) -> bool:
        """Return whether a phrase of the sets ends before `index`, fillers left aside."""
        start = self.back(index)
        return any(
            self.before(name, place) for place in range(index, start - 1, -1) for name in names
        )

    def forward(self, index: int) -> int:
        """Return where the fillers from `index` on end, within the sentence."""
        for _ in range(_MOST_FILLERS):
            if self.closes(index) or not (taken := self.at("filler", index)):
                break
            index += taken
        return index


def without_overlap(mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions in order; of two that share tokens of unequal length the longer stays."""
    kept: list[Mention] = []
    longest: dict[int, int] = {}  # token to the length of the longest mention over it
    for mention in sorted(mentions, key=lambda m: (m.first - m.last, m.first)):
        length, places = mention.last - mention.first, range(mention.first, mention.last)
        if all(longest.get(place, length) == length for place in places):
            kept.append(mention)
            longest.update(dict.fromkeys(places, length))
    return sorted(kept, key=lambda m: (m.first, m.last))


def joins(gap: str) -> bool:
    """Return whether a gap holds a list together: blank, comma, slash, ampersand."""
    return not ends_sentence(gap) and not gap.strip(" ,、/&()\"'")
