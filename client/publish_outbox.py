"""What is still to be published: bounded, the newest of each retained topic, oldest events lost."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from threading import Lock

from voxmeter.client.publish_topics import Post

MOST_EVENTS = 2000
"""Events that wait; a broker that is away for longer misses the oldest."""


class Outbox:
    """Messages in the order they came; any thread may put and take.

    A retained message takes the place of an older one of its topic that was not sent yet. Of the
    others the oldest is dropped when there are too many.

    Attributes:
        dropped: How many were thrown away because too many waited.
        replaced: How many gave way to a newer one of their topic: nothing was lost by that.
    """

    def __init__(self, most_events: int = MOST_EVENTS) -> None:
        self.dropped = self.replaced = 0
        self._most = most_events
        self._lock = Lock()
        self._waiting: dict[str | int, Post] = {}
        self._events: dict[int, None] = {}
        self._numbers = count()
        self._earlier = count(-1, -1)

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def put(self, post: Post) -> None:
        """Add one at the end."""
        with self._lock:
            if post.retain:
                self.replaced += self._waiting.pop(post.topic, None) is not None
                self._waiting[post.topic] = post
                return
            number = next(self._numbers)
            self._waiting[number] = post
            self._events[number] = None
            self._bound()

    def put_back(self, posts: Iterable[Post]) -> None:
        """Add some at the front again, oldest first, because they could not be sent."""
        with self._lock:
            front: dict[str | int, Post] = {}
            events: dict[int, None] = {}
            for post in posts:
                if not post.retain:
                    number = next(self._earlier)
                    front[number] = post
                    events[number] = None
                elif post.topic in self._waiting:
                    self.replaced += 1
                else:
                    front[post.topic] = post
            self._waiting = front | self._waiting
            self._events = events | self._events
            self._bound()

    def take(self, most: int) -> list[Post]:
        """Remove and return the first ones."""
        with self._lock:
            keys = [key for key, _ in zip(self._waiting, range(most), strict=False)]
            for key in keys:
                if isinstance(key, int):
                    del self._events[key]
            return [self._waiting.pop(key) for key in keys]

    def _bound(self) -> None:
        while len(self._events) > self._most:
            oldest = next(iter(self._events))
            del self._events[oldest]
            del self._waiting[oldest]
            self.dropped += 1
