"""Measures this client's own error: the metronome knows its delays, so every difference is ours."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from voxmeter.client import calibration_run
from voxmeter.client.audio import Pcm, from_pcm16, resample, to_pcm16
from voxmeter.client.builtin import serving
from voxmeter.client.capture import Utterance
from voxmeter.client.event_loop import new_loop, undisturbed
from voxmeter.client.finish import Attempt
from voxmeter.client.finisher import Finisher
from voxmeter.client.groups import first_of
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.pacing import Spacing
from voxmeter.client.redaction import Redactor
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.target import Target, attempt, new_tag
from voxmeter.endpoints.codec import Settings, TurnEnd

LEADS_MS = (0, 200, 500)
PACINGS = ("burst", "realtime")
TRAILS_MS = (0, 600)
DELAY_MS, JITTER_MS = 300, 100
DUPLEX_DELAY_MS = 500
OPUS_SPREAD_MS = 3.0
"""By how much Opus moves the first audible sample of a sharp onset, either way (measured)."""
MARKS = ("first_packet_ms", "first_audible_ms")
_FRAME_MS = 20


@dataclass(frozen=True, slots=True)
class Case:
    """What one calibration trial is like.

    Attributes:
        lead_ms: Silence before the first audible sample of the reply.
        pacing: How the reply is delivered.
        trail_ms: Silence after the last voiced sample of the question.
    """

    lead_ms: int
    pacing: str
    trail_ms: int

    @property
    def name(self) -> str:
        """The item of its trials."""
        return f"{self.pacing}-lead-{self.lead_ms}-trail-{self.trail_ms}"


CASES = tuple(Case(*case) for case in itertools.product(LEADS_MS, PACINGS, TRAILS_MS))


@dataclass(frozen=True, slots=True)
class Error:
    """How far one mark was off, over all trials with so many sessions at a time.

    Attributes:
        sessions: Sessions at a time.
        mark: Which latency.
        n: Trials.
        p50_ms: Median of measured minus true, ms.
        p99_abs_ms: 99th percentile of the distance from the truth, ms (an order statistic).
        max_abs_ms: Largest distance, ms.
    """

    sessions: int
    mark: str
    n: int
    p50_ms: float
    p99_abs_ms: float
    max_abs_ms: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a calibration found.

    Attributes:
        errors: One entry for each number of sessions and mark.
        by_case: Likewise, for each case by itself, with the case's fields.
        invalid: Trials whose latency this client itself threw out as late.
        failed: Trials that did not end `ok`.
        seconds: How long it took.
        spread_ms: How far the wire's own coding moves where a sound begins, ms; no clock's fault.
        protocol: Wire between client and metronome.
        latency_kind: What its latencies may be compared with.
        sessions: The numbers of sessions that were tried.
    """

    errors: tuple[Error, ...]
    by_case: tuple[dict[str, Any], ...]
    invalid: int
    failed: int
    seconds: float
    spread_ms: float = 0.0
    protocol: str = ""
    latency_kind: str = ""
    sessions: tuple[int, ...] = ()

    @property
    def lost(self) -> bool:
        """Whether most trials, or all with some number of sessions, were left out.

        The few that a busy machine was in time for say nothing of the others.
        """
        counts = dict.fromkeys(self.sessions, 0)
        for error in self.errors:
            counts[error.sessions] = max(counts.get(error.sessions, 0), error.n)
        left_out = self.invalid + self.failed
        return not all(counts.values()) or left_out > sum(counts.values())

    @property
    def good(self) -> bool:
        """Whether every mark was within 1 ms at the median and 5 ms at the 99th percentile.

        What the wire itself spreads is allowed on top; with most trials left out it is not told.
        """
        close = bool(self.errors) and all(
            abs(error.p50_ms) <= 1 + self.spread_ms and error.p99_abs_ms <= 5 + self.spread_ms
            for error in self.errors
        )
        return close and not self.lost


@dataclass(frozen=True, slots=True)
class Budget:
    """How much to measure for each number of sessions.

    Attributes:
        trials: Trials of each case; at least two for each session are made in any case.
        seconds: Time after which no trial is begun, whatever `trials` says; None sets no limit.
        alone_s: The same with one session at a time, which takes longest for as many trials; None
            is as long as the others.
    """

    trials: int = 5
    seconds: float | None = None
    alone_s: float | None = None

    def window_s(self, sessions: int) -> float | None:
        """Return for how long trials begin with so many sessions; None sets no limit."""
        return self.alone_s if sessions == 1 and self.alone_s is not None else self.seconds

    def count(self, sessions: int) -> int:
        """Return how many trials are made with so many sessions, if the time lasts."""
        return max(self.trials * len(CASES), 2 * sessions)


def folder_for(
    parent: Path,
    sessions: Sequence[int],
    budget: Budget,
    protocol: str = "openai-realtime",
    turn_end: TurnEnd | None = None,
) -> RunFolder:
    """Make the run folder of a calibration; its arguments are those of `calibrate`.

    Raises:
        UserError: If `parent` cannot be written to, or turns cannot be closed so.
    """
    planned = {number: budget.count(number) for number in dict.fromkeys(sessions)}
    traits = Target("metronome", protocol, "", Settings(turn_end=turn_end)).traits()
    return calibration_run.create(
        parent,
        protocol,
        turn_end,
        None if budget.seconds is not None else planned,
        sessions,
        [case.name for case in CASES],
        MARKS[1:] if traits.full_duplex else MARKS,
    )


def calibrate(
    utterances: Sequence[Utterance],
    folder: RunFolder,
    *,
    whole: Sequence[Utterance] = (),
    sessions: Sequence[int] = (1, 50),
    budget: Budget | None = None,
    protocol: str = "openai-realtime",
    turn_end: TurnEnd | None = None,
) -> Calibration:
    """Ask a metronome many times and compare every mark with its truth log.

    Args:
        utterances: Questions without trailing silence, at any one rate; short, to save time.
        whole: Questions as long as a run's, which are asked instead where sessions run side by
            side: short ones would open and close sessions more often than any run does.
        folder: Of `folder_for`, open for writing; gets trials, their errors as scores, logs,
            audio, and `truth.jsonl`.
        sessions: Sessions at a time, measured one number after another.
        budget: How much to measure.
        protocol: Wire between client and metronome.
        turn_end: How turns are closed; None is the protocol's own way.

    Raises:
        UserError: If the metronome does not start, or turns cannot be closed so.
    """
    began = time.monotonic()
    budget = budget or Budget()
    target = Target("metronome", protocol, "", Settings(turn_end=turn_end))
    traits = target.traits()
    truth_file = folder.path / "truth.jsonl"
    with serving("metronome", kind=protocol, options=("--truth", str(truth_file))) as url:
        name = calibration_run.endpoint(protocol, turn_end)
        bench = _Bench(utterances, whole, folder, replace(target, name=name, url=url))
        rows: list[dict[str, Any]] = []
        with undisturbed(), asyncio.Runner(loop_factory=new_loop) as runner:
            for number in dict.fromkeys(sessions):
                try:
                    made = runner.run(bench.measure(number, budget))
                except BaseExceptionGroup as group:
                    raise first_of(group) from None
                for row in made:
                    folder.append("trials", row)
                rows += made
    lines = [json.loads(line) for line in truth_file.read_text(encoding="utf-8").splitlines()]
    truth = {line["tag"]: line for line in lines}
    calibration_run.write_scores(folder, rows, truth)
    counted = [row for row in rows if not row["warmup"]]
    found = compare(counted, truth, time.monotonic() - began)
    opus = traits.input_encoding == "opus"
    return replace(
        found,
        spread_ms=OPUS_SPREAD_MS if opus else 0.0,
        protocol=protocol,
        latency_kind=traits.latency_kind,
    )


def compare(
    rows: Sequence[Mapping[str, Any]], truth: Mapping[str, Mapping[str, Any]], seconds: float
) -> Calibration:
    """Return the errors of trial rows against truth lines.

    Args:
        rows: Rows of trials, with `sessions` and `case` added.
        truth: Truth line of each session tag.
        seconds: How long the measurement took.
    """
    good = [row for row in rows if row["status"] == "ok" and row["session_tag"] in truth]
    valid = [row for row in good if row["audit"]["latency_valid"]]
    errors: list[Error] = []
    by_case: list[dict[str, Any]] = []
    numbers = tuple(dict.fromkeys(row["sessions"] for row in rows))
    for number in numbers:
        mine = [row for row in valid if row["sessions"] == number]
        for mark in MARKS:
            errors += _errors(number, mark, mine, truth)
            for case in dict.fromkeys(json.dumps(row["case"]) for row in mine):
                same = [row for row in mine if json.dumps(row["case"]) == case]
                found = _errors(number, mark, same, truth)
                by_case += [json.loads(case) | asdict(error) for error in found]
    return Calibration(
        tuple(errors),
        tuple(by_case),
        len(good) - len(valid),
        len(rows) - len(good),
        seconds,
        sessions=numbers,
    )


def _errors(
    sessions: int,
    mark: str,
    rows: Sequence[Mapping[str, Any]],
    truth: Mapping[str, Mapping[str, Any]],
) -> list[Error]:
    off = []
    for row in rows:
        found = calibration_run.off_ms(row, truth[row["session_tag"]], mark)
        if found is not None:
            off.append(found)
    if not off:
        return []
    distance = np.abs(off)
    p99 = float(np.quantile(distance, 0.99, method="higher"))
    return [
        Error(
            sessions,
            mark,
            len(off),
            round(float(np.median(off)), 3),
            round(p99, 3),
            round(float(distance.max()), 3),
        )
    ]


class _Bench:
    """The measuring half: sessions that take the next case until the budget is spent."""

    def __init__(
        self,
        utterances: Sequence[Utterance],
        whole: Sequence[Utterance],
        folder: RunFolder,
        target: Target,
    ) -> None:
        self._utterances, self._whole, self._folder = utterances, whole, folder
        self._metronome, self._duplex = target, target.traits().full_duplex

    async def measure(self, sessions: int, budget: Budget) -> list[dict[str, Any]]:
        """Return the trial rows of one number of sessions, made side by side."""
        rows: list[dict[str, Any]] = []
        numbers = iter(range(budget.count(sessions)))
        async with LoopMonitor().watching() as monitor:
            with Finisher() as finisher:
                ask = partial(self._one, sessions=sessions, finisher=finisher, monitor=monitor)
                rows.append(await ask(-len(CASES), 0))  # not counted: it warms up both sides
                window_s = budget.window_s(sessions)
                until = None if window_s is None else time.monotonic() + window_s
                spacing = Spacing(sessions)

                async def session(place: int) -> None:
                    stagger_ns = place * _FRAME_MS * 1_000_000 // sessions
                    for number in numbers:  # shared: whoever is free takes the next
                        if until is not None and time.monotonic() >= until:
                            return
                        await spacing.turn()
                        rows.append(await ask(number, stagger_ns))

                async with asyncio.TaskGroup() as group:
                    for place in range(sessions):
                        group.create_task(session(place), name=f"calibrate {place}")
        return rows

    async def _one(
        self,
        number: int,
        stagger_ns: int,
        *,
        sessions: int,
        finisher: Finisher,
        monitor: LoopMonitor,
    ) -> dict[str, Any]:
        # The same number is the same question in every calibration, whoever takes it.
        case = CASES[number % len(CASES)]
        questions = self._whole if sessions > 1 and self._whole else self._utterances
        source = questions[number % len(questions)]
        trial = number // len(CASES) + 1
        placed = calibration_run.fields(
            self._metronome.name, sessions, case.name, trial, source, case.trail_ms
        )
        tag = new_tag()
        capture = await attempt(
            self._target(case),
            partial(_spoken, source, case.trail_ms),
            tag=tag,
            stagger_ns=stagger_ns,
            monitor=monitor,
        )
        fields = placed | {"session_tag": tag, "sessions": sessions, "case": asdict(case)}
        paths = self._folder.attempt_paths(fields)
        return await finisher.finish(capture, Attempt(fields, paths, Redactor()))

    def _target(self, case: Case) -> Target:
        query = {
            "delay_ms": DUPLEX_DELAY_MS if self._duplex else DELAY_MS,
            "jitter_ms": JITTER_MS,
            "lead_ms": case.lead_ms,
            "pacing": case.pacing,
            "tag": "",
        }
        return replace(self._metronome, url=f"{self._metronome.url}?{urlencode(query)}")


@lru_cache(maxsize=256)  # made anew for each session, it would cost the others frames
def _spoken(source: Utterance, trail_ms: int, rate: int) -> Utterance:
    """Return a question at a rate, with so much silence behind it."""
    pcm = resample(Pcm(from_pcm16(source.pcm), source.rate), rate)
    scale = rate / source.rate
    samples = np.concatenate([pcm.samples, np.zeros(trail_ms * rate // 1000, dtype=np.float32)])
    end = min(round(source.end_sample * scale), len(pcm.samples))
    return Utterance(to_pcm16(samples), rate, round(source.onset_sample * scale), end)
