"""Which trial a row of `trials.jsonl` is about, and a line of `items.jsonl` without an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voxmeter.client import keys
from voxmeter.client.clock import utc_now
from voxmeter.scoring.definitions import LATENCY

if TYPE_CHECKING:
    from voxmeter.client.plan import Trial


def trial_fields(
    endpoint: str,
    suite: str,
    item: str,
    condition: str,
    trial: int,
    *,
    attempt: int = 1,
    warmup: bool = False,
) -> dict[str, Any]:
    """Return the first fields of every row: which attempt at which trial it is.

    Args:
        endpoint: Name, as all that follow.
        suite: Likewise.
        item: Likewise.
        condition: Likewise.
        trial: From 1; 0 and less for warm-up turns.
        attempt: From 1.
        warmup: Whether it is left out of every figure.
    """
    return {
        "key": keys.key(endpoint, suite, item, condition, trial),
        "endpoint": endpoint,
        "suite": suite,
        "item": item,
        "condition": condition,
        "trial": trial,
        "turn": None,
        "attempt": attempt,
        "warmup": warmup,
    }


def attempt_fields(trial: Trial) -> dict[str, Any]:
    """Return what is known of an attempt before it is made."""
    named = trial_fields(
        trial.endpoint,
        trial.item.suite,
        trial.item.item,
        trial.condition,
        trial.trial,
        attempt=trial.attempt,
        warmup=trial.warmup,
    )
    return {
        **named,
        "started_at": utc_now().isoformat(timespec="milliseconds"),
        "condition_params": {},
        "waited_s": 0.0,
    }


def never_asked(fields: Mapping[str, Any], fault: str) -> dict[str, Any]:
    """Return the line of a trial whose clip is bad: as long as any other, with nothing in it."""
    nothing = ("t0_ns", "session_tag", "connect_ms", "rtt_ms", "clip", "latency_kind", "audit")
    return {
        **fields,
        "status": "bad_clip",
        "fault": fault,
        "retryable": False,
        "retry_after_s": None,
        **dict.fromkeys(nothing),
        "latency": dict.fromkeys(LATENCY),
        "segments": [],
        "stall_spans": [],
        "usage": {},
        "reply_channel": None,
        "reply_text": "",
    }


def lost(trial: Trial, times: int) -> dict[str, Any]:
    """Return the line of a trial that no worker of a cluster outlived, of its newest attempt."""
    fault = f"the worker that asked it was lost {times} times"
    row = never_asked(attempt_fields(trial), fault)
    return row | {"status": "disconnected", "lost_attempts": times - 1}


def open_item(suite: str, item: str) -> dict[str, Any]:
    """Return the line of an item that was made up while it was asked, in no suite's words."""
    return {
        "suite": suite,
        "item": item,
        "cluster": item,
        "groups": [],
        "kind": "open",
        "question": "",
        "reference": None,
        "options": [],
        "language": "en",
        "question_via": None,
    }
