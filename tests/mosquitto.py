"""A real MQTT broker for tests: on a free port, with TLS and a password where asked for."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from needs import needs

_READY = "running"
_LIMIT_S = 20


@dataclass
class Broker:
    """One broker; `kill` and `start` bring it down and up on the same port.

    Attributes:
        folder: Where its files lie: `ca.pem` is what clients of a TLS broker trust.
        port: Where it listens, on 127.0.0.1.
        tls: Whether it speaks TLS.
    """

    folder: Path
    port: int
    tls: bool
    process: subprocess.Popen[str] | None = field(default=None, repr=False)
    _reader: threading.Thread | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"{'mqtts' if self.tls else 'mqtt'}://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> str:
        return str(self.folder / "ca.pem")

    def start(self) -> None:
        """Start it; return once it listens."""
        program = str(needs("mosquitto"))
        self.process = subprocess.Popen(
            [program, "-c", str(self.folder / "mosquitto.conf")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said: list[str] = []
        running = threading.Event()
        self._reader = threading.Thread(target=_read, args=(self.process, said, running))
        self._reader.start()
        if not running.wait(_LIMIT_S) or _READY not in said[-1]:
            self.kill()
            raise AssertionError("mosquitto did not start: " + "".join(said))

    def kill(self) -> None:
        """End it at once, as a crash would; return once it is gone."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait(_LIMIT_S)
        if self._reader is not None:
            self._reader.join(_LIMIT_S)
        assert self.process.stderr is not None
        self.process.stderr.close()
        self.process = None


@contextmanager
def mosquitto(
    folder: Path, *, tls: bool = False, user: str = "", password: str = ""
) -> Iterator[Broker]:
    """Run a broker while the block lasts.

    Args:
        folder: An empty folder for its files.
        tls: Speak TLS, with a certificate of the authority in `ca.pem`.
        user: The one user that it lets in; "" lets everybody in.
        password: That user's.
    """
    needs("mosquitto")
    folder.mkdir(parents=True, exist_ok=True)
    broker = Broker(folder, _free_port(), tls)
    lines = [f"listener {broker.port} 127.0.0.1", "persistence false", "log_dest stderr"]
    lines.append("set_tcp_nodelay true")
    if os.geteuid() == 0:  # it would become a user who cannot read the files of a test
        lines.append("user root")
    if tls:
        certificates(folder)
        lines += [f"certfile {folder}/server.pem", f"keyfile {folder}/server.key"]
    if user:
        command = ["mosquitto_passwd", "-b", "-c", str(folder / "passwords"), user, password]
        subprocess.run(command, check=True, capture_output=True)
        lines += ["allow_anonymous false", f"password_file {folder}/passwords"]
    else:
        lines.append("allow_anonymous true")
    (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def certificates(folder: Path) -> None:
    """Write an authority and a certificate of 127.0.0.1: `ca.pem`, `server.pem`, `server.key`."""
    openssl = str(needs("openssl"))

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], check=True, capture_output=True, cwd=folder)

    ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run("req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca")
    run("req", *ec, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
    (folder / "san.cnf").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "san.cnf")
    run("x509", "-req", "-in", "server.csr", *signed, "-out", "server.pem", "-days", "2")


def _read(process: subprocess.Popen[str], said: list[str], running: threading.Event) -> None:
    """Read all that a broker says, so that it never waits for a reader."""
    assert process.stderr is not None
    for line in process.stderr:
        if not running.is_set():
            said.append(line)
        if _READY in line:
            running.set()
    running.set()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
