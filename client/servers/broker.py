"""The MQTT broker that a server of ours talks through: the user's, or one of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from voxmeter.client.servers.door import HostSettings
from voxmeter.endpoints.codec import Address
from voxmeter.endpoints.errors import UserError

_READY = b" running"
_START_S = 20.0
_STOP_S = 5.0


@asynccontextmanager
async def private_broker(settings: HostSettings) -> AsyncIterator[Address]:
    """Give the address of the broker that is named, or of one that lives as long as the block.

    Raises:
        UserError: If none is named, and mosquitto is missing or does not start.
    """
    if settings.broker is not None:
        yield settings.broker
        return
    program = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        cure = "apt-get install mosquitto, or name a broker with --broker mqtt://HOST:PORT"
        raise UserError("--protocol hermes", "needs an MQTT broker, and found no mosquitto", cure)
    port = settings.port or _free_port()
    with tempfile.TemporaryDirectory(prefix="voxmeter-broker-") as folder:
        config = Path(folder, "mosquitto.conf")
        lines = [f"listener {port} {settings.host}", "allow_anonymous true", "persistence false"]
        lines.append("set_tcp_nodelay true")  # else what follows close behind waits for 40 ms
        config.write_text("\n".join([*lines, "log_dest stderr", ""]))  # noqa: ASYNC240 - a few bytes
        process = await asyncio.create_subprocess_exec(
            program,
            "-c",
            str(config),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        reading: asyncio.Task[None] | None = None
        try:
            await _started(process)
            reading = asyncio.create_task(_read_on(process), name="mosquitto's stderr")
            yield Address(settings.url("mqtt", port))
        finally:
            await _stop(process)
            if reading is not None:
                await reading


async def _started(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None  # noqa: S101 - a pipe
    last = b""
    try:
        async with asyncio.timeout(_START_S):
            async for line in process.stderr:
                last = line
                if _READY in line:
                    return
    except TimeoutError:
        pass
    said = last.decode(errors="replace").strip()
    raise UserError("mosquitto", f"did not start: {said}", "choose another --port, or --broker")


async def _read_on(process: asyncio.subprocess.Process) -> None:
    """Read all that it says, so that it never waits for a reader."""
    assert process.stderr is not None  # noqa: S101 - a pipe
    while await process.stderr.read(4096):
        pass


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
