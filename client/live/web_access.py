"""Who gets the page of a live session, and what its files are served with.

The address holds a random token, so that no other page, program or user of the machine can guess
it. `Host` is checked against names that others point at 127.0.0.1, `Origin` against other pages.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import resources

FILES = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "link.js": ("link.js", "text/javascript; charset=utf-8"),
    "audio.js": ("audio.js", "text/javascript; charset=utf-8"),
    "draw.js": ("draw.js", "text/javascript; charset=utf-8"),
    "words.js": ("words.js", "text/javascript; charset=utf-8"),
    "microphone.js": ("microphone.js", "text/javascript; charset=utf-8"),
    "speaker.js": ("speaker.js", "text/javascript; charset=utf-8"),
}
"""Last part of the path -> file beside this module in `page`, and its type."""

_SOCKET = "ws"
_PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back to a request."""

    status: HTTPStatus
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def new_token() -> str:
    """Return a token that nobody guesses."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class PageAccess:
    """Decides about every request.

    Attributes:
        token: First part of every path.
        port: Which we listen on.
    """

    token: str = field(repr=False)
    port: int

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer | None:
        """Return the answer to a request; None if the page's own websocket may be opened.

        Args:
            path: As asked for.
            headers: By lower-case name.
        """
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self._hosts():
            return self._refused("this server answers to 127.0.0.1 only")
        if origin is not None and origin != f"http://{host}":
            return self._refused("asked by a page of another origin")
        shown, _, name = path.partition("?")[0].removeprefix("/").partition("/")
        if shown == "favicon.ico":
            return self._sent(HTTPStatus.NO_CONTENT, b"", _PLAIN)
        if not hmac.compare_digest(shown.encode("utf-8", "replace"), self.token.encode()):
            return self._refused("the token in the address is missing or wrong")
        if name == _SOCKET:
            return None if origin is not None else self._refused("asked by no page")
        if name not in FILES:
            return self._sent(HTTPStatus.NOT_FOUND, b"There is no such file here.\n", _PLAIN)
        file, kind = FILES[name]
        body = (resources.files("voxmeter.client.live") / "page" / file).read_bytes()
        return self._sent(HTTPStatus.OK, body, kind)

    def _hosts(self) -> tuple[str, ...]:
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")

    def _refused(self, why: str) -> Answer:
        text = (
            f"Not for you: {why}.\n\n"
            "Open the address that `voxmeter live --web` printed, all of it. Every start of the "
            "program has an address of its own; an old one does not work again.\n"
        )
        return self._sent(HTTPStatus.FORBIDDEN, text.encode(), _PLAIN)

    def _sent(self, status: HTTPStatus, body: bytes, kind: str) -> Answer:
        sockets = " ".join(f"ws://{host}" for host in self._hosts())
        return Answer(
            status,
            body,
            {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                "Cache-Control": "no-store",
                "Content-Security-Policy": (
                    f"default-src 'self'; connect-src 'self' {sockets}; object-src 'none'; "
                    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
                ),
                "Cross-Origin-Embedder-Policy": "require-corp",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Permissions-Policy": "camera=(), geolocation=(), microphone=(self)",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
            },
        )
