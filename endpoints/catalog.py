"""Which protocols there are, as names of what to load: nothing is imported before it is asked for.

Other packages add kinds through the entry-point group `voxmeter.endpoints`: the name of an entry
is the kind, its object either a factory of codecs (`Settings` -> `Codec`, over a websocket) or a
whole `Kind`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "voxmeter.endpoints"
WEBSOCKET = "voxmeter.client.websocket:WebSocketTransport"
HTTP = "voxmeter.client.http:HttpTransport"


@dataclass(frozen=True, slots=True)
class Kind:
    """One protocol. Whatever is to be loaded stands as `module:name`.

    Attributes:
        name: The `kind` of bench.toml.
        about: What it is for, on one line.
        codec: Factory of the client's codec, from `Settings`.
        transport: Factory of what moves its messages.
        server: Factory of the server's codec; None where there is no server side.
        path: Path of the URLs at which `voxmeter serve` speaks it.
        known_by: How the protocol is known.
        docs: The page that says how to use it.
        options_at: A mapping of its options to what they do; None where it has none.
        place: Which key says where the endpoint is; `options`: some of its own options do.
        pool: Factory of what outlives a session, such as processes: it takes a `Launch` and
            returns a context that gives a factory of transports, which goes before `transport`.
        timed: Whether anything answers while we ask; where nothing does, there is no latency.
        usage_at: A function that returns more words on how to use it, for this machine.
    """

    name: str
    about: str
    codec: str
    transport: str = WEBSOCKET
    server: str | None = None
    path: str = ""
    known_by: str = ""
    docs: str = ""
    options_at: str | None = None
    place: Literal["url", "command", "options"] = "url"
    pool: str | None = None
    timed: bool = True
    usage_at: str | None = None

    @property
    def options(self) -> Mapping[str, str]:
        """Return its options and what they do; this loads the module that holds them."""
        found = load(self.options_at) if self.options_at is not None else {}
        return found if isinstance(found, Mapping) else {}


_OURS = (
    Kind(
        name="openai-realtime",
        about="OpenAI Realtime and servers that speak like it, GA or beta shape",
        codec="voxmeter.endpoints.openai_realtime:client",
        server="voxmeter.endpoints.openai_realtime_server:server",
        path="/v1/realtime",
        known_by="types of the openai package 3.57, recorded sessions with speech-to-speech 1.1.0, "
        "public reports; the hosted service's address and some error codes from documentation only",
        docs="docs/endpoints/openai-realtime.md",
        options_at="voxmeter.endpoints.openai_options:OPTIONS",
    ),
    Kind(
        name="moshi",
        about="Moshi (PyTorch, MLX, Rust) and PersonaPlex: full duplex, Opus both ways",
        codec="voxmeter.endpoints.moshi:client",
        server="voxmeter.endpoints.moshi_server:server",
        path="/api/chat",
        known_by="captured bytes of a genuine server (PyTorch, tiny model); Rust, MLX and "
        "PersonaPlex read in source",
        docs="docs/endpoints/moshi.md",
        options_at="voxmeter.endpoints.moshi_options:OPTIONS",
    ),
    Kind(
        name="mini-omni",
        about="Mini-Omni and Mini-Omni2: one request, the reply streamed",
        codec="voxmeter.endpoints.mini_omni:client",
        transport=HTTP,
        known_by="captured bytes of the genuine server programs, run over stand-ins for their "
        "models",
        docs="docs/endpoints/mini-omni.md",
        options_at="voxmeter.endpoints.mini_omni:OPTIONS",
    ),
    Kind(
        name="openai-chat",
        about="chat completions with audio in: OpenAI, vLLM, vLLM-Omni, DashScope",
        codec="voxmeter.endpoints.openai_chat:client",
        transport=HTTP,
        known_by="documentation and public reports; vLLM-Omni read in source",
        docs="docs/endpoints/openai-chat.md",
        options_at="voxmeter.endpoints.openai_chat_request:OPTIONS",
    ),
    Kind(
        name="http",
        about="any server that takes one HTTP request: a template out, WAV, samples or JSON back",
        codec="voxmeter.endpoints.http_endpoint:client",
        transport=HTTP,
        known_by="no protocol of its own; tried on servers written for its tests",
        docs="docs/endpoints/http.md",
        options_at="voxmeter.endpoints.http_endpoint:OPTIONS",
    ),
    Kind(
        name="exec",
        about="a program of yours, in any language: lines of JSON on its standard streams",
        codec="voxmeter.endpoints.exec_lines:client",
        transport="voxmeter.client.subprocess_transport:SubprocessTransport",
        known_by="a protocol of our own; tried on programs of its tests, Python 3.8 to 3.13",
        docs="docs/endpoints/exec.md",
        options_at="voxmeter.endpoints.exec_lines:OPTIONS",
        place="command",
        pool="voxmeter.client.subprocess_transport:Programs",
        usage_at="voxmeter.client.usage:program",
    ),
    Kind(
        name="python",
        about="a Python function of yours, called in this process",
        codec="voxmeter.endpoints.exec_lines:in_process",
        transport="voxmeter.client.python_transport:PythonTransport",
        known_by="a protocol of our own; the function is called as VoxEval calls its models (read "
        "in source)",
        docs="docs/endpoints/python.md",
        options_at="voxmeter.client.python_transport:OPTIONS",
        place="options",
        pool="voxmeter.client.python_transport:Functions",
        usage_at="voxmeter.client.usage:function",
    ),
    Kind(
        name="import",
        about="answers made elsewhere: a folder of audio files, or a file of JSON lines",
        codec="voxmeter.endpoints.exec_lines:imported",
        transport="voxmeter.client.import_transport:ImportTransport",
        known_by="a format of our own",
        docs="docs/endpoints/import.md",
        options_at="voxmeter.client.import_transport:OPTIONS",
        place="options",
        pool="voxmeter.client.import_transport:Imported",
        timed=False,
        usage_at="voxmeter.client.usage:answers",
    ),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _OURS}
"""Our own kinds, by name."""


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
        return KINDS[name]
    if name in _added():
        return _from_package(_added()[name], place)
    known = names()
    near = difflib.get_close_matches(name.casefold().replace("_", "-"), known, n=1, cutoff=0.6)
    cure = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known)}"
    raise UserError(place, f'there is no endpoint kind "{name}"', cure)


def load(target: str) -> object:
    """Return what a string `module:name` names."""
    module, _, name = target.partition(":")
    found: object = getattr(import_module(module), name)
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
