"""Questions said otherwise by rule: fillers, slips, stumbling, new starts, a learner's English.

Only small words are dropped or changed. Numbers, negations and words that begin with a capital
stay as they are, so that the right answer stays right.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping

NONE = "none"

_FILLERS = ("um,", "uh,", "er,", "you know,", "well,", "like,", "I mean,")
_SORRY = ("sorry, let me start again.", "no, wait.", "hang on, let me say that again.")
_CORRECTED = ("no, I mean", "sorry,", "I mean")
_SLIPS = (
    ("th", "d"),
    ("ph", "p"),
    ("w", "v"),
    ("v", "w"),
    ("r", "l"),
    ("sh", "s"),
    ("ch", "sh"),
    ("z", "s"),
    ("j", "y"),
    ("ee", "i"),
)
_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million billion point minus plus times half third quarter first second"
)
_KEPT = frozenset(
    "not no never none neither nor without except least most less more fewer".split()  # noqa: SIM905
) | frozenset(_NUMBERS.split())
_ARTICLES = frozenset({"a", "an", "the"})
_LEARNER: Mapping[str, str] = {
    "does": "do",
    "has": "have",
    "is": "is",
    "were": "was",
    "which": "what",
    "would": "will",
    "whom": "who",
    "these": "this",
    "those": "that",
}


def reworded(text: str, wording: str, seed: str) -> str:
    """Return a question as somebody says it who hesitates, slips or learns the language.

    Args:
        text: The question, as it is to be said.
        wording: One of `WORDINGS`, or `none`.
        seed: Whatever is drawn depends on this and the wording alone.
    """
    if wording == NONE:
        return text
    digest = hashlib.sha256(f"{seed}\n{wording}".encode("utf-8", "surrogatepass")).digest()
    draw = random.Random(digest)  # noqa: S311 - no secret
    words = text.split()
    return " ".join(WORDINGS[wording](words, draw)) if len(words) > 1 else text


def _fillers(words: list[str], draw: random.Random) -> list[str]:
    """Put a filler in front and about every seven words."""
    said = [draw.choice(_FILLERS[:3]).capitalize(), _lowered(words[0])]
    since = 0
    for word in words[1:]:
        since += 1
        if since > 3 and draw.random() < 0.25:
            said.append(draw.choice(_FILLERS))
            since = 0
        said.append(word)
    return said


def _mispronounced(words: list[str], draw: random.Random) -> list[str]:
    """Say about one word in six wrong, one at least where there is one."""
    places = [place for place, word in enumerate(words) if _slipped(word, draw) != word]
    count = max(1, len(words) // 6)
    chosen = set(draw.sample(places, min(count, len(places))))
    return [_slipped(word, draw) if n in chosen else word for n, word in enumerate(words)]


def _slipped(word: str, draw: random.Random) -> str:
    if _fixed(word) or len(word) < 4 or not word.islower():
        return word
    fitting = [(old, new) for old, new in _SLIPS if old in word]
    if not fitting:
        return word
    old, new = draw.choice(fitting)
    return word.replace(old, new, 1)


def _stuttered(words: list[str], draw: random.Random) -> list[str]:
    """Say about one word in six twice, or its beginning."""
    count = max(1, len(words) // 6)
    chosen = set(draw.sample(range(len(words)), min(count, len(words))))
    said: list[str] = []
    for place, word in enumerate(words):
        if place in chosen:
            bare = word.rstrip(".,;:?!")
            whole = len(bare) < 4 or draw.random() < 0.5 or not bare.isalpha()
            said.append(f"{bare}," if whole else f"{bare[:2]}-")
            word = _lowered(word) if place == 0 else word  # noqa: PLW2901
        said.append(word)
    return said


def _restarted(words: list[str], draw: random.Random) -> list[str]:
    """Break off after a few words and begin again, or correct a word that came too early."""
    if len(words) > 5 and draw.random() < 0.5:
        place = draw.randrange(1, len(words) - 3)
        early = words[place + 1].rstrip(".,;:?!")
        if not _fixed(words[place]) and not _fixed(early):
            fix = draw.choice(_CORRECTED)
            return [*words[:place], f"{early},", fix, *words[place:]]
    length = draw.randrange(1, min(5, len(words)))
    begun = [*words[: length - 1], f"{words[length - 1].rstrip('.,;:?!')}..."]
    return [*begun, draw.choice(_SORRY), *words]


def _learned(words: list[str], draw: random.Random) -> list[str]:
    """Leave articles and endings out, as learners do."""
    said = []
    for word in words:
        bare = word.rstrip(".,;:?!")
        end = word[len(bare) :]
        if bare.lower() in _ARTICLES and draw.random() < 0.8:
            continue
        if bare in _LEARNER:
            bare = _LEARNER[bare]
        elif re.fullmatch(r"[a-z]{4,}[^s]s", bare) and not _fixed(bare) and draw.random() < 0.4:
            bare = bare[:-1]
        said.append(bare + end)
    said = said or words
    return [said[0][:1].upper() + said[0][1:], *said[1:]]


def _fixed(word: str) -> bool:
    bare = word.strip(".,;:?!'\"()").lower()
    return (
        bare in _KEPT
        or bare.endswith("n't")
        or not bare.isalpha()
        or any(part in _KEPT for part in bare.split("-"))
        or word[:1].isupper()
    )


def _lowered(word: str) -> str:
    """Return a first word as it stands inside a sentence; names and I are left."""
    common = ("The ", "A ", "An ", "In ", "If ", "Is ", "Of ", "For ", "When ", "Where ", "Who ")
    asked = ("What ", "Which ", "Why ", "How ", "Are ", "Do ", "Does ", "Find ", "Solve ", "To ")
    return word.lower() if f"{word} " in (*common, *asked) else word


WORDINGS: Mapping[str, Callable[[list[str], random.Random], list[str]]] = {
    "fillers": _fillers,
    "mispronunciations": _mispronounced,
    "disfluencies": _stuttered,
    "false-starts": _restarted,
    "proficiency": _learned,
}
"""By name: what each does to the words of a question."""
