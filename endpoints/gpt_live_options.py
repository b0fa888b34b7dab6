"""The options of kind `gpt-live`, checked, and the session that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from voxmeter.endpoints.codec import Json, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Encoding
from voxmeter.endpoints.hosted import refuse
from voxmeter.endpoints.option_table import OptionTable, laid_over

PATH = "/v1/live/sessions"
DEFAULT_MODEL = "gpt-live-1"
NAMES: Mapping[Encoding, str] = {
    "pcm16": "audio/pcm",
    "pcmu": "audio/pcmu",
    "pcma": "audio/pcma",
}
_RATES: Mapping[str, tuple[int, ...]] = {
    "pcm16": (24_000, 16_000),
    "pcmu": (8000,),
    "pcma": (8000,),
}
_FRAMES_MS = (20, 40, 80, 100)

OPTIONS = {
    "encoding": "'pcm16' (default), 'pcmu' or 'pcma', both ways",
    "frame_ms": "20 (default), 40, 80 or 100: how often audio is sent",
    "lead_in_ms": "silence before the question (default 0)",
    "greeting": "what the model is asked to say first, in its own words",
    "first_speaker": "'user' (default without a greeting), or 'endpoint': hear a greeting out",
    "key_header": "header that takes the key (default Authorization, as 'Bearer KEY')",
    "session": "a table laid over the `session` that is asked for: delegation, store, input",
}
"""Every option there is, with what it does."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a session is to be, read from `Settings` once.

    Attributes:
        encoding: Of the sound, both ways.
        rate: Its samples a second.
        frame_ms: Length of one paced frame, ms.
        lead_in_ms: Silence before the question, ms.
        first_speaker: Who speaks first.
        greeting: What the model is to say first, or "".
        key_header: The header that takes the key.
        session: The session as it is asked for.
    """

    encoding: Encoding
    rate: int
    frame_ms: int
    lead_in_ms: int
    first_speaker: Literal["user", "endpoint"]
    greeting: str
    key_header: str
    session: dict[str, Json]


def read(settings: Settings) -> Wanted:
    """Return what the settings of a session ask for.

    Raises:
        UserError: If an option is unknown or has a value that it cannot have, or if a setting
            asks for something that the protocol has no word for.
    """
    options = OptionTable("gpt-live", settings.options, OPTIONS)
    refuse("gpt-live", "remove the key", temperature=settings.temperature)
    if settings.turn_end not in {None, "silence"}:
        found = f'"{settings.turn_end}", and gpt-live is full duplex: no turn is ever closed'
        raise UserError("turn_end", found, "remove the key")
    encoding = cast("Encoding", options.choice("encoding", tuple(NAMES), "pcm16"))
    rate = _rate(settings, encoding)
    frame_ms = options.whole("frame_ms", _FRAMES_MS[0], 1, 1000)
    if frame_ms not in _FRAMES_MS:
        raise options.wrong("frame_ms", "20, 40, 80 or 100")
    greeting = options.text("greeting")
    first = options.choice(
        "first_speaker", ("user", "endpoint"), "endpoint" if greeting else "user"
    )
    return Wanted(
        encoding=encoding,
        rate=rate,
        frame_ms=frame_ms,
        lead_in_ms=options.whole("lead_in_ms", 0, 0, 60_000) or 0,
        first_speaker=cast('Literal["user", "endpoint"]', first),
        greeting=greeting,
        key_header=options.text("key_header", "Authorization"),
        session=laid_over(_session(settings, encoding, rate), options.table("session")),
    )


def _rate(settings: Settings, encoding: Encoding) -> int:
    """Return the one rate of both ways."""
    known = _RATES[encoding]
    rate = settings.input_rate or settings.output_rate or known[0]
    for place, given in (
        ("input_rate", settings.input_rate),
        ("output_rate", settings.output_rate),
    ):
        if given not in (None, rate):
            found = f"{given}, and the sound that we send is at {rate}"
            raise UserError(place, found, "leave one of the two rates out: there is one for both")
        if given is not None and given not in known:
            cure = f"{encoding} can have {' or '.join(map(str, known))}"
            raise UserError(place, str(given), cure)
    return rate


def _session(settings: Settings, encoding: Encoding, rate: int) -> dict[str, Json]:
    audio: dict[str, Json] = {"format": {"type": NAMES[encoding], "rate": rate}}
    if settings.voice:
        audio["output"] = {"voice": settings.voice}
    session: dict[str, Json] = {"model": settings.model or DEFAULT_MODEL, "audio": audio}
    if settings.instructions:
        session["instructions"] = settings.instructions
    return session
