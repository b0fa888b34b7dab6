"""The Rust server's way in: TLS with a certificate of its own, settings before the handshake."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from needs import needs
from websockets.asyncio.server import ServerConnection, serve

from voxmeter.client.probe import Knock, knock
from voxmeter.client.target import Target
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.errors import ConnectError

NOTE = '{"lm_model_file":"model.q8.gguf"}'


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            *(needs("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", key, "-out", cert),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


@asynccontextmanager
async def rust(certificate: tuple[Path, Path], asked: list[str]) -> AsyncIterator[str]:
    """Serve the Rust server's greeting on a free port; yield its URL as a user writes it."""

    async def greet(connection: ServerConnection) -> None:
        assert connection.request is not None
        asked.append(connection.request.path)
        await connection.send(b"\4" + NOTE.encode())
        await connection.send(bytes(9))
        await connection.wait_closed()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with serve(greet, "127.0.0.1", 0, ssl=context, compression=None) as server:
        yield f"wss://localhost:{server.sockets[0].getsockname()[1]}"


async def enter(url: str, wire: TransportSettings) -> Knock:
    target = Target("rust", "moshi", url, wire=wire)
    codec = target.codec()
    return await knock(codec, target.transport(), target.address(codec, ""), 5.0)


@pytest.mark.parametrize("way", ["insecure", "ca_file"])
async def test_a_certificate_of_its_own_is_taken_where_the_user_says_so(
    certificate: tuple[Path, Path], way: str
) -> None:
    insecure = way == "insecure"
    asked: list[str] = []
    wire = TransportSettings(insecure=insecure, ca_file="" if insecure else str(certificate[0]))
    async with rust(certificate, asked) as url:
        assert (await enter(url, wire)).note == NOTE
    assert asked == ["/api/chat"]


async def test_without_a_word_from_the_user_it_is_refused_with_the_cure(
    certificate: tuple[Path, Path],
) -> None:
    async with rust(certificate, []) as url:
        with pytest.raises(ConnectError, match="set ca_file, or insecure = true") as raised:
            await enter(url, TransportSettings())
    assert raised.value.failure == "tls"
