"""Where one sentence ends and the next begins: what a voice is given at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence

# A full stop, question or exclamation mark (with closing quotes) before white space; full-width
# marks end a sentence by themselves; so does a line end.
_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+|\n")  # noqa: RUF001
_NOT_AN_END = re.compile(r"^\s*\d+\.$|\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|e\.g|i\.e|approx)\.$")


class SentenceSplitter:
    """Cuts a text that arrives in pieces into sentences, each as soon as it is certain.

    A list number does not end a sentence ("3. Mars"), nor does a title ("Dr. Brown").
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> Sequence[str]:
        """Return the sentences that this piece completes, without white space around them."""
        self._held += piece
        done: list[str] = []
        start = 0
        for end in _END.finditer(self._held):
            sentence = self._held[start : end.end()]
            if _NOT_AN_END.search(sentence):
                continue
            done.append(sentence.strip())
            start = end.end()
        self._held = self._held[start:]
        return [sentence for sentence in done if sayable(sentence)]

    def flush(self) -> Sequence[str]:
        """Return what is left when the text has ended."""
        rest, self._held = self._held.strip(), ""
        return [rest] if sayable(rest) else []


def sentences(text: str) -> Sequence[str]:
    """Return the sentences of a whole text; those with nothing to say are left out."""
    splitter = SentenceSplitter()
    return [*splitter.feed(text), *splitter.flush()]


def sayable(sentence: str) -> bool:
    """Return whether there is anything in it to say."""
    return any(character.isalnum() for character in sentence)
