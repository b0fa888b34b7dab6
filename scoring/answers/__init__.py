"""Read the answer out of a spoken reply, by rules that say which of them decided and where."""

from __future__ import annotations

from collections.abc import Sequence

from voxmeter.scoring.answers.choice import read_choice
from voxmeter.scoring.answers.compare import is_right, same_name, same_number
from voxmeter.scoring.answers.name import read_name
from voxmeter.scoring.answers.number import read_number
from voxmeter.scoring.answers.polarity import read_polarity
from voxmeter.scoring.answers.result import EXTRACTOR_VERSION, Answer, Kind, Value

__all__ = [
    "EXTRACTOR_VERSION",
    "Answer",
    "Kind",
    "Value",
    "extract_answer",
    "is_right",
    "same_name",
    "same_number",
]
_MOST_OPTIONS = 26


def extract_answer(
    transcript: str | None,
    kind: Kind,
    *,
    options: Sequence[str] | None = None,
    language: str = "en",
) -> Answer:
    """Return the answer that a careful listener takes from a spoken reply.

    Nothing is guessed: where a listener would not decide, `value` is None and `reason` says why.
    The same transcript always gets the same answer (see `EXTRACTOR_VERSION`).

    Args:
        transcript: What was said, as a recogniser wrote it; None reads as silence.
        kind: What was asked for.
        options: The texts of a choice, in order; their labels are A, B, ….
        language: Language of the reply, such as "en" or "pt-BR"; an unknown one reads as English.

    Returns:
        The answer; its `value` is a label ("B"), a `Decimal`, "yes" or "no", "true" or "false",
        or a name as it was written.

    Raises:
        ValueError: If the kind is unknown, or a choice has no options or more than 26.
    """
    transcript = transcript or ""
    match kind:
        case "choice":
            if not options or len(options) > _MOST_OPTIONS:
                raise ValueError(f"a choice needs 1 to {_MOST_OPTIONS} options, not {options!r}")
            return read_choice(transcript, options, language)
        case "number":
            return read_number(transcript, language)
        case "yes-no" | "true-false":
            return read_polarity(transcript, kind, language)
        case "name":
            return read_name(transcript, language)
    raise ValueError(f"no kind of answer: {kind!r}")
