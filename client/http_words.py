"""The words of a refused request: a server's page or JSON as one line, without our secrets."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence

LONGEST = 400
_HIDDEN = re.compile(
    r"<(script|style|head|title)\b.*?</\1\s*>|<!--.*?-->|<!doctype[^>]*>", re.DOTALL | re.IGNORECASE
)
_TAG = re.compile(r"<[^>]*>")
_SAYING = ("message", "detail", "error", "error_description", "reason", "msg")


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
    text = body.decode("utf-8", errors="replace")
    said = _of_json(text) or _of_page(text) or phrase
    if "location" in headers:
        said += f"; it points to {headers['location'].split('?', 1)[0]}: put that into url"
    if "retry-after" in headers:
        said += f"; retry after {headers['retry-after']}"
    for secret in secrets:
        said = said.replace(secret, "…")
    return said


def _of_json(text: str) -> str:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(found, dict):
        return ""
    inner = found.get("error")
    holder = inner if isinstance(inner, dict) else found
    said = next((holder[name] for name in _SAYING if holder.get(name)), "")
    words = said if isinstance(said, str) else json.dumps(said)
    named = [holder.get(name) for name in ("code", "type")]
    code = next((one for one in named if isinstance(one, str) and one), "")
    return _line(f"{code}: {words}" if code and words else code or words)


def _of_page(text: str) -> str:
    return _line(html.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", text))))


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST]
