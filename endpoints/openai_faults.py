"""What an error of OpenAI Realtime means: whose rule was met, and whether asking again can help."""

from __future__ import annotations

from voxmeter.endpoints.codec import Ended
from voxmeter.endpoints.events import Fault, FaultKind
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.waits import named_wait_s

_CODES: dict[str, tuple[FaultKind, bool]] = {
    "authentication_error": ("auth", False),
    "invalid_api_key": ("auth", False),
    "invalid_authentication": ("auth", False),
    "missing_api_key": ("auth", False),
    "permission_denied": ("auth", False),
    "permission_error": ("auth", False),
    "unauthorized": ("auth", False),
    "billing_hard_limit_reached": ("quota", False),
    "insufficient_quota": ("quota", False),
    "quota_exceeded": ("quota", False),
    "content_filter": ("policy", False),
    "content_policy_violation": ("policy", False),
    "moderation_blocked": ("policy", False),
    "policy_violation": ("policy", False),
    "concurrency_limit_exceeded": ("busy", True),
    "overloaded": ("busy", True),
    "rate_limit_error": ("busy", True),
    "rate_limit_exceeded": ("busy", True),
    "server_busy": ("busy", True),
    "server_overloaded": ("busy", True),
    "session_limit_exceeded": ("busy", True),
    "session_limit_reached": ("busy", True),
    "too_many_requests": ("busy", True),
    "api_error": ("server", True),
    "internal_error": ("server", True),
    "internal_server_error": ("server", True),
    "server_error": ("server", True),
    "service_unavailable": ("server", True),
    "session_expired": ("server", True),
    "timeout": ("server", True),
    "invalid_request_error": ("request", False),
}
"""Codes and types of errors -> kind, retryable; the least telling one stands last."""

_ENDS_SESSION = ("auth", "quota", "policy")
_HARMLESS = ("conversation_already_has_active_response", "response_cancel_not_active")
_STOPS_TURN = ("session.update", "append", "commit", "item", "response.create")
"""Our own messages without which no reply comes."""


def error_fault(error: Fields, sent: str | None, *, ready: bool) -> Fault:
    """Return what an `error` event says.

    Most errors leave the session open: one is fatal when it is about the account, when the session
    is not set up yet, or when it names a message of ours that the turn needs.

    Args:
        error: The event's `error` object.
        sent: Which kind of message of ours it names, if it names one.
        ready: Whether the session was set up before.
    """
    code = error.text("code", "")
    kind, retryable = classify(code, error.text("type", ""))
    fatal = kind in _ENDS_SESSION or code == "session_expired" or not ready or sent in _STOPS_TURN
    fatal = fatal and code not in _HARMLESS
    return Fault(kind, retryable, words(error, sent), fatal)


def failed_fault(details: Fields) -> Fault:
    """Return what the `status_details` of a failed response say."""
    error = details.object("error")
    default: tuple[FaultKind, bool] = ("server", True)
    kind, retryable = classify(error.text("code", ""), error.text("type", ""), default)
    said = words(error, None)
    return Fault(kind, retryable, f"response failed: {said}", retry_after_s=named_wait_s(said))


def close_fault(ended: Ended) -> Fault | None:
    """Return what a close code says beyond that the connection is gone; None for most of them.

    1008 is a policy, 1013 means "try again later", and 3000 to 4999 are the application's own.
    """
    message = f"closed with {ended.code}: {ended.reason or 'no reason given'}"
    if ended.code == 1013:
        wait_s = named_wait_s(ended.reason)
        return Fault("busy", retryable=True, message=message, retry_after_s=wait_s)
    if ended.code != 1008 and not (ended.code is not None and 3000 <= ended.code <= 4999):
        return None
    lowered = ended.reason.lower()
    for code, (kind, retryable) in _CODES.items():
        if code in lowered:
            return Fault(kind, retryable, message, retry_after_s=named_wait_s(lowered))
    return Fault("policy" if ended.code == 1008 else "request", retryable=False, message=message)


def classify(
    code: str, kind: str, default: tuple[FaultKind, bool] = ("request", False)
) -> tuple[FaultKind, bool]:
    """Return whose rule an error met, and whether asking again can help; its code goes first."""
    for name in (code, kind):
        if name in _CODES:
            return _CODES[name]
    return default


def words(error: Fields, sent: str | None) -> str:
    """Return one line: code, message, the field and the message of ours that it is about."""
    name = error.text("code", "") or error.text("type", "") or "no code"
    line = f"{name}: {error.text('message', '') or 'no message'}"
    if error.has("param"):
        line += f" (param {error.text('param')})"
    return line + (f" (about our {sent})" if sent else "")
