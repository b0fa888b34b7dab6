"""Whether a latency is worse than its baseline, and how to say so to a person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from voxmeter.client.baseline import LATE, TIMES, Baseline, Samples
from voxmeter.client.figures import number
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.stats import Interval, bootstrap_mean, percentile
from voxmeter.scoring.unpaired import LEAST, Statistic, difference

if TYPE_CHECKING:
    from voxmeter.scoring.stats import Floats

At = Literal["p50", "mean"]

_STATISTIC: Mapping[At, Statistic] = {"p50": "median", "mean": "mean"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a regression has to exceed.

    Attributes:
        metric: The latency.
        at: The figure of it that is compared.
        relative: Floor as a share of the baseline's figure.
        absolute_ms: Floor in ms.
    """

    metric: str
    at: At
    relative: float
    absolute_ms: float

    def __post_init__(self) -> None:
        place = "assert_no_regression"
        if self.metric not in TIMES:
            from voxmeter.client.gate_rules import suggestion

            near = suggestion(self.metric)
            cure = f'did you mean "{near}"?' if near in TIMES else f"known: {', '.join(TIMES)}"
            raise UserError(place, f'"{self.metric}" is no latency of which less is better', cure)
        if self.at not in _STATISTIC:
            raise UserError(place, f'at "{self.at}" cannot be compared', 'write "p50" or "mean"')
        for name, floor in (("relative", self.relative), ("absolute_ms", self.absolute_ms)):
            if not 0 <= floor < math.inf:
                raise UserError(place, f"{name} is {floor}", "write 0 or more")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a comparison.

    Attributes:
        limits: What was asked.
        base: Figure of the baseline with its interval, ms.
        new: Figure of the conversation, likewise.
        change: How much longer it takes now, ms.
        floors: Both floors in ms, the larger one last, each with how it was told.
        counts: Samples of the baseline, and of the conversation.
    """

    limits: Limits
    base: Interval
    new: Interval
    change: Interval
    floors: tuple[tuple[float, str], tuple[float, str]]
    counts: tuple[int, int]

    @property
    def floor_ms(self) -> float:
        """The larger floor."""
        return self.floors[1][0]

    @property
    def regressed(self) -> bool:
        """Whether the interval is beyond zero and the change beyond both floors."""
        low = self.change.low
        return low is not None and low > 0 and self._beyond

    @property
    def _beyond(self) -> bool:
        # what is equal but for its last digits is not beyond
        return self.change.value * (1 - 1e-9) > self.floor_ms

    @property
    def figures(self) -> str:
        """Both figures with n and interval, on one line."""
        was, now = self.counts
        return (
            f"{self.limits.at} {_ms(self.new)} (n {now}), was {_ms(self.base)} (n {was}); "
            f"change {_change(self.change)}"
        )

    @property
    def reason(self) -> str:
        """Why it is a regression, or why it is none."""
        lower, upper = (f"{_whole(floor)} ms ({told})" for floor, told in self.floors)
        _, low, high = self.change
        if self.regressed:
            return f"the interval is above zero and the change beyond both floors: {lower}, {upper}"
        if high is not None and high < 0:
            return "shorter than before"
        if low is not None and low > 0:
            return f"longer, but not beyond the floor of {upper}"
        if self._beyond:
            return f"beyond {upper}, but the interval holds zero: more trials can tell"
        return "the interval holds zero"


def unfit(samples: Samples, metric: str) -> str | None:
    """Return why a conversation cannot be judged by one latency, None when it can.

    It takes `LEAST` samples, and an endpoint that answered at least half of the trials: the
    latency of the answers that did come says nothing of an endpoint that mostly does not answer.
    """
    n, asked = len(samples.values), samples.asked
    failed = asked - n - samples.left_out.get(LATE, 0)
    told = f"{n} of {asked} trials have {metric}{left_out(samples)}"
    if n < LEAST:
        return f"too few samples: {told}; {LEAST} are needed"
    if 2 * failed > asked:
        return f"most trials failed: {told}"
    return None


def short_of(base: Baseline, metric: str) -> str | None:
    """Return why a baseline cannot serve for one latency, None when it can."""
    n = len(base.samples[metric].values) if metric in base.samples else 0
    return f"has {n} samples of {metric}; {LEAST} are needed" if n < LEAST else None


def judge(base: Samples, new: Samples, limits: Limits) -> Verdict:
    """Compare two sets of samples, each with at least `LEAST`."""
    was, now = np.array(base.values), np.array(new.values)
    before = _figure(was, limits.at)
    share = limits.relative * abs(before.value)
    relative = (share, f"relative={limits.relative:g} of {_whole(before.value)} ms")
    absolute = (float(limits.absolute_ms), f"absolute_ms={limits.absolute_ms:g}")
    return Verdict(
        limits,
        before,
        _figure(now, limits.at),
        difference(was, now, _STATISTIC[limits.at]),
        (min(relative, absolute), max(relative, absolute)),
        (len(was), len(now)),
    )


def explanation(verdict: Verdict, place: str, base: Baseline, new: Baseline, again: str) -> str:
    """Return what a person has to know of a regression, in a few lines.

    Args:
        verdict: Of `judge`.
        place: Where the baseline lies.
        base: What it says.
        new: What the conversation says.
        again: The command that accepts it as the new baseline.
    """
    metric = verdict.limits.metric
    lines = [
        f"{metric} is worse than in {place}",
        verdict.figures,
        f"{verdict.reason}; 95 % interval, unpaired bootstrap",
    ]
    for name, side in (("here", new), ("in the baseline", base)):
        told = left_out(side.samples[metric])
        if told:
            lines.append(f"{name}, of {side.samples[metric].asked} trials{told}")
    if base.host != new.host:
        hosts = f"{printable(base.host, 60)}, this is {printable(new.host, 60)}"
        lines.append(f"the baseline was made on another machine ({hosts})")
    lines.append(f"where that is meant to be: {again}")
    return "\n  ".join(lines)


def left_out(samples: Samples) -> str:
    """Return how many trials were left out and why, in words; nothing when none were."""
    told = ", ".join(
        f"{count} {printable(reason, 60)}" for reason, count in sorted(samples.left_out.items())
    )
    return f" (left out: {told})" if told else ""


def _figure(samples: Floats, at: At) -> Interval:
    found = percentile(samples, 0.5) if at == "p50" else None
    return found or bootstrap_mean(samples, np.arange(len(samples)))


def _ms(interval: Interval) -> str:
    return number(interval._asdict(), "ms")


def _change(interval: Interval) -> str:
    value, low, high = interval
    limits = "" if low is None or high is None else f" [{low:+.1f} to {high:+.1f}]"
    return f"{value:+.1f} ms{limits}"


def _whole(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
