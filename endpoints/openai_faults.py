"""What an error of OpenAI Realtime means: whose rule was met, and whether asking again can help."""

from __future__ import annotations

from collections.abc import Callable

from voxmeter.endpoints.codec import Ended
from voxmeter.endpoints.events import Fault, FaultKind
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.waits import named_wait_s

_CODES: dict[str, tuple[FaultKind, bool]] = {
    "authentication_error": ("auth", False),
    "accessdenied": ("auth", False),
    "invalid_api_key": ("auth", False),
    "invalidapikey": ("auth", False),
    "invalid_authentication": ("auth", False),
    "missing_api_key": ("auth", False),
    "permission_denied": ("auth", False),
    "permission_error": ("auth", False),
    "unauthorized": ("auth", False),
    "arrearage": ("quota", False),
    "billing_hard_limit_reached": ("quota", False),
    "insufficient_quota": ("quota", False),
    "quota_exceeded": ("quota", False),
    "content_filter": ("policy", False),
    "content_policy_violation": ("policy", False),
    "datainspectionfailed": ("policy", False),
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
    "throttling": ("busy", True),
    "too_many_requests": ("busy", True),
    "api_error": ("server", True),
    "fatal": ("server", True),
    "processing_error": ("server", True),
    "warning": ("server", True),
    "internal_error": ("server", True),
    "internalerror": ("server", True),
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


def error_fault(told: Fields, named: Callable[[str], str | None], *, ready: bool) -> Fault:
    """Return what an `error` event says.

    Most errors leave the session open: one is fatal when it is about the account, when the session
    is not set up yet, or when it names a message of ours that the turn needs. A server that tells
    errors as bare text names no message, so that each of them may be about one that was needed.

    Args:
        told: The event.
        named: Returns which kind of message of ours an id is of, if it is of one.
        ready: Whether the session was set up before.
    """
    if isinstance(told.data.get("error"), str) or (told.has("message") and not told.has("error")):
        code = told.text("code", "")
        kind, retryable = classify(code, "")
        said = told.text("error" if told.has("error") else "message")
        return Fault(kind, retryable, f"{code or 'no code'}: {said}")
    error = told.object("error")
    sent = named(error.text("event_id", "") or told.text("event_id", ""))
    code, type_ = error.text("code", ""), error.text("type", "")
    kind, retryable = classify(code, type_)
    fatal = kind in _ENDS_SESSION or code == "session_expired" or not ready or sent in _STOPS_TURN
    fatal = (fatal or type_ == "fatal") and code not in _HARMLESS and type_ != "warning"
    said = words(error, sent)
    return Fault(kind, retryable, said, fatal, named_wait_s(said))


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
    for name in (code.lower(), kind.lower()):
        for known in (name, name.partition(".")[0]):  # DashScope: Throttling.RateQuota
            if known in _CODES:
                return _CODES[known]
    return default


def words(error: Fields, sent: str | None) -> str:
    """Return one line: code, message, the field and the message of ours that it is about."""
    name = error.text("code", "") or error.text("type", "") or "no code"
    line = f"{name}: {error.text('message', '') or 'no message'}"
    if error.has("param"):
        line += f" (param {error.text('param')})"
    return line + (f" (about our {sent})" if sent else "")
