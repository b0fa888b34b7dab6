"""The options of kind `ultravox`, checked, and the call that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from voxmeter.endpoints.codec import Json, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.hosted import STORED_AGENT, only_silence, refuse
from voxmeter.endpoints.option_table import OptionTable, laid_over

_RATE = 24_000
_BUFFER_MS = 30_000

OPTIONS = {
    "agent_id": "call an agent of your account, in place of a model with a prompt",
    "greeting": "what the agent says first",
    "first_speaker": "'user' (default without a greeting), or 'endpoint': the agent greets",
    "client_buffer_ms": "how far sound may run ahead of playback (default 30000); 60 paces it",
    "call": "a table laid over the request: vadSettings, languageHint, maxDuration, medium",
}
"""Every option there is, with what it does."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a call is to be, read from `Settings` once.

    Attributes:
        agent_id: The agent that is called, or "".
        input_rate: Samples a second that we send.
        output_rate: Samples a second that come back.
        first_speaker: Who speaks first.
        call: The body of the request.
    """

    agent_id: str
    input_rate: int
    output_rate: int
    first_speaker: Literal["user", "endpoint"]
    call: dict[str, Json]


def read(settings: Settings) -> Wanted:
    """Return what the settings of a session ask for.

    Raises:
        UserError: If an option is unknown or has a value that it cannot have, or if a setting
            asks for something that the protocol has no word for.
    """
    options = OptionTable("ultravox", settings.options, OPTIONS)
    only_silence("ultravox", settings)
    input_rate = _rate("input_rate", settings.input_rate)
    output_rate = _rate("output_rate", settings.output_rate)
    greeting = options.text("greeting")
    first = options.choice(
        "first_speaker", ("user", "endpoint"), "endpoint" if greeting else "user"
    )
    if greeting and first == "user":
        raise options.wrong("first_speaker", "'endpoint', or no greeting")
    agent: dict[str, Json] = {"agent": {"text": greeting} if greeting else {}}
    call: dict[str, Json] = {
        **_described(settings, options),
        "medium": {
            "serverWebSocket": {
                "inputSampleRate": input_rate,
                "outputSampleRate": output_rate,
                "clientBufferSizeMs": options.whole("client_buffer_ms", _BUFFER_MS, 1, 600_000),
                "dataMessages": {"userStartedSpeaking": True, "userStoppedSpeaking": True},
            }
        },
        "firstSpeakerSettings": agent if first == "endpoint" else {"user": {}},
    }
    if settings.session_tag:
        call["metadata"] = {"tag": settings.session_tag}
    return Wanted(
        agent_id=options.text("agent_id"),
        input_rate=input_rate,
        output_rate=output_rate,
        first_speaker=cast('Literal["user", "endpoint"]', first),
        call=laid_over(call, options.table("call")),
    )


def _rate(place: str, rate: int | None) -> int:
    if rate is not None and not 8000 <= rate <= 48_000:
        raise UserError(place, str(rate), "use 8000 to 48000")
    return rate or _RATE


def _described(settings: Settings, options: OptionTable) -> dict[str, Json]:
    """Return what describes a model; an agent of the account has its own."""
    if options.has("agent_id"):
        refuse(
            "ultravox",
            STORED_AGENT,
            model=settings.model,
            instructions=settings.instructions,
            voice=settings.voice,
            temperature=settings.temperature,
        )
        return {}
    known: dict[str, Json] = {
        "model": settings.model,
        "systemPrompt": settings.instructions,
        "voice": settings.voice,
        "temperature": settings.temperature,
    }
    return {name: value for name, value in known.items() if value not in {"", None}}
