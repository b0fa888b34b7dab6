"""How many asks judges will take and what they may cost, before a run is started."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from voxmeter.client.judge_prompts import case_of
from voxmeter.scoring.judge_messages import messages, orders_of
from voxmeter.scoring.judging import Price

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Judge
    from voxmeter.client.judge_prompts import Prompts
    from voxmeter.client.plan import Trial

REPLY = "a usual reply of two spoken sentences or so, which is what an assistant says to a question"
"""Stands for the reply that is not there yet: 5 s of speech."""

LETTERS_PER_TOKEN = 4.0
"""Of English text; other scripts take more tokens."""

TOKENS_OUT = 8
"""A score and what stands around it; a model that reasons writes a hundred times as much."""


@dataclass(frozen=True, slots=True)
class JudgeEstimate:
    """What one judge may take.

    Attributes:
        name: The judge's.
        asks: Most asks, without second ones; replies that fail and rules that decide take fewer.
        tokens_in: Of all prompts, about.
        tokens_out: Of all replies, about.
        cost: In the currency, about; None where a price is not known.
        currency: As the user calls it.
    """

    name: str
    asks: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    currency: str


def judge_estimates(bench: Bench, found: Prompts, trials: Iterable[Trial]) -> list[JudgeEstimate]:
    """Return what each judge of a bench may take.

    Args:
        bench: Its judges.
        found: Their prompts.
        trials: What is going to be asked; warm-up turns do not count.
    """
    asks = dict.fromkeys((judge.name for judge in bench.judges), 0)
    letters = dict(asks)
    known: dict[tuple[str, str, str], int] = {}
    for trial in trials:
        if trial.warmup or not trial.item.rubric or not bench.judges:
            continue
        item = trial.item
        for judge in bench.judges:
            rubric = found.of(judge.name, item.suite, item.rubric)
            if rubric is None:
                continue
            orders = orders_of(rubric, judge.orders)
            place = (judge.name, item.suite, item.item)
            if place not in known:
                sent = messages(rubric, case_of(item.row(), REPLY), orders[0])
                known[place] = sum(len(one.content) for one in sent)
            asks[judge.name] += len(orders)
            letters[judge.name] += len(orders) * known[place]
    return [_estimate(judge, asks[judge.name], letters[judge.name]) for judge in bench.judges]


def _estimate(judge: Judge, asks: int, letters: int) -> JudgeEstimate:
    tokens_in, tokens_out = round(letters / LETTERS_PER_TOKEN), asks * TOKENS_OUT
    cost = Price(judge.price_in, judge.price_out).of(tokens_in, tokens_out)
    return JudgeEstimate(judge.name, asks, tokens_in, tokens_out, cost, judge.currency)
