"""Latency once more, from an attempt's raw log and recorded reply, by the same pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.audio import read
from voxmeter.endpoints.errors import ClipError
from voxmeter.scoring import log
from voxmeter.scoring.definitions import LATENCY
from voxmeter.scoring.types import Outcome, Scored, Unscored

if TYPE_CHECKING:
    from voxmeter.client.runfolder import AttemptPaths, RunFolder

LATENCY_VERSION = "marks-1"

Row = Mapping[str, Any]


def latency_again(folder: RunFolder, trial: Row) -> dict[str, Outcome]:
    """Return the latency of one attempt from its events and audio.

    Args:
        folder: The run.
        trial: Its row of `trials.jsonl`.

    Returns:
        Every latency that has a value now or had one in the trial's row. Empty when the log or
        the audio was not kept: the trial's own figures then stand. When they are there but
        broken, every figure that the trial had is `Unscored` with the reason.
    """
    paths = folder.attempt_paths(trial)
    if not paths.events.is_file():
        return {}
    before = {name for name, value in (trial.get("latency") or {}).items() if value is not None}
    try:
        rows = log.load(paths.events.read_text(encoding="utf-8"))
        if not rows or rows[0].get("kind") != "start":
            raise ValueError("event log has no header")  # noqa: TRY301 - one place for all of them
        stream = _stream(paths, rows)
        if stream is None:
            return {}
        found = _marks(rows, stream)
    except (ClipError, OSError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        reason = f"broken file: {error}".replace(str(folder.path), "").strip()
        return {name: Unscored(reason[:200]) for name in sorted(before & LATENCY.keys())}
    outcomes: dict[str, Outcome] = {}
    for name in LATENCY:
        value = found.get(name)
        if value is not None:
            outcomes[name] = Scored(round(float(value), 3))
        elif name in before:
            outcomes[name] = Unscored("did not happen")
    return outcomes


def _marks(rows: Sequence[Row], stream: NDArray[np.float32]) -> Mapping[str, float | None]:
    from voxmeter.scoring.marks import latency

    try:
        found = latency(rows, stream).latency
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"event log: {type(error).__name__} {error}") from error
    if not all(isfinite(value) for value in found.values() if value is not None):
        raise ValueError("event log: a time that is not finite")
    return found


def _stream(paths: AttemptPaths, rows: Sequence[Row]) -> NDArray[np.float32] | None:
    """The whole decoded output; None where it was not kept.

    Raises:
        ClipError: If the file is damaged.
        ValueError: If it does not have the samples that the log speaks of.
    """
    expected = sum(int(row.get("samples") or 0) for row in rows if row.get("kind") == "reply_audio")
    if expected == 0:
        return np.zeros(0, dtype=np.float32)
    file = paths.stream if paths.stream.is_file() else paths.reply
    if not file.is_file():
        return None
    samples = read(file).samples
    if len(samples) != expected:
        raise ValueError(f"{file.name} has {len(samples)} samples, the log {expected}")
    return samples
