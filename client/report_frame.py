"""The page's file: its frame, style, scripts and data put together, and what its policy lets in."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from importlib import resources

_SCRIPTS = (
    *("draw.js", "charts.js", "changes.js", "compared.js", "more.js", "trials.js", "trial.js"),
    "page.js",
)
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page_of(data: Mapping[str, object], *, files: bool) -> str:
    """Return the page, which needs nothing from a network.

    Args:
        data: What it shows.
        files: Whether its details lie in script files beside it, which its policy then lets in.
    """
    parts = resources.files("voxmeter.client").joinpath("page")
    script = "\n".join(parts.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}}})();\n'
    style = parts.joinpath("page.css").read_text(encoding="utf-8")
    beside = " 'self' file:" if files else ""
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'{beside}; style-src '{_hash(style)}'; "
        "media-src 'self' file: data:; base-uri 'none'; form-action 'none'"
    )
    held = {"%POLICY%": policy, "%STYLE%": style, "%DATA%": script_json(data), "%SCRIPT%": script}
    made = []
    rest = parts.joinpath("page.html").read_text(encoding="utf-8")
    for mark, text in held.items():  # in the order of the page; no mark is looked for in what came
        before, _, rest = rest.partition(mark)
        made += [before, text]
    return "".join([*made, rest])


def script_json(data: object) -> str:
    """Return data as JSON that neither ends a script element nor begins a comment in one.

    A number that JSON has no word for becomes null: a page with a gap is better than none.
    """
    try:
        held = _dumped(data)
    except ValueError:
        held = _dumped(_finite(data))
    for letter, escaped in _UNSAFE.items():
        held = held.replace(letter, escaped)
    return held


def _dumped(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _finite(data: object) -> object:
    match data:
        case float():
            return data if math.isfinite(data) else None
        case Mapping():
            return {str(name): _finite(value) for name, value in data.items()}
        case list() | tuple():
            return [_finite(value) for value in data]
        case _:
            return data


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
