"""What hosted voice agents have in common: what they cannot be told, and how they refuse."""

from __future__ import annotations

import re

from voxmeter.endpoints.codec import Ended, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Closed, Event, Fault, FaultKind
from voxmeter.endpoints.openai_faults import classify, close_fault
from voxmeter.endpoints.waits import named_wait_s

STORED_AGENT = (
    "the stored agent has its own: remove it (if a preset sets it, write kind and url instead), "
    "or remove options.agent_id"
)
"""What to do about a setting that describes an agent beside one that is stored at the vendor."""

_WORDS: tuple[tuple[FaultKind, bool, str], ...] = (
    ("quota", False, r"quota|billing|credits?\b|\bbalance\b|payment|out of (minutes|funds)"),
    ("busy", True, r"concurren|rate.?limit|too many|overloaded|capacity|at the moment"),
    ("auth", False, r"unauthori[sz]ed|not authori[sz]ed|authenticat|api.?key|permission"),
    ("policy", False, r"content.?policy|moderation|guardrail|safety"),
)


def only_silence(kind: str, settings: Settings) -> None:
    """Refuse settings that close turns in another way than by silence.

    Raises:
        UserError: If `turn_end` is anything but `silence`.
    """
    if settings.turn_end not in {None, "silence"}:
        found = f'"{settings.turn_end}": the endpoint itself finds out when a turn is over'
        raise UserError("turn_end", found, f"remove the key: kind {kind} has no other way")


def refuse(kind: str, cure: str, **given: object) -> None:
    """Refuse settings that the protocol has no word for, so that no run records what nobody heard.

    Raises:
        UserError: If one of them is set.
    """
    for place, value in given.items():
        if value is not None and value != "":
            raise UserError(place, f"kind {kind} has no place for it here", cure)


def meaning(code: str, words: str) -> tuple[FaultKind, bool] | None:
    """Return the kind of a failure and whether asking again can help; None if neither is told.

    Args:
        code: The vendor's own, which counts first; "" for none.
        words: Its message.
    """
    known = classify(code.lower(), "", ("request", False))
    if known != ("request", False):
        return known
    for kind, retryable, pattern in _WORDS:
        if re.search(pattern, f"{code} {words}", re.IGNORECASE):
            return kind, retryable
    return None


def failure(
    said: str,
    code: str = "",
    default: tuple[FaultKind, bool] = ("server", True),
    *,
    fatal: bool = True,
) -> Fault:
    """Return the fault that a vendor's words tell of.

    Args:
        said: The words, kept as they are.
        code: The vendor's own code, which counts before its words; "" for none.
        default: Kind, and whether asking again can help, where neither tells.
        fatal: Whether the session is over.
    """
    kind, retryable = meaning(code, said) or default
    return Fault(kind, retryable, said, fatal, named_wait_s(said))


def close_events(ended: Ended, *, answered: bool) -> list[Event]:
    """Return the events of a websocket's end.

    Args:
        ended: The end.
        answered: Whether something was said, so that a bare close explains nothing.
    """
    closed = Closed(ended.code, ended.reason)
    if meaning("", ended.reason) is not None:
        return [failure(f"closed with {ended.code}: {ended.reason}"), closed]
    fault = None if answered else close_fault(ended)
    return [closed] if fault is None else [fault, closed]
