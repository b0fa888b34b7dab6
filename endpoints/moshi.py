"""Moshi and PersonaPlex: a kind byte and a payload, Ogg/Opus both ways, and no turn ever ends."""

from __future__ import annotations

import codecs
import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from voxmeter.endpoints.addresses import checked_key
from voxmeter.endpoints.codec import Address, Binary, Ended, Message, Settings, Step, Traits, Turn
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Closed, Event, Fault, Ready, ReplyAudio, ReplyText
from voxmeter.endpoints.kind import Kind
from voxmeter.endpoints.moshi_options import QUERY_KEYS, RATE, read

HANDSHAKE, AUDIO, TEXT, CONTROL, METADATA, ERROR, PING, COLOURED_TEXT = range(8)
"""Kinds of messages; receivers ignore all others."""

PATH = "/api/chat"
_NOT_WORDS = frozenset({"<s>", "</s>", "<unk>"})
_BYTES = re.compile(r"(?:<0x[0-9A-Fa-f]{2}>)+")
_NOTE = 8192
_SCHEMES = {"http": "ws", "https": "wss"}

KIND = Kind(
    name="moshi",
    about="Moshi (PyTorch, MLX, Rust) and PersonaPlex: full duplex, Opus both ways",
    codec="voxmeter.endpoints.moshi:client",
    server="voxmeter.endpoints.moshi_server:server",
    path="/api/chat",
    query_keys=tuple(sorted(QUERY_KEYS - {"seed"})),  # a metronome has a seed of its own
    known_by="sessions with the genuine PyTorch server over a tiny model, and its captured bytes; "
    "Rust, MLX and PersonaPlex read in source",
    docs="docs/endpoints/moshi.md",
    options_at="voxmeter.endpoints.moshi_options:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option or a setting is wrong.
    """
    return Client(settings)


class Client:
    """One full-duplex session; see `Codec`."""

    def __init__(self, settings: Settings) -> None:
        self._wanted = read(settings)
        self._ready = False
        self._metadata = ""
        self._pieces = _Pieces()

    @property
    def traits(self) -> Traits:
        """What the driver must know; all of it known before the server speaks."""
        return Traits(
            input_rate=RATE,
            input_encoding="opus",
            frame_ms=self._wanted.frame_ms,
            full_duplex=True,
            first_speaker=self._wanted.first_speaker,
            reply_end="quiet",
            lead_in_ms=self._wanted.lead_in_ms,
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return the URL with the protocol's path, where it has none, and the options."""
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        names = {name for name, _ in given}
        given += [pair for pair in self._wanted.query.items() if pair[0] not in names]
        whole = parts._replace(
            scheme=_SCHEMES.get(parts.scheme, parts.scheme),
            path=parts.path if parts.path.strip("/") else PATH,
            query=urlencode(given),
        )
        # The protocol knows no keys; a proxy in front of a server may.
        headers = {"Authorization": f"Bearer {checked_key(api_key)}"} if api_key else {}
        return Address(urlunsplit(whole), headers)

    def open(self) -> Step:
        """Say nothing: what comes before the handshake may be thrown away."""
        return Step()

    def turn(self, turn: Turn) -> Step:
        """There is no history."""
        return Step()

    def audio(self, data: bytes) -> Step:
        """Send whole Ogg pages."""
        return Step(messages=[Binary(bytes([AUDIO]) + data)] if data else [])

    def text(self, text: str) -> Step:
        """There are no questions in writing: servers ignore text."""
        return Step()

    def end_turn(self) -> Step:
        """No turn is ever closed."""
        return Step()

    def played(self, reply: str) -> Step:
        """Say nothing: this protocol does not ask."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """There is no word for it: only speaking stops a reply."""
        return Step()

    def close(self) -> Step:
        """Say nothing: the close of the connection ends a session."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return the events of one message.

        Raises:
            ProtocolError: If it is not binary, or audio or text come before the handshake.
        """
        match message:
            case Ended(code, reason):
                return Step([*_said(self._pieces.rest()), Closed(code, reason)])
            case Binary(data) if data:
                return Step(self._events(data[0], data[1:], message))
            case Binary():
                return Step()
            case _:
                raise ProtocolError("moshi", "not a binary message", message)

    def _events(self, kind: int, payload: bytes, message: Message) -> list[Event]:
        if kind == HANDSHAKE:
            return self._handshake(payload)
        if kind in {AUDIO, TEXT, COLOURED_TEXT} and not self._ready:
            raise ProtocolError("moshi", f"kind {kind} before the handshake", message)
        if kind == AUDIO:
            return [ReplyAudio(payload, "opus", RATE)] if payload else []
        if kind in {TEXT, COLOURED_TEXT}:
            piece = payload if kind == TEXT else payload[1:]
            return _said(self._pieces.add(_text(piece)))
        if kind == METADATA and not self._ready:  # one server sends it before the handshake
            self._metadata = _text(payload)[:_NOTE]
        if kind == ERROR:
            words = _text(payload).strip() or "an error without words"
            return [Fault("server", retryable=True, message=words)]
        return []  # receivers ignore kinds they do not know

    def _handshake(self, payload: bytes) -> list[Event]:
        if self._ready:
            return []
        self._ready = True
        note = self._metadata
        if payload.strip(b"\0"):  # two numbers that no server known to us sets
            note = f"{note} versions {payload[:8].hex(' ')}".strip()
        return [Ready(note=note)]


class _Pieces:
    """Puts words together: bytes of one character may come as pieces of their own."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, piece: str) -> str:
        """Return what a piece completes."""
        if _BYTES.fullmatch(piece):
            return self._decoder.decode(bytes.fromhex(piece.replace("<0x", "").replace(">", " ")))
        return self.rest() + ("" if piece in _NOT_WORDS else piece)

    def rest(self) -> str:
        """Return U+FFFD if bytes were left that are no character."""
        left = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return left


def _text(payload: bytes) -> str:
    return payload.decode("utf-8", errors="replace")


def _said(text: str) -> list[Event]:
    return [ReplyText(text)] if text else []
