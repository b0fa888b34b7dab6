"""The MQTT broker that a server of ours talks through: the user's, or one of its own."""

from __future__ import annotations

import asyncio
import os
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from voxmeter.client.servers.door import HostSettings
from voxmeter.client.terminal import printable
from voxmeter.endpoints.codec import Address
from voxmeter.endpoints.errors import UserError

_READY = " running"
_START_S = 20.0
_STOP_S = 5.0
_SHELL = (  # mosquitto ends when our end of the pipe does, however this process ends
    'exec 3<&0; "$0" -c "$1" & broker=$!; (cat <&3; kill $broker) >/dev/null 2>&1 & wait $broker'
)


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
        process = _start(program, _configuration(folder, settings.host, port))
        said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        reader = threading.Thread(target=_read, args=(process, said), name="mosquitto's words")
        reader.start()
        try:
            await asyncio.to_thread(_await_ready, said)
            yield Address(settings.url("mqtt", port))
        finally:
            await asyncio.to_thread(_stop, process, reader)


def _configuration(folder: str, host: str, port: int) -> str:
    path = Path(folder, "mosquitto.conf")
    lines = [
        f"listener {port} {host}",
        "allow_anonymous true",
        "persistence false",
        "log_dest stderr",
        "log_timestamp false",
        "set_tcp_nodelay true",  # else what follows close behind waits for 40 ms
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def _start(program: str, configuration: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own words
        ["/bin/sh", "-c", _SHELL, program, configuration],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the server, which then ends its broker itself
    )


def _read(process: subprocess.Popen[bytes], said: queue.SimpleQueue[str | None]) -> None:
    """Read all that it says, to the end, so that it never waits for a reader."""
    assert process.stderr is not None  # noqa: S101 - a pipe
    with process.stderr:
        for line in process.stderr:
            said.put(line.decode(errors="replace").strip())
    said.put(None)


def _await_ready(said: queue.SimpleQueue[str | None]) -> None:
    """Return once it listens.

    Raises:
        UserError: If it does not, with its last words.
    """
    last, cure = "", "choose another --port, or name a broker with --broker"
    try:
        while (line := said.get(timeout=_START_S)) is not None:
            if line.endswith(_READY):
                return
            last = line
    except queue.Empty:
        last = f"not within {_START_S:g} s"
    raise UserError("mosquitto", f"did not start: {printable(last, 200)}", cure)


def _stop(process: subprocess.Popen[bytes], reader: threading.Thread) -> None:
    assert process.stdin is not None  # noqa: S101 - a pipe
    process.stdin.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    reader.join()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
