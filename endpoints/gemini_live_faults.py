"""What it means when Gemini Live closes a session, sends an error, or ends a turn for a reason."""

from __future__ import annotations

import re

from voxmeter.endpoints.codec import Ended
from voxmeter.endpoints.events import Fault, FaultKind
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.waits import named_wait_s

Meaning = tuple[FaultKind, bool]
"""Whose rule was met, and whether asking again can help."""

_STATUS: dict[str, Meaning] = {
    "UNAUTHENTICATED": ("auth", False),
    "PERMISSION_DENIED": ("auth", False),
    "RESOURCE_EXHAUSTED": ("busy", True),
    "FAILED_PRECONDITION": ("policy", False),
    "INVALID_ARGUMENT": ("request", False),
    "NOT_FOUND": ("request", False),
    "OUT_OF_RANGE": ("request", False),
    "UNIMPLEMENTED": ("request", False),
    "UNAVAILABLE": ("busy", True),
    "ABORTED": ("server", True),
    "CANCELLED": ("server", True),
    "DEADLINE_EXCEEDED": ("server", True),
    "INTERNAL": ("server", True),
    "UNKNOWN": ("server", True),
}
"""Google's own names of errors."""

_WORDS: tuple[tuple[str, Meaning], ...] = (
    ("api key", ("auth", False)),
    ("api_key", ("auth", False)),
    ("unregistered caller", ("auth", False)),
    ("authentication", ("auth", False)),
    ("credential", ("auth", False)),
    ("permission", ("auth", False)),
    ("access token", ("auth", False)),
    ("concurrent", ("busy", True)),
    ("quota", ("quota", False)),
    ("billing", ("quota", False)),
    ("rate limit", ("busy", True)),
    ("exhausted", ("busy", True)),
    ("overloaded", ("busy", True)),
    ("unavailable", ("busy", True)),
    ("location is not supported", ("policy", False)),
    ("prohibited", ("policy", False)),
    ("safety", ("policy", False)),
    ("not found", ("request", False)),
    ("publisher model", ("request", False)),
    ("not implemented", ("request", False)),
    ("not supported", ("request", False)),
    ("unsupported", ("request", False)),
    ("invalid", ("request", False)),
    ("internal error", ("server", True)),
    ("deadline", ("server", True)),
    ("aborted", ("server", True)),
)
"""What is found in reasons, which may be cut short: the first of these that is there counts."""

_CODES: dict[int, Meaning] = {
    1007: ("request", False),
    1008: ("policy", False),
    1011: ("server", True),
    1012: ("server", True),
    1013: ("busy", True),
}

_REFUSALS = re.compile("PROHIBITED|SAFETY|BLOCKLIST|CELEBRITY|NCII|PEOPLE|MINORS|CHILD|INPUT_OTHER")


def close_fault(ended: Ended) -> Fault | None:
    """Return what a close says beyond that the connection is gone; None where it says nothing."""
    default = _CODES.get(ended.code or 0)
    if default is None:
        return None
    kind, retryable = meaning(ended.reason, default)
    message = f"closed with {ended.code}: {ended.reason or 'no reason given'}"
    wait_s = named_wait_s(ended.reason)  # of a quota by the minute
    return Fault(kind, retryable or wait_s is not None, message, retry_after_s=wait_s)


def error_fault(error: Fields) -> Fault:
    """Return what an error object says, as gateways send it and as Google writes it over HTTP."""
    status, message = error.text("status", ""), error.text("message", "")
    kind, retryable = meaning(f"{status} {message}", ("server", True))
    code = status or str(error.data.get("code", "no code"))[:40]
    delays = [one.text("retryDelay", "") for one in error.objects("details")]
    wait_s = named_wait_s(" ".join([message, *(f"retry in {delay}" for delay in delays if delay)]))
    words = f"{code}: {message or 'no message'}"
    return Fault(kind, retryable or wait_s is not None, words, retry_after_s=wait_s)


def meaning(words: str, default: Meaning) -> Meaning:
    """Return what an error's words mean: Google's name of it goes first, then what it tells of."""
    for name in re.findall(r"[A-Z_]{7,}", words):
        if name in _STATUS:
            money = name == "RESOURCE_EXHAUSTED" and "quota" in words.lower()
            return ("quota", False) if money else _STATUS[name]
    lowered = words.lower()
    return next((found for word, found in _WORDS if word in lowered), default)


def turn_fault(reason: str) -> Fault | None:
    """Return what it means that a turn ended for this reason without a reply; None for no fault."""
    message = f"the turn ended without a reply: {reason}"
    if _REFUSALS.search(reason):
        return Fault("policy", retryable=False, message=message)
    if reason == "MALFORMED_FUNCTION_CALL":
        return Fault("server", retryable=True, message=message)
    return None
