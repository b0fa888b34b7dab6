"""Live mode in a browser: one page on 127.0.0.1, and a session for whoever opens its microphone."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from voxmeter.client.clock import Clock
from voxmeter.client.live.updates import BeginWith
from voxmeter.client.live.web_access import PageAccess, new_token
from voxmeter.client.live.web_connection import PageConnection
from voxmeter.client.live.web_wire import MAX_BYTES
from voxmeter.client.servers.stamped import StampedServerConnection
from voxmeter.endpoints.errors import UserError

_MAX_TABS = 8
_TRY_LATER = 1013
_CLOSE_TIMEOUT_S = 1.0
_KEEPALIVE_S = 5.0
_GONE_S = 15.0


async def run(
    begin: BeginWith,
    *,
    clock: Clock,
    announce: Callable[[str], None],
    port: int = 0,
    open_page: bool = False,
    stay: bool = True,
) -> None:
    """Serve the page until cancelled; then what was said is saved before this returns.

    Args:
        begin: Makes the session for a page's sound; called anew for each page that comes.
        clock: The session's.
        announce: Is given the address of the page as soon as it is there.
        port: 0 takes a free one.
        open_page: Whether to open the address in this machine's browser, if it has one.
        stay: Whether to wait for another page when one has gone; otherwise this returns then.

    Raises:
        UserError: If the port is taken, or what a session raised.
    """
    tabs = Tabs(begin, clock, stay=stay)
    async with _serving(tabs, clock, port) as url:
        announce(url)
        if open_page:
            _show_in_browser(url)
        await tabs.done


def _show_in_browser(url: str) -> None:
    """Open an address in this machine's browser, which may stay in the foreground while it runs.

    So a thread waits for it that nobody waits for: Ctrl-C ends the program at once.
    """

    def show() -> None:
        with suppress(webbrowser.Error, OSError):  # the address is printed anyway
            webbrowser.open(url)

    threading.Thread(target=show, name="browser", daemon=True).start()


def check_port(port: int) -> None:
    """See to it that a port can be had.

    Raises:
        UserError: If it is taken, or not for us.
    """
    try:
        with socket.create_server(("127.0.0.1", port)):
            pass
    except OSError as error:
        raise _taken(port, error) from error


def _taken(port: int, error: OSError) -> UserError:
    found = os.strerror(error.errno) if error.errno else str(error)
    return UserError(f"127.0.0.1:{port}", found, "choose another --port, or none for a free one")


class Tabs:
    """The tabs that have the page open, of which one at a time talks.

    Attributes:
        done: Is complete when nobody else may come.
    """

    def __init__(self, begin: BeginWith, clock: Clock, *, stay: bool) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._begin = begin
        self._clock = clock
        self._stay = stay
        self._talking: PageConnection | None = None
        self._open = 0

    async def handle(self, connection: StampedServerConnection) -> None:
        """Serve one tab."""
        if self._open >= _MAX_TABS:
            await connection.close(_TRY_LATER, "too many tabs are open")
            return
        page = PageConnection(connection, self._clock, self._begin)
        self._open += 1
        try:
            await page.run(self._admit)
        except Exception as fault:  # noqa: BLE001 - is raised where the page is served
            self._end(fault)
        finally:
            self._open -= 1
            if self._talking is page:
                self._talking = None
                if page.error is not None or not (self._stay or page.replaced):
                    self._end(page.error)

    async def _admit(self, page: PageConnection) -> None:
        while self._talking is not None:
            await page.taking_over()
            if self._talking is not None:
                await self._talking.replace()
        self._talking = page

    def _end(self, fault: Exception | None) -> None:
        if self.done.done():
            return
        if fault is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(fault)


@asynccontextmanager
async def _serving(tabs: Tabs, clock: Clock, port: int) -> AsyncIterator[str]:
    access = PageAccess(new_token(), port)

    def admit(connection: ServerConnection, request: Request) -> Response | None:
        assert isinstance(connection, StampedServerConnection)  # noqa: S101 - made below
        connection.clock = clock
        headers = {name.lower(): value for name, value in request.headers.raw_items()}
        answer = access.answer(request.path, headers)
        if answer is None:
            return None
        status = answer.status
        return Response(status.value, status.phrase, Headers(answer.headers), answer.body)

    async def handle(connection: ServerConnection) -> None:
        assert isinstance(connection, StampedServerConnection)  # noqa: S101 - made below
        await tabs.handle(connection)

    try:
        server = await serve(
            handle,
            "127.0.0.1",
            port,
            process_request=admit,
            create_connection=StampedServerConnection,
            compression=None,
            max_size=MAX_BYTES,
            ping_interval=_KEEPALIVE_S,
            ping_timeout=_GONE_S,
            close_timeout=_CLOSE_TIMEOUT_S,
            server_header=None,
            logger=_quiet_logger(),
        )
    except OSError as error:
        raise _taken(port, error) from error
    async with server:
        access = PageAccess(access.token, server.sockets[0].getsockname()[1])
        yield access.url


def _quiet_logger() -> logging.Logger:
    """Return a logger for what the library would say of strangers that speak no HTTP."""
    logger = logging.getLogger("voxmeter.live.websockets")
    logger.setLevel(logging.CRITICAL)
    return logger
