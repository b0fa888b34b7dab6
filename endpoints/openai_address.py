"""Where a client of OpenAI Realtime connects: the URL with its query, the key in its header."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlunsplit

from voxmeter.endpoints.addresses import checked_key, is_this_machine, websocket_parts
from voxmeter.endpoints.codec import Address
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.openai_options import Wanted, flag

DEFAULT_URL = "wss://api.openai.com/v1/realtime"
_PATH = "/v1/realtime"
_MODEL, _KEY = "{model}", "{key}"


def address(url: str, api_key: str | None, wanted: Wanted) -> Address:
    """Return where one session connects.

    A URL without a path gets `/v1/realtime`; `http` becomes `ws`; an empty one is OpenAI's own.

    Raises:
        UserError: If it is not a URL of a websocket, or the key cannot stand in a header.
    """
    options = wanted.options
    beta = flag(options, "beta_header")
    headers = {}
    if beta or (beta is None and wanted.shape == "legacy"):
        headers["OpenAI-Beta"] = "realtime=v1"
    if api_key:
        name, value = _key_header(options.text("key_header"))
        headers[name] = value.replace(_KEY, checked_key(api_key))
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
    parts = websocket_parts(url, _PATH)
    given = parse_qs(parts.query, keep_blank_values=True)
    query = [parts.query] if parts.query else []
    query += [urlencode({name: value}) for name, value in _query(wanted) if name not in given]
    # Foreign servers may refuse query keys that they do not know.
    send_tag = flag(wanted.options, "send_tag")
    tagged = is_this_machine(parts.hostname or "") if send_tag is None else send_tag
    if wanted.settings.session_tag and tagged and "tag" not in given:
        query.append(urlencode({"tag": wanted.settings.session_tag}))
    path = _PATH if parts.path in {"", "/"} else parts.path
    return urlunsplit(parts._replace(path=path, query="&".join(query)))


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
