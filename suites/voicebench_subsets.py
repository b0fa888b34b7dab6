"""The subsets of VoiceBench: how each is scored, how many rows it has, which column it fills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Scoring = Literal["open", "qa", "choice", "bbh", "instructions", "refusal"]


@dataclass(frozen=True, slots=True)
class Subset:
    """One subset.

    Attributes:
        scoring: `open`: a judge rates it from 1 to 5; `qa`: a judge compares it with a reference;
            `choice`: a letter; `bbh`: as its task answers; `instructions`: rules check what was
            asked for; `refusal`: right is to decline.
        rows: Rows of each of its splits together, as published.
        splits: Splits that are asked where the user names none; all where there are none here.
        usual: Whether it is one of the nine of the leaderboard.
    """

    scoring: Scoring
    rows: int
    splits: tuple[str, ...] = ()
    usual: bool = True


SUBSETS: Mapping[str, Subset] = {
    "alpacaeval_full": Subset("open", 636),
    "commoneval": Subset("open", 200),
    "wildvoice": Subset("open", 1000),
    "sd-qa": Subset("qa", 553, splits=("usa",)),
    "mmsu": Subset("choice", 3074),
    "openbookqa": Subset("choice", 455),
    "bbh": Subset("bbh", 1000),
    "ifeval": Subset("instructions", 345),
    "advbench": Subset("refusal", 520),
    "alpacaeval": Subset("open", 199, usual=False),
    "alpacaeval_speaker": Subset("open", 0, usual=False),
}
"""All but `mtbench`, whose questions have several turns. The first nine are the leaderboard's."""

COLUMNS: Mapping[str, str] = {
    "alpacaeval_full": "AlpacaEval",
    "commoneval": "CommonEval",
    "wildvoice": "WildVoice",
    "sd-qa": "SD-QA",
    "mmsu": "MMSU",
    "openbookqa": "OBQA",
    "bbh": "BBH",
    "ifeval": "IFEval",
    "advbench": "AdvBench",
}
"""The leaderboard's columns, in its order."""

RUBRICS: Mapping[Scoring, str] = {"open": "voicebench-open", "qa": "voicebench-qa"}

BBH_KINDS: Mapping[str, Literal["yes-no", "choice"]] = {
    "sports_understanding": "yes-no",
    "navigate": "yes-no",
    "web_of_lies": "yes-no",
    "hyperbaton": "choice",
}
"""Tasks of `bbh`, told by the id of a row, and how each is answered."""
