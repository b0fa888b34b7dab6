"""What an extraction returns: a value with the rule and span behind it, or the reason for none."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

EXTRACTOR_VERSION = "1"
"""Changes whenever any transcript might get another answer; scores of two versions differ."""

Kind = Literal["choice", "number", "yes-no", "true-false", "name"]
Value = str | Decimal


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer found in one transcript.

    Attributes:
        value: The label ("B"), number, "yes"/"no", "true"/"false" or name; None means that a
            careful listener would not decide.
        rule: Name of the rule that decided, also where it decided that there is no answer.
        span: Where the answer stands, as (start, end) characters of the transcript; None only
            where `value` is None or follows from what was ruled out.
        reason: Why there is no answer; None exactly when there is one.
    """

    value: Value | None
    rule: str
    span: tuple[int, int] | None = None
    reason: str | None = None


def no_answer(rule: str, reason: str) -> Answer:
    """Return an answer without value, with the rule that found none and why."""
    return Answer(None, rule, None, reason)
