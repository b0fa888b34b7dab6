"""The two spellings of OpenAI Realtime, for both of its sides: GA, and the older beta shape.

On receive both are understood whatever was chosen, because servers mix them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.events import Encoding
from voxmeter.endpoints.fields import Fields

PROTOCOL = "openai-realtime"
PCM_RATE = 24000
"""Samples a second of `audio/pcm`, unless both sides agree on another rate."""

Dialect = Literal["ga", "legacy"]

LEGACY_EVENTS = {
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
    "conversation.item.created": "conversation.item.added",
}
"""Older name of a server event -> its GA name."""
OLDER_EVENTS = {ga: legacy for legacy, ga in LEGACY_EVENTS.items()}

_GA_FORMATS: dict[str, Encoding] = {
    "audio/pcm": "pcm16",
    "audio/pcmu": "pcmu",
    "audio/pcma": "pcma",
}
_LEGACY_FORMATS: dict[str, Encoding] = {
    "pcm16": "pcm16",
    "g711_ulaw": "pcmu",
    "g711_alaw": "pcma",
}
_GA_NAMES = {encoding: name for name, encoding in _GA_FORMATS.items()}
_LEGACY_NAMES = {encoding: name for name, encoding in _LEGACY_FORMATS.items()}


@dataclass(frozen=True, slots=True)
class Format:
    """An audio format that both sides can name.

    Attributes:
        encoding: How samples are coded.
        rate: Samples a second; always 8000 for G.711.
    """

    encoding: Encoding
    rate: int

    def __str__(self) -> str:
        return f"{_GA_NAMES[self.encoding]} at {self.rate}"

    @property
    def bytes_per_ms(self) -> float:
        """Return how many bytes one millisecond takes."""
        return self.rate * (2 if self.encoding == "pcm16" else 1) / 1000

    def json(self, dialect: Dialect) -> Json:
        """Return the format as a session names it."""
        if dialect == "legacy":
            return _LEGACY_NAMES[self.encoding]
        if self.encoding == "pcm16":
            return {"type": "audio/pcm", "rate": self.rate}
        return {"type": _GA_NAMES[self.encoding]}


def pcm_or_g711(encoding: Encoding, rate: int | None) -> Format:
    """Return the format that an encoding and perhaps a rate stand for."""
    return Format(encoding, (rate or PCM_RATE) if encoding == "pcm16" else 8000)


def read_format(session: Fields, side: Literal["input", "output"], default: Format) -> Format:
    """Return the format that a session names for one side, in either spelling.

    What the session leaves out is as in `default`, as long as the encoding is the same.

    Raises:
        ProtocolError: If the session names a format that this protocol does not have.
    """
    older = f"{side}_audio_format"
    if session.has(older):
        return _known(session, _LEGACY_FORMATS, session.text(older), default.rate)
    here = session.object("audio").object(side)
    if not here.has("format"):
        return default
    if isinstance(here.data["format"], str):  # some servers answer with the bare older name
        return _known(here, _LEGACY_FORMATS | _GA_FORMATS, here.text("format"), default.rate)
    named = here.object("format")
    fallback = default.rate if default.encoding == "pcm16" else PCM_RATE
    return _known(named, _GA_FORMATS, named.text("type"), named.whole("rate", fallback))


def _known(place: Fields, names: dict[str, Encoding], name: str, rate: int) -> Format:
    if name not in names:
        raise place.problem(f"{place.place}format {name!r} is none of {', '.join(names)}")
    if not 8000 <= rate <= 48000:
        raise place.problem(f"{place.place}rate {rate} is not from 8000 to 48000")
    return pcm_or_g711(names[name], rate)


def text_type(role: str, dialect: Dialect) -> str:
    """Return the content type of a role's text in an item."""
    if role != "assistant":
        return "input_text"
    return "text" if dialect == "legacy" else "output_text"


def event_name(ga: str, dialect: Dialect) -> str:
    """Return a server event's name in a dialect."""
    return OLDER_EVENTS.get(ga, ga) if dialect == "legacy" else ga
