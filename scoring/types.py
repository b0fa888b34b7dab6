"""The two outcomes of scoring one reply: a number, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Scored:
    """One reply has a value under one metric.

    Attributes:
        value: The number, finite, in the metric's unit (right or wrong is 1 or 0).
        detail: What led to it (rule, span, version, …); JSON values only.
    """

    value: float
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unscored:
    """One reply has no value under one metric; never the same as zero.

    Attributes:
        reason: Why there is none, in a few words that a report can count.
        detail: What was seen; JSON values only.
    """

    reason: str
    detail: Mapping[str, object] = field(default_factory=dict)


Outcome = Scored | Unscored
