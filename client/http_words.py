"""The words of a refused request: a server's page or JSON as one line, without our secrets."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime

from voxmeter.client.clock import utc_now
from voxmeter.client.redaction import everything_read

LONGEST = 400
_HIDDEN = re.compile(
    r"<(script|style|head|title)\b.*?</\1\s*>|<!--.*?-->|<!doctype[^>]*>", re.DOTALL | re.IGNORECASE
)
_WHOLE = re.compile(r"[0-9]{1,9}")
_SECONDS = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?")
_LONGEST_WAIT_S = 999_999_999.0  # thirty years; nobody waits longer for a larger number
_TAG = re.compile(r"<[^>]*>")
_SAYING = ("message", "detail", "error", "error_description", "reason", "msg", "err_msg")
_HOLDING = ("error", "detail")


def refusal(
    phrase: str, headers: Mapping[str, str], body: bytes, secrets: Sequence[str] = ()
) -> str:
    """Return what a server said with its status, on one line.

    Args:
        phrase: The reason phrase of its status line.
        headers: Of the answer, names in lower case.
        body: As much of the body as was read.
        secrets: What must not be repeated.
    """
    text = everything_read().text(body.decode("utf-8", errors="replace"))  # before it is cut
    for secret in secrets:
        text = text.replace(secret, "…")
    said = _of_json(text) or _of_page(text) or phrase
    if "location" in headers:
        said += f"; it points to {headers['location'].split('?', 1)[0]}: put that into url"
    wait = wait_s(headers, utc_now())
    if wait is not None:
        said += f"; retry after {wait:.10g}"
    for secret in secrets:
        said = said.replace(secret, "…")
    return said


def wait_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how long a server asks us to wait, s; None where it names no time.

    Args:
        headers: Of the answer, names in lower case.
        now: In UTC; a date in `retry-after` counts from the answer's own `date`, where it has one,
            so that a clock that is wrong here makes no wait longer.
    """
    number = headers.get("retry-after-ms", "").strip()
    if _WHOLE.fullmatch(number):
        return int(number) / 1000
    told = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(told):
        return min(float(told), _LONGEST_WAIT_S)
    due = _date(told)
    since = _date(headers.get("date", "")) or now
    if due is None:
        return None
    return min(max(0.0, (due - since).total_seconds()), _LONGEST_WAIT_S)


def _date(told: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(told)
    except (ValueError, OverflowError):  # a year, or an offset, of twenty digits
        return None
    return found if found.tzinfo is not None else None


def _of_json(text: str) -> str:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(found, dict):
        return ""
    held = (found.get(name) for name in _HOLDING)
    holder = next((one for one in held if isinstance(one, dict)), found)
    said = next((holder[name] for name in _SAYING if holder.get(name)), "")
    words = said if isinstance(said, str) else json.dumps(said)
    named = [holder.get(name) for name in ("code", "type", "err_code")]
    named += [holder.get("status")] if holder is found.get("detail") else []
    code = next((one for one in named if isinstance(one, str) and one), "")
    return _line(f"{code}: {words}" if code and words else code or words)


def _of_page(text: str) -> str:
    return _line(html.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", text))))


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST]
