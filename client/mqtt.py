"""MQTT as a transport: topics subscribed to before anything is said, arrivals stamped at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import urlsplit

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.mqtt_connection import (
    PORT,
    TLS_PORT,
    MqttSettings,
    broker_error,
    forget,
    lost_words,
    mqtt_client,
)
from voxmeter.client.transport import Arrival, TransportSettings
from voxmeter.endpoints.codec import Address, Ended, Message, Published
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError

if TYPE_CHECKING:
    import aiomqtt

_Answer = TypeVar("_Answer")

_MOST_QUEUED = 4096
_MOST_BYTES = 256 * 2**20  # in one session: more than an hour of any reply; a flood ends here
_ANSWER_S = 8.0  # of the broker; less than a session's own patience, for better words
_CLOSE_S = 2.0
_NOT_GRANTED = 128
_SHOWN_NAMES = ("username", "password")


class MqttTransport:
    """One connection to a broker; see `Transport`. A lost one stays lost."""

    def __init__(self, settings: TransportSettings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._link: Link | None = None

    async def connect(self, address: Address) -> None:
        """Connect to the broker and subscribe; the caller sets the time-out.

        Raises:
            ConnectError: If there is no broker, or it lets us not in or not subscribe.
            UserError: If aiomqtt is not installed, or `ca_file` is no file of certificates.
        """
        for name in address.headers:
            if name not in _SHOWN_NAMES:
                raise ConnectError("refused", f"header {name!r} cannot be sent: MQTT has none")
        settings = settings_of(address, self._settings)
        self._link = Link(settings, self._clock, self._settings.max_message_mib * 2**20)
        await self._link.open(address.subscriptions)

    async def send(self, message: Message) -> None:
        """Publish one message; one that is to be sure is waited for until the broker has it."""
        if not isinstance(message, Published):
            raise TypeError(f"MQTT cannot carry {type(message).__name__}")
        if self._link is None:
            raise ConnectionLostError(None, "not connected")
        await self._link.publish(message)

    async def receive(self) -> AsyncIterator[Arrival]:
        """Yield what is published on the topics, then one `Ended`.

        Raises:
            ProtocolError: If a message is too large, or too much comes.
        """
        if self._link is None:
            raise ConnectionLostError(None, "not connected")
        while True:
            try:
                arrival = await self._link.next()
            except ConnectionLostError as error:
                yield Arrival(self._clock.now(), Ended(None, error.reason))
                return
            yield arrival

    async def rtt_ms(self) -> float | None:
        """Return how long the broker took to answer the subscription, ms: no peer is asked."""
        return None if self._link is None else self._link.rtt_ms

    async def close(self) -> None:
        """Say good-bye to the broker, or drop it when it does not answer."""
        if self._link is not None:
            await self._link.close()


class Link:
    """A client of a broker, open from `open` to `close`.

    Attributes:
        rtt_ms: How long the broker took to answer the subscription; None without one.
    """

    def __init__(self, settings: MqttSettings, clock: Clock, largest: int) -> None:
        """Make it; nothing is connected yet.

        Args:
            settings: Where the broker is.
            clock: Where stamps come from.
            largest: Largest message, bytes.
        """
        self._settings, self._clock, self._largest = settings, clock, largest
        self._queue = _Arrivals(clock)
        self._client: aiomqtt.Client | None = None
        self._entered = False
        self._bytes = 0
        self.rtt_ms: float | None = None

    async def open(self, topics: Sequence[str]) -> None:
        """Connect and subscribe.

        Raises:
            ConnectError: If that cannot be done.
            UserError: As `mqtt_client`.
        """
        self._client = mqtt_client(
            self._settings,
            timeout_s=_ANSWER_S,
            queue_type=partial(_same, self._queue),
            most_queued=_MOST_QUEUED,
        )
        from aiomqtt import MqttError

        try:
            await _heeded(self._client.__aenter__())
        except (MqttError, OSError, ValueError) as error:  # a UnicodeError is a ValueError
            forget(self._client)
            raise broker_error(error, self._settings) from None
        self._entered = True
        try:
            await self._subscribe(self._client, topics)
        except MqttError as error:
            raise ConnectError("closed", lost_words(error, self._settings)) from None

    async def _subscribe(self, client: aiomqtt.Client, topics: Sequence[str]) -> None:
        if not topics:
            return
        began = self._clock.now()
        granted = await _heeded(client.subscribe([(topic, 1) for topic in topics]))
        self.rtt_ms = (self._clock.now() - began) / 1e6
        for topic, code in zip(topics, granted, strict=False):
            value = getattr(code, "value", code)
            if isinstance(value, int) and value >= _NOT_GRANTED:
                place = f"the broker at {self._settings.url}"
                raise ConnectError("rejected", f"{place} does not let us subscribe to {topic}")

    async def publish(self, message: Published) -> None:
        """Publish one message.

        Raises:
            ConnectionLostError: If the broker is gone.
        """
        from aiomqtt import MqttError

        if self._client is None:
            raise ConnectionLostError(None, "not connected")
        try:
            sent = self._client.publish(message.topic, message.payload, qos=int(message.sure))
            await _heeded(sent)
        except (MqttError, OSError, ValueError) as error:
            raise ConnectionLostError(None, lost_words(error, self._settings)) from None

    async def next(self) -> Arrival:
        """Return the next message.

        Raises:
            ConnectionLostError: If there will be none.
            ProtocolError: If it is too large, or too much comes.
        """
        from aiomqtt import MqttError

        if self._client is None:
            raise ConnectionLostError(None, "not connected")
        if self._queue.lost:
            problem = f"more than {_MOST_QUEUED} messages at once"
            raise ProtocolError("mqtt", problem, Published("", b""))
        try:
            found: object = await anext(self._client.messages)
        except MqttError as error:
            raise ConnectionLostError(None, lost_words(error, self._settings)) from None
        t_ns, published = cast("tuple[int, Published]", found)  # as `_Arrivals` keeps them
        self._bytes += len(published.payload)
        if len(published.payload) > self._largest:
            raise ProtocolError("mqtt", "a message was larger than max_message_mib", published)
        if self._bytes > _MOST_BYTES:
            problem = f"more than {_MOST_BYTES // 2**20} MiB in one session"
            raise ProtocolError("mqtt", problem, published)
        return Arrival(t_ns, published)

    async def close(self) -> None:
        """Leave; never raises, never waits long."""
        if self._client is None:
            return
        from aiomqtt import MqttError

        if self._entered:
            with suppress(MqttError, OSError, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._client.__aexit__(None, None, None)
        forget(self._client)
        self._client = None


class _Arrivals(asyncio.Queue[tuple[int, Published]]):
    """Holds messages with the moment at which each reached this process.

    Attributes:
        lost: Whether there were too many.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(_MOST_QUEUED)
        self._clock = clock
        self.lost = False

    def put_nowait(self, item: object) -> None:
        """Stamp a message of the library's and keep it."""
        stamp = self._clock.now()
        message = cast("aiomqtt.Message", item)
        payload = message.payload
        published = Published(str(message.topic), payload if isinstance(payload, bytes) else b"")
        try:
            super().put_nowait((stamp, published))
        except asyncio.QueueFull:
            self.lost = True


async def _heeded(awaited: Awaitable[_Answer]) -> _Answer:
    """Await the library, which may lose a cancellation that comes together with its answer.

    That is a fault of `asyncio.wait_for` before Python 3.12; whoever cancelled would wait forever.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    found = await awaited
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError
    return found


def _same(queue: _Arrivals, maxsize: int) -> _Arrivals:  # noqa: ARG001 - the library's own
    return queue


def settings_of(address: Address, wire: TransportSettings) -> MqttSettings:
    """Return how the broker of an address is reached.

    Raises:
        ConnectError: If its URL is none of a broker.
    """
    try:
        parts = urlsplit(address.url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConnectError("dns", f"not the URL of a broker: {error}") from None
    if parts.scheme not in {"mqtt", "mqtts"} or not host:
        raise ConnectError("dns", "the URL of a broker begins with mqtt:// or mqtts://")
    tls = parts.scheme == "mqtts"
    return MqttSettings(
        host,
        port or (TLS_PORT if tls else PORT),
        tls,
        wire.ca_file,
        wire.insecure,
        address.headers.get("username"),
        address.headers.get("password"),
    )
