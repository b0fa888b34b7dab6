"""What hosted agents have in common: what they cannot be told, what their refusals mean."""

from __future__ import annotations

import pytest

from voxmeter.endpoints.codec import Ended, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Closed, Fault
from voxmeter.endpoints.hosted import (
    close_events,
    failure,
    meaning,
    only_silence,
    refuse,
)


def test_settings_that_nobody_would_hear_are_refused() -> None:
    only_silence("acme", Settings())
    only_silence("acme", Settings(turn_end="silence"))
    with pytest.raises(UserError, match="turn_end"):
        only_silence("acme", Settings(turn_end="request"))
    refuse("acme", "remove it", voice="", temperature=None)
    for given in ({"voice": "x"}, {"temperature": 0}):
        with pytest.raises(UserError, match="kind acme has no place for it here; remove it"):
            refuse("acme", "remove it", **given)


@pytest.mark.parametrize(
    ("code", "words", "kind", "retryable"),
    [
        ("INSUFFICIENT_QUOTA", "", "quota", False),
        ("rate_limit_exceeded", "billing", "busy", True),
        ("", "You have no credits left", "quota", False),
        ("", "Out of minutes", "quota", False),
        ("", "Too many requests", "busy", True),
        ("", "Concurrent call limit", "busy", True),
        ("", "We are at capacity", "busy", True),
        ("", "Unauthorised", "auth", False),
        ("", "bad API-key", "auth", False),
        ("", "stopped by a guardrail", "policy", False),
    ],
)
def test_a_failure_is_sorted_by_its_code_and_else_by_its_words(
    code: str, words: str, kind: str, retryable: bool
) -> None:
    assert meaning(code, words) == (kind, retryable)


def test_a_failure_keeps_the_vendors_words_and_the_wait_that_they_name() -> None:
    fault = failure("Too many calls. Try again in 6s.", fatal=False)
    assert (fault.kind, fault.message) == ("busy", "Too many calls. Try again in 6s.")
    assert (fault.retryable, fault.fatal, fault.retry_after_s) == (True, False, 6)
    assert meaning("odd", "who knows") is None
    assert failure("who knows", "odd").kind == "server"
    assert failure("who knows", "", ("request", False)).kind == "request"


def test_a_close_explains_what_its_words_or_its_code_say() -> None:
    quota = close_events(Ended(1002, "This request exceeds your quota limit."), answered=True)
    assert isinstance(quota[0], Fault)
    assert quota[0].kind == "quota"
    assert quota[1] == Closed(1002, "This request exceeds your quota limit.")
    assert close_events(Ended(1000, ""), answered=False) == [Closed(1000, "")]
    assert close_events(Ended(1008, "no"), answered=True) == [Closed(1008, "no")]
    assert len(close_events(Ended(1008, "no"), answered=False)) == 2
