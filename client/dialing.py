"""What every connection needs before a protocol begins: TLS settings, and failures told apart."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

import h11

from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.addresses import is_this_machine
from voxmeter.endpoints.codec import Address
from voxmeter.endpoints.errors import ConnectError, UserError

_SECURE = ("wss:", "https:", "mqtts:")


def tls_context(url: str, settings: TransportSettings) -> ssl.SSLContext | None:
    """Return how TLS is to be spoken with a URL; None for a scheme without it.

    Raises:
        UserError: If `ca_file` cannot be read or holds no certificate.
    """
    if not url.lower().startswith(_SECURE):
        return None
    context = ssl.create_default_context()
    if settings.ca_file:
        try:
            context.load_verify_locations(settings.ca_file)
        except OSError as error:
            found = f"holds no certificates ({error.strerror or error})"
            raise UserError(settings.ca_file, found, "give a PEM file") from None
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def loopback(url: str) -> bool:
    """Return whether a URL is on this machine, as far as its name tells."""
    return is_this_machine(urlsplit(url).hostname or "")


def bare(url: str) -> str:
    """Return a URL without its query, which may hold a key."""
    return url.split("?", 1)[0]


def check_headers(address: Address) -> None:
    """Refuse a header that cannot be sent; its value, which may be a key, is not repeated.

    Raises:
        ConnectError: Naming the first such header.
    """
    for name, value in address.headers.items():
        try:
            h11.Request(method="GET", target="/", headers=[("Host", "-"), (name, value)])
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise ConnectError("refused", f"header {name!r} cannot be sent over HTTP") from None


def connect_error(error: OSError | ImportError | UnicodeError, url: str) -> ConnectError:
    """Return what it means that no connection could be made.

    Args:
        error: From the system, the name service or TLS; an ImportError tells of a SOCKS proxy
            whose library is not installed, a UnicodeError of a name that no DNS can have.
        url: What was to be reached.
    """
    if isinstance(error, UnicodeError):  # a part of the name is empty or too long
        host = (urlsplit(url).hostname or "")[:80]
        return ConnectError("dns", f"{host!r} can be no host's name")
    if isinstance(error, ssl.SSLError):
        return ConnectError("tls", _tls_problem(error))
    if isinstance(error, socket.gaierror):
        return ConnectError("dns", f"no address for {urlsplit(url).hostname!r}: {error.strerror}")
    return ConnectError("refused", _unreachable(url, error))


def _unreachable(url: str, error: Exception) -> str:
    said = str(error)
    if not said:  # dropped in the middle of opening, most often of the TLS handshake
        secure = url.lower().startswith(_SECURE)
        said = "dropped while it was opened" + ("; does it speak TLS?" if secure else "")
    return f"{bare(url)}: {said}"


def _tls_problem(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the certificate is not trusted ({error.verify_message}); "
            "set ca_file, or insecure = true for a server of your own"
        )
    return f"TLS failed: {error.reason or error}"
