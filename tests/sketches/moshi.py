"""Sketch of Moshi: a kind byte and a payload, Ogg/Opus both ways, and no turn ever ends."""

from __future__ import annotations

from urllib.parse import urlencode

from voxmeter.endpoints.codec import Address, Binary, Ended, Message, Settings, Step, Traits, Turn
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Closed, Event, Fault, Ready, ReplyAudio, ReplyText

HANDSHAKE, AUDIO, TEXT, METADATA, ERROR = 0, 1, 2, 4, 5
NOT_WORDS = ("<s>", "</s>", "<unk>")


class Sketch:
    """One full-duplex session."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ready = False
        self._metadata = ""

    @property
    def traits(self) -> Traits:
        return Traits(
            input_rate=24000,
            input_encoding="opus",
            frame_ms=80,
            full_duplex=True,
            reply_end="quiet",
            lead_in_ms=240,
        )

    def address(self, url: str, api_key: str | None) -> Address:
        query = {name: str(value) for name, value in self._settings.options.items()}
        return Address(f"{url}/api/chat?{urlencode(query)}")

    def open(self) -> Step:
        return Step()

    def turn(self, turn: Turn) -> Step:
        return Step()

    def audio(self, data: bytes) -> Step:
        return Step(messages=[Binary(bytes([AUDIO]) + data)] if data else [])

    def text(self, text: str) -> Step:
        return Step()

    def end_turn(self) -> Step:
        return Step()

    def played(self, reply: str) -> Step:
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        return Step()

    def close(self) -> Step:
        return Step()

    def receive(self, message: Message) -> Step:
        match message:
            case Ended(code, reason):
                return Step([Closed(code, reason)])
            case Binary(data) if data:
                return Step(self._events(data[0], data[1:], message))
            case Binary():
                return Step()
            case _:
                raise ProtocolError("moshi", "not a binary message", message)

    def _events(self, kind: int, payload: bytes, message: Message) -> list[Event]:
        if kind == METADATA:  # one server sends it before the handshake
            self._metadata = payload.decode("utf-8", errors="replace")
            return []
        if kind == HANDSHAKE:
            self._ready = True
            return [Ready(note=self._metadata)]
        if not self._ready:
            raise ProtocolError("moshi", f"kind {kind} before the handshake", message)
        if kind == AUDIO:
            return [ReplyAudio(payload, "opus", 24000)] if payload else []
        if kind == TEXT:
            piece = payload.decode("utf-8", errors="replace")
            return [ReplyText(piece)] if piece and piece not in NOT_WORDS else []
        if kind == ERROR:
            words = payload.decode("utf-8", errors="replace")
            return [Fault("server", retryable=True, message=words)]
        return []  # receivers ignore kinds they do not know
