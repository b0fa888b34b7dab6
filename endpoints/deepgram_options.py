"""The options of kind `deepgram`, checked, and the `Settings` message that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from voxmeter.endpoints.codec import Json, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Encoding
from voxmeter.endpoints.hosted import STORED_AGENT, only_silence, refuse
from voxmeter.endpoints.option_table import OptionTable, laid_over

PATH = "/v1/agent/converse"
DEFAULT_MODEL = "gpt-4o-mini"
_RATE = 24_000
_NAMES: dict[str, Encoding] = {"linear16": "pcm16", "mulaw": "pcmu", "alaw": "pcma"}
_LEAST_RATE, _MOST_RATE = 8000, 48_000

OPTIONS = {
    "input_encoding": "'linear16' (default), 'mulaw' or 'alaw': of what we send",
    "output_encoding": "the same, of what the agent sends",
    "think_provider": "whose language model `model` is (default 'open_ai')",
    "listen_model": "the model that hears, such as 'nova-3' or 'flux-general-en'",
    "greeting": "what the agent says first",
    "first_speaker": "'user' (default without a greeting), or 'endpoint': hear a greeting out",
    "agent_id": "an agent that is stored at Deepgram, in place of all that describes one",
    "agent": "a table laid over the `agent` of the settings: listen, think, speak, context",
    "settings": "a table laid over the whole settings: tags, flags, experimental, mip_opt_out",
    "auth_scheme": "'Token' (default, for keys) or 'Bearer' (for temporary tokens)",
}
"""Every option there is, with what it does."""


class Sound(NamedTuple):
    """How sound goes one way."""

    encoding: Encoding
    rate: int
    name: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a session is to be, read from `Settings` once.

    Attributes:
        input: How we send.
        output: How the agent sends.
        first_speaker: Who speaks first.
        scheme: The word before the key.
        message: The settings as they are sent.
    """

    input: Sound
    output: Sound
    first_speaker: Literal["user", "endpoint"]
    scheme: str
    message: dict[str, Json]


def read(settings: Settings) -> Wanted:
    """Return what the settings of a session ask for.

    Raises:
        UserError: If an option is unknown or has a value that it cannot have, or if a setting
            asks for something that the protocol has no word for.
    """
    options = OptionTable("deepgram", settings.options, OPTIONS)
    only_silence("deepgram", settings)
    input_ = _sound(options, "input_encoding", settings.input_rate, "input_rate")
    output = _sound(options, "output_encoding", settings.output_rate, "output_rate")
    agent = _agent(settings, options)
    greets = isinstance(agent, dict) and bool(agent.get("greeting"))
    first = options.choice("first_speaker", ("user", "endpoint"), "endpoint" if greets else "user")
    message: dict[str, Json] = {
        "type": "Settings",
        "audio": {
            "input": {"encoding": input_.name, "sample_rate": input_.rate},
            "output": {"encoding": output.name, "sample_rate": output.rate, "container": "none"},
        },
        "agent": agent,
    }
    return Wanted(
        input=input_,
        output=output,
        first_speaker=cast('Literal["user", "endpoint"]', first),
        scheme=options.choice("auth_scheme", ("Token", "Bearer"), "Token"),
        message=laid_over(message, options.table("settings")),
    )


def _sound(options: OptionTable, name: str, rate: int | None, place: str) -> Sound:
    chosen = options.choice(name, tuple(_NAMES), "linear16")
    encoding = _NAMES[chosen]
    if encoding != "pcm16" and rate not in {None, 8000}:
        raise UserError(place, str(rate), f"{chosen} is at 8000: leave the rate out")
    if rate is not None and not _LEAST_RATE <= rate <= _MOST_RATE:
        raise UserError(place, str(rate), f"use {_LEAST_RATE} to {_MOST_RATE}")
    return Sound(encoding, rate or (_RATE if encoding == "pcm16" else 8000), chosen)


def _agent(settings: Settings, options: OptionTable) -> Json:
    if options.has("agent_id"):
        refuse(
            "deepgram",
            STORED_AGENT,
            model=settings.model,
            instructions=settings.instructions,
            voice=settings.voice,
            temperature=settings.temperature,
        )
        for other in ("agent", "greeting", "listen_model", "think_provider"):
            if options.has(other):
                cure = "remove it: the stored agent has its own"
                raise UserError(f"options.{other}", "is set beside options.agent_id", cure)
        return options.text("agent_id")
    provider: dict[str, Json] = {
        "type": options.text("think_provider", "open_ai"),
        "model": settings.model or DEFAULT_MODEL,
    }
    if settings.temperature is not None:
        provider["temperature"] = settings.temperature
    think: dict[str, Json] = {"provider": provider}
    if settings.instructions:
        think["prompt"] = settings.instructions
    agent: dict[str, Json] = {"think": think}
    if options.has("listen_model"):
        agent["listen"] = {"provider": _deepgram(options.text("listen_model"))}
    if settings.voice:
        agent["speak"] = {"provider": _deepgram(settings.voice)}
    if options.has("greeting"):
        agent["greeting"] = options.text("greeting")
    return cast("Json", laid_over(agent, options.table("agent")))


def _deepgram(model: str) -> dict[str, Json]:
    """Return a provider of Deepgram's own; models of the Flux family need their version told."""
    found: dict[str, Json] = {"type": "deepgram", "model": model}
    return {**found, "version": "v2"} if model.startswith("flux") else found
