"""The run's side of publishing: messages are handed over and forgotten; nothing here ever waits.

A thread passes them on to a process of its own (`publish_child.py`), which alone speaks with the
broker. Only `end` waits, and not for long.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from threading import Condition, Event, Thread
from typing import IO

from voxmeter.client.child import Child, ChildDiedError
from voxmeter.client.publish_outbox import Outbox
from voxmeter.client.publish_topics import Post
from voxmeter.client.publish_wire import Report, Setup, receive, send, setup_line

FLUSH_S = 2.0
"""How long the end of a run waits for what the broker has not taken yet."""

_STARTING_S = 10.0  # before that, where the process was started a moment ago on a busy machine
_LAST_WORD_S = 2.0
_PIECE = 50


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came of all messages.

    Attributes:
        delivered: Taken by the broker.
        undelivered: Not known to be.
        problem: Why; "" where nothing is missing.
    """

    delivered: int = 0
    undelivered: int = 0
    problem: str = ""

    def words(self) -> str:
        """Return one sentence on what is missing; "" where nothing is."""
        if not self.undelivered:
            return ""
        total = self.delivered + self.undelivered
        were = "message was" if self.undelivered == 1 else "messages were"
        return f"MQTT: {self.undelivered} of {total} {were} not delivered: {self.problem}"


class Publisher:
    """Hands messages to the publishing process, which is started at once.

    Args:
        setup: How it reaches the broker.
        tell: Is told once, from a thread, why there is no connection.
    """

    def __init__(self, setup: Setup, tell: Callable[[str], None]) -> None:
        self._setup, self._tell = setup, tell
        self._outbox = Outbox()
        self._offered = 0
        self._waking = Condition()
        self._limit_s: float | None = None
        self._report = Report()
        self._started, self._over = Event(), Event()
        self._child: Child | None = None
        self._threads: list[Thread] = []
        try:
            self._child = Child("voxmeter.client.publish_child")
        except OSError as error:  # no process to be had: the run goes on
            self._fail(f"no process could be started for it: {error.strerror}")
            return
        for work, pipe in ((self._feed, self._child.requests), (self._listen, self._child.replies)):
            self._threads.append(Thread(target=work, args=(pipe,), name="publish", daemon=True))
        for thread in self._threads:
            thread.start()

    def offer(self, post: Post) -> None:
        """Queue a message; returns at once, any thread may call."""
        with self._waking:
            self._offered += 1
            self._outbox.put(post)
            self._waking.notify()

    def end(self, limit_s: float = FLUSH_S) -> Delivery:
        """Send what is left within a limit, and end the process; return what came of everything."""
        with self._waking:
            self._limit_s = limit_s
            self._waking.notify()
        self._started.wait(_STARTING_S)
        self._over.wait(limit_s + _LAST_WORD_S)
        if self._child is not None:
            self._child.kill()
            for thread in self._threads:
                thread.join()
            self._child.end()
        found = self._report
        wanted = self._offered - self._outbox.replaced - found.replaced
        missing = max(0, wanted - found.delivered)
        return Delivery(found.delivered, missing, _why(found) if missing else "")

    def _feed(self, requests: IO[bytes]) -> None:
        """Pass messages on until the end."""
        with contextlib.suppress(OSError):  # the process is gone; `_listen` says why
            send(requests, setup_line(self._setup))
            while True:
                with self._waking:
                    while not len(self._outbox) and self._limit_s is None:
                        self._waking.wait()
                    posts = self._outbox.take(_PIECE)
                    limit_s = self._limit_s
                for post in posts:
                    send(requests, asdict(post))
                if not posts and limit_s is not None:
                    send(requests, {"end": limit_s})
                    return

    def _listen(self, replies: IO[bytes]) -> None:
        """Read what the process says of itself until it ends."""
        told = ""
        try:
            while not self._report.over:
                self._report = Report(**receive(replies))
                self._started.set()
                if self._report.problem and not told:
                    told = self._report.problem
                    self._tell(told)
        except EOFError:
            self._died()
        self._started.set()
        self._over.set()

    def _died(self) -> None:
        """Say how the process ended, unless this side ended it."""
        if self._limit_s is not None or self._child is None:
            return
        try:
            raise self._child.died()
        except ChildDiedError as error:
            self._fail(f"the publishing process ended: {error}")

    def _fail(self, problem: str) -> None:
        self._report = replace(self._report, problem=problem, over=True)
        self._started.set()
        self._over.set()
        self._tell(problem)


def _why(last: Report) -> str:
    """Return why messages are missing, from what the process said last."""
    if last.connected and not last.over:
        return "the broker did not take them in time"
    return last.problem or "the broker did not answer in time"
