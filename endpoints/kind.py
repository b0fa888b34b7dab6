"""What the catalog knows of one protocol: whatever is to be loaded stands as `module:name`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

WEBSOCKET = "voxmeter.client.websocket:WebSocketTransport"
HTTP = "voxmeter.client.http:HttpTransport"
MQTT = "voxmeter.client.mqtt:MqttTransport"
WEBSOCKET_HOST = "voxmeter.client.servers.host:serving"
HTTP_HOST = "voxmeter.client.servers.http_host:serving"
MQTT_HOST = "voxmeter.client.servers.mqtt_host:serving"


@dataclass(frozen=True, slots=True)
class Kind:
    """One protocol. Whatever is to be loaded stands as `module:name`.

    Attributes:
        name: The `kind` of bench.toml.
        about: What it is for, on one line.
        codec: Factory of the client's codec, from `Settings`.
        transport: Factory of what moves its messages.
        server: Factory of the server's codec; None where there is no server side.
        host: What serves it: takes a brain, a factory of server codecs and `HostSettings`; a
            context that gives the URL to connect to.
        path: Path of the URLs at which `voxmeter serve` speaks it.
        query_keys: Keys of the URL's query that are the protocol's own, or that its clients send by
            themselves: a server of ours does not take them for options of what answers.
        key_names: Headers and query keys, in lower case, under which its clients show a key, beside
            `Authorization: Bearer` and `token=`.
        known_by: How the protocol is known.
        docs: The page that says how to use it.
        options_at: A mapping of its options to what they do; None where it has none.
        place: Which key says where the endpoint is; `options`: some of its own options do.
        pool: Factory of what outlives a session, such as processes: it takes a `Launch` and
            returns a context that gives a factory of transports, used in place of `transport`.
        timed: Whether anything answers while we ask; where nothing does, there is no latency.
        usage_at: A function that returns more words on how to use it, for this machine.
    """

    name: str
    about: str
    codec: str
    transport: str = WEBSOCKET
    server: str | None = None
    host: str = WEBSOCKET_HOST
    path: str = ""
    query_keys: tuple[str, ...] = ()
    key_names: tuple[str, ...] = ()
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


def load(target: str) -> object:
    """Return what a string `module:name` names."""
    module, _, name = target.partition(":")
    found: object = getattr(import_module(module), name)
    return found
