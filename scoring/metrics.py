"""What one reply earns: per-trial outcomes from the question, the transcript and the own text.

A failure of the endpoint and a reply without a clear answer are `Unscored` with a reason; a
summary counts them as wrong. What is not the endpoint's fault (a bad clip, a reply that could not
be transcribed, an open question that nobody judges) is `Unscored` as well, with `counted: false`
in its detail: it leaves n and is counted beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

from voxmeter.scoring import checked
from voxmeter.scoring.checks import Check, checks_of
from voxmeter.scoring.text import (
    TEXT_VERSION,
    length,
    normal_words,
    repetition,
    word_error_rate,
)
from voxmeter.scoring.types import Outcome, Scored, Unscored

if TYPE_CHECKING:
    from voxmeter.scoring.answers import Kind, Value

METRICS_VERSION = "metrics-1"
OPEN = "open: no judge yet"
OURS = frozenset({"bad_clip"})
"""Statuses that are not the endpoint's doing."""

WITH_REPLY = frozenset({"ok", "truncated"})
"""Statuses with a reply that is scored on what came."""

_CHANCE = {"yes-no": 0.5, "true-false": 0.5}


@dataclass(frozen=True, slots=True)
class Question:
    """What scoring has to know of an item.

    Attributes:
        kind: `choice | number | yes-no | true-false | name | open`.
        references: The right answer and its aliases; empty where there is none.
        options: Texts of the options of a choice, labelled A, B, … in this order.
        language: Language of the answer.
        checks: What an open question's reply is checked for; empty where nothing is.
    """

    kind: str
    references: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    language: str = "en"
    checks: tuple[Check, ...] = ()

    @property
    def closed(self) -> bool:
        """Whether a rule can tell right from wrong."""
        return self.kind != "open" or bool(self.checks)


@dataclass(frozen=True, slots=True)
class Reply:
    """What scoring has to know of one attempt.

    Attributes:
        status: As in the contract.
        channel: `speech`, or `text` where the endpoint does not speak.
        transcript: What was heard; None when nothing was transcribed.
        untranscribed: Why there is no transcript, when that is not the endpoint's fault.
        text: The model's own text; empty where it sends none.
        audible_ms: Audible length of the reply, None when unknown.
    """

    status: str
    channel: str = "speech"
    transcript: str | None = None
    untranscribed: str | None = None
    text: str = ""
    audible_ms: float | None = None

    @property
    def spoken(self) -> bool:
        """Whether the reply is scored by what was heard."""
        return self.channel != "text"


def question(row: Mapping[str, object]) -> Question:
    """Return the question of a row of `items.jsonl`."""
    return Question(
        kind=str(row.get("kind") or "open"),
        references=_strings(row.get("reference")),
        options=_strings(row.get("options")),
        language=str(row.get("language") or "en"),
        checks=checks_of(row.get("checks")),
    )


def _strings(value: object) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(str(one) for one in value)
    return (str(value),)


def chance(asked: Question) -> float:
    """Return what guessing earns on average: 1/k of k options, 1/2 of two answers, else 0."""
    if asked.kind == "choice":
        return 1 / len(asked.options) if asked.options else 0.0
    return _CHANCE.get(asked.kind, 0.0)


def reply_metrics(asked: Question, reply: Reply) -> dict[str, Outcome]:
    """Return every outcome of one attempt by metric name.

    Args:
        asked: The question.
        reply: What came back.

    Returns:
        `accuracy` always; the others of `scoring/definitions.py` where they apply to this
        reply. Latency is not among them.
    """
    nothing = no_reply(reply)
    if nothing is not None:
        return {"accuracy": nothing, **checked.without_reply(asked.checks, nothing)}
    heard = (reply.transcript or "") if reply.spoken else reply.text
    outcomes: dict[str, Outcome] = {}
    if asked.checks:
        outcomes |= checked.outcomes(asked.checks, heard)
        if reply.text.strip():
            outcomes |= checked.outcomes(asked.checks, reply.text, "text_")
    elif asked.closed:
        outcomes["accuracy"] = answer_outcome(asked, heard, "speech" if reply.spoken else "text")
        outcomes["accuracy_strict"] = strict_outcome(asked, heard)
        if reply.text.strip():
            outcomes["text_accuracy"] = answer_outcome(asked, reply.text, "text")
            if reply.spoken:
                outcomes["speech_text_disagreement"] = _disagreement(
                    asked.kind, outcomes["accuracy"], outcomes["text_accuracy"]
                )
    else:
        outcomes["accuracy"] = Unscored(OPEN, {"counted": False})
    return outcomes | _speech_metrics(asked, reply, heard)


def no_reply(reply: Reply) -> Unscored | None:
    """Return why there is nothing to score in an attempt, None where there is something."""
    if reply.status in OURS:
        return Unscored(reply.status, {"counted": False})
    if reply.status not in WITH_REPLY:
        return Unscored(reply.status)
    if reply.spoken and reply.transcript is None:
        reason = reply.untranscribed or "not transcribed yet"
        return Unscored(f"not transcribed: {reason}", {"counted": False})
    return None


def answer_outcome(asked: Question, text: str, channel: str) -> Outcome:
    """Return whether the answer in `text` is right, with the rule and the span that gave it.

    Args:
        asked: A closed question.
        text: A transcript, or the model's own text.
        channel: Where the text is from: `speech` or `text`; kept in the detail.

    Returns:
        Scored(1) or Scored(0) when there is an answer, else Unscored with the extractor's reason.
    """
    from voxmeter.scoring.answers import EXTRACTOR_VERSION, extract_answer, is_right

    if not asked.references:
        return Unscored("item has no reference", {"counted": False})
    kind = cast("Kind", asked.kind)
    try:
        found = extract_answer(
            text, kind, options=list(asked.options) or None, language=asked.language
        )
        right = is_right(found, kind, asked.references)
    except ValueError as error:  # the item's own data, so not the endpoint's fault
        return Unscored(f"item cannot be scored: {error}", {"counted": False})
    detail: dict[str, object] = {
        "answer": None if found.value is None else _written(found.value),
        "rule": found.rule,
        "span": list(found.span) if found.span is not None else None,
        "extractor": EXTRACTOR_VERSION,
        "channel": channel,
    }
    if found.value is None:
        return Unscored(f"no answer: {found.reason}", detail)
    return Scored(float(right), detail)


def _written(value: Value) -> str:
    """An answer as text; numbers without needless digits, so that 50 and 50.0 are the same."""
    return value if isinstance(value, str) else f"{value.normalize():f}"


def strict_outcome(asked: Question, text: str) -> Outcome:
    """Return whether the whole of `text` is the reference and nothing else.

    Case, punctuation at the ends and number style do not count; one further word does.
    """
    if not asked.references:
        return Unscored("item has no reference", {"counted": False})
    said = normal_words(text, asked.language)
    right = any(said == normal_words(one, asked.language) for one in asked.references)
    return Scored(float(right))


def _disagreement(kind: str, spoken: Outcome, written: Outcome) -> Outcome:
    from voxmeter.scoring.answers import same_name

    said, wrote = spoken.detail.get("answer"), written.detail.get("answer")
    if said is None and wrote is None:
        return Unscored("no answer in either channel", {"counted": False})
    same = said == wrote
    if kind == "name" and said is not None and wrote is not None:
        same = same_name(str(said), str(wrote))
    return Scored(float(not same), {"spoken": said, "written": wrote})


def _speech_metrics(asked: Question, reply: Reply, heard: str) -> dict[str, Outcome]:
    """Measures that need no reference answer."""
    size, loop = length(heard), repetition(heard)
    outcomes: dict[str, Outcome] = {
        "reply_characters": Scored(float(size.characters)),
        "repetition": Scored(float(loop.looped), asdict(loop) if loop.looped else {}),
    }
    if size.words is not None:
        outcomes["reply_words"] = Scored(float(size.words))
    if not reply.spoken:
        return outcomes
    if reply.text.strip():
        outcomes["speech_text_wer"] = word_error_rate(reply.text, heard, asked.language)
    seconds = (reply.audible_ms or 0.0) / 1000
    if size.words and math.isfinite(seconds) and seconds > 0:
        outcomes["words_per_second"] = Scored(size.words / seconds)
    return outcomes


def version_of(metric: str) -> str:
    """Return the version that a row of `metric` carries; it changes when the rule changes."""
    if metric in {"accuracy", "text_accuracy", "speech_text_disagreement"}:
        from voxmeter.scoring.answers import EXTRACTOR_VERSION

        return f"extractor-{EXTRACTOR_VERSION}"
    if metric.removeprefix("text_") in checked.METRICS:
        return checked.CHECKED_VERSION
    if metric in {"speech_text_wer", "accuracy_strict", "reply_words", "reply_characters"}:
        return TEXT_VERSION
    return METRICS_VERSION
