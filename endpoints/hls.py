"""An HLS playlist that grows while it is played: what to fetch next, and its segments in order.

Codecs have no clock, so nothing is asked for again "after a while": the playlist is looked at when
whoever knows says that there may be news, and once more after each look that found some.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from voxmeter.endpoints.codec import Fetched, Request
from voxmeter.endpoints.errors import ProtocolError

_AT_ONCE = 3  # segments fetched side by side
_MOST = 20_000


class Playlist(NamedTuple):
    """What a playlist says.

    Attributes:
        segments: Where they are, in order.
        ended: Whether there will be no others.
    """

    segments: Sequence[str]
    ended: bool


class Next(NamedTuple):
    """What follows from something that was fetched.

    Attributes:
        segments: Those whose turn it is now.
        requests: What to fetch.
    """

    segments: Sequence[bytes]
    requests: Sequence[Request]


class Follower:
    """Follows one playlist to its end.

    Args:
        protocol: Whose reply it is, for errors.
        path: Where the playlist is.
        name: Begins the names of all requests.
        headers: Of all requests.
    """

    def __init__(self, protocol: str, path: str, name: str, headers: Mapping[str, str]) -> None:
        self._protocol, self._path, self._name, self._headers = protocol, path, name, headers
        self._looking = self._again = self._over = self._closed = False
        self._places: dict[str, int] = {}
        self._waiting: deque[str] = deque()
        self._flying: dict[str, int] = {}
        self._bodies: dict[int, bytes] = {}
        self._next = 0

    @property
    def done(self) -> bool:
        """Whether the list has ended and all that is in it has been given out."""
        return self._closed and self._next == len(self._places)

    def awaits(self, fetched: Fetched) -> bool:
        """Return whether this asked for it."""
        return fetched.aside == self._list_name or fetched.aside in self._flying

    def look(self) -> Sequence[Request]:
        """Return what to send when there may be news in the list."""
        if self._closed:
            return []
        if self._looking:
            self._again = True
            return []
        self._looking, self._again = True, False
        return [Request(b"", self._headers, "GET", self._path, self._list_name)]

    def finish(self) -> Sequence[Request]:
        """Return what to send when nothing more will be added to the list."""
        self._over = True
        return self.look()

    def take(self, fetched: Fetched) -> Next:
        """Return what follows from an accepted answer.

        Raises:
            ProtocolError: If it is not a playlist, or not one of plain segments.
        """
        if fetched.aside == self._list_name:
            return Next([], [*self._listed(fetched), *self._fetches()])
        self._bodies[self._flying.pop(fetched.aside)] = fetched.body
        ready = []
        while self._next in self._bodies:
            ready.append(self._bodies.pop(self._next))
            self._next += 1
        return Next(ready, self._fetches())

    @property
    def _list_name(self) -> str:
        return f"{self._name} playlist"

    def _listed(self, fetched: Fetched) -> Sequence[Request]:
        """Take the list in; look again where there may be more."""
        found = playlist(self._protocol, fetched, self._path)
        new = [one for one in found.segments if one not in self._places]
        for one in new:
            self._places[one] = len(self._places)
        if len(self._places) > _MOST:
            raise ProtocolError(self._protocol, "a playlist without end", fetched)
        self._waiting += new
        self._looking = False
        # Whoever says that nothing follows has ended the list before; a list that still has no end
        # after a look that was begun later and found nothing will never have one.
        self._closed = found.ended or (self._over and not new and not self._again)
        return self.look() if new or self._again else []

    def _fetches(self) -> Sequence[Request]:
        asked = []
        while self._waiting and len(self._flying) < _AT_ONCE:
            path = self._waiting.popleft()
            name = f"{self._name} segment {self._places[path]}"
            self._flying[name] = self._places[path]
            asked.append(Request(b"", self._headers, "GET", path, name))
        return asked


def playlist(protocol: str, fetched: Fetched, path: str) -> Playlist:
    """Return what a fetched playlist says.

    Args:
        protocol: Whose it is, for errors.
        fetched: The answer.
        path: Where it was, for what stands in it.

    Raises:
        ProtocolError: If it is not a playlist, or its segments cannot be read by themselves.
    """
    lines = [line.strip() for line in fetched.body.decode("utf-8-sig", "replace").splitlines()]
    if not lines or lines[0] != "#EXTM3U":
        raise ProtocolError(protocol, "not an HLS playlist", fetched)
    for line in lines:
        tag = line.partition(":")[0]
        if tag in {"#EXT-X-KEY", "#EXT-X-MAP", "#EXT-X-BYTERANGE", "#EXT-X-STREAM-INF"}:
            raise ProtocolError(protocol, f"a playlist with {tag}, which is not read", fetched)
    places = [line for line in lines if line and not line.startswith("#")]
    try:
        paths = [_path(urljoin(path, place)) for place in places]
    except ValueError:
        raise ProtocolError(
            protocol, "a playlist with an address that cannot be read", fetched
        ) from None
    return Playlist(paths, "#EXT-X-ENDLIST" in lines)


def _path(place: str) -> str:
    """Return path and query of a place on the same server."""
    parts = urlsplit(place)
    path = "/" + parts.path.lstrip("/")
    return f"{path}?{parts.query}" if parts.query else path
