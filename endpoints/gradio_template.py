"""The inputs of a Gradio function as a list with placeholders; values stand where they stood."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import UserError

PLACEHOLDERS = {
    "audio": "the question as an uploaded file",
    "text": "what is asked in writing beside the audio",
    "instructions": "the endpoint's instructions",
    "model": "the endpoint's model",
    "voice": "the endpoint's voice",
    "temperature": "the endpoint's temperature",
    "sample_rate": "samples a second of the question",
    "session_tag": "our name for the session",
    "null": "an input that is left empty",
    "output.0": "an output of the session's last answer; an empty string before the first",
}
"""Every placeholder, with what it stands for; `output` goes with any number or path."""

_BRACES = re.compile(r"\{\{|\}\}|\{([A-Za-z][A-Za-z0-9_.-]*)\}")
_OUTPUT = re.compile(r"output((?:\.[A-Za-z0-9_-]+)+)")


def placeholders(template: Json, place: str) -> frozenset[str]:
    """Return the names that stand in a template.

    Args:
        template: Any JSON.
        place: Where it stands in bench.toml, for the error.

    Raises:
        UserError: If there is no such placeholder.
    """
    found = frozenset(_names(template))
    for name in sorted(found - PLACEHOLDERS.keys()):
        if not _OUTPUT.fullmatch(name):
            cure = (
                f"known: {', '.join(PLACEHOLDERS)}; write {{{{{name}}}}} for the braces themselves"
            )
            raise UserError(place, f"there is no placeholder {{{name}}}", cure)
    return found


def output_path(name: str) -> str | None:
    """Return the path behind `output.`, None for any other placeholder."""
    found = _OUTPUT.fullmatch(name)
    return found[1][1:] if found else None


def filled(template: Json, values: Mapping[str, Json]) -> Json:
    """Return a template with its placeholders filled in; one that stands alone keeps its type."""
    if isinstance(template, str):
        whole = _BRACES.fullmatch(template)
        if whole is not None and whole[1]:
            return values[whole[1]]
        return _BRACES.sub(lambda found: _pasted(found, values), template)
    if isinstance(template, list):
        return [filled(one, values) for one in template]
    if isinstance(template, dict):
        return {name: filled(one, values) for name, one in template.items()}
    return template


def filled_all(template: Sequence[Json], values: Mapping[str, Json]) -> list[Json]:
    """Return every input with its placeholders filled in."""
    return [filled(one, values) for one in template]


def _names(template: Json) -> Iterator[str]:
    if isinstance(template, str):
        yield from (found[1] for found in _BRACES.finditer(template) if found[1])
    elif isinstance(template, list | dict):
        for one in template.values() if isinstance(template, dict) else template:
            yield from _names(one)


def _pasted(found: re.Match[str], values: Mapping[str, Json]) -> str:
    if not found[1]:
        return found[0][0]
    value = values[found[1]]
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
