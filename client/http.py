"""HTTP/1.1 as a transport: requests out, the heads and bodies of their answers in, as they come.

The connection is opened before the question is asked, so that its cost is in `connect_ms` and not
in the reply's latency, and every piece of a body carries the moment at which its bytes reached this
process. An HTTP client library can do neither: it connects with the first request, and stamps
nothing. So the framing is h11's, which is what httpx stands on, and the connection is our own.

While one answer goes on, others may be fetched beside it (`Request.aside`), as a player fetches the
pieces of a stream whose progress another connection tells.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from urllib.parse import SplitResult, quote, urlsplit

import h11

from voxmeter.client import http_proxy
from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.dialing import (
    bare,
    check_headers,
    connect_error,
    loopback,
    tls_context,
)
from voxmeter.client.http_exchange import Exchange
from voxmeter.client.http_link import dial
from voxmeter.client.transport import Arrival, TransportSettings
from voxmeter.endpoints.codec import Address, Message, Request
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, EndpointError

_SPARE = 2  # connections that wait for a further request beside the main one
_KEPT = "%/?=&:+,;@!$'()*~[]"  # of a target that may hold letters HTTP cannot carry
_PORTS = {"http": 80, "https": 443}
_DEFAULTS = {"User-Agent": "voxmeter", "Accept": "*/*", "Accept-Encoding": "identity"}


class HttpTransport:
    """One connection for requests one after another, others for those beside; see `Transport`.

    `receive` goes on from answer to answer: each ends with an `Ended`, whose code is None for a
    body that ended as it should and the status of a refused request. What was fetched beside comes
    in between, each as one `Fetched`.
    """

    def __init__(self, settings: TransportSettings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._limit = settings.max_message_mib * 2**20
        self._address = Address("")
        self._link: Exchange | None = None
        self._asked: asyncio.Queue[Exchange | ConnectionLostError] = asyncio.Queue()
        self._arrived: asyncio.Queue[Arrival | EndpointError] = asyncio.Queue(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering = False
        self._spare: list[Exchange] = []
        self._rtt_ms: float | None = None

    async def connect(self, address: Address) -> None:
        """Open the connection, TLS included; the caller sets the time-out."""
        self._address = address
        parts = _parts(address.url)
        check_headers(address)
        self._link = await self._dial(parts)

    async def send(self, message: Message) -> None:
        """Send one request; a connection that the peer closed since the last one is opened anew.

        One that is sent beside is only begun here: what becomes of it is heard by whoever listens.
        """
        if not isinstance(message, Request):
            raise TypeError(f"HTTP cannot carry {type(message).__name__}")
        if message.aside:
            self._begin(self._fetch(message), message.aside)
            return
        try:
            exchange = await self._free()
        except ConnectError as error:
            lost = ConnectionLostError(error.status, str(error))
            self._asked.put_nowait(lost)  # whoever listens hears it as well
            raise lost from error
        self._asked.put_nowait(exchange)  # first: a peer may refuse what it has not read whole
        await exchange.ask(self._head(message, exchange), message.body)

    async def receive(self) -> AsyncIterator[Arrival]:
        """Yield the head, the body and the end of one answer after another, and what was fetched.

        Raises:
            ConnectionLostError: If a connection ended during an answer, or none could be opened.
            ProtocolError: If an answer is not HTTP, or is too large.
        """
        if not self._answering:
            self._answering = True
            self._begin(self._answers(), "answers")
        while True:
            found = await self._arrived.get()
            if isinstance(found, EndpointError):
                raise found
            yield found

    async def rtt_ms(self) -> float | None:
        """Return how long the TCP handshake took, ms; None through a proxy."""
        return self._rtt_ms

    async def close(self) -> None:
        """Drop all connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for exchange in [*self._spare, *([self._link] if self._link is not None else [])]:
            await exchange.link.close()

    def _begin(self, work: Coroutine[None, None, None], name: str) -> None:
        """Start what goes on until it is done or the transport is closed."""
        task = asyncio.create_task(work, name=f"http {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answers(self) -> None:
        """Hand on the answers of the main connection, one after another."""
        try:
            while True:
                exchange = await self._asked.get()
                if isinstance(exchange, ConnectionLostError):
                    raise exchange
                async for arrival in exchange.answer(self._secrets(), self._limit):
                    await self._arrived.put(arrival)
        except EndpointError as error:
            await self._arrived.put(error)

    async def _fetch(self, request: Request) -> None:
        """Send a request on a connection of its own, and hand on its whole answer."""
        try:
            await self._arrived.put(await self._fetched(request))
        except ConnectError as error:
            await self._arrived.put(ConnectionLostError(error.status, str(error)))
        except EndpointError as error:
            await self._arrived.put(error)

    async def _fetched(self, request: Request) -> Arrival:
        """Send a request beside; ask again where a connection was closed that had been kept."""
        while (kept := self._kept()) is not None:
            try:
                return await self._fetched_by(kept, request)
            except ConnectionLostError:
                if request.method != "GET":
                    raise
        return await self._fetched_by(await self._dial(_parts(self._address.url)), request)

    async def _fetched_by(self, exchange: Exchange, request: Request) -> Arrival:
        try:
            await exchange.ask(self._head(request, exchange), request.body)
            whole = await exchange.whole(request.aside, self._secrets(), self._limit)
        except BaseException:
            await exchange.link.close()
            raise
        if len(self._spare) < _SPARE and exchange.renew():
            self._spare.append(exchange)
        else:
            await exchange.link.close()
        return whole

    def _kept(self) -> Exchange | None:
        """Return a connection beside the main one that waits for a request, None for none."""
        return self._spare.pop() if self._spare else None

    async def _free(self) -> Exchange:
        """Return a connection that waits for a request."""
        if self._link is None:
            raise ConnectionLostError(None, "not connected")
        if not self._link.renew():
            await self._link.link.close()
            self._link = await self._dial(_parts(self._address.url))
        return self._link

    async def _dial(self, parts: SplitResult) -> Exchange:
        url = self._address.url
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        proxy = None
        if self._settings.use_proxy and not loopback(url):
            proxy = http_proxy.for_host(parts.scheme, host)
        try:
            context = tls_context(url, self._settings)
            if proxy is None:
                link = await dial(host, port, context, self._clock, self._limit)
                self._rtt_ms = link.connect_ms
                return Exchange(link)
            link = await dial(proxy.host, proxy.port, None, self._clock, self._limit)
            if context is None:
                return Exchange(link, proxy)
            try:
                await http_proxy.tunnel(link, proxy, f"{parts.hostname}:{port}")
                await link.secure(context, host)
            except BaseException:
                await link.close()
                raise
            return Exchange(link)
        except OSError as error:
            raise connect_error(error, url if proxy is None else proxy.shown) from error

    def _head(self, request: Request, exchange: Exchange) -> h11.Request:
        parts = _parts(self._address.url)
        own = parts.path or "/"
        target = request.path or (f"{own}?{parts.query}" if parts.query else own)
        host = parts.netloc.rpartition("@")[2].encode("idna").decode("ascii")
        headers = {"Host": host} | _DEFAULTS
        headers = _laid_over(headers, request.headers)
        headers = _laid_over(headers, self._address.headers)  # the user's own have the last word
        headers = _laid_over(headers, {"Content-Length": str(len(request.body))})
        target = quote(target, safe=_KEPT)
        if exchange.proxy is not None:
            target = f"{parts.scheme}://{host}{target}"
            headers |= exchange.proxy.headers
        return h11.Request(method=request.method, target=target, headers=list(headers.items()))

    def _secrets(self) -> tuple[str, ...]:
        """Return the credentials among the headers, which a peer might repeat."""
        values = self._address.headers.values()
        return tuple(word for value in values for word in value.split() if len(word) >= 8)


def _parts(url: str) -> SplitResult:
    parts = urlsplit(url)
    try:
        host = (parts.hostname or "").encode("idna")
    except UnicodeError:
        raise ConnectError(
            "dns", f"{bare(url)}: {parts.hostname!r} can be no host's name"
        ) from None
    if parts.scheme not in _PORTS or not host:
        raise ConnectError("refused", f"{bare(url)} is not an http:// or https:// URL")
    return parts


def _laid_over(base: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Return headers with others in place of those of the same name, whatever its case."""
    names = {name.lower() for name in other}
    return {name: value for name, value in base.items() if name.lower() not in names} | dict(other)
