"""Asks a service over HTTP where a websocket is to be opened, and keeps what it says secret."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from voxmeter.client.clock import Clock
from voxmeter.client.http import HttpTransport
from voxmeter.client.redaction import Redactor
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.codec import Address, Binary, Ended, Invitation
from voxmeter.endpoints.errors import ConnectError, ConnectionLostError, ProtocolError
from voxmeter.endpoints.fields import parse_object
from voxmeter.endpoints.http_faults import refusal

_LONG = 16  # a part of a path that is as long as a key, not a word like "conversation"


async def ask(
    address: Address, invitation: Invitation, settings: TransportSettings, clock: Clock
) -> str:
    """Return the URL of the websocket; the caller sets the time-out.

    Args:
        address: Where to ask, with the credentials.
        invitation: What to ask.
        settings: What the transport was told.
        clock: The session's clock.

    Raises:
        ConnectError: If the service cannot be reached, says no, or names no websocket.
        UserError: If `ca_file` is no file of certificates.
    """
    http = HttpTransport(settings, clock)
    try:
        await http.connect(address)
        await http.send(invitation.request)
        return _websocket(address, invitation, await _answer(http))
    except ConnectionLostError as error:
        raise ConnectError("closed", str(error)) from error
    except ProtocolError as error:
        words = f"the answer to our request for a session: {error.problem}"
        raise ConnectError("closed", words) from error
    finally:
        await http.close()


def hidden(error: ConnectError, url: str) -> ConnectError:
    """Return an error of a websocket without what its URL may hold of secrets."""
    parts = urlsplit(url)
    whole = parts.path + (f"?{parts.query}" if parts.query else "")
    secrets = [whole, parts.path, *(value for _, value in parse_qsl(parts.query))]
    secrets += [part for part in parts.path.split("/") if len(part) >= _LONG]
    said, points, _ = str(error).partition("it points to ")  # to another URL of the same kind
    return ConnectError(
        error.failure,
        Redactor(secrets).text(said + ("it points elsewhere" if points else "")),
        error.status,
        retryable=error.retryable,
        retry_after_s=error.retry_after_s,
    )


async def _answer(http: HttpTransport) -> Binary:
    body = bytearray()
    async for arrival in http.receive():
        match arrival.message:
            case Binary(data):
                body += data
            case Ended(None):
                break
            case Ended() as ended:
                raise _refused(ended)
            case _:
                continue  # the head of the answer
    return Binary(bytes(body))


def _refused(ended: Ended) -> ConnectError:
    fault = refusal(ended)
    return ConnectError(
        "rejected",
        f"{fault.kind}: {fault.message}",
        ended.code,
        retryable=fault.retryable,
        retry_after_s=fault.retry_after_s,
    )


def _websocket(address: Address, invitation: Invitation, answer: Binary) -> str:
    told = parse_object("invitation", answer)
    url = told.text(invitation.field)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"ws", "wss"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise told.problem(f"{invitation.field} is not a websocket's URL")
    if parts.scheme == "ws" and urlsplit(address.url).scheme == "https":
        raise told.problem(f"{invitation.field} is without TLS, though we asked over TLS")
    return url
