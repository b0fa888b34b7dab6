"""Servers that repeat every key they are shown, in each spelling that is usual somewhere."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote, quote_plus, urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

KEYS: Mapping[str, str] = {
    "PLANTED_KEY": 'sk-planted/9+Qw8x"Zr\\5&Tn<7Lk=3Jd',
    "PLANTED_HEADER": "hdr-Vb6Nm2Xc9Kj4Hg7Fd1Sa3Po5",
    "PLANTED_QUERY": "qry Yt5é8Wq/1Ui6Op+3As9Df2Gh",
    "PLANTED_JUDGE": "jdg-Mn3Bv7Cx1Zl5Kj9Hg2Fd6Sa8",
    "PLANTED_BROKER": "mqtt-Po4Iu8Yt2Re6Wq1Lk5Jh9Gf3",
    "PLANTED_EXEC": "exe-Xs2Za6Qw1Ed5Rf9Tg3Yh7Uj4",
}
"""Variables and the secrets in them."""


def spellings(key: str) -> Mapping[str, str]:
    """Return every way in which a server may write a key."""
    whole = key.encode()
    return {
        "plain": key,
        "json": json.dumps(key)[1:-1],
        "json letters": json.dumps(key, ensure_ascii=False)[1:-1].replace("/", "\\/"),
        "json codes": "".join(f"\\u{ord(one):04X}" for one in key),
        "percent": quote(key),
        "percent all": quote(key, safe=""),
        "percent small": quote(key, safe="").lower() if key.islower() else _small(key),
        "percent twice": quote(quote(key, safe=""), safe=""),
        "percent each": "".join(f"%{one:02x}" for one in whole),
        "form": quote_plus(key),
        "html": html.escape(key),
        "html codes": "".join(f"&#{ord(one)};" for one in key),
        "html hex": "".join(f"&#x{ord(one):x};" for one in key),
        "base64": base64.b64encode(whole).decode(),
        "base64 of a login": base64.b64encode(b"user:" + whole).decode(),
        "base64 of a header": base64.b64encode(b"Bearer " + whole + b"; x").decode(),
        "base64 for URLs": base64.urlsafe_b64encode(b"k=" + whole).decode(),
        "hex": whole.hex(),
        "HEX": whole.hex().upper(),
        "cut off": key[: len(key) - 4],
        "cut in front": key[4:],
    }


def _small(key: str) -> str:
    """Return a key with the signs in it as `%2f`, in small letters."""
    return "".join(
        one if one.isalnum() and one.isascii() else quote(one, safe="").lower() for one in key
    )


def leaks(text: str) -> list[str]:
    """Return which keys a text shows, and how: any ten letters in a row are too many."""
    found = []
    text = re.sub(r"\\+", r"\\", text)  # JSON in JSON has several for one
    for name, key in KEYS.items():
        for way, spelled in spellings(key).items():
            size = 10 if way in {"plain", "cut off", "cut in front"} else max(14, len(spelled) // 2)
            pieces = (spelled[at : at + size] for at in range(len(spelled) - size + 1))
            shown = next((text.index(piece) for piece in pieces if piece in text), None)
            if shown is not None:
                found.append(f"{name} ({way}): {text[max(0, shown - 40) : shown + 80]}")
    return found


def everything() -> str:
    """Return all keys in all spellings, as one text."""
    return " ; ".join(one for key in KEYS.values() for one in spellings(key).values())


@contextmanager
def leaky() -> Iterator[str]:
    """Run the servers while the block lasts; yields `host:port`.

    A websocket to `/refuse` is refused with an error that repeats the keys; to any other path it
    is a session of OpenAI Realtime that repeats them in its messages and in its close reason. A
    POST to `/redirect` is sent on to an address with the keys, any other is answered with them.
    """
    started = threading.Event()
    place: list[str] = []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        async with (
            serve(_session, "127.0.0.1", 0, process_request=_refuse, compression=None) as server,
            await asyncio.start_server(_http, "127.0.0.1", 0) as http,
            await asyncio.start_server(_broker, "127.0.0.1", 0) as broker,
        ):
            place.extend(str(one.sockets[0].getsockname()[1]) for one in (server, http, broker))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        assert started.wait(20)
        yield " ".join(place)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def _refuse(connection: ServerConnection, request: Request) -> Response | None:
    if urlsplit(request.path).path != "/refuse":
        return None
    answer = connection.respond(401, json.dumps({"error": {"message": _mixed()}}))
    answer.headers["X-Echo"] = quote(KEYS["PLANTED_KEY"])
    answer.headers["Location"] = f"https://127.0.0.1/{KEYS['PLANTED_HEADER']}"
    return answer


def _mixed() -> str:
    return f"Incorrect API key provided: {everything()}"


async def _session(connection: ServerConnection) -> None:
    await connection.recv()
    await connection.send(json.dumps({"type": "session.created", "session": {"id": _mixed()}}))
    await connection.send(json.dumps({"type": "session.updated", "session": {"id": _mixed()}}))
    await connection.send(json.dumps({"type": "odd", "echo": _mixed()}, ensure_ascii=False))
    for key in KEYS.values():
        for number, spelled in enumerate(spellings(key).values()):
            told = {"type": f"odd.{number}", "echo": {spelled: [spelled]}}
            await connection.send(json.dumps(told))
    error = {"type": "invalid_request_error", "code": KEYS["PLANTED_QUERY"], "message": _mixed()}
    await connection.send(json.dumps({"type": "error", "error": error}))
    await connection.close(4001, f"bad key {KEYS['PLANTED_KEY']} {KEYS['PLANTED_HEADER']}")


async def _http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    if "content-length" in head.lower():
        size = int(head.lower().split("content-length:")[1].split("\r\n")[0])
        await reader.readexactly(size)
    path = head.split(" ")[1].split("?")[0]
    if path == "/page":
        body, status = f"<p>{html.escape(_mixed())}</p>".encode(), "500 No"
    elif path == "/redirect":
        body, status = b"", "302 Found"
    else:
        body, status = json.dumps({"text": _mixed(), "more": everything()}).encode(), "200 OK"
    kind = "text/html" if path == "/page" else "application/json"
    told = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    told += f"X-Echo: {KEYS['PLANTED_HEADER']}\r\n"
    told += f"Location: http://127.0.0.1/{KEYS['PLANTED_HEADER']}/{quote(KEYS['PLANTED_KEY'])}\r\n"
    writer.write(told.encode() + b"Connection: close\r\n\r\n" + body)
    await writer.drain()
    writer.close()


async def _broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Refuse a client as an MQTT 5 broker does, with the password for a reason."""
    said = await reader.read(4096)
    reason = f"no {KEYS['PLANTED_BROKER']}".encode()
    properties = b"\x1f" + len(reason).to_bytes(2, "big") + reason
    if b"MQTT\x05" in said:
        body = b"\x00\x87" + bytes([len(properties)]) + properties
        writer.write(b"\x20" + bytes([len(body)]) + body)
    else:
        writer.write(b"\x20\x02\x00\x05")
    await writer.drain()
    writer.close()
