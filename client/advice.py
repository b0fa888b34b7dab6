"""What a reader of the figures should be warned of, each with what was seen and what cures it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxmeter.client import course
from voxmeter.client.columns import ABSENT, SCORED, UNSCORED, Columns, Flags, Floats
from voxmeter.client.judge_advice import of_judges
from voxmeter.scoring.definitions import is_judged
from voxmeter.scoring.metrics import OPEN

Json = Mapping[str, Any]

UNPARSED_SHARE = 0.2
DISAGREEMENT_SHARE = 0.1
SPEAKING_RATES = (1.2, 5.5)
"""Words per second that speech can have at all."""
_USUAL_RATES = (2.0, 4.0)  # people and synthesisers

_RATIOS = (1 / 3, 1 / 2, 2 / 3, 3 / 2, 2.0, 3.0)
_NEAR, _STEADY, _ENOUGH = 0.03, 0.05, 3


@dataclass(frozen=True, slots=True)
class Advice:
    """One warning of `summary.json`."""

    code: str
    text: str
    cure: str

    def row(self) -> dict[str, str]:
        """Return it as it stands in `summary.json`."""
        return {"code": self.code, "text": self.text, "cure": self.cure}


def warnings_of(summary: Json, columns: Columns, run: Json) -> list[dict[str, str]]:
    """Return everything that a reader should know before believing the figures.

    Args:
        summary: Cells and audit, as in `summary.json`.
        columns: The run that they were made from.
        run: Content of `run.json`.
    """
    found: list[Advice] = []
    index = {cell: code for code, cell in enumerate(columns.cells)}
    for cell in summary["cells"]:
        names = (cell["endpoint"], cell["suite"], cell["condition"])
        inside = (columns.cell == index.get(names, -1)) & ~columns.warmup
        found.extend(_of_cell(cell, columns, inside))
    found.extend(_of_run(summary))
    found.extend(_of_dead(columns))
    found.extend(_of_connections(run.get("config")))
    found.extend(_of_lost(columns))
    found.extend(Advice(*one) for one in of_judges(summary))
    return [one.row() for one in found]


def _some(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _place(cell: Json) -> str:
    return f"{cell['endpoint']} on {cell['suite']} ({cell['condition']})"


def _of_cell(cell: Json, columns: Columns, inside: Flags) -> Iterator[Advice]:
    yield from _of_status(cell)
    yield from _of_waits(cell, columns, inside)
    yield from _of_early_replies(cell)
    if "control" not in cell:  # a metronome answers nothing
        yield from _of_answers(cell, columns, inside)
    yield from _of_latency(cell)
    yield from _of_rates(cell, columns, inside)
    yield from (Advice(*one) for one in course.advice(cell, _place(cell)))


def _of_status(cell: Json) -> Iterator[Advice]:
    place, status = _place(cell), cell["status"]
    recorded = sum(status.values())
    again = status.get("disconnected", 0) + status.get("refused", 0)
    if recorded < cell["planned"] or again:
        missing = cell["planned"] - recorded
        parts = [f"{missing} of {cell['planned']} trials were not made"] if missing > 0 else []
        parts += [f"{again} could not be held (disconnected or refused)"] if again else []
        yield Advice(
            "incomplete",
            f"{place}: {' and '.join(parts)}",
            "voxmeter run --resume RUN makes them up",
        )
    if status.get("no_reply"):
        yield Advice(
            "silent-replies",
            f"{place}: {_some(status['no_reply'], 'silent reply', 'silent replies')} (nothing "
            "audible), counted as wrong",
            "listen to one (audio/), check the output format and rate of the endpoint",
        )
    if status.get("truncated"):
        yield Advice(
            "truncated",
            f"{place}: {_some(status['truncated'], 'reply', 'replies')} without an end within the "
            "limit, scored on what came",
            "raise reply_limit_s, or ask for shorter answers in the instructions",
        )
    if status.get("bad_clip"):
        yield Advice(
            "bad-clip",
            f"{place}: {_some(status['bad_clip'], 'clip', 'clips')} that could not be "
            "spoken, in no figure",
            "voxmeter suites verify names the files",
        )


def _of_waits(cell: Json, columns: Columns, inside: Flags) -> Iterator[Advice]:
    count = int((columns.waited & inside).sum())
    if count:
        yield Advice(
            "asked-again",
            f"{_place(cell)}: {_some(count, 'trial', 'trials')} of {cell['planned']} refused at "
            "first, and asked again after a wait that is in no figure",
            "ask fewer at a time (concurrency), or raise the limits of your account",
        )


def _of_early_replies(cell: Json) -> Iterator[Advice]:
    early = cell.get("early") or {}
    if early.get("trials"):
        yield Advice(
            "early-replies",
            f"{_place(cell)}: in {_some(early['trials'], 'trial', 'trials')} of {cell['planned']} "
            f"it spoke before the question was over "
            f"({_some(early['replies'], 'reply', 'replies')}), which is in no figure",
            "listen to one: it takes pauses, or worked examples, for the end of the turn",
        )


def _of_answers(cell: Json, columns: Columns, inside: Flags) -> Iterator[Advice]:
    place, metrics = _place(cell), cell["metrics"]
    accuracy, replies = metrics["accuracy"], _replies(cell)
    unclear = columns.column("accuracy").state == UNSCORED
    unparsed = int(np.count_nonzero(inside & columns.with_reply & columns.closed & unclear))
    if replies and unparsed / replies > UNPARSED_SHARE:
        yield Advice(
            "many-unparsed",
            f"{place}: no clear answer in {unparsed} of {replies} replies; they count as wrong",
            "read them in the table of trials; ask for the answer in a full sentence",
        )
    disagreement = metrics["speech_text_disagreement"]
    if disagreement["n"] >= 5 and disagreement["value"] > DISAGREEMENT_SHARE:
        yield Advice(
            "text-speech-disagreement",
            f"{place}: speech and text of {disagreement['value']:.0%} of {disagreement['n']} "
            "replies give different answers",
            "listen to them; a larger transcription model tells recognition from speech errors",
        )
    waiting = _reasons(columns, inside)
    if waiting["open"]:
        yield Advice(
            "open-unscored",
            f"{place}: {_some(waiting['open'], 'open question', 'open questions')} without a "
            "score: no judge was asked",
            "read them in the table of trials of report.md, or add a [[judge]] and a rubric "
            "(docs/judges.md)",
        )
    if waiting["untranscribed"]:
        yield Advice(
            "not-transcribed",
            f"{place}: {_some(waiting['untranscribed'], 'reply', 'replies')} without a "
            "transcript, in no figure on answers",
            "voxmeter score RUN tries again and names the reason in scores.jsonl",
        )
    if accuracy["n"] and accuracy["low"] is None:
        yield Advice(
            "one-cluster",
            f"{place}: all items share one source, so accuracy has no interval",
            "add items of other clusters",
        )
    loops = metrics["repetition"]
    if loops["n"] and loops["value"]:
        yield Advice(
            "repetition",
            f"{place}: {round(loops['value'] * loops['n'])} transcripts say one phrase again and "
            "again",
            "listen: the recogniser may loop where the reply does not",
        )


def _of_latency(cell: Json) -> Iterator[Advice]:
    place, audible = _place(cell), cell["metrics"]["first_audible_ms"]
    if audible["invalid"]:
        yield Advice(
            "late-frames",
            f"{place}: this machine sent or listened too late in "
            f"{_some(audible['invalid'], 'trial', 'trials')}, whose latency is left out",
            "stop what else runs here; audit.troubles of each turn says what its sound did"
            if cell["latency_kind"] == "live"
            else "lower concurrency, or stop what else runs here; voxmeter calibrate shows limits",
        )
    if 0 < audible["n"] < 20 and "control" not in cell:
        yield Advice(
            "few-samples",
            f"{place}: {_some(audible['n'], 'latency', 'latencies')}; p95 needs 20 and p99 needs "
            "100",
            "more items or --trials",
        )
    if cell["latency_kind"] == "mixed":
        yield Advice(
            "mixed-latency-kinds",
            f"{place}: its trials measure different kinds of latency, which cannot be averaged",
            "run them as two endpoints",
        )


def _of_rates(cell: Json, columns: Columns, inside: Flags) -> Iterator[Advice]:
    """Audio that is delivered or spoken at a wrong speed: a rate in a header that is not true."""
    place = _place(cell)
    speed = _values(columns, inside, "words_per_second")
    usual = _USUAL_RATES
    sounds_right = len(speed) >= _ENOUGH and usual[0] <= float(np.median(speed)) <= usual[1]
    delivery = _values(columns, inside, "delivery_rate")
    if len(delivery) >= _ENOUGH:
        middle = float(np.median(delivery))
        spread = float(np.quantile(delivery, 0.9) - np.quantile(delivery, 0.1)) / middle
        near = [one for one in _RATIOS if abs(middle / one - 1) < _NEAR]
        if near and spread < _STEADY and not sounds_right:
            yield Advice(
                "rate-mismatch",
                f"{place}: audio comes steadily at {middle:.2f} seconds a second, as if its sample "
                "rate were not the one that was announced",
                "compare output_rate with the endpoint's documentation; listen to one reply",
            )
            return
    if len(speed) >= _ENOUGH:
        middle = float(np.median(speed))
        if not SPEAKING_RATES[0] <= middle <= SPEAKING_RATES[1]:
            yield Advice(
                "rate-mismatch",
                f"{place}: replies have {middle:.1f} words a second, unlike speech",
                "compare output_rate with the endpoint's documentation; listen to one reply",
            )


def _of_run(summary: Json) -> Iterator[Advice]:
    ok: dict[str, int] = {}
    for cell in summary["cells"]:
        ok[cell["endpoint"]] = ok.get(cell["endpoint"], 0) + cell["status"].get("ok", 0)
    for endpoint, count in ok.items():
        if not count:
            yield Advice(
                "no-success",
                f"{endpoint}: not one trial succeeded",
                "voxmeter check tries the connection; report.md has a table of failures",
            )
    hosts = summary["audit"]["hosts"]
    if len(hosts) > 1:
        yield Advice(
            "mixed-hosts",
            f"trials ran on {len(hosts)} machines ({', '.join(hosts[:4])}): their latencies differ "
            "by more than the endpoint",
            "compare latencies of one machine only: report.md has a table by machine",
        )
    here = [cell["endpoint"] for cell in summary["cells"] if cell.get("computes_here")]
    for endpoint in dict.fromkeys(here):
        yield Advice(
            "same-machine",
            f"{endpoint}: the assistant computes on this very machine, so that its latency says "
            "as much of this machine's load",
            "compare only runs of a machine with nothing else to do",
        )
    if summary["calibration"] is None and any(
        cell["metrics"]["first_audible_ms"]["n"] for cell in summary["cells"]
    ):
        yield Advice(
            "not-calibrated",
            "how exact this machine's timing is was not measured",
            "voxmeter calibrate --seconds 20 measures it",
        )


def _of_dead(columns: Columns) -> Iterator[Advice]:
    for endpoint, why in columns.gave_up.items():
        yield Advice(
            "gave-up",
            f"{endpoint} was asked no more: {why}",
            "see that it answers (voxmeter check); voxmeter run --resume RUN asks what is left",
        )


def _of_connections(config: object) -> Iterator[Advice]:
    """Name every connection whose other end could have been anybody."""
    match config:
        case {"endpoint": list() as tables}:
            for table in tables:
                match table:
                    case {"name": name, "insecure": True}:
                        yield _insecure(f"{name}")
    match config:
        case {"publish": {"mqtt": {"insecure": True}}}:
            yield _insecure("[publish.mqtt]")


def _insecure(place: str) -> Advice:
    return Advice(
        "insecure",
        f"{place}: TLS certificates were not verified; another server could have answered",
        'give the server\'s certificate as ca_file = "...", and remove insecure',
    )


def _of_lost(columns: Columns) -> Iterator[Advice]:
    count = int(np.count_nonzero(columns.lost & ~columns.warmup))
    if count:
        yield Advice(
            "lost-workers",
            f"{_some(count, 'trial', 'trials')} asked again because the worker that asked first "
            "was lost; what it had heard is in no figure",
            "workers.jsonl says which worker, when and why",
        )


def _replies(cell: Json) -> int:
    status = cell["status"]
    return int(status.get("ok", 0) + status.get("truncated", 0))


def _reasons(columns: Columns, rows: Flags) -> dict[str, int]:
    """How many replies wait for a judge, and how many have no transcript."""
    accuracy = columns.column("accuracy")
    counts = {"open": 0, "untranscribed": 0}
    open_code = columns.reasons.codes.get(OPEN, -2)
    waiting = rows & columns.with_reply & (accuracy.reason == open_code) & ~_judged(columns)
    counts["open"] = int(np.count_nonzero(waiting))
    codes, numbers = np.unique(accuracy.reason[rows & columns.with_reply], return_counts=True)
    for code, number in zip(codes.tolist(), numbers.tolist(), strict=True):
        reason = columns.reasons.texts[code] if code >= 0 else ""
        if reason.startswith("not transcribed"):
            counts["untranscribed"] += number
    unread = rows & columns.with_reply & (accuracy.state == ABSENT)
    counts["untranscribed"] += int(np.count_nonzero(unread))
    return counts


def _judged(columns: Columns) -> Flags:
    """Trials that were put to some judge, whatever came of it."""
    judged = np.zeros(len(columns.attempt), np.bool_)
    for metric in filter(is_judged, columns.scores):
        judged |= columns.column(metric).state != ABSENT
    return judged


def _values(columns: Columns, rows: Flags, metric: str) -> Floats:
    column = columns.column(metric)
    values: Floats = column.value[rows & (column.state == SCORED)]
    return values
