"""The two spellings of OpenAI Realtime, for both of its sides: GA, and the older beta shape.

On receive both are understood whatever was chosen, because servers mix them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.events import Encoding
from voxmeter.endpoints.fields import Fields

PROTOCOL = "openai-realtime"
PCM_RATE = 24000
"""Samples a second of `audio/pcm`, unless both sides agree on another rate."""
WAV_RATE = 16000
"""Samples a second where each append is a WAV file and no other rate is asked for."""

Dialect = Literal["ga", "legacy"]
Side = Literal["input", "output"]

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

NO_DETECTION = ("client_vad", "none")
"""Types of `turn_detection` by which some servers say what others say by null."""

_GA_FORMATS: dict[str, Encoding] = {
    "audio/pcm": "pcm16",
    "audio/pcmu": "pcmu",
    "audio/pcma": "pcma",
}
_LEGACY_FORMATS: dict[str, Encoding] = {
    "pcm16": "pcm16",
    "g711_ulaw": "pcmu",
    "g711_alaw": "pcma",
    "pcm": "pcm16",
    "pcm24": "pcm16",
    "wav": "pcm16",
    "wav24": "pcm16",
    "wav48": "pcm16",
}
_WORD_RATES: dict[tuple[Side, str], int] = {
    ("input", "pcm"): 16000,
    ("output", "pcm"): 24000,
    ("output", "pcm24"): 24000,
    ("input", "wav"): WAV_RATE,
    ("input", "wav24"): 24000,
    ("input", "wav48"): 48000,
}
"""What the words of other vendors (DashScope, Zhipu) say of the rate, where they say it."""
_RATES = ("rate", "sample_rate", "sample_rate_hz")
_GA_NAMES: dict[Encoding, str] = {
    **{encoding: name for name, encoding in _GA_FORMATS.items()},
    "opus": "audio/opus",
}
_LEGACY_NAMES: dict[Encoding, str] = {
    "pcm16": "pcm16",
    "pcmu": "g711_ulaw",
    "pcma": "g711_alaw",
    "opus": "opus",
}


@dataclass(frozen=True, slots=True)
class Format:
    """An audio format that both sides can name.

    Attributes:
        encoding: How samples are coded.
        rate: Samples a second; always 8000 for G.711.
        word: The older spelling's word for it, where a server has its own; `none` where a session
            names no format. Says nothing else.
    """

    encoding: Encoding
    rate: int
    word: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{_GA_NAMES[self.encoding]} at {self.rate}"

    @property
    def bytes_per_ms(self) -> float:
        """Return how many bytes one millisecond takes; of Opus, its usual size."""
        if self.encoding == "opus":
            return 4
        return self.rate * (2 if self.encoding == "pcm16" else 1) / 1000

    def json(self, dialect: Dialect) -> Json:
        """Return the format as a session names it; None where it does not."""
        if self.word == "none":
            return None
        if dialect == "legacy":
            return self.word or _LEGACY_NAMES[self.encoding]
        if self.encoding == "pcm16":
            return {"type": "audio/pcm", "rate": self.rate}
        return {"type": _GA_NAMES[self.encoding]}


def format_of(encoding: Encoding, rate: int | None, word: str = "") -> Format:
    """Return the format that an encoding and perhaps a rate stand for."""
    g711 = encoding in {"pcmu", "pcma"}
    return Format(encoding, 8000 if g711 else rate or PCM_RATE, word)


def read_format(session: Fields, side: Side, default: Format) -> Format:
    """Return the format that a session names for one side, in either spelling.

    What the session leaves out is as in `default`, as long as the encoding is the same.

    Raises:
        ProtocolError: If the session names a format that this protocol does not have.
    """
    here = session.object("audio").object(side)
    older = f"{side}_audio_format"
    if not here.has("format"):
        if not session.has(older):
            return default
        return _by_word(session, side, session.text(older), default, None)
    if isinstance(here.data["format"], str):  # some servers answer with the bare older name
        return _by_word(here, side, here.text("format"), default, _rate(here))
    named = here.object("format")
    fallback = default.rate if default.encoding == "pcm16" else PCM_RATE
    rate = _rate(named) or _rate(here) or fallback
    return _known(named, _GA_FORMATS | _LEGACY_FORMATS, named.text("type"), rate)


def _by_word(place: Fields, side: Side, word: str, default: Format, rate: int | None) -> Format:
    """Return what a bare word names; the one that was asked for means what was meant by it."""
    if word and word == default.word:
        return Format(default.encoding, rate or default.rate, word)
    rate = rate or _WORD_RATES.get((side, word), default.rate)
    return _known(place, _LEGACY_FORMATS | _GA_FORMATS, word, rate)


def _rate(place: Fields) -> int | None:
    """Return the rate by any of the names that servers have for it; None where none is said."""
    name = next((one for one in _RATES if place.has(one)), None)
    return None if name is None else place.whole(name)


def _known(place: Fields, names: dict[str, Encoding], name: str, rate: int) -> Format:
    if name not in names:
        raise place.problem(f"{place.place}format {name!r} is none of {', '.join(names)}")
    if not 8000 <= rate <= 48000:
        raise place.problem(f"{place.place}rate {rate} is not from 8000 to 48000")
    return format_of(names[name], rate, "" if name in _GA_FORMATS else name)


def text_type(role: str, dialect: Dialect) -> str:
    """Return the content type of a role's text in an item."""
    if role != "assistant":
        return "input_text"
    return "text" if dialect == "legacy" else "output_text"


def event_name(ga: str, dialect: Dialect) -> str:
    """Return a server event's name in a dialect."""
    return OLDER_EVENTS.get(ga, ga) if dialect == "legacy" else ga
