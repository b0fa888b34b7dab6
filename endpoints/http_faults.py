"""What a refused HTTP request means: whose rule was met, and whether asking again can help."""

from __future__ import annotations

import re

from voxmeter.endpoints.codec import Ended
from voxmeter.endpoints.events import Fault, FaultKind
from voxmeter.endpoints.openai_faults import classify
from voxmeter.endpoints.waits import named_wait_s

_STATUS: dict[int, tuple[FaultKind, bool]] = {
    401: ("auth", False),
    402: ("quota", False),
    403: ("auth", False),
    407: ("auth", False),
    408: ("busy", True),
    425: ("busy", True),
    429: ("busy", True),
    451: ("policy", False),
    503: ("busy", True),
    529: ("busy", True),
}
_MONEY = ("quota", "billing", "credit balance", "insufficient balance")
_WAIT = re.compile(r"; retry after (\d{1,9}(?:\.\d{1,9})?)$")


def refusal(ended: Ended) -> Fault:
    """Return what a refused request says: its status, then the server's words.

    Args:
        ended: With a status, and words that may begin with a code and a colon, and end in the
            seconds after which to ask again.
    """
    status = ended.code or 0
    kind, retryable = _STATUS.get(status, ("server", True) if status >= 500 else ("request", False))
    code, colon, _ = ended.reason.partition(":")
    if colon:
        kind, retryable = classify(code, "", (kind, retryable))
    if status == 429 and any(word in ended.reason.lower() for word in _MONEY):
        kind, retryable = "quota", False
    words = f"HTTP {status}: {ended.reason}" if ended.reason else f"HTTP {status}"
    wait = _WAIT.search(ended.reason)
    named = float(wait[1]) if wait else named_wait_s(ended.reason)
    return Fault(kind, retryable, words, retry_after_s=named)
