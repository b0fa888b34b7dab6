"""Serves every brain over an MQTT broker, as one of its clients."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl, urlencode

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.mqtt import Link, settings_of
from voxmeter.client.servers.answering import House
from voxmeter.client.servers.brain import Brain, RefusedError
from voxmeter.client.servers.broker import private_broker
from voxmeter.client.servers.conversation import Conversation
from voxmeter.client.servers.door import Door, HostSettings, loopback
from voxmeter.client.servers.punctual import Punctual
from voxmeter.client.servers.truth import TruthLog
from voxmeter.client.terminal import warn
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints import hermes_server
from voxmeter.endpoints import hermes_wire as wire
from voxmeter.endpoints.codec import Address, Ended, Message, Published
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError, UserError
from voxmeter.endpoints.serving import ServerCodec

_HEARS = (
    wire.START_SESSION,
    wire.END_SESSION,
    "hermes/hotword/+/detected",
    "hermes/audioServer/+/audioFrame",
    "hermes/audioServer/+/playFinished",
)
_SILENCE_S = 120.0  # longer than any file takes to be played
_MOST_UNREAD = 4096  # messages, of one session: more than a minute of any frames
_MOST_UNREAD_BYTES = 64 * 2**20


@asynccontextmanager
async def serving(
    brain: Brain,
    codec: Callable[[], ServerCodec],
    settings: HostSettings,
    *,
    truth: TruthLog | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[str]:
    """Serve sessions inside a `with` block, which gets the URL of the broker.

    Args:
        brain: Loaded already; answers in all sessions.
        codec: Makes the server's half of the protocol for one session.
        settings: How the server is reached; without a `broker` in it one is started.
        truth: Where every turn is logged.
        clock: The machine's, unless a test moves it.

    Raises:
        UserError: If there is no broker to be had.
    """
    clock = clock or SystemClock()
    door = Door(brain, settings)
    if settings.broker is None and not loopback(settings.host):
        cure = "name a broker that asks for a password with --broker"
        raise UserError(f"--host {settings.host}", "our own broker lets everybody in", cure)
    async with private_broker(settings) as address:
        link = await _connected(address, clock, settings)
        try:
            with ThreadPoolExecutor(2, "turn audio") as executor:
                house = House(brain, Punctual(clock), executor, truth, settings.turn_limit_s)
                host = _Host(house, link, door, codec, clock)
                async with asyncio.TaskGroup() as group:
                    listening = group.create_task(host.listen(group), name="broker")
                    try:
                        yield address.url
                    finally:
                        listening.cancel()
                        host.stop()
        except* UserError as group:
            raise group.exceptions[0] from None
        finally:
            await link.close()


async def _connected(address: Address, clock: Clock, settings: HostSettings) -> Link:
    wanted = settings_of(address, TransportSettings(ca_file=settings.ca_file))
    link = Link(wanted, clock, settings.max_message_mib * 2**20)
    try:
        await link.open(_HEARS)
    except ConnectError as error:
        await link.close()
        raise UserError("--broker", str(error), "name a broker that lets us in") from None
    return link


class _Host:
    """Gives every session what is meant for it."""

    def __init__(
        self,
        house: House,
        link: Link,
        door: Door,
        codec: Callable[[], ServerCodec],
        clock: Clock,
    ) -> None:
        self._house, self._link, self._door = house, link, door
        self._codec, self._clock = codec, clock
        self._numbers = itertools.count(1)
        self._sites: dict[str, _SiteConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """End every session."""
        for task in self._tasks:
            task.cancel()

    async def listen(self, group: asyncio.TaskGroup) -> None:
        """Hear the broker until it is gone.

        Raises:
            UserError: When it is.
        """
        while True:
            try:
                t_ns, message = await self._link.next()
            except ConnectionLostError as error:
                raise UserError("--broker", error.reason, "start it, then this again") from None
            assert isinstance(message, Published)  # noqa: S101 - a link brings nothing else
            try:
                await self._route(group, t_ns, message)
            except ProtocolError as error:
                warn(str(error))

    async def _route(self, group: asyncio.TaskGroup, t_ns: int, message: Published) -> None:
        if message.topic.startswith("hermes/audioServer/"):
            connection = self._sites.get(message.topic.split("/")[2])
            if connection is not None:
                connection.arrive(t_ns, message)
        elif message.topic == wire.END_SESSION:
            for connection in self._sites.values():
                connection.arrive(t_ns, message)
        else:
            await self._begin(group, t_ns, message)

    async def _begin(self, group: asyncio.TaskGroup, t_ns: int, message: Published) -> None:
        told = wire.fields_of(message)
        site = told.text("siteId", "default")
        query = told.text("customData", "").partition("?")[2]
        if site in self._sites:
            await self._tell(hermes_server.refusal(message, "this site has a session already"))
            return
        try:
            admission = self._door.admit(f"?{urlencode(parse_qsl(query))}", {})
        except RefusedError as refused:
            await self._tell(hermes_server.refusal(message, refused.reason))
            return
        connection = _SiteConnection(self._link, self._clock, site)
        connection.arrive(t_ns, message)
        conversation = Conversation(
            self._house,
            connection,
            self._codec(),
            terms=admission.terms,
            query=admission.query,
            number=next(self._numbers),
        )
        self._sites[site] = connection
        task = group.create_task(self._session(conversation, connection), name=f"site {site}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _session(self, conversation: Conversation, connection: _SiteConnection) -> None:
        """Run one session; whatever goes wrong in it ends only itself."""
        try:
            with self._door.session():
                await conversation.run()
        except* Exception as group:  # noqa: BLE001 - one session's fault must not end the others
            text = "; ".join(f"{type(one).__name__}: {one}" for one in group.exceptions)
            warn(f"site {connection.site}: {text}")
        finally:
            self._sites.pop(connection.site, None)

    async def _tell(self, messages: Sequence[Message]) -> None:
        with suppress(ConnectionLostError):  # `listen` hears the end
            for message in messages:
                assert isinstance(message, Published)  # noqa: S101 - made by the codec
                await self._link.publish(message)


class _SiteConnection:
    """One site's session on the host's own connection to the broker; see `Connection`."""

    def __init__(self, link: Link, clock: Clock, site: str) -> None:
        self.clock = clock
        self.site = site
        self._arrived: asyncio.Queue[tuple[int, Published] | None] = asyncio.Queue()
        self._unread_bytes = 0
        self._link = link
        self._closed = False

    def arrive(self, t_ns: int, message: Published) -> None:
        """Keep what is meant for this session; one that leaves too much unread is over."""
        if self._closed:
            return
        self._unread_bytes += len(message.payload)
        if self._arrived.qsize() < _MOST_UNREAD and self._unread_bytes <= _MOST_UNREAD_BYTES:
            self._arrived.put_nowait((t_ns, message))
            return
        warn(f"site {self.site}: more came than its session reads; it is ended")
        while not self._arrived.empty():
            self._arrived.get_nowait()
        self.cut()

    async def receive(self) -> tuple[int, Message]:
        """Return the next message; a client that says nothing for long has left.

        Raises:
            ConnectionLostError: If there will be none.
        """
        try:
            async with asyncio.timeout(_SILENCE_S):
                found = await self._arrived.get()
        except TimeoutError:
            raise ConnectionLostError(None, "nothing was heard of it for long") from None
        if found is None:
            raise ConnectionLostError(None, "the session has ended")
        self._unread_bytes -= len(found[1].payload)
        return found

    async def send_messages(self, messages: Sequence[Message]) -> int:
        """Publish messages; an `Ended` among them ends the session.

        Raises:
            ConnectionLostError: If the session or the broker is gone.
        """
        for message in messages:
            if self._closed:
                raise ConnectionLostError(None, "the session has ended")
            if isinstance(message, Ended):
                await self.close()
            elif isinstance(message, Published):
                await self._link.publish(message)
            else:
                raise TypeError(f"MQTT cannot carry {type(message).__name__}")
        return self.clock.now()

    async def send_raw(self, data: str | bytes) -> None:
        """Have something played that need be no WAV file."""
        payload = data.encode() if isinstance(data, str) else data
        topic = wire.audio_topic(self.site, "playBytes/raw")
        await self.send_messages([Published(topic, payload)])

    def answered(self) -> None:
        """Go on: the client says when all has been played."""

    def cut(self) -> None:
        """Say nothing more."""
        self._closed = True
        self._arrived.put_nowait(None)

    async def close(self, code: int = 1000, reason: str = "") -> None:  # noqa: ARG002 - MQTT's clients share a connection
        """End the session."""
        self.cut()
