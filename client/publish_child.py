"""The process that talks to the broker, so that nothing a broker does can touch a run.

Started by `voxmeter.client.publish_process`. When its parent dies it goes without a word, and the
broker says `offline` for the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from dataclasses import asdict
from threading import Thread
from typing import IO, TYPE_CHECKING

from voxmeter.client.child import pipes
from voxmeter.client.mqtt_connection import broker_error, forget, lost_words, mqtt_client
from voxmeter.client.publish_outbox import Outbox
from voxmeter.client.publish_topics import QOS, Post
from voxmeter.client.publish_wire import Report, Setup, receive, send, setup_of
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from aiomqtt import Client, Will

WINDOW = 20
"""Messages that may be under way at a time."""

_REPORT_S = 1.0
_NICENESS = 10
_MEMORY = 1 << 30


def main() -> None:
    """Publish what the parent hands over, until it says that it is over, or dies."""
    requests, replies = pipes()
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    _bound_memory()
    try:
        setup = setup_of(receive(requests))
    except EOFError:
        os._exit(1)
    asyncio.run(_Publishing(setup, replies).run(requests))


class _Publishing:
    """One connection that comes back, and what is still to go over it."""

    def __init__(self, setup: Setup, replies: IO[bytes]) -> None:
        self._setup, self._replies = setup, replies
        self._outbox = Outbox()
        self._kept: dict[str, Post] = {}
        self._waking, self._ending = asyncio.Event(), asyncio.Event()
        self._delivered = 0
        self._connected, self._problem = False, ""
        self._reported_s = 0.0

    async def run(self, requests: IO[bytes]) -> None:
        """Publish until told to end; leaves the process, whatever threads the library has."""
        loop = asyncio.get_running_loop()
        Thread(target=self._read, args=(requests, loop), daemon=True).start()
        wait_s = self._setup.first_wait_s
        self._report()
        while True:
            try:
                await self._connection()
                self._leave(whole=True)
            except Exception as error:  # noqa: BLE001 - the library's, the system's, a broker's
                wait_s = self._setup.first_wait_s if self._connected else wait_s
                self._lost(error)
            # Drawn from its half, for many runs must not knock in step.
            await self._pause(wait_s * random.uniform(0.5, 1.0))  # noqa: S311
            wait_s = min(2 * wait_s, self._setup.longest_wait_s)

    async def _pause(self, wait_s: float) -> None:
        """Wait before the next connection; not for long where the end is near."""
        if self._ending.is_set():
            await asyncio.sleep(min(wait_s, self._setup.first_wait_s))
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._ending.wait()

    def _read(self, requests: IO[bytes], loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(EOFError):
            while "end" not in (line := receive(requests)):
                self._outbox.put(Post(**line))
                loop.call_soon_threadsafe(self._waking.set)
            loop.call_soon_threadsafe(self._end, float(line["end"]))
            return
        os._exit(1)  # the parent died: no farewell, so that the broker publishes the will

    def _end(self, limit_s: float) -> None:
        self._ending.set()
        self._waking.set()
        asyncio.get_running_loop().call_later(limit_s, self._leave)

    async def _connection(self) -> None:
        """Connect, and publish until there is nothing more to come.

        Raises:
            Exception: When there is no connection, or it is lost; what was not taken waits again.
        """
        setup = self._setup
        will = _will(setup.will)
        client = mqtt_client(setup.settings, will=will, timeout_s=setup.patience_s, most_queued=1)
        try:
            async with client, asyncio.TaskGroup() as group:
                self._connected = True
                self._report()
                watching = group.create_task(_until_lost(client), name="connection")
                await self._say_again(client)
                await self._publish_all(client)
                watching.cancel()
        except Exception:
            forget(client)
            raise

    async def _say_again(self, client: Client) -> None:
        """Say once more what a broker keeps: it may have started anew, or told our will."""
        for post in list(self._kept.values()):
            await client.publish(post.topic, post.payload, qos=QOS, retain=True)

    async def _publish_all(self, client: Client) -> None:
        while True:
            posts = self._outbox.take(WINDOW)
            if posts:
                await self._publish(client, posts)
            elif self._ending.is_set():
                return
            else:
                self._waking.clear()
                await self._waking.wait()

    async def _publish(self, client: Client, posts: list[Post]) -> None:
        """Publish some side by side; those that the broker did not take wait again."""
        left = dict(enumerate(posts))

        async def one(number: int, post: Post) -> None:
            await client.publish(post.topic, post.payload, qos=QOS, retain=post.retain)
            del left[number]
            self._taken(post)

        try:
            async with asyncio.TaskGroup() as group:
                for number, post in enumerate(posts):
                    group.create_task(one(number, post), name=post.topic)
        finally:
            self._outbox.put_back(left.values())
        if asyncio.get_running_loop().time() >= self._reported_s + _REPORT_S:
            self._report()

    def _taken(self, post: Post) -> None:
        self._delivered += 1
        if post.retain:
            self._kept[post.topic] = post

    def _lost(self, error: Exception) -> None:
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        settings = self._setup.settings
        if isinstance(error, UserError):
            self._problem = str(error)
        elif self._connected:
            self._problem = lost_words(error, settings)
        else:
            self._problem = str(broker_error(error, settings))
        self._connected = False
        self._report()

    def _report(self, *, over: bool = False) -> None:
        self._reported_s = asyncio.get_running_loop().time()
        report = Report(
            self._connected, self._delivered, self._outbox.replaced, self._problem, over
        )
        with contextlib.suppress(OSError):
            send(self._replies, asdict(report))

    def _leave(self, *, whole: bool = False) -> None:
        """Say the last word and end, whatever threads the library has waiting for a broker."""
        # What kept us away before is not why a broker that is back has not taken the rest.
        if not whole and (self._connected or not self._problem):
            url = self._setup.settings.url
            how = "did not take them in time" if self._connected else "did not answer in time"
            self._problem = f"the broker at {url} {how}"
        self._report(over=True)
        os._exit(0)


def _will(post: Post) -> Will:
    from aiomqtt import Will

    return Will(post.topic, post.payload, QOS, post.retain)


def _bound_memory() -> None:
    """Keep a broker that sends without end from taking this machine's memory."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


async def _until_lost(client: Client) -> None:
    """Wait for the end of a connection.

    Raises:
        MqttError: When it is lost.
    """
    async for _ in client.messages:
        pass


if __name__ == "__main__":
    main()
