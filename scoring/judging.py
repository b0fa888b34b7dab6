"""What a judge's words about one reply are worth; the chat call is handed in."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from voxmeter.scoring.judge_messages import BOTH, Case, Message, Order, ask_again, messages
from voxmeter.scoring.judgement import read_judgement
from voxmeter.scoring.rubrics import Rubric
from voxmeter.scoring.types import Outcome, Scored, Unscored

JUDGE_VERSION = "judge-2"
"""Changes when replies of judges are read or put together otherwise."""

SCORE, GAP, VERDICT = "judge_score", "position_gap", "judge_accuracy"
"""Metrics of a judge; its name follows behind a colon."""

MOST_ASKS = 2
"""Asks of one order: one, and one more when the reply cannot be read."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a judge's service answered once.

    Attributes:
        raw: The reply's text; None where there is none.
        finish: Why it ended (`stop`, `length`, `content_filter`), where that was told.
        model: The model that the service names.
        tokens_in: Tokens of the prompt that the service counted; None where it told none.
        tokens_out: Likewise of the reply.
        tries: Requests that it took.
    """

    raw: str | None
    finish: str = ""
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tries: int = 1


Ask = Callable[[Sequence[Message]], Awaitable[Said]]


@dataclass(frozen=True, slots=True)
class Reading:
    """What one reply of a judge says of the response.

    Attributes:
        value: A score on the scale; 1 or 0 for right or wrong; None where it cannot be read.
        reason: Why it cannot be read; None exactly when it can.
        label: The option that was named, `none` for none of them.
        reference_value: The score of the reference, where the judge rates both.
    """

    value: float | None
    reason: str | None = None
    label: str | None = None
    reference_value: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge said in one order.

    Attributes:
        order: Which stood first.
        reading: Of the last reply.
        replies: Every reply, the first one first; empty where the judge could not be asked.
        asked: Hash of what was asked, settings included.
        cached: Whether it was asked in an earlier run.
        problem: The service's own words, where it could not be asked.
    """

    order: Order
    reading: Reading
    replies: tuple[Said, ...] = ()
    asked: str = ""
    cached: bool = False
    problem: str = ""


def read_reply(rubric: Rubric, case: Case, order: Order, said: Said) -> Reading:
    """Return what a judge's reply says of the response, or why it cannot be read.

    A reply that was cut off is not read: the 1 of it may have become a 10.
    """
    if said.finish == "length":
        return Reading(None, "cut off by the token limit")
    if said.finish == "content_filter":
        return Reading(None, "withheld by the judge's content filter")
    if rubric.protocol == "label":
        return _read_label(said.raw, len(case.options))
    found = read_judgement(
        said.raw, rubric.protocol, low=rubric.low, high=rubric.high, integer=rubric.whole
    )
    match found.value:
        case (first, second):
            mine, other = (first, second) if order == "response-first" else (second, first)
            return Reading(float(mine), reference_value=float(other))
        case "yes" | "no":
            return Reading(float(found.value == "yes"))
        case int() | float() as value:
            if rubric.values and value not in rubric.values:
                known = " or ".join(f"{one:g}" for one in rubric.values)
                return Reading(None, f"{value:g} is not {known}")
            return Reading(float(value))
        case _:
            return Reading(None, found.reason or "no verdict")


_LABEL = re.compile(
    r"(?:(?:the\s+)?(?:final\s+)?(?:answer|option|choice|verdict)(?:\s+is)?\s*[:\-]?\s*)?"
    r"[\[(\"'*]{0,4}(?P<label>[A-Za-z]|none)[\])\"'*]{0,4}[.:)]?",
    re.IGNORECASE,
)


def _read_label(raw: str | None, options: int) -> Reading:
    text = (raw or "").rpartition("</think>")[2].strip()
    if not text:
        return Reading(None, "no reply")
    found = _LABEL.fullmatch(text)
    if found is None:
        return Reading(None, "not one label")
    label = found["label"]
    if label.casefold() == "none":
        return Reading(0.0, label="none")
    if ord(label.upper()) - ord("A") >= options:
        return Reading(None, f"{label.upper()} is no option")
    return Reading(1.0, label=label.upper())


async def judge_order(
    rubric: Rubric, case: Case, order: Order, ask: Ask, known: Sequence[Said] = ()
) -> Verdict:
    """Ask a judge in one order, once more when its reply cannot be read.

    Args:
        rubric: The prompt.
        case: What is judged.
        order: Which stands first.
        ask: The chat call; what it raises is passed on.
        known: Replies that came earlier and could not be read; they are paid for, and count.
    """
    asked = messages(rubric, case, order)
    replies = list(known)
    reading = Reading(None, "not asked")
    if replies:
        reading = read_reply(rubric, case, order, replies[-1])
    while len(replies) < MOST_ASKS:
        wanted = (
            asked if not replies else ask_again(rubric, asked, replies[-1].raw, str(reading.reason))
        )
        replies.append(await ask(wanted))
        reading = read_reply(rubric, case, order, replies[-1])
        if reading.reason is None:
            break
    return Verdict(order, reading, tuple(replies))


def read_again(rubric: Rubric, case: Case, order: Order, replies: Sequence[Said]) -> Verdict | None:
    """Return the verdict in replies that are known, None where a second ask is still to come."""
    if not replies:
        return None
    reading = read_reply(rubric, case, order, replies[-1])
    if reading.reason is not None and len(replies) < MOST_ASKS:
        return None
    return Verdict(order, reading, tuple(replies))


@dataclass(frozen=True, slots=True)
class Price:
    """What a judge costs, in the user's currency for a million tokens; None where unknown."""

    per_million_in: float | None = None
    per_million_out: float | None = None

    def of(self, tokens_in: int | None, tokens_out: int | None) -> float | None:
        """Return the cost of so many tokens; None where a price or a count is not known."""
        if None in {self.per_million_in, self.per_million_out, tokens_in, tokens_out}:
            return None
        assert self.per_million_in is not None  # noqa: S101 - for the type checker
        assert self.per_million_out is not None  # noqa: S101
        assert tokens_in is not None  # noqa: S101
        assert tokens_out is not None  # noqa: S101
        cost = tokens_in * self.per_million_in + tokens_out * self.per_million_out
        return round(cost / 1e6, 9)


@dataclass(frozen=True, slots=True)
class Bill:
    """What asking has taken.

    Attributes:
        asks: Replies that came.
        second_asks: Those that came because the first could not be read.
        tries: Requests that it took, repeated ones included.
        tokens_in: Sum over the replies; None where one of them told no count.
        tokens_out: Likewise.
        cost: In the user's currency; None where it is not known.
    """

    asks: int = 0
    second_asks: int = 0
    tries: int = 0
    tokens_in: int | None = 0
    tokens_out: int | None = 0
    cost: float | None = 0.0


def bill(verdicts: Sequence[Verdict], price: Price) -> Bill:
    """Return what verdicts have taken; those of an earlier run took nothing now."""
    fresh = [one for one in verdicts if not one.cached]
    replies = [said for one in fresh for said in one.replies]
    tokens_in = _sum([said.tokens_in for said in replies])
    tokens_out = _sum([said.tokens_out for said in replies])
    return Bill(
        asks=len(replies),
        second_asks=sum(max(0, len(one.replies) - 1) for one in fresh),
        tries=sum(said.tries for said in replies),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=price.of(tokens_in, tokens_out) if replies else 0.0,
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


@dataclass(frozen=True, slots=True)
class Judged:
    """All that a judge said of one reply.

    Attributes:
        rubric: The prompt.
        verdicts: One for each order, in the order they were asked.
        price: For the detail.
        about: What else the detail says: the judge's model.
    """

    rubric: Rubric
    verdicts: Sequence[Verdict]
    price: Price = Price()
    about: Mapping[str, object] = field(default_factory=dict)


def outcomes(judged: Judged, case: Case) -> dict[str, Outcome]:
    """Return the metrics of one reply, without the judge's name in theirs.

    A score is the mean of the orders, and only of all of them: one order alone would carry the
    position's bias. The gap is the score with the response first, less the one with the reference
    first.
    """
    rubric, verdicts = judged.rubric, judged.verdicts
    detail = _detail(judged)
    unread = [one for one in verdicts if one.reading.value is None]
    if unread:
        first = unread[0]
        place = f"{first.order}: " if len(verdicts) > 1 and not first.problem else ""
        failed = Unscored(f"{place}{first.reading.reason}", {**detail, "counted": False})
        return dict.fromkeys(_names(rubric, verdicts), failed)
    values = [one.reading.value for one in verdicts if one.reading.value is not None]
    mean = sum(values) / len(values)
    found: dict[str, Outcome] = {}
    if rubric.rates:
        found[SCORE] = Scored(mean, detail)
    if len(verdicts) == len(BOTH):
        by_order = {one.order: one.reading.value or 0.0 for one in verdicts}
        gap = by_order["response-first"] - by_order["reference-first"]
        found[GAP] = Scored(gap, _brief(judged))
    if rubric.decides:
        found[VERDICT] = _right(
            rubric, verdicts, case, mean, _brief(judged) if rubric.rates else detail
        )
    return found


def _right(
    rubric: Rubric,
    verdicts: Sequence[Verdict],
    case: Case,
    mean: float,
    detail: Mapping[str, object],
) -> Outcome:
    if rubric.protocol == "label":
        label = verdicts[0].reading.label
        more = {**detail, "label": label, "by": "judge"}
        if label == "none":
            return Unscored("no answer: the judge finds none", more)
        return Scored(float(label in case.references), more)
    if rubric.rates:
        low, high = rubric.worst_and_best
        return Scored((mean - low) / (high - low), detail)
    return Scored(mean, detail)


def _names(rubric: Rubric, verdicts: Sequence[Verdict]) -> list[str]:
    names = [SCORE] if rubric.rates else []
    names += [GAP] if len(verdicts) == len(BOTH) else []
    return names + ([VERDICT] if rubric.decides else [])


def metric_names(rubric: Rubric, orders: Sequence[Order]) -> list[str]:
    """Return the metrics that a prompt gives when it is asked in these orders."""
    return _names(rubric, [Verdict(order, Reading(None)) for order in orders])


def _brief(judged: Judged) -> dict[str, object]:
    rubric = judged.rubric
    return {"rubric": rubric.name, "prompt": rubric.sha256[:16]}


def _detail(judged: Judged) -> dict[str, object]:
    rubric = judged.rubric
    return {
        **_brief(judged),
        **judged.about,
        "scale": [rubric.low, rubric.high] if rubric.rates else None,
        **asdict(bill(judged.verdicts, judged.price)),
        "cached": sum(one.cached for one in judged.verdicts),
        "orders": [_order_detail(one) for one in judged.verdicts],
    }


def _order_detail(verdict: Verdict) -> dict[str, object]:
    reading = verdict.reading
    made: dict[str, object] = {
        "order": verdict.order,
        "value": reading.value,
        "reason": reading.reason,
        "asked": verdict.asked,
        "cached": verdict.cached,
        "replies": [asdict(said) for said in verdict.replies],
    }
    if verdict.problem:
        made["problem"] = verdict.problem
    if reading.label is not None:
        made["label"] = reading.label
    if reading.reference_value is not None:
        made["reference_value"] = reading.reference_value
    return made
