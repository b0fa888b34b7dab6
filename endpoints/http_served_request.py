"""What a request to a server of ours asks: sound in a WAV file, in JSON or in a form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from voxmeter.endpoints.codec import Binary, Request
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import ReplyAudio
from voxmeter.endpoints.fields import clean, parse_object
from voxmeter.endpoints.json_path import Picker, Places
from voxmeter.endpoints.mixed_replace import boundary_of
from voxmeter.endpoints.serving import (
    ClientEvent,
    HistoryAdded,
    ReplyRequested,
    SessionSet,
    UserAudio,
)
from voxmeter.endpoints.wav import SniffedAudio

NAME = "http"
INPUT_RATE = 16_000
"""Samples a second of bare samples, where the request does not say it."""

RATES = (4_000, 192_000)
_BARE = ("application/octet-stream", "audio/pcm")
_PLACES = Places(audio="audio", rate="sample_rate")
_UNSUPPORTED = 415


class RefusedError(Exception):
    """A request that cannot be answered.

    Attributes:
        status: HTTP status of the answer.
        reason: One line for the client.
    """

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"{status}: {reason}")


@dataclass(frozen=True, slots=True)
class Question:
    """What one request asks.

    Attributes:
        pcm: The question, 16-bit little-endian mono samples; empty for one in writing.
        rate: Samples a second of them.
        text: What is asked in writing.
        wishes: How it is to be answered.
    """

    pcm: bytes
    rate: int
    text: str = ""
    wishes: SessionSet = field(default_factory=SessionSet)

    def events(self) -> list[ClientEvent]:
        """Return it as what a served session hears."""
        told: list[ClientEvent] = [self.wishes]
        if self.text:
            told.append(HistoryAdded("user", self.text))
        if self.pcm:
            told.append(HistoryAdded("user", audio=UserAudio(self.pcm, "pcm16", self.rate)))
        return [*told, ReplyRequested()]


def read(request: Request) -> Question:
    """Return what a request asks.

    Raises:
        RefusedError: If its body is of a type that is not read, or has no question in it.
        ProtocolError: If its body is not what its type says.
    """
    told = {name.lower(): value for name, value in request.headers.items()}.get("content-type", "")
    kind = told.partition(";")[0].strip().lower()
    rate = whole_rate(query_of(request).get("input_rate", str(INPUT_RATE)), "input_rate")
    if kind == "application/json":
        asked = _of_json(request.body, rate)
    elif kind == "multipart/form-data":
        asked = _of_form(form_fields(request.body, told), rate)
    elif kind in _BARE or (kind.startswith("audio/") and "wav" in kind):
        asked = Question(*_sound(request.body, rate, bare=kind in _BARE))
    else:
        found = f"a body of type {kind[:60]!r}" if kind else "a body without a type"
        cure = "send audio/wav, application/octet-stream, application/json or multipart/form-data"
        raise RefusedError(_UNSUPPORTED, f"{found} is not read; {cure}")
    if not asked.pcm and not asked.text:
        raise ProtocolError(NAME, "there is no sound in the request", Binary(request.body))
    return asked


def query_of(request: Request) -> Mapping[str, str]:
    """Return the query of a request's path."""
    return dict(parse_qsl(urlsplit(request.path).query, keep_blank_values=True))


def whole_rate(text: str, place: str) -> int:
    """Return a rate that stands in a query or a form.

    Raises:
        RefusedError: If it is not a rate within `RATES`.
    """
    rate = int(text[:9]) if text.isdecimal() else 0
    if not RATES[0] <= rate <= RATES[1]:
        shown = text[:40].encode("unicode_escape").decode("ascii")
        raise RefusedError(400, f"{place} '{shown}' is not a rate from {RATES[0]} to {RATES[1]}")
    return rate


def form_fields(body: bytes, content_type: str) -> Mapping[str, bytes]:
    """Return the fields of a `multipart/form-data` body; the first of each name counts.

    Raises:
        ProtocolError: If the type names no boundary, or the body has no such part.
    """
    boundary = boundary_of(content_type)
    if boundary is None:
        raise ProtocolError(NAME, "a form without a boundary", Binary(body))
    mark = b"\r\n--" + boundary.encode("utf-8", "replace")
    found: dict[str, bytes] = {}
    for part in (b"\r\n" + body).split(mark)[1:]:
        if part.startswith(b"--"):
            break
        head, _, data = part.partition(b"\r\n\r\n")
        name = _name(head.decode("utf-8", "replace"))
        if name:
            found.setdefault(name, data)
    if not found:
        raise ProtocolError(NAME, "a form without fields", Binary(body))
    return found


def _name(head: str) -> str:
    for line in head.split("\r\n"):
        title, _, value = line.partition(":")
        if title.strip().lower() == "content-disposition":
            for word in value.split(";")[1:]:
                key, _, name = word.partition("=")
                if key.strip().lower() == "name":
                    return name.strip().strip('"')
    return ""


def _of_json(body: bytes, rate: int) -> Question:
    told = parse_object(NAME, Binary(body))
    picked = Picker(NAME, _PLACES, None, rate).picked(told)  # written as an answer's sound may be
    sounds = [event for event in picked if isinstance(event, ReplyAudio)]
    temperature = told.number("temperature") if told.has("temperature") else None
    wishes = SessionSet(
        instructions=told.text("instructions") if told.has("instructions") else None,
        voice=told.text("voice") if told.has("voice") else None,
        temperature=temperature,
        tag=told.text("tag") if told.has("tag") else None,
    )
    pcm = b"".join([sound.data for sound in sounds])
    rate = sounds[0].rate if sounds else rate
    return Question(pcm, rate, told.text("text", ""), wishes)


def _of_form(fields: Mapping[str, bytes], rate: int) -> Question:
    words = {name: clean(data.decode("utf-8", "replace")) for name, data in fields.items()}
    if "sample_rate" in words:
        rate = whole_rate(words["sample_rate"], "sample_rate")
    temperature = None
    if words.get("temperature"):
        try:
            temperature = float(words["temperature"])
        except ValueError:
            temperature = math.nan
        if not math.isfinite(temperature):
            raise RefusedError(400, "temperature is not a number")
    wishes = SessionSet(
        instructions=words.get("instructions"),
        voice=words.get("voice"),
        temperature=temperature,
        tag=words.get("tag"),
    )
    pcm, rate = _sound(fields.get("audio", b""), rate, bare=True)
    return Question(pcm, rate, words.get("text", ""), wishes)


def _sound(body: bytes, rate: int, *, bare: bool) -> tuple[bytes, int]:
    """Return the samples of a WAV file, or those that are there without one."""
    if body and body[:4] != b"RIFF" and not bare:
        raise ProtocolError(NAME, "the audio is not a WAV file", Binary(body))
    return SniffedAudio(NAME, None, rate).chunk(body)
