"""The options of kind `moshi`, checked, and the query that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from voxmeter.endpoints.codec import Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.option_table import OptionTable

RATE = 24_000
"""The one rate of this protocol, both ways."""

FRAMES_MS = (80, 40, 20)
LEAST_LEAD_IN_MS = 200
_MOST_LEAD_IN_MS = 60_000

OPTIONS = {
    "dialect": "'moshi' (default) or 'personaplex', whose URL must carry two prompts",
    "frame_ms": "80 (default), 40 or 20: how often audio is sent; pages of Opus hold 40 ms",
    "lead_in_ms": "silence before the question, 200 or more (default 240): the model's first "
    "frame is lost",
    "first_speaker": "'user' (default), or 'endpoint': hear a greeting out before the question",
    "text_temperature": "of the text, for servers that read the query (the Rust one)",
    "text_topk": "the same: choose among so many pieces of text",
    "audio_temperature": "the same, of the sound",
    "audio_topk": "the same: choose among so many codes of sound",
    "text_seed": "the same: seed of the text; set both seeds for replies that repeat",
    "audio_seed": "the same: seed of the sound",
    "pad_mult": "the same: added to the padding of the text",
    "repetition_penalty": "the same; works only together with the next",
    "repetition_penalty_context": "the same: over so many pieces of text",
    "max_steps": "the same: most steps of 80 ms in a session, at most 4500",
    "email": "the same: who is asking",
    "voice_prompt": "of personaplex: name of a voice file; `voice` says it too",
    "text_prompt": "of personaplex: the role; `instructions` says it too",
    "seed": "of personaplex: a whole number, -1 for none",
}
"""Every option there is, with what it does."""


@dataclass(frozen=True, slots=True)
class _Number:
    low: float
    high: float
    whole: bool = False


_SEED = _Number(0, 2**64 - 1, whole=True)
_MOSHI: Mapping[str, _Number | None] = {
    "text_temperature": _Number(0, 100),
    "text_topk": _Number(1, 100_000, whole=True),
    "audio_temperature": _Number(0, 100),
    "audio_topk": _Number(1, 100_000, whole=True),
    "text_seed": _SEED,
    "audio_seed": _SEED,
    "pad_mult": _Number(-1000, 1000),
    "repetition_penalty": _Number(0, 1000),
    "repetition_penalty_context": _Number(0, 100_000, whole=True),
    "max_steps": _Number(1, 4500, whole=True),
    "email": None,
}
_PERSONAPLEX: Mapping[str, _Number | None] = {
    "voice_prompt": None,
    "text_prompt": None,
    "seed": _Number(-1, 2**63 - 1, whole=True),
}
QUERY_KEYS = frozenset({*_MOSHI, *_PERSONAPLEX, "worker_auth_id", "auth_id"})
"""Every key that a client of this protocol may have in its URL."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a session is to be, read from `Settings` once.

    Attributes:
        frame_ms: Length of one paced frame, ms.
        lead_in_ms: Silence before the question, ms.
        first_speaker: Who speaks first.
        query: What goes into the URL.
    """

    frame_ms: int
    lead_in_ms: int
    first_speaker: Literal["user", "endpoint"]
    query: Mapping[str, str]


def read(settings: Settings) -> Wanted:
    """Return what the settings of a session ask for.

    Raises:
        UserError: If an option is unknown or has a value that it cannot have, or if a setting
            asks for something that no server of this protocol does.
    """
    options = OptionTable("moshi", settings.options, OPTIONS)
    _refuse_what_cannot_be(settings)
    dialect = options.choice("dialect", ("moshi", "personaplex"), "moshi")
    query = _personaplex(settings, options) if dialect == "personaplex" else _moshi(options)
    if dialect == "moshi":
        _refuse_prompts(settings)
        if settings.temperature is not None:
            for name in ("text_temperature", "audio_temperature"):
                query.setdefault(name, f"{settings.temperature:g}")
    frame_ms = options.whole("frame_ms", FRAMES_MS[0], 1, 1000) or FRAMES_MS[0]
    if frame_ms not in FRAMES_MS:
        raise options.wrong("frame_ms", "80, 40 or 20")
    lead_in_ms = options.whole("lead_in_ms", 240, LEAST_LEAD_IN_MS, _MOST_LEAD_IN_MS) or 240
    first = options.choice("first_speaker", ("user", "endpoint"), "user")
    return Wanted(
        frame_ms=frame_ms,
        lead_in_ms=lead_in_ms,
        first_speaker=cast('Literal["user", "endpoint"]', first),
        query=query,
    )


def _refuse_what_cannot_be(settings: Settings) -> None:
    for place, rate in (
        ("input_rate", settings.input_rate),
        ("output_rate", settings.output_rate),
    ):
        if rate not in (None, RATE):
            raise UserError(place, str(rate), f"leave it out: moshi is always at {RATE}")
    if settings.turn_end not in (None, "silence"):
        found = f"{settings.turn_end!r}, and moshi is full duplex: no turn is ever closed"
        raise UserError("turn_end", found, "leave it out")


def _refuse_prompts(settings: Settings) -> None:
    """Refuse what would be recorded as part of the session and reach nobody."""
    for name, value in (("instructions", settings.instructions), ("voice", settings.voice)):
        if value:
            cure = "leave it out, or set options.dialect = 'personaplex' if the server is one"
            raise UserError(name, "has no place in this protocol", cure)


def _moshi(options: OptionTable) -> dict[str, str]:
    query = _query(options, _MOSHI, _PERSONAPLEX, "personaplex")
    pair = ("repetition_penalty", "repetition_penalty_context")
    given = [name for name in pair if name in query]
    if len(given) == 1:
        (other,) = set(pair) - set(given)
        raise UserError(
            f"options.{given[0]}", f"works only together with {other}", f"set {other} as well"
        )
    return query


def _personaplex(settings: Settings, options: OptionTable) -> dict[str, str]:
    query = _query(options, _PERSONAPLEX, _MOSHI, "moshi")
    query.setdefault("voice_prompt", settings.voice)
    query.setdefault("text_prompt", settings.instructions)
    if not query["voice_prompt"]:
        raise UserError(
            "options.voice_prompt", "is missing", "name a file of the server's voices, NATF2.pt"
        )
    if settings.temperature is not None:
        raise UserError("temperature", "has no place in personaplex", "leave it out")
    return query


def _query(
    options: OptionTable,
    mine: Mapping[str, _Number | None],
    others: Mapping[str, object],
    other: str,
) -> dict[str, str]:
    """Return the options that go into the URL, as text; refuse those of the other dialect."""
    for name in others:
        if options.has(name):
            raise UserError(f"options.{name}", f"is for dialect '{other}'", "leave it out")
    return {
        name: options.text(name) if kind is None else _figure(options, name, kind)
        for name, kind in mine.items()
        if options.has(name)
    }


def _figure(options: OptionTable, name: str, kind: _Number) -> str:
    if kind.whole:
        return str(options.whole(name, None, int(kind.low), int(kind.high)))
    value = options.number(name)
    if value is None or not kind.low <= value <= kind.high:
        raise options.wrong(name, f"a number from {kind.low:.0f} to {kind.high:.0f}")
    return str(int(value)) if value == int(value) else repr(value)
