"""What answers sound like in each language: one table a language, read when first needed.

Every table has the same keys, all optional; `en.toml` has each of them with a comment. A new
language is a new table. A reply may mix languages, so English words count in every language, save
single letters' names and words that mean something else there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from voxmeter.scoring.answers.phrases import Phrases
from voxmeter.scoring.answers.tokens import without_accents

_PHRASES = (
    "cue",
    "weak",
    "final",
    "right",
    "wrong",
    "seems",
    "not",
    "not_claim",
    "except_before",
    "excepted",
    "except_after",
    "option",
    "place",
    "of_list",
    "filler",
    "and",
    "or",
    "correction",
    "hedge",
    "contrast",
    "concession",
    "aside",
    "all",
    "none",
    "both",
    "neither",
    "unknown",
    "yes",
    "no",
    "neutral",
    "true",
    "false",
    "either",
    "claim",
    "denial",
    "number_cue",
    "number_label",
    "bound",
    "nothing_left",
    "left_over",
    "name_cue",
    "name_equals",
    "name_after",
    "chatter",
    "intensifier",
    "unchanged",
    "first_place",
    "last_place",
    "before_last",
    "refusal",
    "phantom",
    "opinion",
    "statement",
    "statement_not",
)


@dataclass(frozen=True, slots=True)
class Language:
    """One language's words.

    Attributes:
        code: Two letters.
        phrases: By name, as in the table; every name is there.
        letters: Label to its names as recognisers write them.
        words: Single letters that are words of the language, such as the article "a".
        follow: Words that may follow a letter which is also a word.
        prefixed: Words whose following letter is no label, such as "vitamin".
        ordinals: Word to position, 1 the first, -1 the last.
        numbers: Word to (role, value): role is "unit", "ten", "hundred", "scale" or "part".
        point: Words for the decimal point.
        minus: Words for the sign.
        join: Words that may stand inside a number ("a hundred and five").
        articles: Words that carry no content at the start of an option or a name.
        comma: Whether the decimal mark is a comma.
    """

    code: str
    phrases: Mapping[str, Phrases]
    letters: Mapping[str, frozenset[str]]
    words: frozenset[str]
    follow: frozenset[str]
    prefixed: frozenset[str]
    ordinals: Mapping[str, int]
    numbers: Mapping[str, tuple[str, str]]
    point: frozenset[str]
    minus: frozenset[str]
    join: frozenset[str]
    articles: frozenset[str]
    comma: bool


def known_languages() -> tuple[str, ...]:
    """Return the codes of the languages that have a table."""
    folder = resources.files(__package__)
    return tuple(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml")))


def language(code: str) -> Language:
    """Return the table for a code such as "en", "pt-BR" or "zh_CN"; English for an unknown one."""
    short = code.casefold().replace("_", "-").partition("-")[0]
    return _load(short if short in _codes() else "en")


@lru_cache(maxsize=1)
def _codes() -> frozenset[str]:
    return frozenset(known_languages())


@lru_cache(maxsize=1)
def _english() -> dict[str, Any]:
    return _read("en")


def _read(code: str) -> dict[str, Any]:
    text = (resources.files(__package__) / f"{code}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@lru_cache(maxsize=32)
def _load(code: str) -> Language:
    """Read one language's table, with the English phrases behind its own."""
    own = _english() if code == "en" else _read(code)
    shared = {} if code == "en" else _english()["phrases"]
    drop = set(own.get("not_english", ()))
    phrases = {
        name: Phrases(
            [*own.get("phrases", {}).get(name, ())]
            + [text for text in shared.get(name, ()) if text not in drop]
        )
        for name in _PHRASES
    }
    return Language(
        code=code,
        phrases=phrases,
        letters={label: _bare(names) for label, names in own.get("letters", {}).items()},
        words=frozenset(own.get("words", ())),
        follow=_bare([*own.get("follow", ()), *_english()["follow"]]),
        prefixed=_bare([*own.get("prefixed", ()), *_english()["prefixed"]]),
        ordinals={without_accents(k): v for k, v in own.get("ordinals", {}).items()},
        numbers=_numbers(own.get("numbers", {})),
        point=_bare(own.get("point", ())),
        minus=_bare(own.get("minus", ())),
        join=_bare(own.get("join", ())),
        articles=_bare(own.get("articles", ())),
        comma=bool(own.get("comma", False)),
    )


def _bare(words: Iterable[str]) -> frozenset[str]:
    return frozenset(without_accents(word) for word in words)


def _numbers(table: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return word to (role, value) from the table's roles."""
    return {
        without_accents(word): (role, str(value))
        for role, words in table.items()
        for value, names in words.items()
        for word in names.split()
    }
