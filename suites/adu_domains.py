"""The 28 domains of ADU-Bench: names, sizes, languages, rules; from Table 8 of its paper."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

DATASETS = ("ADU-General", "ADU-Skill", "ADU-Multilingual", "ADU-Ambiguity")

COUNTS: Mapping[tuple[str, str], int] = {
    **{
        ("ADU-General", name): 4000
        for name in ("helpful_question", "daily_question", "daily_statement")
    },
    ("ADU-Skill", "mathematics"): 1000,
    ("ADU-Skill", "physics"): 210,
    ("ADU-Skill", "chemistry"): 180,
    ("ADU-Skill", "biology"): 180,
    ("ADU-Skill", "computer_science"): 115,
    ("ADU-Skill", "code"): 1000,
    ("ADU-Skill", "law"): 325,
    ("ADU-Skill", "finance"): 60,
    ("ADU-Skill", "common_sense"): 500,
    ("ADU-Skill", "writing"): 40,
    ("ADU-Skill", "roleplay"): 20,
    ("ADU-Skill", "medicine"): 95,
    **{
        ("ADU-Multilingual", name): 400
        for name in (
            *("arabic", "chinese", "english", "french", "german"),
            *("japanese", "korean", "russian", "spanish"),
        )
    },
    ("ADU-Ambiguity", "intonation"): 395,
    ("ADU-Ambiguity", "pause"): 250,
    ("ADU-Ambiguity", "homophone"): 490,
    ("ADU-Ambiguity", "repetition"): 255,
}
"""Items of each domain, outermost group first."""

DATASET_RULES: Mapping[str, Literal["micro", "macro"]] = {
    "ADU-General": "macro",
    "ADU-Skill": "micro",
    "ADU-Multilingual": "macro",
    "ADU-Ambiguity": "macro",
}
"""How a dataset's figure is drawn from its domains.

The paper's own tables show it for Skill (25 of 26 cells only if every item counts alike) and for
Ambiguity (26 of 26 only if every type does). The domains of General and of Multilingual have equal
counts, so its tables fit both; `macro` keeps a sample of them comparable when its domains are not
equally large.
"""

LANGUAGES: Mapping[str, str] = {
    "arabic": "ar",
    "chinese": "zh",
    "english": "en",
    "french": "fr",
    "german": "de",
    "japanese": "ja",
    "korean": "ko",
    "russian": "ru",
    "spanish": "es",
}

BINARY = frozenset({"intonation", "pause"})
"""Domains that the published script rates 10 or 0 and nothing between."""

_OTHER_NAMES: Mapping[str, str] = {
    "math": "mathematics",
    "maths": "mathematics",
    "coding": "code",
    "commonsense": "common_sense",
    "role_play": "roleplay",
    "role_playing": "roleplay",
    "medical": "medicine",
    "helpful": "helpful_question",
    "homophones": "homophone",
    "pauses": "pause",
    "intonations": "intonation",
    "repetitions": "repetition",
}


def domain_of(dataset: str, name: str) -> str | None:
    """Return the domain that a file's name or a category means, None if it is none of the 28.

    Args:
        dataset: `ADU-Skill` and the like.
        name: Such as `physics`, `Common Sense`, `homophones`, `Pause-based`, `daily questions`.
    """
    plain = re.sub(r"[\W_]+", "_", name.casefold()).strip("_")
    plain = plain.removesuffix("_based")
    for candidate in (plain, plain.removesuffix("s"), _OTHER_NAMES.get(plain, "")):
        if (dataset, candidate) in COUNTS:
            return candidate
    return None
