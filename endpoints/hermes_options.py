"""What a Hermes session can be told, read from bench.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from voxmeter.endpoints.codec import Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.hermes_wire import RATE
from voxmeter.endpoints.option_table import OptionTable

OPTIONS: Mapping[str, str] = {
    "sites": "site ids, one for each session at a time; without it every session makes up its own",
    "username": "user name for the broker; the password is the key (`api_key_env`)",
    "wake_word": "id of a wake word: sessions begin as if it had been heard",
    "intents": "names of intents; others are not recognized",
    "language": "language of the session, where the assistant knows several",
}
"""Every option there is, with what it does."""

_RATES = (8_000, 48_000)
_NAME = re.compile(r"[^+#/\x00\s]+")


@dataclass(frozen=True, slots=True)
class Options:
    """What one session is to be.

    Attributes:
        site: Our site id in it.
        sites: How many sites there are; None for any number.
        username: For the broker.
        wake_word: What is told to have been heard; "" starts the session without.
        intents: The only intents that are wanted; none for all.
        language: "" leaves the assistant's own.
        rate: Samples a second that we send.
    """

    site: str
    sites: int | None
    username: str
    wake_word: str
    intents: Sequence[str]
    language: str
    rate: int


def read(settings: Settings) -> Options:
    """Return a session's options.

    Raises:
        UserError: If one of them cannot be, or the protocol has no place for a setting.
    """
    _refuse(settings)
    options = OptionTable("hermes", settings.options, OPTIONS)
    sites = options.texts("sites")
    wake_word = options.text("wake_word")
    named = [("sites", site) for site in sites] + [("wake_word", wake_word or "none")]
    for option, name in named:
        if not _NAME.fullmatch(name):
            raise options.wrong(option, "names without space, '/', '+' and '#'")
    if len(set(sites)) != len(sites):
        raise options.wrong("sites", "names that are each another's: one site has one session")
    site = sites[settings.lane % len(sites)] if sites else f"voxmeter-{settings.session_tag}"
    return Options(
        site=site,
        sites=len(sites) or None,
        username=options.text("username"),
        wake_word=wake_word,
        intents=options.texts("intents"),
        language=options.text("language"),
        rate=settings.input_rate or RATE,
    )


def _refuse(settings: Settings) -> None:
    """Refuse what would be recorded as part of the session and reach nobody."""
    for name in ("instructions", "voice", "model"):
        if getattr(settings, name):
            cure = "leave it out: Rhasspy's profile says it"
            raise UserError(name, "has no place in this protocol", cure)
    if settings.temperature is not None:
        raise UserError("temperature", "has no place in this protocol", "leave it out")
    if settings.output_rate is not None:
        raise UserError("output_rate", "is Rhasspy's own choice", "leave it out")
    if settings.turn_end not in (None, "silence"):
        found = f"{settings.turn_end!r}, and Rhasspy finds the end of a turn itself"
        raise UserError("turn_end", found, "leave it out")
    rate = settings.input_rate
    if rate is not None and not _RATES[0] <= rate <= _RATES[1]:
        raise UserError("input_rate", str(rate), f"use {_RATES[0]} to {_RATES[1]}")
