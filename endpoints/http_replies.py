"""Readers of reply bodies: WAV, bare samples, mixed parts, and JSON in its several wrappings."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from voxmeter.endpoints.codec import Binary, Text
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Event, ReplyAudio, ReplyEnded, ReplyText
from voxmeter.endpoints.http_lines import DONE, Lines, ServerSentEvents
from voxmeter.endpoints.json_path import Picker
from voxmeter.endpoints.mixed_replace import MixedReplace, Piece
from voxmeter.endpoints.wav import SniffedAudio, WavReader

RATE = 24_000
"""Samples a second where neither the body nor the user says it."""
_TELLING = 64  # bytes: 32 samples in a row whose halves are all letters are no sound
_WRITTEN = bytes((*b"\t\n\r", *range(0x20, 0x7F)))
_OPENING = (b"{", b"[", b"<")  # of words that are shorter


class BareSamples:
    """A body of 16-bit little-endian mono samples, whatever its type says.

    One that begins with words is none: a page or an error of the server's, which would be noise.
    Nor is a WAV file, whose head says another rate.

    Args:
        protocol: Whose reply it is, for errors.
        rate: Samples a second.
    """

    def __init__(self, protocol: str, rate: int) -> None:
        self._protocol, self._rate = protocol, rate
        self._start = b""

    def feed(self, data: bytes) -> Iterable[Event]:
        """Return the samples as they come; a piece may end amid one."""
        if len(self._start) < _TELLING:
            self._start += data[: _TELLING - len(self._start)]
            if len(self._start) == _TELLING:
                self._check()
        return [ReplyAudio(data, "pcm16", self._rate)] if data else []

    def end(self) -> Iterable[Event]:
        """Return nothing: nothing was held back."""
        if self._start[:1] in _OPENING and len(self._start) < _TELLING:
            self._check()
        return []

    def _check(self) -> None:
        if self._start[:4] == b"RIFF" and self._start[8:12] == b"WAVE":
            found = "a WAV file where samples are wanted"
            raise ProtocolError(self._protocol, found, Binary(self._start))
        if not self._start.translate(None, _WRITTEN):
            found = f"words where samples are wanted: {self._start.decode('ascii')!r}"
            raise ProtocolError(self._protocol, found, Binary(self._start))


class WavBody:
    """A body that is a WAV file, or several one after another.

    Args:
        protocol: Whose reply it is, for errors.
        rate: Samples a second in place of what the file says, for servers whose heads are wrong.
    """

    def __init__(self, protocol: str, rate: int | None = None) -> None:
        self._wav = WavReader(protocol)
        self._rate = rate

    def feed(self, data: bytes) -> Iterable[Event]:
        """Return what samples a piece of the file has."""
        pcm = self._wav.feed(data)
        return [ReplyAudio(pcm, "pcm16", self._rate or self._wav.rate or RATE)] if pcm else []

    def end(self) -> Iterable[Event]:
        """Return nothing, after a look whether there was a file."""
        self._wav.end()
        return []


class MixedBody:
    """A `multipart/x-mixed-replace` body of audio and text parts.

    Args:
        protocol: Whose reply it is, for errors.
        boundary: What separates the parts.
        rate: Samples a second; None is what the head of a WAV file says, and 24,000 without one.
    """

    def __init__(self, protocol: str, boundary: str, rate: int | None = None) -> None:
        self._parts = MixedReplace(protocol, boundary)
        self._words = codecs.getincrementaldecoder("utf-8")("replace")
        self._audio = SniffedAudio(protocol, rate, RATE)

    def feed(self, data: bytes) -> Iterable[Event]:
        """Return what a piece of the body stands for."""
        return self._events(self._parts.feed(data))

    def end(self) -> Iterable[Event]:
        """Return what was held back."""
        return self._events(self._parts.end())

    def _events(self, pieces: Iterator[Piece]) -> Iterator[Event]:
        for piece in pieces:
            if piece.type.startswith("text/"):
                words = self._words.decode(piece.data, piece.last)
                if words:
                    yield ReplyText(words)
            elif piece.type.startswith("audio/") or piece.type == "application/octet-stream":
                if piece.first:
                    self._audio.begin()
                pcm, rate = self._audio.feed(piece.data, last=piece.last)
                if pcm:
                    yield ReplyAudio(pcm, "pcm16", rate)


class TextBody:
    """A body of plain words."""

    def __init__(self) -> None:
        self._words = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> Iterable[Event]:
        """Return the words that are whole by now."""
        words = self._words.decode(data)
        return [ReplyText(words)] if words else []

    def end(self) -> Iterable[Event]:
        """Return what is left of a letter that was cut off."""
        words = self._words.decode(b"", final=True)
        return [ReplyText(words)] if words else []


class JsonBody:
    """A body of JSON objects, each picked apart alike.

    Args:
        picker: Says what an object stands for.
        wrapping: `sse` for the data of server-sent events, `ndjson` for one object a line (or up to
            a NUL), `json` for one object that is the whole body.
    """

    def __init__(self, picker: Picker, wrapping: str) -> None:
        self._picker = picker
        self._wrapping = wrapping
        self._events = ServerSentEvents()
        self._lines = Lines(b"\n\0")
        self._whole = bytearray()

    def feed(self, data: bytes) -> Iterable[Event]:
        """Return what the objects that are whole by now stand for."""
        if self._wrapping == "json":
            self._whole += data
            return []
        return self._told(self._source.feed(data))

    def end(self) -> Iterable[Event]:
        """Return what a last object stands for that nothing has ended."""
        if self._wrapping == "json":
            return self._told([self._whole.decode("utf-8", errors="replace")])
        texts = list(self._source.end())
        return self._told(texts or [self._events.strange])

    @property
    def _source(self) -> Lines | ServerSentEvents:
        return self._events if self._wrapping == "sse" else self._lines

    def _told(self, texts: Iterable[str]) -> Iterator[Event]:
        for text in texts:
            if text.strip() == DONE:
                yield ReplyEnded()
            elif text.strip():
                yield from self._picker.events(Text(text))
