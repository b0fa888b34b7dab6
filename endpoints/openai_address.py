"""Where a client of OpenAI Realtime connects: the URL with its query, the key in its header."""

from __future__ import annotations

import ipaddress
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from voxmeter.endpoints.codec import Address
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.openai_options import Wanted, flag

DEFAULT_URL = "wss://api.openai.com/v1/realtime"
_MODEL, _KEY = "{model}", "{key}"


def address(url: str, api_key: str | None, wanted: Wanted) -> Address:
    """Return where one session connects.

    A URL without a path gets `/v1/realtime`; `http` becomes `ws`; an empty one is OpenAI's own.

    Raises:
        UserError: If the URL is none, or the key cannot stand in a header.
    """
    options = wanted.options
    beta = flag(options, "beta_header")
    headers = {}
    if beta or (beta is None and wanted.shape == "legacy"):
        headers["OpenAI-Beta"] = "realtime=v1"
    if api_key:
        if not (api_key.isascii() and api_key.isprintable()):
            found = "has line ends or characters outside ASCII"
            raise UserError("the API key", found, "copy it again, without spaces around it")
        name, value = _key_header(options.text("key_header"))
        headers[name] = value.replace(_KEY, api_key)
    whole = _whole(url or DEFAULT_URL, wanted)
    return Address(whole, headers, tuple(options.texts("subprotocols")))


def _key_header(chosen: str) -> tuple[str, str]:
    """Return the name of the header that carries the key, and its value with `{key}` in it."""
    name, _, value = chosen.partition(":")
    name, value = name.strip(), value.strip()
    if not name or (name.lower() == "authorization" and not value):
        return name or "Authorization", f"Bearer {_KEY}"
    if value and _KEY not in value:
        cure = "write 'NAME', or 'NAME: WORDS {key}'"
        raise UserError("options.key_header", f"{chosen!r} has no {_KEY} behind its colon", cure)
    return name, value or _KEY


def _whole(url: str, wanted: Wanted) -> str:
    cure = "write it like wss://host/v1/realtime"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        parts.port  # noqa: B018 - asked for its ValueError
    except ValueError as error:
        raise UserError("url", f"{url!r}: {error}", cure) from None
    scheme = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}.get(parts.scheme)
    if scheme is None or not host:
        raise UserError("url", repr(url), cure)
    given = parse_qs(parts.query, keep_blank_values=True)
    query = [parts.query] if parts.query else []
    query += [urlencode({name: value}) for name, value in _query(wanted) if name not in given]
    # Foreign servers may refuse query keys that they do not know.
    send_tag = flag(wanted.options, "send_tag")
    tagged = _is_this_machine(host) if send_tag is None else send_tag
    if wanted.settings.session_tag and tagged and "tag" not in given:
        query.append(urlencode({"tag": wanted.settings.session_tag}))
    path = "/v1/realtime" if parts.path in {"", "/"} else parts.path
    return urlunsplit((scheme, parts.netloc, path, "&".join(query), ""))


def _query(wanted: Wanted) -> list[tuple[str, str]]:
    """Return what the query carries; what would hold no model where it should is left out."""
    options, model = wanted.options, wanted.settings.model
    table = options.table("query") if options.has("query") else {"model": _MODEL}
    made = []
    for name, value in table.items():
        if not isinstance(value, str):
            raise options.wrong("query", "a table of strings")
        if model or _MODEL not in value:
            made.append((name, value.replace(_MODEL, model)))
    return made


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
