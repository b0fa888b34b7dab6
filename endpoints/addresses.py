"""Where a client connects, whatever its protocol: URLs of websockets, keys that go into headers."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit, urlunsplit

from voxmeter.endpoints.errors import UserError

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_OVER_HTTP = {"ws": "http", "wss": "https"}


def websocket_parts(url: str, path: str) -> SplitResult:
    """Return the parts of a URL, with a websocket's scheme and without a fragment.

    Args:
        url: As the user wrote it, of a websocket or of HTTP.
        path: The protocol's own, for the error.

    Raises:
        UserError: If it is anything else. Its query is not repeated, as it may hold a key.
    """
    cure = f"write it like wss://host{path}"
    shown = url.partition("?")[0]
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - asked for its ValueError
    except ValueError as error:
        raise UserError("url", f"{shown!r}: {error}", cure) from None
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise UserError("url", repr(shown), cure)
    return parts._replace(scheme=scheme, fragment="")


def websocket_url(url: str, path: str) -> str:
    """Return a URL as a websocket's, with a path where it has none.

    Raises:
        UserError: As `websocket_parts`.
    """
    parts = websocket_parts(url, path)
    return urlunsplit(parts._replace(path=parts.path if parts.path.strip("/") else path))


def http_url(url: str, path: str) -> str:
    """Return a URL as one of HTTP, with a path where it has none.

    Raises:
        UserError: As `websocket_parts`.
    """
    parts = urlsplit(websocket_url(url, path))
    return urlunsplit(parts._replace(scheme=_OVER_HTTP[parts.scheme]))


def is_this_machine(host: str) -> bool:
    """Return whether a host name is one of this machine for itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def checked_key(api_key: str) -> str:
    """Return a key that a header can carry.

    Raises:
        UserError: If it cannot; the key is not repeated.
    """
    if not (api_key.isascii() and api_key.isprintable()):
        found = "has line ends or characters outside ASCII"
        raise UserError("the API key", found, "copy it again, without spaces around it")
    return api_key
