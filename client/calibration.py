"""The last calibration of this machine: kept in the user's cache, shown in reports."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxmeter.client.audio import write_whole
from voxmeter.client.clock import utc_now
from voxmeter.client.jsonlines import disk
from voxmeter.client.machine import made_with
from voxmeter.client.model_files import user_cache
from voxmeter.client.terminal import warn
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.calibrate import Calibration

_NAME = "calibration.json"


def keep(
    result: Calibration, folder: Path | None = None, *, for_reports: bool = True
) -> dict[str, Any]:
    """Keep a calibration for this machine's reports, and in `folder` if one is given.

    A cache that cannot be written is a warning: the figures are there to be printed.

    Args:
        result: What was found.
        folder: Exists; None keeps it nowhere else.
        for_reports: Whether reports are to show it as this machine's own error.

    Returns:
        What was written.

    Raises:
        UserError: If `folder` cannot be written to.
    """
    found = {
        "measured_at": utc_now().isoformat(timespec="seconds"),
        **made_with(),
        "good": result.good,
        **asdict(result),
    }
    text = (json.dumps(found, indent=1) + "\n").encode()
    if folder is not None:
        write_whole(folder / _NAME, text)
    if not for_reports:
        return found
    try:
        cache = user_cache()
        with disk(cache):
            cache.mkdir(parents=True, exist_ok=True)
        write_whole(cache / _NAME, text)
    except UserError as error:
        warn(f"not kept for reports: {error}")
    return found


def last() -> Mapping[str, Any] | None:
    """Return this machine's last calibration; None when there is none, or it cannot be read."""
    try:
        found = json.loads((user_cache() / _NAME).read_text(encoding="utf-8"))
        known = found["machine"]["host"] == socket.gethostname()
    except (OSError, ValueError, LookupError, TypeError, RecursionError, UserError):
        return None
    return found if known else None


def lines(result: Calibration) -> list[str]:
    """Return a calibration as lines for the terminal."""
    shown = [
        "",
        "  sessions  mark                  n   off at the median   off by at most (99 %)   largest",
    ]
    shown += [
        f"  {error.sessions:>8}  {error.mark:<17} {error.n:>5}   {error.p50_ms:>+13.2f} ms"
        f"   {error.p99_abs_ms:>18.2f} ms   {error.max_abs_ms:>6.2f} ms"
        for error in result.errors
    ]
    left_out = [
        f"{count} {what}"
        for count, what in ((result.invalid, "thrown out as late"), (result.failed, "failed"))
        if count
    ]
    shown.append(f"  left out: {', '.join(left_out) or 'none'}")
    p50, p99 = f"{1 + result.spread_ms:g} ms", f"{5 + result.spread_ms:g} ms"
    verdict = (
        f"This machine can measure: within {p50} at the median and {p99} at the 99th percentile."
        if result.good
        else "Most trials were left out, so that this machine cannot be judged: stop what else is "
        "running on it, or use fewer sessions at a time."
        if result.lost
        else f"Above {p50} at the median or {p99} at the 99th percentile: stop what else is "
        "running on this machine, or use fewer sessions at a time."
    )
    if result.spread_ms:
        shown.append(
            f"  Opus moves where a sound begins by up to {result.spread_ms:g} ms by itself."
        )
    return [*shown, "", verdict]


def few_for_compare(result: Calibration) -> list[str]:
    """Return what `voxmeter compare` will miss in a calibration: too few of its cases."""
    from voxmeter.scoring.paired import LEAST_CLUSTERS

    told = []
    for number in dict.fromkeys(result.sessions):
        names = [case for case in result.by_case if case["sessions"] == number]
        seen = {(one["lead_ms"], one["pacing"], one["trail_ms"]) for one in names}
        if len(seen) < LEAST_CLUSTERS:
            cases = f"{len(seen)} case{'' if len(seen) == 1 else 's'}"
            told.append(
                f"with {number} session{'' if number == 1 else 's'} at a time {cases} could be "
                f"measured, and {LEAST_CLUSTERS} are the least that voxmeter compare takes; leave "
                "out --seconds or give it more, on a quiet machine"
            )
    return told
