"""The bodies that a server of ours answers a request with; each is written while it is spoken."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Protocol

from voxmeter.endpoints.codec import Json, Request
from voxmeter.endpoints.http_lines import DONE
from voxmeter.endpoints.http_served_request import RefusedError, query_of, whole_rate
from voxmeter.endpoints.wav import wav_file, wav_head

RATE = 24_000
"""Samples a second of a reply, where the request asks for no other."""

BOUNDARY = "voxmeter-part-of-a-reply"
_SHOWN = 60


class Writer(Protocol):
    """Writes the body of one answer."""

    @property
    def type(self) -> str:
        """The `Content-Type`."""
        ...

    def start(self) -> bytes:
        """Return what stands before the first piece."""
        ...

    def audio(self, pcm: bytes) -> bytes:
        """Return a piece of 16-bit little-endian mono samples; nothing where there are none."""
        ...

    def words(self, text: str) -> bytes:
        """Return a piece of the reply's own text; nothing where there is no place for it."""
        ...

    def end(self) -> bytes:
        """Return what stands behind the last piece."""
        ...

    def failure(self, error: Mapping[str, Json]) -> bytes | None:
        """Return the end of a body amid which something failed; None if it has no word for that."""
        ...


class Samples:
    """Samples alone, or behind the head of a WAV file that does not know its length."""

    def __init__(self, rate: int, *, wav: bool) -> None:
        self._rate, self._wav = rate, wav
        self.type = "audio/wav" if wav else f"audio/pcm;rate={rate}"

    def start(self) -> bytes:
        """Return the head of the file."""
        return wav_head(self._rate) if self._wav else b""

    def audio(self, pcm: bytes) -> bytes:
        """Return the samples."""
        return pcm

    def words(self, text: str) -> bytes:
        """Return nothing: sound alone."""
        return b""

    def end(self) -> bytes:
        """Return nothing: it ends with the body."""
        return b""

    def failure(self, error: Mapping[str, Json]) -> bytes | None:
        """Return None: it can only break off."""
        return None


class Parts:
    """`multipart/x-mixed-replace`: a WAV file for each piece of sound, a part for each of words.

    Each part ends with the mark of the next one, so that whoever reads need hold nothing back.
    """

    type = f"multipart/x-mixed-replace; boundary={BOUNDARY}"

    def __init__(self, rate: int) -> None:
        self._rate = rate

    def start(self) -> bytes:
        """Return the first mark."""
        return f"--{BOUNDARY}".encode()

    def audio(self, pcm: bytes) -> bytes:
        """Return a part of sound."""
        return self._part("audio/wav", wav_file(pcm, self._rate))

    def words(self, text: str) -> bytes:
        """Return a part of words."""
        return self._part("text/plain; charset=utf-8", text.encode("utf-8", "replace"))

    def end(self) -> bytes:
        """Return what makes the last mark the last."""
        return b"--\r\n"

    def failure(self, error: Mapping[str, Json]) -> bytes | None:
        """Return None: it can only break off."""
        return None

    def _part(self, kind: str, data: bytes) -> bytes:
        return f"\r\nContent-Type: {kind}\r\n\r\n".encode() + data + f"\r\n--{BOUNDARY}".encode()


class Objects:
    """JSON objects with `audio` (base64 of samples) and `sample_rate`, or with `text`.

    Args:
        rate: Samples a second.
        events: Whether each is the data of a server-sent event; else each is a line.
    """

    def __init__(self, rate: int, *, events: bool) -> None:
        self._rate, self._events = rate, events
        self.type = "text/event-stream" if events else "application/x-ndjson"

    def start(self) -> bytes:
        """Return nothing."""
        return b""

    def audio(self, pcm: bytes) -> bytes:
        """Return an object of sound."""
        return self._written(_object(audio=pcm, sample_rate=self._rate))

    def words(self, text: str) -> bytes:
        """Return an object of words."""
        return self._written(_object(text=text))

    def end(self) -> bytes:
        """Return what many clients of server-sent events wait for."""
        return self._written(DONE) if self._events else b""

    def failure(self, error: Mapping[str, Json]) -> bytes | None:
        """Return an object that tells of it."""
        return self._written(_object(error=dict(error)))

    def _written(self, text: str) -> bytes:
        return f"data: {text}\n\n".encode() if self._events else f"{text}\n".encode()


class Whole:
    """One JSON object with the whole reply, which nobody hears before it has ended."""

    type = "application/json"

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._pcm = bytearray()
        self._text = ""

    def start(self) -> bytes:
        """Return nothing."""
        return b""

    def audio(self, pcm: bytes) -> bytes:
        """Keep the samples."""
        self._pcm += pcm
        return b""

    def words(self, text: str) -> bytes:
        """Keep the words."""
        self._text += text
        return b""

    def end(self) -> bytes:
        """Return the object; its sound is a WAV file."""
        sound = wav_file(bytes(self._pcm), self._rate) if self._pcm else b""
        return _object(audio=sound, sample_rate=self._rate, text=self._text).encode()

    def failure(self, error: Mapping[str, Json]) -> bytes | None:
        """Return an object that tells of it, and nothing else."""
        return _object(error=dict(error)).encode()


class Words:
    """The reply's own text alone."""

    type = "text/plain; charset=utf-8"

    def start(self) -> bytes:
        """Return nothing."""
        return b""

    def audio(self, pcm: bytes) -> bytes:
        """Return nothing: words alone."""
        return b""

    def words(self, text: str) -> bytes:
        """Return the words."""
        return text.encode("utf-8", "replace")

    def end(self) -> bytes:
        """Return nothing: it ends with the body."""
        return b""

    def failure(self, error: Mapping[str, Json]) -> bytes | None:
        """Return None: it can only break off."""
        return None


_WRITERS: Mapping[str, Callable[[int], Writer]] = {
    "wav": lambda rate: Samples(rate, wav=True),
    "pcm16": lambda rate: Samples(rate, wav=False),
    "mixed-replace": Parts,
    "ndjson": lambda rate: Objects(rate, events=False),
    "sse": lambda rate: Objects(rate, events=True),
    "json": Whole,
    "text": lambda _: Words(),
}
_ACCEPTED = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/pcm": "pcm16",
    "multipart/x-mixed-replace": "mixed-replace",
    "application/x-ndjson": "ndjson",
    "text/event-stream": "sse",
    "application/json": "json",
    "text/plain": "text",
}


def writer(request: Request) -> tuple[Writer, int]:
    """Return what writes the answer that a request asks for, and the rate of its sound.

    `reply=FORM` or `reply=FORM@RATE` in the query wins over the header `Accept`; a WAV file is
    what neither asks for.

    Raises:
        RefusedError: If there is no such form or rate.
    """
    told = query_of(request).get("reply")
    form, at, rate = (_accepted(request) if told is None else told).partition("@")
    if form not in _WRITERS:
        shown = form[:_SHOWN].encode("unicode_escape").decode("ascii")
        raise RefusedError(400, f"reply='{shown}' is not one of {', '.join(_WRITERS)}")
    found = whole_rate(rate, "the rate of reply=") if at else RATE
    return _WRITERS[form](found), found


def _accepted(request: Request) -> str:
    headers = {name.lower(): value for name, value in request.headers.items()}
    for word in headers.get("accept", "").split(","):
        form = _ACCEPTED.get(word.partition(";")[0].strip().lower())
        if form is not None:
            return form
    return "wav"


def _object(**fields: Json | bytes) -> str:
    made = {
        name: base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value
        for name, value in fields.items()
    }
    return json.dumps(made, ensure_ascii=False)
