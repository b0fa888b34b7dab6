"""Who comes in to a server of ours, and how the server is reached."""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from voxmeter.client.servers.brain import Brain, RefusedError, Terms
from voxmeter.endpoints.codec import Address
from voxmeter.endpoints.errors import UserError

_UNAUTHORIZED, _BUSY = 401, 503


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How a server is reached.

    Attributes:
        host: Address to listen on.
        port: 0 takes a free one.
        path: Path in the URL that is told; every path is served.
        token: What clients must show, as a bearer token or as `token=` in the query; "" for none,
            which only loopback addresses may do.
        query: Defaults of every session's query.
        client_keys: Keys of a query that are not for what answers.
        key_names: Further headers and query keys that may hold the token, in lower case.
        max_message_mib: Largest message taken, MiB.
        max_sessions: Sessions at a time; more are told to come back later.
        turn_limit_s: Longest turn that is kept, s.
        broker: Where protocols over MQTT find their broker; None has one started.
        ca_file: PEM file of an authority that the broker's certificate may be from.
    """

    host: str = "127.0.0.1"
    port: int = 0
    path: str = ""
    token: str = field(default="", repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    client_keys: frozenset[str] = frozenset()
    key_names: tuple[str, ...] = ()
    max_message_mib: int = 64
    max_sessions: int = 256
    turn_limit_s: float = 300.0
    broker: Address | None = None
    ca_file: str = ""

    def url(self, scheme: str, port: int) -> str:
        """Return where clients connect."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}{self.path}"


@dataclass(frozen=True, slots=True)
class Admission:
    """What was decided about a session before it began.

    Attributes:
        query: The query of its URL, with the server's defaults filled in.
        terms: What the brain wants of it.
    """

    query: Mapping[str, str]
    terms: Terms


class Door:
    """Decides who comes in.

    Attributes:
        inside: Sessions under way.
    """

    def __init__(self, brain: Brain, settings: HostSettings) -> None:
        """Open it.

        Raises:
            UserError: If others than this machine can come, and there is no token.
        """
        if not settings.token and not loopback(settings.host):
            raise UserError(
                f"--host {settings.host}",
                "others can reach it, and there is no token",
                "set --token-env",
            )
        self._brain = brain
        self._settings = settings
        self.inside = 0

    def admit(self, target: str, headers: Mapping[str, str]) -> Admission:
        """Let a session in.

        Args:
            target: Path and query of its URL.
            headers: Of its request, names in lower case.

        Raises:
            RefusedError: With a status and one line.
        """
        query = dict(parse_qsl(urlsplit(target).query, keep_blank_values=True))
        self._check(self._shown(query, headers))
        taken = self._settings.client_keys.union(self._settings.key_names, ["token"])
        query = {key: value for key, value in query.items() if key not in taken}
        query = {**self._settings.query, **query}
        return Admission(query, self._brain.admit(query))

    @contextmanager
    def session(self) -> Iterator[None]:
        """Count a session while it lasts."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def _shown(self, query: Mapping[str, str], headers: Mapping[str, str]) -> str:
        """Return the token that a client shows."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return bearer.strip()
        for name in self._settings.key_names:
            if name in headers or name in query:
                return headers.get(name, "") or query.get(name, "")
        return query.get("token", "")

    def _check(self, shown: str) -> None:
        token = self._settings.token
        given = shown.encode("utf-8", "surrogateescape")  # headers may hold any bytes
        if token and not hmac.compare_digest(given, token.encode("utf-8", "surrogateescape")):
            raise RefusedError(_UNAUTHORIZED, "the token is missing or wrong")
        if self.inside >= self._settings.max_sessions:
            raise RefusedError(_BUSY, f"all {self._settings.max_sessions} sessions are taken")


@contextmanager
def listening(settings: HostSettings) -> Iterator[None]:
    """Turn what the system says of an address that cannot be listened on into one line.

    Raises:
        UserError: In place of an `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"--host {settings.host} --port {settings.port}",
            f"cannot be opened ({error.strerror or error})",
            "choose another port, or 0 for a free one",
        ) from error


def loopback(host: str) -> bool:
    """Return whether an address is this machine's alone; of names, `localhost` may be."""
    if host == "localhost":
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            return False
        return all(loopback(str(place[0])) for *_, place in found)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
