"""Sets of phrases, and where they stand among the tokens of a transcript.

A phrase is written as words, with alternatives in brackets: `[the|my] answer [is|would be|]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from voxmeter.scoring.answers.tokens import Token, ends_sentence, tokenise

_CHOICE = re.compile(r"\[([^\]]*)\]")
_Words = tuple[str, ...]
_Slot = tuple[bool, Mapping[str, Sequence[_Words]]]  # may it be empty; alternatives by first word


class Phrases:
    """Phrases to be looked for at, or just before, a token; the longest match wins."""

    def __init__(self, written: Iterable[str]) -> None:
        patterns = [_slots(text) for text in dict.fromkeys(written)]
        self._forward = [[_slot(words) for words in pattern] for pattern in patterns]
        self._backward = [
            [_slot([word[::-1] for word in words]) for words in reversed(pattern)]
            for pattern in patterns
        ]
        self._first = [_openings(pattern) for pattern in self._forward]
        self._last = [_openings(pattern) for pattern in self._backward]

    def at(self, tokens: Sequence[Token], index: int) -> int:
        """Return how many tokens the longest phrase starting at `index` takes; 0 for none."""
        if not 0 <= index < len(tokens):
            return 0
        word = tokens[index].bare
        return max(
            (
                _length(pattern, tokens, index, 1)
                for pattern, first in zip(self._forward, self._first, strict=True)
                if word in first
            ),
            default=0,
        )

    def before(self, tokens: Sequence[Token], index: int) -> int:
        """Return how many tokens the longest phrase that ends just before `index` takes."""
        if not 0 < index <= len(tokens):
            return 0
        word = tokens[index - 1].bare
        return max(
            (
                _length(pattern, tokens, index - 1, -1)
                for pattern, last in zip(self._backward, self._last, strict=True)
                if word in last
            ),
            default=0,
        )


def _length(pattern: Sequence[_Slot], tokens: Sequence[Token], index: int, step: int) -> int:
    """Return the most tokens that a pattern takes from `index` on, in steps of 1 or -1."""
    reached = {0}
    for optional, alternatives in pattern:
        further = set(reached) if optional else set()
        for taken in reached:
            place = index + step * taken
            if not 0 <= place < len(tokens):
                continue
            for words in alternatives.get(tokens[place].bare, ()):
                if _stands(words, tokens, index, taken, step):
                    further.add(taken + len(words))
        reached = further
        if not reached:
            return 0
    return max(reached)


def _stands(words: _Words, tokens: Sequence[Token], index: int, taken: int, step: int) -> bool:
    """Return whether words stand at a place, with no sentence ending before or among them."""
    for offset, word in enumerate(words):
        place = index + step * (taken + offset)
        if not 0 <= place < len(tokens) or tokens[place].bare != word:
            return False
        seam = place if step > 0 else place + 1
        if taken + offset and ends_sentence(tokens[seam].gap):
            return False
    return True


def _slot(words: Iterable[_Words]) -> _Slot:
    alternatives: dict[str, list[_Words]] = {}
    optional = False
    for alternative in words:
        if alternative:
            alternatives.setdefault(alternative[0], []).append(alternative)
        else:
            optional = True
    return optional, alternatives


def _openings(pattern: Sequence[_Slot]) -> frozenset[str]:
    """Return the words that a pattern can begin with."""
    words: set[str] = set()
    for optional, alternatives in pattern:
        words.update(alternatives)
        if not optional:
            break
    return frozenset(words)


def _slots(written: str) -> list[list[_Words]]:
    """Return a written phrase as slots, each a list of alternatives in words."""
    slots: list[list[_Words]] = []
    for odd, part in enumerate(_CHOICE.split(written)):
        if odd % 2:
            slots.append([_words(alternative) for alternative in part.split("|")])
        elif words := _words(part):
            slots.append([words])
    return slots


def _words(text: str) -> _Words:
    return tuple(token.bare for token in tokenise(text).tokens)
