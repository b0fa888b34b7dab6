"""A calibration as a run folder: `compare` and `report` read it as they read any run's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxmeter import __version__
from voxmeter.client import config, keys
from voxmeter.client.clock import utc_now
from voxmeter.client.machine import load_average, machine, packages
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.summary import write_summary

if TYPE_CHECKING:
    from voxmeter.client.capture import Utterance
    from voxmeter.endpoints.codec import TurnEnd

SUITE = "calibration"
OFF = {"first_packet_ms": "packet_error_ms", "first_audible_ms": "audible_error_ms"}
"""The metric of each mark's distance from the truth."""

_VERSION = "1"
_TOLERATED_MS = 1

Json = dict[str, Any]


def create(
    parent: Path,
    protocol: str,
    turn_end: TurnEnd | None,
    planned: Mapping[int, int] | None,
    sessions: Sequence[int],
    items: Sequence[str],
    marks: Sequence[str] = tuple(OFF),
) -> RunFolder:
    """Make the run folder of a calibration: a cell for each number of sessions.

    Args:
        parent: Made when missing.
        protocol: Wire between client and metronome; the endpoint's kind.
        turn_end: How turns are closed; None is the protocol's own way.
        planned: Trials for each number of sessions; None where the time decides.
        sessions: Sessions at a time.
        items: Names of the cases.
        marks: Latencies that the protocol has; a comparison is about them.

    Raises:
        UserError: If the place may not be written, or the disk is full.
    """
    name = endpoint(protocol, turn_end)
    cells = [
        {"endpoint": name, "suite": SUITE, "condition": condition(number), "planned": count}
        for number, count in (planned or {}).items()
    ]
    record = {
        "voxmeter": __version__,
        "config": _config(name, protocol, turn_end, sessions, marks),
        "planned": cells,
        "machine": machine(),
        "load_average": load_average(),
        "packages": packages(),
    }
    folder = RunFolder.create(parent, SUITE, record)
    folder.write_items(_item(one) for one in items)
    return folder


def endpoint(protocol: str, turn_end: TurnEnd | None) -> str:
    """Return the endpoint's name: wires and ways of closing a turn are not compared."""
    return f"{protocol}-{turn_end}" if turn_end else protocol


def condition(sessions: int) -> str:
    """Return the name of a cell's condition."""
    return f"sessions-{sessions}"


def fields(
    name: str, sessions: int, item: str, trial: int, source: Utterance, trail_ms: int
) -> Json:
    """Return the fields of a trial's row that are known before it runs.

    Args:
        name: The endpoint's.
        sessions: Sessions at a time.
        item: The case.
        trial: From 1; 0 warms up and is not counted.
        source: The question.
        trail_ms: Silence behind it.
    """
    digest = hashlib.sha256(source.pcm + trail_ms.to_bytes(4)).hexdigest()
    end_ms = source.end_sample / source.rate * 1000
    return {
        "key": keys.key(name, SUITE, item, condition(sessions), trial),
        "endpoint": name,
        "suite": SUITE,
        "item": item,
        "condition": condition(sessions),
        "trial": trial,
        "turn": None,
        "attempt": 1,
        "warmup": trial < 1,
        "started_at": utc_now().isoformat(timespec="milliseconds"),
        "clip": {
            "sha256": digest,
            "ms": round(len(source.pcm) / 2 / source.rate * 1000 + trail_ms, 3),
            "speech_end_ms": round(end_ms, 3),
            "end_kind": source.end_kind,
        },
        "reply_channel": "speech",
    }


def off_ms(row: Mapping[str, Any], line: Mapping[str, Any], mark: str) -> float | None:
    """Return measured less true, ms; None where either side does not know.

    Args:
        row: Of the trial.
        line: Of the truth log.
        mark: Name of a latency.
    """
    measured, true_ns = row["latency"].get(mark), line.get(mark.replace("_ms", "_ns"))
    if measured is None or true_ns is None:
        return None
    return float(measured - (true_ns - _user_end_ns(row, line)) / 1e6)


def write_scores(
    folder: RunFolder,
    rows: Sequence[Mapping[str, Any]],
    truth: Mapping[str, Mapping[str, Any]],
) -> None:
    """Write how far off each mark was in the trials that count.

    Raises:
        UserError: If the disk is full.
    """
    for row in rows:
        for score in _scores(row, truth.get(row["session_tag"])):
            folder.append("scores", score)


def summarise(folder: RunFolder) -> None:
    """Write `summary.json`.

    Raises:
        UserError: If the disk is full.
    """
    write_summary(folder, config.reread(folder.run["config"], f"{folder.path}/run.json"))


def _scores(row: Mapping[str, Any], line: Mapping[str, Any] | None) -> Iterator[Json]:
    if line is None or row["status"] != "ok" or not row["audit"]["latency_valid"]:
        return
    for mark, metric in OFF.items():
        off = off_ms(row, line, mark)
        if off is not None:
            yield {
                "key": row["key"],
                "attempt": row["attempt"],
                "metric": metric,
                "version": _VERSION,
                "value": round(abs(off), 3),
                "unscored": None,
                "detail": {"off_ms": round(off, 3)},
            }


def _user_end_ns(row: Mapping[str, Any], line: Mapping[str, Any]) -> int:
    """Return what a trial's latency is held against: the server's own idea of the user's end.

    In full duplex the server has heard the question through Opus, which spreads its end by up to
    25 ms; there the two sides' moments themselves are compared, on the one clock they share.
    """
    return int(row["t0_ns"] if row.get("latency_kind") == "duplex" else line["user_end_ns"])


def _config(
    name: str,
    protocol: str,
    turn_end: TurnEnd | None,
    sessions: Sequence[int],
    marks: Sequence[str],
) -> Json:
    """What a bench.toml of it would say; its gates are those of a comparison with it."""
    metronome: Json = {"name": name, "kind": protocol, "builtin": "metronome"}
    regression = {"absolute_ms": _TOLERATED_MS}
    return {
        "run": {"name": SUITE},
        "endpoint": [metronome | ({"turn_end": turn_end} if turn_end else {})],
        "suite": [{"kind": "jsonl", "name": SUITE, "path": "items.jsonl"}],
        "condition": [{"name": condition(number)} for number in dict.fromkeys(sessions)],
        "gate": [{"metric": OFF[mark], "regression": regression} for mark in marks],
    }


def _item(name: str) -> Json:
    return {
        "suite": SUITE,
        "item": name,
        "cluster": name,
        "groups": [],
        "kind": "open",
        "question": "",
        "reference": None,
        "options": None,
        "language": "en",
        "question_via": None,
    }
