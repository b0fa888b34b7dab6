"""Which protocols there are, one line each: nothing is imported before it is asked for.

Other packages add kinds through the entry-point group `voxmeter.endpoints`: the name of an entry
is the kind, its object either a factory of codecs (`Settings` -> `Codec`, over a websocket) or a
whole `Kind`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, cast

from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.kind import Kind, load

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "voxmeter.endpoints"

KINDS: Mapping[str, str] = {
    "openai-realtime": "voxmeter.endpoints.openai_realtime:KIND",
    "moshi": "voxmeter.endpoints.moshi:KIND",
    "gpt-live": "voxmeter.endpoints.gpt_live:KIND",
    "elevenlabs": "voxmeter.endpoints.elevenlabs:KIND",
    "deepgram": "voxmeter.endpoints.deepgram:KIND",
    "ultravox": "voxmeter.endpoints.ultravox:KIND",
    "gemini-live": "voxmeter.endpoints.gemini_live:KIND",
    "mini-omni": "voxmeter.endpoints.mini_omni:KIND",
    "openai-chat": "voxmeter.endpoints.openai_chat:KIND",
    "http": "voxmeter.endpoints.http_endpoint:KIND",
    "gradio": "voxmeter.endpoints.gradio:KIND",
    "glm-4-voice": "voxmeter.endpoints.glm_4_voice:KIND",
    "exec": "voxmeter.endpoints.exec_lines:KIND",
    "pipecat": "voxmeter.endpoints.pipecat:KIND",
    "python": "voxmeter.endpoints.exec_lines:PYTHON_KIND",
    "import": "voxmeter.endpoints.exec_lines:IMPORT_KIND",
    "pipeline": "voxmeter.endpoints.pipeline:KIND",
    "hermes": "voxmeter.endpoints.hermes:KIND",
}
"""Our own kinds: the name of each, and where its `Kind` stands."""


def names() -> Sequence[str]:
    """Return the names of all kinds: ours first, then those that other packages add."""
    return [*KINDS, *(name for name in _added() if name not in KINDS)]


def find(name: str, place: str = "kind") -> Kind:
    """Return the kind of a name; of a package's kind, this imports what its entry names.

    Args:
        name: As in bench.toml.
        place: Where the name stands, for the error.

    Raises:
        UserError: If there is no such kind, or the package that adds it cannot be imported.
    """
    if name in KINDS:
        return cast("Kind", load(KINDS[name]))
    if name in _added():
        return _from_package(_added()[name], place)
    known = names()
    near = difflib.get_close_matches(name.casefold().replace("_", "-"), known, n=1, cutoff=0.6)
    cure = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known)}"
    raise UserError(place, f'there is no endpoint kind "{name}"', cure)


def served() -> Sequence[str]:
    """Return the names of the kinds that have a server side.

    This imports all kinds; a package's that cannot be is passed over, to be told of where its name
    is used.
    """
    found = []
    for name in names():
        with suppress(UserError):
            found += [name] if find(name).server is not None else []
    return found


@cache
def _added() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _from_package(entry: EntryPoint, place: str) -> Kind:
    package = entry.dist.name if entry.dist is not None else "an installed package"
    try:
        found = entry.load()
    except Exception as error:
        problem = f"kind {entry.name!r} of {package} cannot be imported: {error}"
        raise UserError(place, problem, f"repair or remove {package}") from error
    if isinstance(found, Kind):
        return replace(found, name=entry.name)
    return Kind(name=entry.name, about=f"added by {package}", codec=entry.value)
