"""Proxies of the environment, as HTTP goes through them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import h11

from voxmeter.client.http_link import Link
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError


@dataclass(frozen=True, slots=True)
class Proxy:
    """One HTTP proxy; its `repr` shows no password.

    Attributes:
        host: Its name or address.
        port: Its port.
        headers: `Proxy-Authorization`, where its URL has a user.
    """

    host: str
    port: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """Return how to name it in errors."""
        return f"the proxy in the environment, http://{self.host}:{self.port}"


def for_host(scheme: str, host: str) -> Proxy | None:
    """Return the proxy that the environment names for a host, None for none.

    Raises:
        ConnectError: If it is not a plain HTTP proxy, or no URL.
    """
    found = getproxies()
    url = found.get(scheme) or found.get("all")
    if not url or proxy_bypass(host):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or 80
    except ValueError as error:  # its words may show a piece of a password
        raise ConnectError("refused", "the proxy in the environment is not a URL") from error
    if parts.scheme != "http" or not parts.hostname:
        problem = f"the proxy in the environment speaks {parts.scheme}; HTTP endpoints go through"
        raise ConnectError("refused", f"{problem} http:// proxies only (or use_proxy = false)")
    headers = {}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    return Proxy(parts.hostname, port, headers)


async def tunnel(link: Link, proxy: Proxy, place: str) -> None:
    """Ask a proxy for a tunnel to `host:port`.

    Raises:
        ConnectError: If it gives none.
    """
    state = h11.Connection(h11.CLIENT)
    headers = [("Host", place), *proxy.headers.items()]
    asked = state.send(h11.Request(method="CONNECT", target=place, headers=headers)) or b""
    try:
        await link.write(asked + (state.send(h11.EndOfMessage()) or b""))
        while True:
            event = state.next_event()
            if event is h11.NEED_DATA:
                chunk = await link.read()
                state.receive_data(chunk.data)
            elif isinstance(event, h11.Response) and 200 <= event.status_code < 300:
                return
            elif isinstance(event, h11.Response):
                problem = f"{proxy.shown}: HTTP {event.status_code} for a tunnel to {place}"
                raise ConnectError("refused", problem, event.status_code)
    except (h11.RemoteProtocolError, ConnectionLostError) as error:
        said = "closed without an answer" if link.ended else str(error)
        raise ConnectError("closed", f"{proxy.shown}: {said}") from error
