"""What hosted voice agents have in common: addresses, keys, and the words of their refusals."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from voxmeter.endpoints.codec import Ended, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Closed, Event, Fault, FaultKind
from voxmeter.endpoints.openai_faults import classify, close_fault
from voxmeter.endpoints.waits import named_wait_s

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_OVER_HTTP = {"ws": "http", "wss": "https"}
_WORDS: tuple[tuple[FaultKind, bool, str], ...] = (
    ("quota", False, r"quota|billing|credits?\b|\bbalance\b|payment|out of (minutes|funds)"),
    ("busy", True, r"concurren|rate.?limit|too many|overloaded|capacity|at the moment"),
    ("auth", False, r"unauthori[sz]ed|not authori[sz]ed|authenticat|api.?key|permission"),
    ("policy", False, r"content.?policy|moderation|guardrail|safety"),
)
_NOTHING: tuple[FaultKind, bool] = ("request", True)
"""What no failure is."""


def websocket_url(url: str, path: str) -> str:
    """Return a URL as a websocket's, with a path where it has none.

    Raises:
        UserError: If it is no URL of a websocket or of HTTP.
    """
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise UserError("url", repr(url), f"write it like wss://host{path}")
    own = parts.path if parts.path.strip("/") else path
    return urlunsplit(parts._replace(scheme=scheme, path=own))


def http_url(url: str, path: str) -> str:
    """Return a URL as one of HTTP, with a path where it has none; else as `websocket_url`."""
    parts = urlsplit(websocket_url(url, path))
    return urlunsplit(parts._replace(scheme=_OVER_HTTP[parts.scheme]))


def checked_key(api_key: str) -> str:
    """Return a key that a header can carry.

    Raises:
        UserError: If it cannot; the key is not repeated.
    """
    if not (api_key.isascii() and api_key.isprintable()):
        found = "has line ends or characters outside ASCII"
        raise UserError("the API key", found, "copy it again, without spaces around it")
    return api_key


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
            raise UserError(place, f"kind {kind} cannot carry it here", cure)


def sort_out(
    code: str, words: str, default: tuple[FaultKind, bool] = ("server", True)
) -> tuple[FaultKind, bool]:
    """Return whose rule a failure met and whether asking again can help: by code, else by words."""
    known = classify(code.lower(), "", ("request", False))
    if known != ("request", False):
        return known
    for kind, retryable, pattern in _WORDS:
        if re.search(pattern, f"{code} {words}", re.IGNORECASE):
            return kind, retryable
    return default


def failure(
    said: str,
    code: str = "",
    default: tuple[FaultKind, bool] = ("server", True),
    *,
    fatal: bool = True,
) -> Fault:
    """Return what a vendor's words tell; its own code goes before its words."""
    kind, retryable = sort_out(code, said, default)
    return Fault(kind, retryable, said, fatal, named_wait_s(said))


def left(ended: Ended, *, answered: bool) -> list[Event]:
    """Return the events of a websocket's end.

    Args:
        ended: The end.
        answered: Whether something was said, so that a bare close explains nothing.
    """
    closed = Closed(ended.code, ended.reason)
    if sort_out("", ended.reason, _NOTHING) != _NOTHING:
        return [failure(f"closed with {ended.code}: {ended.reason}"), closed]
    fault = None if answered else close_fault(ended)
    return [closed] if fault is None else [fault, closed]
